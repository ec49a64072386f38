#pragma once

#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

// Both answer only what is certain. Rules are such that PolicyRule::check takes.

/// The first key whose tests exclude each other, so that no problem can match; empty where none is found.
std::string contradiction_in(const PolicyRule& rule);

/// Whether every problem that matches `narrow`, on any device, matches `wide` too. False where that is not certain.
bool implies(const PolicyRule& narrow, const PolicyRule& wide);

}  // namespace xpuruntime
