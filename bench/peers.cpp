#include "peers.h"

#include <dlfcn.h>

#include "timing.h"

namespace xpuruntime::bench {

#ifdef XRT_TORCH_PEER

std::optional<TorchFigures> measure_torch(std::string& why) {
  void* library = dlopen(XRT_TORCH_PEER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = dlerror();
    return std::nullopt;
  }
  using Block = void (*)(std::uint64_t);
  const auto block = [&](const char* name) { return reinterpret_cast<Block>(dlsym(library, name)); };
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "torch_peer_version"));
  TorchFigures figures;
  figures.plain = ns_per_call(block("torch_peer_plain"));
  figures.autocast = ns_per_call(block("torch_peer_autocast"));
  figures.inference = ns_per_call(block("torch_peer_inference"));
  figures.version = version();
  return figures;
}

#else

std::optional<TorchFigures> measure_torch(std::string& why) {
  why = "PyTorch was not found when this was built; pass -DXRT_TORCH_DIR=<folder of the torch package>";
  return std::nullopt;
}

#endif

}  // namespace xpuruntime::bench
