#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/registry/kernel_capability.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {

/// Chooses kernels for one device: the device's capabilities and the user's rules in one place. Shared by many threads;
/// rules are read as immutable snapshots, so no lock is held while a condition runs.
class KernelSelector {
 public:
  KernelSelector(KernelRegistry& registry, Device device);

  Device device() const { return device_; }

  /// Adds a rule and returns its id. An unknown op or a kernel name that no backend has is an error.
  std::uint64_t register_rule(OpId op, Condition condition, std::string_view kernel, int priority = 0,
                              std::string_view name = {});
  bool unregister_rule(std::uint64_t id);
  /// User rules of an op in the order they are tried.
  std::vector<Rule> rules(OpId op) const;

  void register_kernel_capability(OpId op, const KernelCapability& capability);
  std::optional<KernelCapability> find_kernel_capability(OpId op, DataType dtype) const;

  /// Chooses among the registered kernels by the device's own profile.
  Selection select(const Problem& problem, const KernelPolicy& policy, const Measurements* measurements = nullptr,
                   std::span<const Exclusion> exclusions = {}) const;
  /// The same for a problem that make_problem, parse_problem or checked gave: it is not looked at again.
  Selection select_checked(const Problem& problem, const KernelPolicy& policy,
                           const Measurements* measurements = nullptr, std::span<const Exclusion> exclusions = {},
                           bool every_workspace = true) const;

 private:
  using RuleMap = std::map<OpId, std::vector<Rule>>;

  KernelRegistry& registry_;
  Device device_;
  std::atomic<std::uint64_t> next_id_{1};
  mutable std::mutex mutex_;
  std::shared_ptr<const RuleMap> rules_;
  std::map<std::pair<OpId, DataType>, KernelCapability> capabilities_;
};

}  // namespace xpuruntime
