#include "registry/shared_object.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

namespace xpuruntime {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);

constexpr const char* cut_off = "is cut off: it is shorter than its own headers say; copy or build it again";
constexpr unsigned char word_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;

bool reaches_past(std::uint64_t offset, std::uint64_t bytes, std::uint64_t end) {
  return offset > end || bytes > end - offset;
}

std::string flaw_of_segments(std::ifstream& file, const Header& header, std::uint64_t size) {
  std::vector<Segment> segments(header.e_phnum);
  const std::uint64_t bytes = segments.size() * sizeof(Segment);
  if (reaches_past(header.e_phoff, bytes, size)) return cut_off;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  if (!file.read(reinterpret_cast<char*>(segments.data()), static_cast<std::streamsize>(bytes))) return cut_off;
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_LOAD && reaches_past(segment.p_offset, segment.p_filesz, size)) return cut_off;
  }
  return {};
}

}  // namespace

std::string flaw_of_shared_object(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "cannot be read; check that you may read it";
  const auto size = static_cast<std::uint64_t>(file.tellg());
  file.seekg(0);
  Header header = {};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto got = static_cast<std::size_t>(file.gcount());
  if (got < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "is not a shared library; give the path of one";
  }
  if (got < sizeof header) return cut_off;
  if (header.e_ident[EI_CLASS] != word_class || header.e_type != ET_DYN || header.e_phentsize != sizeof(Segment)) {
    return "is not a shared library for this machine; build it here";
  }
  // The table of sections stands last: without it something was lost, even if the loader has no use for it.
  if (reaches_past(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize, size)) return cut_off;
  return flaw_of_segments(file, header, size);
}

std::string parts_folder() {
  Dl_info info = {};
  const bool known = dladdr(reinterpret_cast<const void*>(&parts_folder), &info) != 0 && info.dli_fname != nullptr;
  const std::string path = known ? info.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1) + "xpuruntime";
}

}  // namespace xpuruntime
