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
  /// Kernels of the op copy on this device type, in table order: kernels that refuse only the layout or the alignment
  /// of tensors are candidates with copies made by these. None: they are refused.
  std::span<const std::shared_ptr<const Kernel>> copy_kernels = {};
};

struct Selection {
  Decision decision = {};
  /// Null: nothing fits; decision.because says why. Prepares with its copies, where the decision has some.
  std::shared_ptr<const Kernel> kernel = nullptr;
  /// Of the plan that a lock or a race names; empty: the kernel chooses.
  std::string token = {};
};

/// lock > force > prefer > user rules > strategy > error, as a pure function: no clock, no device, no global state.
Selection select(const SelectionInputs& inputs);

}  // namespace xpuruntime
