#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/precision/op_precision_rule.h"
#include "xpuruntime/select/rule_list.h"

namespace xpuruntime {

/// How a kernel is chosen where neither the policy nor a rule names one.
enum class Strategy : std::uint8_t { first_supported, best_performance, lowest_memory };
std::string_view to_string(Strategy strategy);
/// Reads `first_supported`, `FirstSupported` or the integers 0, 1, 2.
Strategy parse_strategy(std::string_view name);

/// What a policy says about one op: a kernel it would like, a list in order of liking, or one that must run.
struct KernelPreference {
  std::vector<std::string> kernels = {};
  bool force = false;     // run it or fail with the reason; only with a single kernel
  std::string name = {};  // the op's name as it was given, and goes into files ("conv"); empty: the op's own

  /// Two that say the same of an op are equal, whatever they call it.
  bool operator==(const KernelPreference& other) const { return kernels == other.kernels && force == other.force; }
};

/// Which kernel for which op, and the bounds. A value: versioned as a file, merged, compared.
/// A field that is not set takes part in nothing: merging keeps the other's.
struct KernelPolicy {
  using AutoSelectStrategy = Strategy;

  std::map<OpId, KernelPreference> preferences = {};
  RuleList rules = {};  // tried in order, after the preferences and before rules registered in code
  std::map<OpId, DirectionPrecisions> precision = {};  // stronger than autocast, and in force without it
  std::optional<Strategy> auto_strategy = {};
  std::optional<DataType> default_precision = {};  // a float type, or int8, which no tensor is cast to
  std::optional<std::uint64_t> workspace_limit_bytes = {};
  std::optional<bool> deterministic = {};
  std::optional<std::uint32_t> threads = {};  // of the CPU, for one call; 1 or more

  bool operator==(const KernelPolicy&) const = default;

  // By any name of the op; unknown ops and kernel names that no backend has are errors that list the near ones.
  KernelPolicy& set(std::string_view op, std::string_view kernel);
  KernelPolicy& set_order(std::string_view op, const std::vector<std::string>& kernels);
  KernelPolicy& force(std::string_view op, std::string_view kernel);
  const KernelPreference* get(std::string_view op) const;
  bool remove(std::string_view op);

  /// "lower", "higher", "keep" or a dtype for each direction; see parse_requested_precision. An empty text leaves a
  /// direction open; both may not be.
  KernelPolicy& set_precision(std::string_view op, std::string_view forward, std::string_view backward = {});
  bool remove_precision(std::string_view op);

  /// This policy with the other's fields where those are set. The other's rules come before ours.
  KernelPolicy merge(const KernelPolicy& other) const;

  /// Fails if a preference names no kernel, forces several, or names one that no backend has, or if a rule or a
  /// precision is wrong. Fields may be set by hand; a policy is checked when it is put in force.
  void check() const;

  Limits limits() const { return {workspace_limit_bytes, deterministic.value_or(false), threads}; }
  /// Says nothing but these limits. Calls take theirs from the policy: so those of a problem's text come into force.
  static KernelPolicy from_limits(const Limits& limits);

  /// The file format; docs/interfaces.md describes it, docs/policies.md how to write one.
  std::string to_json() const;
  /// Unknown keys, ops and kernels, wrong types, comments and trailing text are errors with line and column.
  static KernelPolicy from_json(std::string_view json);
  static KernelPolicy load(const std::string& path);
  /// Writes to a temporary name, syncs, renames: the file is the old one or the new one.
  void save(const std::string& path) const;
};

/// The policy of the file that XPURUNTIME_POLICY names; nothing where the variable is unset or empty. A file that is
/// missing or no policy is an error that names the variable.
std::optional<KernelPolicy> policy_from_environment();

/// The policy of this file if a path is given, else of the environment, else an empty one.
KernelPolicy load_policy(const std::string& explicit_path);

}  // namespace xpuruntime
