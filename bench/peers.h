#pragma once

#include <optional>
#include <string>

namespace xpuruntime::bench {

/// What PyTorch takes, in this process, to dispatch an op of three tensors that does nothing; nanoseconds.
struct TorchFigures {
  double plain = 0;
  double autocast = 0;   // the same with autocast on and nothing to cast
  double inference = 0;  // below autograd, as in inference mode
  std::string version = {};
};

/// Nothing where PyTorch is not installed; `why` then says so.
std::optional<TorchFigures> measure_torch(std::string& why);

}  // namespace xpuruntime::bench
