#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace xpuruntime::bench {

/// PyTorch's dispatch, in this process, of an op of three tensors that does nothing: blocks of calls to be timed.
struct TorchPeer {
  std::function<void(std::uint64_t)> plain = {};
  std::function<void(std::uint64_t)> autocast = {};   // with autocast on and nothing to cast
  std::function<void(std::uint64_t)> inference = {};  // below autograd, as in inference mode
  std::string version = {};
};

/// Nothing where PyTorch is not installed; `why` then says so.
std::optional<TorchPeer> open_torch(std::string& why);

}  // namespace xpuruntime::bench
