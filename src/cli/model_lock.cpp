#include "cli/model_lock.h"

#include <algorithm>

#include "graph/session/engine_lock.h"

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

KernelLock record_model(Context& context, const std::string& path, const ModelOptions& options, std::uint64_t seed) {
  const OpenedModel opened = open_model(context, {path, options});
  return record_lock(context.runtime(), opened.session, std::span<const Tensor>(opened.inputs), seed);
}

ReplayReport verify_model(Context& context, const std::string& path, const ModelOptions& options,
                          const KernelLock& lock, LockMode mode) {
  KernelLock needed;  // what of the lock the model's engine and calls use
  std::vector<ReplayResult> missing;
  if (!lock.engines().empty()) {
    const Model model = load_onnx(path);
    const auto own = lock.engines().find(name_in_lock(model));
    ReplayReport report;
    report.results.push_back({.problem = "model " + name_in_lock(model)});
    ReplayResult& result = report.results.front();
    try {
      const Session session = options.open(context, model, {}, LockUse{std::make_shared<const KernelLock>(lock), mode});
      result.kernel = session.record().engine;
    } catch (const Error& error) {
      if (own != lock.engines().end()) result.kernel = own->second.engine;
      result.outcome = ReplayOutcome::failed;
      result.reason = std::string(error.message());
    }
    if (result.outcome == ReplayOutcome::failed || result.kernel != "native") return report;
    needed.add(own->second, lock.environment_of(own->second));
  }
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
