#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/driver.h"
#include "backends/opencl/index.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

/// The opened device that a kernel is prepared for; an error if the driver is not this backend's.
DeviceContext& context_of(const PrepareContext& context);

/// Names a storage type to the sources: " -D A_TYPE=f16".
std::string type_option(char letter, DataType dtype);

/// The same as an argument, where one function serves all types: `type_f16` in kernels/common.cl.
constexpr std::int32_t type_number(DataType dtype) { return static_cast<std::int32_t>(dtype); }
inline constexpr std::int32_t no_type = type_number(DataType::boolean) + 1;  // of a tensor that is not given

/// What all functions of kernels/elementwise.cl are built with, so that a device builds it once.
std::string elementwise_options(const PrepareContext& context);

/// For Launch::fault. The message says which value, of which problem, is wrong.
std::shared_ptr<const ValueFault> fault_of(const PrepareContext& context, std::string message);

/// Which function of which source to run, and on how many work-items.
struct LaunchSpec {
  std::string_view source = {};
  const char* function = nullptr;
  std::string options = {};
  std::int64_t items = 0;  // 0: nothing to do
  std::size_t local = 0;   // work-group size; 0: a usual one
};

/// One launch of a plan. Its arguments are named in the order of the function's parameters.
class Launch {
 public:
  Launch(DeviceContext& device, const LaunchSpec& spec);

  // Two parameters each: the buffer, and in it the number of the first element (ulong), of `element` bytes where given.
  Launch& input(std::size_t i, std::size_t element = 0) { return bind(Source::input, i, element); }
  Launch& output(std::size_t i, std::size_t element = 0) { return bind(Source::output, i, element); }
  /// `offset` bytes into the plan's workspace, a multiple of `element` bytes.
  Launch& workspace(std::uint64_t offset = 0, std::size_t element = sizeof(float)) {
    return bind(Source::workspace, offset, element);
  }
  /// One parameter: the word that the function sets where a caller's value is wrong (fault_of). The plan keeps it.
  Launch& fault(std::shared_ptr<const ValueFault> fault);
  /// Left out of runs in which output `i` is the very memory of input `i`.
  Launch& unless_in_place(std::size_t i) {
    unless_in_place_ = i;
    return *this;
  }
  /// The same in every run. Its size must be exactly that of the parameter.
  template <class T>
  Launch& constant(const T& value) {
    return constant(&value, sizeof(value));
  }
  /// Local memory of this many bytes.
  Launch& local(std::size_t bytes) { return constant(nullptr, bytes); }

  /// To be called by one thread at a time: a cl_kernel holds its arguments until it is queued. Where the device lacks
  /// memory, its work is waited for, which may free some, and it is tried once more.
  Status queue(cl_command_queue queue, const RunArguments& arguments) const;

 private:
  enum class Source : std::uint8_t { input, output, workspace };
  struct Binding {
    Source source;
    std::size_t index;    // of the tensor, or bytes into the workspace
    std::size_t element;  // 0: the tensor's
    cl_uint position;
  };
  Launch& bind(Source source, std::size_t index, std::size_t element);
  Launch& constant(const void* value, std::size_t bytes);
  Status set(const Binding& binding, const RunArguments& arguments) const;

  KernelHandle kernel_;
  std::size_t items_ = 0;
  std::size_t local_ = 0;
  cl_uint next_ = 0;
  std::vector<Binding> bindings_;
  std::optional<std::size_t> unless_in_place_;
  std::shared_ptr<const ValueFault> fault_;
  cl_uint fault_position_ = 0;
};

/// Plan of every kernel here: launches one after the other.
class LaunchPlan final : public Plan {
 public:
  explicit LaunchPlan(DeviceContext& device, std::string token = {}, std::uint64_t workspace_bytes = 0);

  /// The next launch. The reference is good until the one after it.
  Launch& add(const LaunchSpec& spec) { return launches_.emplace_back(device_, spec); }

  Status run(const RunArguments& arguments) const override;
  std::string token() const override { return token_; }
  std::optional<std::uint64_t> workspace_bytes() const override { return workspace_bytes_; }
  bool outlives_its_work() const override { return false; }  // OpenCL keeps what queued work uses

 private:
  DeviceContext& device_;
  std::string token_;
  std::uint64_t workspace_bytes_;
  std::vector<Launch> launches_;
  mutable Mutex mutex_;  // setting arguments and queueing is one step
};

}  // namespace xpuruntime::opencl
