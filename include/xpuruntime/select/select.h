#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/registry/kernel.h"
#include "xpuruntime/select/decision.h"
#include "xpuruntime/select/lock.h"
#include "xpuruntime/select/policy.h"
#include "xpuruntime/select/rule.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

/// A kernel that must not be chosen for this problem, and why: its plan failed before.
struct Exclusion {
  std::string kernel = {};
  std::string reason = {};
};

/// Everything a choice is made from. The problem is one that make_problem, parse_problem or checked gave.
struct SelectionInputs {
  const Problem& problem;
  const DeviceProfile& profile;
  std::span<const std::shared_ptr<const Kernel>> kernels;  // of this op on this device type, in table order
  const KernelPolicy& policy;
  std::span<const Rule> user_rules = {};  // of this op, in the order they are tried
  std::span<const BuiltinRule> builtin_rules = {};
  const Measurements* measurements = nullptr;
  std::span<const Exclusion> exclusions = {};
  /// Whether the record shows what every candidate would ask for; else only those are asked whose answer counts, as
  /// some libraries find it out by half preparing a plan.
  bool every_workspace = true;
  const LockUse* lock = nullptr;  // null, or one without a lock: nothing is locked
  /// The profile describes a device that is not here: workspaces are asked for only where the choice depends on them,
  /// as some libraries know them on the machine itself alone.
  bool described = false;
};

struct Selection {
  Decision decision = {};
  std::shared_ptr<const Kernel> kernel = nullptr;  // null: nothing fits; decision.because says why
};

/// lock > force > prefer > user rules > strategy > error, as a pure function: no clock, no device, no global state.
Selection select(const SelectionInputs& inputs);

}  // namespace xpuruntime
