#include "backends/opencl/worker_kernels.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>

namespace xpuruntime::opencl {
namespace {

std::atomic<bool> disarmed = false;
std::mutex mutex;
std::string loaded;  // under the mutex: PoCL loads in threads of its own

void do_nothing() {}

/// Stands in for dlsym in PoCL's libraries.
void* look_up(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr || !disarmed || !std::string_view(name).starts_with("_pocl_kernel_")) return found;
  link_map* file = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &file) == 0) {
    const std::lock_guard lock(mutex);
    loaded = file->l_name;
  }
  return reinterpret_cast<void*>(&do_nothing);
}

/// What the loader keeps of a library, as far as it is needed to find the addresses of what it calls.
struct Imports {
  const char* names = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  struct {
    const ElfW(Rela) * first = nullptr;
    std::size_t bytes = 0;
  } tables[2] = {};  // of functions, and of all else

  explicit Imports(const ElfW(Dyn) * at) {
    for (; at->d_tag != DT_NULL; ++at) {
      const auto address = at->d_un.d_ptr;
      if (at->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
      if (at->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (at->d_tag == DT_JMPREL) tables[0].first = reinterpret_cast<const ElfW(Rela)*>(address);
      if (at->d_tag == DT_PLTRELSZ) tables[0].bytes = at->d_un.d_val;
      if (at->d_tag == DT_RELA) tables[1].first = reinterpret_cast<const ElfW(Rela)*>(address);
      if (at->d_tag == DT_RELASZ) tables[1].bytes = at->d_un.d_val;
    }
  }
};

/// The loader has made the page with these addresses read-only.
bool put(ElfW(Addr) slot, void* function) {
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  if (mprotect(reinterpret_cast<void*>(slot & ~(page - 1)), page, PROT_READ | PROT_WRITE) != 0) return false;
  *reinterpret_cast<void**>(slot) = function;
  return true;
}

int redirect(dl_phdr_info* library, std::size_t, void* found) {
  if (std::string_view(library->dlpi_name).find("libpocl") == std::string_view::npos) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const Imports imports(reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr));
    for (const auto& [first, bytes] : imports.tables) {
      for (const auto* at = first; at != first + bytes / sizeof *first; ++at) {
        const auto& symbol = imports.symbols[ELF64_R_SYM(at->r_info)];
        if (std::string_view(imports.names + symbol.st_name) == "dlsym" &&
            put(library->dlpi_addr + at->r_offset, reinterpret_cast<void*>(&look_up)))
          *static_cast<bool*>(found) = true;
      }
    }
  }
  return 0;
}

}  // namespace

Disarmed::Disarmed() {
  static const bool redirected = [] {
    bool found = false;
    dl_iterate_phdr(redirect, &found);
    return found;
  }();
  is_ = redirected;
  disarmed = true;
}

Disarmed::~Disarmed() { disarmed = false; }

std::string take_loaded_code() {
  const std::lock_guard lock(mutex);
  return std::exchange(loaded, {});
}

}  // namespace xpuruntime::opencl
