#include "cpu_peers.h"

#include <dlfcn.h>

namespace xpuruntime::bench {

#ifdef XRT_TORCH_OPS_PEER

std::unique_ptr<Peer> open_torch_ops(int threads, std::string& why) {
  // Its own symbols first: PyTorch brings a BLAS whose names ours has too.
  void* library = dlopen(XRT_TORCH_OPS_PEER, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  void* make = library == nullptr ? nullptr : dlsym(library, "make_torch_peer");
  if (make == nullptr) {
    why = dlerror();
    return nullptr;
  }
  return std::unique_ptr<Peer>(reinterpret_cast<MakeTorchPeer>(make)(threads));
}

#else

std::unique_ptr<Peer> open_torch_ops(int, std::string& why) {
  why = "it was not found when this was built; pass -DXRT_TORCH_DIR=<folder of the torch package>";
  return nullptr;
}

#endif

}  // namespace xpuruntime::bench
