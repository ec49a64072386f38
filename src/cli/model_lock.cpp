#include "cli/model_lock.h"

#include <algorithm>

namespace xpuruntime::cli {

std::vector<Problem> problems_of_model(Context& context, const std::string& path, const ModelOptions& options) {
  ModelOptions native = options;  // only its calls are problems
  if (native.engine.empty()) native.engine = "native";
  const OpenedModel opened = open_model(context, {path, native});
  std::vector<Problem> problems;
  for (const SessionStep& step : opened.session.explain(std::span<const Tensor>(opened.inputs))) {
    if (step.decision) problems.push_back(step.decision->problem);
  }
  return problems;
}

ReplayReport verify_model(Context& context, const std::string& path, const ModelOptions& options,
                          const KernelLock& lock, LockMode mode) {
  KernelLock needed;  // what of the lock the model's calls use
  std::vector<ReplayResult> missing;
  for (const Problem& problem : problems_of_model(context, path, options)) {
    if (const LockEntry* entry = lock.find_for(problem)) {
      needed.add(*entry, lock.environment_of(*entry));
      continue;
    }
    const std::string text = to_string(problem);
    const auto same = [&](const ReplayResult& result) { return result.problem == text; };
    if (std::any_of(missing.begin(), missing.end(), same)) continue;
    missing.push_back({.problem = text, .outcome = ReplayOutcome::failed, .reason = lock.why_missing(problem)});
  }
  ReplayReport report;
  if (!missing.empty()) {
    report.results = std::move(missing);
  } else {
    report = verify_lock(context.runtime(), {std::make_shared<const KernelLock>(std::move(needed)), mode});
  }
  return report;
}

}  // namespace xpuruntime::cli
