#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "xpuruntime/device/source_function.h"
#include "xpuruntime/registry/kernel.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/tune/work_group_tuner.h"

namespace xpuruntime {

/// A kernel of your own in OpenCL C.
struct OpenclKernelSpec {
  std::string name = {};          // of the __kernel function
  std::string source = {};        // its text
  std::string file = {};          // or the file that has it
  WorkSize work_group_size = {};  // zeros: the driver's choice
  std::string flags = {};         // of the compiler: "-D TILE=16"
  bool tune = false;              // fits the work-group size to the device, at the first run with a global size
};

/// Local memory as an argument.
struct LocalMemory {
  std::size_t bytes = 0;
};

FunctionArgument kernel_argument(const Tensor& tensor);
FunctionArgument kernel_argument(LocalMemory local);
/// By value, as the parameter's type: std::int32_t for int, float for float, std::uint64_t for ulong.
template <class T>
requires std::is_arithmetic_v<T> FunctionArgument kernel_argument(T value) {
  FunctionArgument argument;
  argument.value.resize(sizeof value);
  std::memcpy(argument.value.data(), &value, sizeof value);
  using Number = FunctionArgument::Number;
  argument.number = std::is_floating_point_v<T> ? Number::real : Number::integer;
  return argument;
}

/// How a kernel serves an op. Its parameters are the inputs in order, the outputs in order, and the number of elements
/// of the first output as a ulong: work-items past that number have nothing to do.
struct OpenclKernelForOp {
  DataTypeSet dtypes = DataType::float32;                                      // of all tensors, which are contiguous
  std::function<Verdict(const Problem&, const DeviceProfile&)> supports = {};  // beyond that; empty: everything
  std::function<WorkSize(const Problem&)> global_size = {};                    // empty: an item for each element
  bool deterministic = true;
};

/// Builds, runs and keeps an OpenCL kernel. Copies share what was built. Compiled in a process of its own and kept on
/// disk, like this library's own kernels; an error shows the line of the source.
class OpenclKernel {
 public:
  /// Reads the file, if one is named. `runtime` must outlive it; null: the global one.
  explicit OpenclKernel(OpenclKernelSpec spec, Runtime* runtime = nullptr);

  const OpenclKernelSpec& spec() const;
  /// "sha256:..." of source, name and flags: what locks, stores and results know it by.
  const std::string& version() const;

  /// The types of its parameters as the source writes them: {"__global float*", "float", "ulong"}. Nothing where the
  /// source does not say so plainly, such as by a macro.
  std::vector<std::string> parameter_types() const;

  /// Compiles it for a device now; a run does that when it has to.
  FunctionLimits build(Device device = {DeviceType::opencl, 0}) const;
  /// What was compiled, for a WorkGroupTuner, and how an Autotuner knows it.
  std::shared_ptr<SourceFunction> function(Device device) const;
  TunedKernel tuned_as(Device device) const;
  /// The arguments with copies of the tensors, for runs that must change nothing.
  std::vector<FunctionArgument> copies_of(const std::vector<FunctionArgument>& arguments) const;

  /// Queues a run on the tensors' device, on this thread's current stream: `scale({1024}, x, 2.0f)`. At
  /// least one argument is a tensor. Runs whole work-groups: items past the end of the
  /// data have to be left out by the kernel.
  void run(const std::vector<FunctionArgument>& arguments, const WorkSize& global) const;
  template <class... Arguments>
  void operator()(const WorkSize& global, const Arguments&... arguments) const {
    run({kernel_argument(arguments)...}, global);
  }

  /// Fits the work-group size for this global size, on copies of the tensors; later runs use it.
  WorkGroupResult tune(const std::vector<FunctionArgument>& arguments, const WorkSize& global) const;

  /// Registers it for an op, before the kernels that are there; with `tune`, tuning races its local sizes.
  void register_for(OpId op, OpenclKernelForOp how = {}) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace xpuruntime
