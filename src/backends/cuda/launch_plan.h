#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/check.h"
#include "backends/cuda/launch.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cuda {

inline cudaStream_t native_stream(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

/// A plan that is one launch of our own: all its choices are in the parameters, which the launch copies, so it may go
/// while its work is still queued. One that checks values on the device may not: queued work writes to its word.
template <class Launch>
class LaunchPlan final : public Plan {
 public:
  LaunchPlan(const char* name, Device device, const Launch& parameters, std::string token = {},
             std::unique_ptr<ValueFault> fault = nullptr)
      : name_(name),
        device_(device.index),
        parameters_(parameters),
        token_(std::move(token)),
        fault_(std::move(fault)) {}

  Status run(const RunArguments& arguments) const override {
    Pointers pointers;
    if (arguments.inputs.size() > std::size(pointers.inputs))
      return Status(ErrorCode::internal, std::string(name_) + ": more inputs than a launch has room for");
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
      pointers.inputs[i] = arguments.inputs[i]->as<const std::byte>();
    }
    pointers.output = arguments.outputs[0]->as<std::byte>();
    if (arguments.outputs.size() > 1) pointers.second_output = arguments.outputs[1]->as<std::byte>();
    pointers.workspace = arguments.workspace;
    pointers.fault = fault_ ? fault_->word() : nullptr;
    const ScopedDevice scope(device_);
    if (scope.error() != cudaSuccess) return to_status(scope.error(), name_);
    return to_status(launch(parameters_, pointers, native_stream(arguments.stream)), name_);
  }

  std::string token() const override { return token_; }
  bool outlives_its_work() const override { return fault_ != nullptr; }
  bool sets_device() const override { return true; }

 private:
  const char* name_;
  int device_;
  Launch parameters_;
  std::string token_;
  std::unique_ptr<ValueFault> fault_;
};

}  // namespace xpuruntime::cuda
