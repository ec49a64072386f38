#include "dispatch/by_precision.h"

#include <optional>
#include <utility>

#include "xpuruntime/select/select.h"

namespace xpuruntime {
std::vector<CastProblem> cast_problems(const Problem& asked, const Problem& inner) {
  std::vector<CastProblem> casts;
  const auto add = [&](bool is_output, std::size_t index, const TensorSpec& from, const TensorSpec& to) {
    if (from.dtype == to.dtype) return;
    Problem cast =
        make_problem(OpId::cast, {from}, Attributes(OpId::cast).parse("dtype", to_string(to.dtype)), asked.device);
    set_outputs(cast, {to});
    cast.limits = asked.limits;
    casts.push_back({is_output, index, std::move(cast)});
  };
  for (std::size_t i = 0; i < asked.inputs.size(); ++i) add(false, i, asked.inputs[i], inner.inputs[i]);
  for (std::size_t i = 0; i < asked.outputs.size(); ++i) add(true, i, inner.outputs[i], asked.outputs[i]);
  return casts;
}

namespace {

/// Adds the casts that lead from one problem to the other and back, with their kernels. Returns which one has none and
/// why; empty: all have.
std::string add_casts(const Problem& asked, const DecideOne& decide, Decision& decision) {
  std::string missing;
  for (const CastProblem& cast : cast_problems(asked, decision.problem)) {
    const DataType from = cast.problem.inputs[0].dtype, to = cast.problem.outputs[0].dtype;
    const Decision chosen = decide(cast.problem, true);
    decision.casts.push_back({cast.is_output, cast.index, from, to, chosen.kernel});
    if (chosen.kernel.empty() && missing.empty()) {
      missing = "its cast " + to_string(cast.problem) + " cannot run: " + chosen.because;
    }
  }
  return missing;
}

}  // namespace

Decision refused(Decision decision, std::string because) {
  for (Candidate& candidate : decision.candidates) {
    if (candidate.outcome != Outcome::chosen) continue;
    candidate.outcome = Outcome::refused;
    candidate.reason = because;
  }
  decision.kernel.clear();
  decision.kernel_version.clear();
  decision.copies.clear();
  decision.because = std::move(because);
  return decision;
}

Decision decide_by_precision(const Problem& asked, Precision precision, const DecideOne& decide) {
  DataType& dtype = asked.direction == Direction::forward ? precision.forward : precision.backward;
  std::optional<Decision> first;
  const auto decided_for = [&](const Problem& problem) {
    Decision decision = decide(problem, false);
    if (problem != asked && !decision.kernel.empty()) {
      std::string missing = add_casts(asked, decide, decision);
      if (!missing.empty()) decision = refused(std::move(decision), std::move(missing));
    }
    if (decision.kernel.empty() && !first) first = decision;
    return decision;
  };
  for (;;) {
    const Problem problem = precision.requested ? at_precision(asked, dtype) : asked;
    Decision decision = decided_for(problem);
    if (decision.kernel.empty() && precision.requested && decision.level != Level::lock) {
      const Problem cast_behind = at_precision(asked, dtype, true);
      if (cast_behind != problem) decision = decided_for(cast_behind);
    }
    // A lock has no next best: what it does not hold at this precision is missing.
    const bool open = precision.requested && decision.level != Level::lock;
    const DataType next = open ? next_lossless(dtype).value_or(dtype) : dtype;
    if (!decision.kernel.empty() || next == dtype) {
      if (decision.kernel.empty()) decision = std::move(*first);
      decision.precision = std::move(precision);
      return decision;
    }
    precision.because += "; " + std::string(to_string(dtype)) + " has no kernel here (" + decision.because + "), so " +
                         std::string(to_string(next)) + ", the next without loss";
    dtype = next;
  }
}

PrecisionRequests requests_of(OpId op, const KernelPolicy& policy, const Autocast& autocast) {
  const auto rule = policy.precision.find(op);
  return {.policy_rule = rule == policy.precision.end() ? nullptr : &rule->second,
          .autocast = &autocast,
          .policy_default = policy.default_precision};
}

Precision precision_of(const Problem& asked, const KernelPolicy& policy, const Autocast& autocast) {
  return resolve_precision(asked, requests_of(asked.op, policy, autocast));
}

Decision decide_described(const KernelRegistry& registry, const Problem& asked, const DeviceProfile& profile,
                          const KernelPolicy& policy, const Autocast& autocast, const KernelSelector* selector) {
  const KernelList copy_kernels = registry.kernels(OpId::copy, profile.type);
  return decide_by_precision(asked, precision_of(asked, policy, autocast), [&](const Problem& problem, bool) {
    const KernelList kernels = registry.kernels(problem.op, profile.type);
    const std::vector<Rule> rules = selector == nullptr ? std::vector<Rule>{} : selector->rules(problem.op);
    SelectionInputs inputs{problem, profile, kernels, policy, rules, builtin_rules()};
    inputs.described = true;
    inputs.copy_kernels = copy_kernels;
    return select(inputs).decision;
  });
}

}  // namespace xpuruntime
