#include "backends/cpu/onednn/library.h"

#include <dlfcn.h>

#include <type_traits>

#include "registry/shared_object.h"

namespace dnnl {
#define XRT_POINTER(name) decltype(&::name) name = nullptr;
XRT_ONEDNN_FUNCTIONS(XRT_POINTER)
#undef XRT_POINTER
}  // namespace dnnl

namespace xpuruntime::cpu {
namespace {

// What it calls is looked for in what it links before the rest of the process, where PyTorch puts an OpenMP for all.
// The runtimes of sanitizers must come first everywhere, and end a process that asks for this.
int own_scope() { return dlsym(RTLD_DEFAULT, "__sanitizer_set_death_callback") == nullptr ? RTLD_DEEPBIND : 0; }

void* open(const char* file) {
  // By its path: a name alone would be answered by whatever is loaded under it.
  return dlopen((parts_folder() + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | own_scope());
}

std::string open_onednn() {
  void* library = nullptr;
  // The first is found under its name when the second asks for it.
  for (const char* file : {"libxpuruntime_openmp.so", "libxpuruntime_onednn.so"}) {
    library = open(file);
    if (library != nullptr) continue;
    const char* why = dlerror();
    return std::string("oneDNN could not be opened: ") + (why != nullptr ? why : file) + "; install what it links";
  }
  std::string missing;
  const auto find = [&](auto& pointer, const char* name) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, name));
    if (pointer == nullptr) missing = std::string("this oneDNN has no ") + name;
  };
#define XRT_FIND(name) find(dnnl::name, #name);
  XRT_ONEDNN_FUNCTIONS(XRT_FIND)
#undef XRT_FIND
  return missing;
}

}  // namespace

const std::string& why_no_onednn() {
  static const std::string& why = *new std::string(open_onednn());  // for ever, like all that a decision reads
  return why;
}

}  // namespace xpuruntime::cpu
