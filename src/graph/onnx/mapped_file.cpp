#include "graph/onnx/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/printable.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime::onnx {
namespace {

[[noreturn]] void refuse_file(ErrorCode code, const std::string& path, const std::string& why) {
  fail(code, reader, "'" + shown(path) + "' " + why);
}

[[noreturn]] void refuse_opening(const std::string& path, int error) {
  refuse_file(
      ErrorCode::io_error, path,
      std::string("cannot be read: ") + std::strerror(error) + "; check that it exists and that you may read it");
}

/// The size of a file that may be mapped.
std::size_t mappable_size(const struct stat& found, const std::string& path) {
  if (!S_ISREG(found.st_mode)) refuse_file(ErrorCode::io_error, path, "is no regular file; name one");
  if (found.st_size == 0) refuse_file(ErrorCode::corrupt_data, path, "is empty; export the model again");
  return static_cast<std::size_t>(found.st_size);
}

void read_all(int handle, std::span<std::byte> to, const std::string& path) {
  while (!to.empty()) {
    const ssize_t got = read(handle, to.data(), to.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_opening(path, errno);
    if (got == 0) refuse_file(ErrorCode::io_error, path, "is being written over: it became shorter while it was read");
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

struct Unmap {
  std::size_t size = 0;
  void operator()(void* mapped) const { munmap(mapped, size); }
};

}  // namespace

SharedBytes map_file(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) refuse_opening(path, errno);
  (void)mappable_size(found, path);  // to open a device may already do something
  const int handle = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (handle < 0) refuse_opening(path, errno);
  const std::shared_ptr<void> closed_at_end(nullptr, [handle](void*) { close(handle); });
  if (fstat(handle, &found) != 0) refuse_opening(path, errno);
  const std::size_t size = mappable_size(found, path);
  constexpr std::size_t most_read = std::size_t{32} << 20;
  if (size <= most_read) {
    const Tensor copy = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(size)});
    read_all(handle, {copy.as<std::byte>(), size}, path);
    return {{copy.as<const std::byte>(), size}, copy.owner(), false};
  }
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, handle, 0);
  if (memory == MAP_FAILED) refuse_opening(path, errno);
  return {{static_cast<const std::byte*>(memory), size}, std::shared_ptr<void>(memory, Unmap{size})};
}

void forget_pages(std::span<const std::byte> bytes, const std::shared_ptr<void>& owner) {
  if (std::get_deleter<Unmap>(owner) == nullptr) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void forget_file(const std::shared_ptr<void>& owner) {
  if (const Unmap* mapped = std::get_deleter<Unmap>(owner)) madvise(owner.get(), mapped->size, MADV_DONTNEED);
}

SharedBytes copy_bytes(std::span<const std::byte> bytes) {
  const Tensor copy = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(bytes.size())});
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return {{static_cast<const std::byte*>(copy.data()), bytes.size()}, copy.owner()};
}

}  // namespace xpuruntime::onnx
