#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/registry/kernel_capability.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/select/kernel_performance_stats.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {

class CapabilityTable;
class KernelProbe;
class PerformanceTable;
struct NamedOp;

/// An op by id or by name, in any case: its own name or an alias of it, followed by a dtype or not
/// (`conv2d_fp16` is conv2d in float16), or the name of an op of the caller's own that a capability was registered for.
class OpRef {
 public:
  OpRef(OpId id) : id_(id) {}
  OpRef(std::string_view name) : name_(name) {}
  OpRef(const std::string& name) : name_(name) {}
  OpRef(const char* name) : name_(name == nullptr ? "" : name) {}

  std::optional<OpId> id() const { return id_; }
  std::string_view name() const { return name_; }  // empty where there is an id

 private:
  std::optional<OpId> id_ = {};
  std::string_view name_ = {};
};

/// Chooses kernels for one device: the device's capabilities, the times they took and the user's rules in one place.
/// Shared by many threads; rules are read as immutable snapshots, so no lock is held while a condition runs.
class KernelSelector {
 public:
  KernelSelector(KernelRegistry& registry, Device device);
  ~KernelSelector();
  KernelSelector(const KernelSelector&) = delete;
  KernelSelector& operator=(const KernelSelector&) = delete;

  Device device() const { return device_; }

  /// Adds a rule and returns its id. An unknown op or a kernel name that no backend has is an error.
  std::uint64_t register_rule(OpId op, Condition condition, std::string_view kernel, int priority = 0,
                              std::string_view name = {});
  bool unregister_rule(std::uint64_t id);
  /// User rules of an op in the order they are tried.
  std::vector<Rule> rules(OpId op) const;

  // Precision. An unknown op is an error that lists the near ones; so is a name such as `conv2d_fp16` with a dtype that
  // is not the one it names. auto_select means no preference, or with such a name the dtype that it names.

  /// Its own precision; float32 for everything but 16-bit floats.
  KernelDtype get_kernel_dtype(const Tensor& tensor) const;
  /// The one that all have, mixed where their dtypes differ, float32 for none.
  KernelDtype get_kernel_dtype(std::span<const Tensor> tensors) const;
  /// What the dispatcher would compute these inputs in, without loss: FP16 with BF16 or FP32 is float32, integers are
  /// ignored. FP64 and integers alone are float32 here, and computed in their own type.
  KernelDtype get_kernel_dtype(OpRef op, std::span<const DataType> input_dtypes) const;
  KernelDtype get_kernel_dtype(OpRef op, std::initializer_list<DataType> input_dtypes) const {
    return get_kernel_dtype(op, std::span(input_dtypes.begin(), input_dtypes.size()));
  }

  /// Whether this device can run the op in this precision: by the capability that was registered, else because a
  /// kernel of the registry takes a usual problem of it. Default capabilities describe, they do not count here.
  bool is_kernel_available(OpRef op, KernelDtype dtype) const;

  /// Replaces what was registered for the op and the capability's dtype. A name that is not an op becomes one of the
  /// caller's own, known to this selector.
  void register_kernel_capability(OpRef op, const KernelCapability& capability);
  std::optional<KernelCapability> find_kernel_capability(OpRef op, KernelDtype dtype) const;

  /// The preferred dtype if it is available, else that of the first floating input that is, else float32.
  KernelDtype select_best_kernel(OpRef op, std::span<const DataType> input_dtypes,
                                 std::optional<KernelDtype> preferred = {}) const;
  KernelDtype select_best_kernel(OpRef op, std::initializer_list<DataType> input_dtypes,
                                 std::optional<KernelDtype> preferred = {}) const {
    return select_best_kernel(op, std::span(input_dtypes.begin(), input_dtypes.size()), preferred);
  }

  /// Milliseconds; negative, infinite or NaN, or the dtype auto_select, is an error and changes nothing.
  void update_performance_stats(OpRef op, KernelDtype dtype, double execution_time_ms);
  /// The times that were given here, and those in `measured` (a dispatcher's statistics) of problems of this op on this
  /// device whose inputs resolve to exactly this dtype. auto_select sums up all dtypes. Nothing if there are none.
  std::optional<KernelPerformanceStats> get_performance_stats(OpRef op, KernelDtype dtype,
                                                              const Statistics* measured = nullptr) const;

  /// Chooses among the registered kernels by the device's own profile, for the problem in its own dtypes: only the
  /// dispatcher casts.
  Selection select(const Problem& problem, const KernelPolicy& policy, const Measurements* measurements = nullptr,
                   std::span<const Exclusion> exclusions = {}) const;
  /// The same for a problem that make_problem, parse_problem or checked gave: it is not looked at again.
  Selection select_checked(const Problem& problem, const KernelPolicy& policy,
                           const Measurements* measurements = nullptr, std::span<const Exclusion> exclusions = {},
                           bool every_workspace = true, const LockUse* lock = nullptr) const;

 private:
  friend class KernelRegistry;
  using RuleMap = std::map<OpId, std::vector<Rule>>;

  void set_default_capability(OpId op, const KernelCapability& capability);
  bool available(const NamedOp& op, KernelDtype dtype) const;

  KernelRegistry& registry_;
  Device device_;
  std::atomic<std::uint64_t> next_id_{1};
  mutable Mutex mutex_;
  std::shared_ptr<const RuleMap> rules_;
  const std::unique_ptr<CapabilityTable> capabilities_;
  const std::unique_ptr<KernelProbe> probe_;
  const std::unique_ptr<PerformanceTable> performance_;
};

}  // namespace xpuruntime
