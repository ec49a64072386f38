#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  /// With the compiled function of an earlier launch, where that is the same one.
  Launch(DeviceContext& device, const LaunchSpec& spec, Launch* earlier = nullptr);

  // Two parameters each: the buffer, and in it the number of the first element (ulong), of `element` bytes where given.
  Launch& input(std::size_t i, std::size_t element = 0) { return bind(Source::input, i, element); }
  Launch& output(std::size_t i, std::size_t element = 0) { return bind(Source::output, i, element); }
  /// `offset` bytes into the plan's workspace, a multiple of `element` bytes.
  Launch& workspace(std::uint64_t offset = 0, std::size_t element = sizeof(float)) {
    return bind(Source::workspace, offset, element);
  }
  /// One parameter: the word that the function sets where a caller's value is wrong (LaunchPlan::fault).
  Launch& fault(std::shared_ptr<const Fault> fault);
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

  std::string function_;  // with its options
  KernelHandle kernel_;
  std::size_t largest_local_ = 1;
  std::size_t items_ = 0;
  std::size_t local_ = 0;
  CodeVariant variant_;  // whose machine code is made
  cl_uint next_ = 0;
  std::vector<Binding> bindings_;
  std::optional<std::size_t> unless_in_place_;
  std::shared_ptr<const Fault> fault_;
  cl_uint fault_position_ = 0;
};

class LaunchPlan;
/// Adds the launches of a problem to a plan, which has none.
using Fill = std::function<void(LaunchPlan&, const Problem&, const PrepareContext&)>;

/// Plan of every kernel here: launches one after the other.
class LaunchPlan final : public Plan {
 public:
  explicit LaunchPlan(DeviceContext& device, std::string token = {}, std::optional<std::uint64_t> workspace_bytes = 0);
  /// For every problem of a class: where a run's tensors are laid out in another way than the last one's, `fill` adds
  /// the launches for them, and what was compiled stays. `context` refers to what outlives the plan.
  LaunchPlan(const Problem& problem, const PrepareContext& context, Fill fill, std::string token = {},
             std::optional<std::uint64_t> workspace_bytes = 0);

  /// The next launch. The reference is good until the one after it.
  Launch& add(const LaunchSpec& spec);
  /// For Launch::fault. The message says which value, of which op, is wrong; it names no extent that may grow.
  std::shared_ptr<const Fault> fault(const PrepareContext& context, const std::string& message);

  Status run(const RunArguments& arguments) const override;
  std::string token() const override { return token_; }
  std::optional<std::uint64_t> workspace_bytes() const override { return workspace_bytes_; }
  bool outlives_its_work() const override { return false; }  // OpenCL keeps what queued work uses

 private:
  /// What the launches are made for, where that may change.
  struct Growing {
    Problem problem;
    PrepareContext context;
    Fill fill;
    std::vector<Launch> earlier = {};  // whose functions are used again
    bool filled = true;                // else the last attempt failed
  };
  bool fits(const RunArguments& arguments) const;
  void fill_for(const RunArguments& arguments);

  DeviceContext& device_;
  std::string token_;
  std::optional<std::uint64_t> workspace_bytes_;
  std::vector<Launch> launches_;
  std::map<std::string, std::shared_ptr<const Fault>> faults_;  // by message
  std::optional<Growing> growing_;
  mutable Mutex mutex_;  // setting arguments and queueing is one step
};

}  // namespace xpuruntime::opencl
