#pragma once

#include <optional>

#include "select/rule_terms.h"
#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

// Both answer only what is certain. Rules are such that PolicyRule::check takes.

/// The first key whose tests exclude each other, so that no problem can match; empty where none is found.
std::string contradiction_in(const PolicyRule& rule);

/// What a key is whenever its tests hold, where that can be only one thing.
std::optional<Fact> only_fact(const Term& term, const RuleTests& tests);

/// Whether every problem that matches `narrow`, on any device, matches `wide` too. False where that is not certain.
bool implies(const PolicyRule& narrow, const PolicyRule& wide);

}  // namespace xpuruntime
