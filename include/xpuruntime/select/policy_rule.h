#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime {

/// How a rule compares what it reads of a call with its own value. docs/policies.md says which goes with which key.
enum class Comparison : std::uint8_t {
  equal,
  not_equal,
  less,
  at_most,
  greater,
  at_least,
  in,
  not_in,
  contains,
  multiple_of
};
/// As files write it: == != < <= > >= in not_in contains multiple_of.
std::string_view to_string(Comparison comparison);

/// A value in a rule. Dtypes, choices and device types are texts, spelled as problem texts print them.
using RuleValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

/// What is asked of one key; all of it must hold. One value each; for in, not_in and contains one or more.
using RuleTests = std::map<Comparison, std::vector<RuleValue>>;

/// "For this op, when all of this holds, use that kernel": a rule that is data, so that a file can hold it.
struct PolicyRule {
  OpId op = OpId::matmul;
  std::map<std::string, RuleTests> when = {};  // by key, such as "m", "dtype", "device.vendor"; empty: always
  std::vector<std::string> use = {};           // kernels, in order; the first that can run it
  std::string name = {};                       // shown in decisions
  std::string range = {};                      // a problem text with ranges that calls must be in; empty: any call
  std::string plan = {};                       // which plan of the first of `use`; empty: its own choice

  bool operator==(const PolicyRule&) const = default;

  /// Whether all tests hold. A key that the call has nothing for (input 3 of two, a limit that is not set) fails every
  /// test. Of a range, alignments and the device's index do not count, and of its limits those that it names. The
  /// problem is one that make_problem, parse_problem or checked gave; a rule that check refuses is an error.
  bool matches(const Problem& problem, const DeviceProfile& profile) const;

  /// Fails if the range cannot be read or is of another op, a key is none of the op's, a comparison or a value does not
  /// go with its key, or no backend has a kernel.
  void check() const;
};

enum class RuleKeyKind : std::uint8_t { boolean, integer, real, text, integers, texts };
std::string_view to_string(RuleKeyKind kind);

/// One key that rules of an op may read.
struct RuleKey {
  std::string name = {};  // "m"; "inputs.N.dtype" and "inputs.N.shape.K" stand for each N and K
  RuleKeyKind kind = RuleKeyKind::integer;
  std::string summary = {};

  bool operator==(const RuleKey&) const = default;
};

/// Every key of an op: its sizes and attributes, what all calls have, and the device's.
std::vector<RuleKey> rule_keys(OpId op);

}  // namespace xpuruntime
