#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

/// What a key reads of a call. Nothing: the call has no such thing, and no test of it holds.
using Fact = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                          std::vector<std::string>>;

/// RuleKeyKind, with the texts told apart by which words they may be.
enum class TermKind : std::uint8_t { boolean, integer, real, text, dtype, device_type, choice, integers, texts };
RuleKeyKind key_kind(TermKind kind);

/// One key of an op's rules: what its values are, and how it is read.
struct Term {
  TermKind kind = TermKind::integer;
  std::string_view choices = {};  // "none|relu|gelu"
  std::size_t length = 0;         // of integers; 0: any
  std::function<Fact(const Problem&, const DeviceProfile&)> read = {};
};

/// The term that a key stands for in rules of this op, if it stands for any.
std::optional<Term> find_term(OpId op, std::string_view key);

/// Every word that a term of this kind may be, for those that have only some; empty for the others.
std::vector<std::string> words_of(const Term& term);

/// Whether one test holds. Values are canonical.
bool holds(const Fact& fact, Comparison comparison, std::span<const RuleValue> values);

/// A value in the form that facts have, or an error that says what the key takes.
RuleValue canonical_value(std::string_view key, const Term& term, Comparison comparison, const RuleValue& value);

/// The term of a key; an unknown one is an error that lists the near ones.
Term parse_term(OpId op, std::string_view key);

/// PolicyRule::check, of its conditions alone.
void check_conditions(const PolicyRule& rule);

/// Fails if the kind of term cannot be compared in this way.
void check_comparison(std::string_view key, const Term& term, Comparison comparison);

}  // namespace xpuruntime
