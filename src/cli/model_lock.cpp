#include "cli/model_lock.h"

#include <algorithm>
#include <optional>

#include "graph/session/engine_lock.h"

namespace xpuruntime::cli {

namespace {

/// What native makes of a model; what it lacks for it is thrown as EngineLacks.
std::vector<Problem> problems_of_native(Context& context, const std::string& path, ModelOptions options) {
  options.engine = "native";
  std::optional<Session> session;
  try {
    session.emplace(options.open(context, load_onnx(path)));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_supported) throw;
    throw EngineLacks(error.message());
  }
  const std::vector<Tensor> inputs = options.tensors(*session, context.runtime().devices());
  std::vector<Problem> problems;
  for (const SessionStep& step : session->explain(std::span<const Tensor>(inputs))) {
    if (step.decision) problems.push_back(step.decision->problem);
  }
  return problems;
}

}  // namespace

ModelCalls calls_of_model(Context& context, const std::string& path, const ModelOptions& options) {
  const std::string asked = options.execution_policy(context).engine;
  ModelCalls calls;
  try {
    if (options.names_other_engine(context)) {
      calls.why_none = "engine " + asked + " is to run it";
    } else {
      calls.problems = problems_of_native(context, path, options);
    }
  } catch (const EngineLacks& error) {
    if (asked == "native") throw;
    calls.why_none = "native: " + std::string(error.message());
  }
  if (!calls.why_none.empty()) open_model(context, {path, options});  // by another, or the reasons of all
  return calls;
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
  for (const Problem& problem : calls_of_model(context, path, options).problems) {
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
