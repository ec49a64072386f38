#include "xpuruntime/select/policy.h"

#include "core/names.h"
#include "select/policy_check.h"
#include "select/unavailable.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr std::string_view strategy_names[] = {"first_supported", "best_performance", "lowest_memory"};

}  // namespace

DataType checked_default(DataType dtype) {
  // Floats are not quantized: under int8 calls keep their dtype, and their decisions say so.
  if (is_float_storage(dtype) || dtype == DataType::int8) return dtype;
  fail(ErrorCode::invalid_argument, "KernelPolicy",
       "the default precision " + std::string(to_string(dtype)) +
           " is not a float type that tensors can have; give fp32, fp16, bf16, fp64 or int8");
}

std::string_view to_string(Strategy strategy) { return strategy_names[static_cast<std::size_t>(strategy)]; }

Strategy parse_strategy(std::string_view name) {
  for (std::size_t i = 0; i < std::size(strategy_names); ++i) {
    if (is_spelling_of(name, strategy_names[i]) || name == std::to_string(i)) return static_cast<Strategy>(i);
  }
  fail_unknown("parse_strategy", "strategy", name, strategy_names);
}

KernelPolicy& KernelPolicy::set(std::string_view op, std::string_view kernel) {
  return set_order(op, {std::string(kernel)});
}

KernelPolicy& KernelPolicy::set_order(std::string_view op, const std::vector<std::string>& kernels) {
  if (kernels.empty()) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::set_order", "no kernel is named; name at least one");
  }
  const OpId id = parse_op(op);
  for (const std::string& kernel : kernels) check_kernel_name("KernelPolicy::set", id, kernel);
  preferences[id] = {kernels, false, std::string(op)};
  return *this;
}

KernelPolicy& KernelPolicy::force(std::string_view op, std::string_view kernel) {
  const OpId id = parse_op(op);
  check_kernel_name("KernelPolicy::force", id, kernel);
  preferences[id] = {{std::string(kernel)}, true, std::string(op)};
  return *this;
}

const KernelPreference* KernelPolicy::get(std::string_view op) const {
  const auto found = preferences.find(parse_op(op));
  return found == preferences.end() ? nullptr : &found->second;
}

bool KernelPolicy::remove(std::string_view op) { return preferences.erase(parse_op(op)) != 0; }

KernelPolicy& KernelPolicy::set_precision(std::string_view op, std::string_view forward, std::string_view backward) {
  const OpId id = parse_op(op);
  if (forward.empty() && backward.empty()) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::set_precision", "no direction is named; name one, or remove it");
  }
  DirectionPrecisions requested;
  if (!forward.empty()) requested.forward = parse_requested_precision(forward);
  if (!backward.empty()) requested.backward = parse_requested_precision(backward);
  precision[id] = requested;
  return *this;
}

bool KernelPolicy::remove_precision(std::string_view op) { return precision.erase(parse_op(op)) != 0; }

void KernelPolicy::check() const {
  if (threads == 0u) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::check", "0 threads do no work; give 1 or more, or leave it unset");
  }
  if (default_precision) checked_default(*default_precision);
  for (const auto& [op, requested] : precision) {
    if (!requested.forward && !requested.backward) {
      fail(ErrorCode::invalid_argument, "KernelPolicy::check",
           "the precision of " + std::string(to_string(op)) + " is empty; name a direction, or remove it");
    }
    OpPrecisionRule::make(op, requested.forward.value_or(RequestedPrecision()),
                          requested.backward.value_or(RequestedPrecision()))
        .check();
  }
  for (const auto& [op, preference] : preferences) {
    const std::string name(to_string(op));
    if (preference.kernels.empty()) {
      fail(ErrorCode::invalid_argument, "KernelPolicy::check",
           "the preference for " + name + " names no kernel; name one");
    }
    if (preference.force && preference.kernels.size() > 1) {
      fail(ErrorCode::invalid_argument, "KernelPolicy::check",
           "several kernels are forced for " + name + "; force one, or give them as an order");
    }
    for (const std::string& kernel : preference.kernels) check_kernel_name("KernelPolicy::check", op, kernel);
  }
  rules.check();
}

KernelPolicy KernelPolicy::from_limits(const Limits& limits) {
  KernelPolicy policy;
  policy.workspace_limit_bytes = limits.workspace_bytes;
  if (limits.deterministic) policy.deterministic = true;
  policy.threads = limits.threads;
  return policy;
}

KernelPolicy kernel_choices(const KernelPolicy& policy) {
  return {.preferences = policy.preferences, .rules = policy.rules, .auto_strategy = policy.auto_strategy};
}

KernelPolicy KernelPolicy::merge(const KernelPolicy& other) const {
  KernelPolicy merged = *this;
  for (const auto& [op, preference] : other.preferences) merged.preferences[op] = preference;
  for (const auto& [op, requested] : other.precision) merged.precision[op] = requested;
  merged.rules.prepend(other.rules);
  if (other.auto_strategy) merged.auto_strategy = other.auto_strategy;
  if (other.default_precision) merged.default_precision = other.default_precision;
  if (other.workspace_limit_bytes) merged.workspace_limit_bytes = other.workspace_limit_bytes;
  if (other.deterministic) merged.deterministic = other.deterministic;
  if (other.threads) merged.threads = other.threads;
  return merged;
}

}  // namespace xpuruntime
