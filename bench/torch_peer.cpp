// PyTorch's dispatch of an op that does nothing, behind three C functions, so that the benchmark needs no PyTorch to
// build.

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>
#include <torch/version.h>

#include <cstdint>

namespace {

void nothing(const at::Tensor&, const at::Tensor&, const at::Tensor&) {}

TORCH_LIBRARY(xrt_peer, library) {
  library.def("nothing(Tensor a, Tensor b, Tensor(c!) out) -> ()");
  library.impl("nothing", c10::DispatchKey::CPU, TORCH_FN(nothing));
}

// What a user's op has under autocast: a cast policy that finds nothing to cast here.
void nothing_autocast(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::AutocastCPU);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("xrt_peer::nothing", "")
                             .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();
  op.call(at::autocast::cached_cast(at::kBFloat16, a, c10::DeviceType::CPU),
          at::autocast::cached_cast(at::kBFloat16, b, c10::DeviceType::CPU), out);
}

TORCH_LIBRARY_IMPL(xrt_peer, AutocastCPU, library) { library.impl("nothing", TORCH_FN(nothing_autocast)); }

struct Call {
  at::Tensor a = at::empty({128, 768}, at::kBFloat16);
  at::Tensor b = at::empty({768, 768}, at::kBFloat16);
  at::Tensor out = at::empty({128, 768}, at::kBFloat16);
  c10::TypedOperatorHandle<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)> op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("xrt_peer::nothing", "")
          .typed<void(const at::Tensor&, const at::Tensor&, const at::Tensor&)>();

  void repeat(std::uint64_t calls) const {
    for (std::uint64_t i = 0; i < calls; ++i) op.call(a, b, out);
  }
};

const Call& call() {
  static const Call instance;
  return instance;
}

}  // namespace

extern "C" {

void torch_peer_plain(std::uint64_t calls) { call().repeat(calls); }

void torch_peer_autocast(std::uint64_t calls) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  call().repeat(calls);
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

void torch_peer_inference(std::uint64_t calls) {
  const c10::InferenceMode guard;
  static const Call made_inside;
  made_inside.repeat(calls);
}

const char* torch_peer_version() { return TORCH_VERSION; }
}
