#include "peers.h"

#include <dlfcn.h>

namespace xpuruntime::bench {

#ifdef XRT_TORCH_PEER

std::optional<TorchPeer> open_torch(std::string& why) {
  void* library = dlopen(XRT_TORCH_PEER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why = dlerror();
    return std::nullopt;
  }
  using Block = void (*)(std::uint64_t);
  const auto block = [&](const char* name) { return reinterpret_cast<Block>(dlsym(library, name)); };
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "torch_peer_version"));
  return TorchPeer{block("torch_peer_plain"), block("torch_peer_autocast"), block("torch_peer_inference"), version()};
}

#else

std::optional<TorchPeer> open_torch(std::string& why) {
  why = "PyTorch was not found when this was built; pass -DXRT_TORCH_DIR=<folder of the torch package>";
  return std::nullopt;
}

#endif

}  // namespace xpuruntime::bench
