#include <algorithm>
#include <cmath>

#include "core/duration.h"
#include "core/json_text.h"
#include "runtime/report_rows.h"

namespace xpuruntime {
namespace {

constexpr int report_version = 1;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json number_or_null(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? Json(*number) : Json(nullptr);
}

Json candidate_json(const ReportCandidate& candidate) {
  const auto& measured = candidate.measured;
  return {{"kernel", candidate.kernel},
          {"plan", candidate.plan},
          {"verdict", candidate.verdict},
          {"reason", candidate.reason},
          {"time_us", number_or_null(candidate.time_us)},
          {"noise_us", measured ? number_or_null(measured->noise_us) : Json(nullptr)},
          {"runs", measured ? Json(measured->runs) : Json(nullptr)},
          {"error", measured ? number_or_null(measured->error) : Json(nullptr)},
          {"measured_at", measured ? Json(measured->measured_at) : Json(nullptr)},
          {"workspace_bytes", candidate.workspace_bytes ? Json(*candidate.workspace_bytes) : Json(nullptr)}};
}

/// What is in a problem's text, for those who group and filter; a text of an op that is not known here says less.
Json parts_json(const std::string& text) {
  try {
    const Problem problem = least_problem(text);
    return {{"op", to_string(problem.op)},
            {"category", to_string(op_info(problem.op).category)},
            {"direction", problem.direction == Direction::forward ? "forward" : "backward"},
            {"dtype", to_string(promoted_dtype(problem))},
            {"device", to_string(problem.device)}};
  } catch (const Error&) {
    const std::size_t at = text.rfind(" @");
    return {{"op", text.substr(0, text.find_first_of("(:"))},
            {"category", nullptr},
            {"direction", nullptr},
            {"dtype", nullptr},
            {"device", at == std::string::npos ? Json(nullptr) : Json(text.substr(at + 2))}};
  }
}

Json precision_json(const ReportRow& row) {
  if (row.source != "here" || !row.decision) return nullptr;
  const Precision& precision = row.decision->precision;
  return {{"forward", to_string(precision.forward)},
          {"backward", to_string(precision.backward)},
          {"because", precision.because}};
}

Json row_json(const ReportRow& row) {
  Json json = {{"problem", row.problem}};
  json.update(parts_json(row.problem));
  const ReportCandidate* chosen = row.chosen();
  const bool hashed = row.entry && !row.entry->outputs.empty();
  json.update({{"source", row.source},
               {"kernel", text_or_null(row.kernel)},
               {"plan", row.plan},
               {"workspace_bytes", row.workspace_bytes},
               {"time_us", chosen == nullptr ? Json(nullptr) : number_or_null(chosen->time_us)},
               {"because", row.because},
               {"level", row.source == "here" && row.decision ? Json(to_string(row.decision->level)) : Json(nullptr)},
               {"precision", precision_json(row)},
               {"default", row.choice ? text_or_null(row.choice->incumbent) : Json(nullptr)},
               {"outputs", hashed ? Json(row.entry->outputs) : Json(nullptr)},
               {"environment", row.environment},
               {"notes", row.notes},
               {"candidates", Json::array()}});
  for (const ReportCandidate& candidate : row.candidates) json["candidates"].push_back(candidate_json(candidate));
  return json;
}

Json environment_json(const std::string& id, const ReportEnvironment& at) {
  return {{"id", id},
          {"device", at.environment.device},
          {"traits", at.environment.traits},
          {"versions", at.environment.versions},
          {"verdict", to_string(at.match.verdict)},
          {"reason", at.match.reason}};
}

Json change_json(const LockDifference& change) {
  return {{"problem", change.problem}, {"field", change.field}, {"before", change.before}, {"after", change.after}};
}

Json engine_json(const EngineTime& time, const std::string& chosen) {
  const bool measured = time.reason.empty();
  const auto figure = [&](double us) { return measured ? Json(us) : Json(nullptr); };
  return {{"engine", time.engine},
          {"version", time.version},
          {"reason", text_or_null(time.reason)},
          {"first_us", figure(time.first_us)},
          {"median_us", figure(time.median_us)},
          {"min_us", figure(time.min_us)},
          {"runs", time.runs},
          {"runs_model", time.engine == chosen}};
}

/// Each call has one of the times of its node and problem.
Json node_json(const SessionStep& step, std::vector<const CallTime*>& times) {
  Json json = {{"node", step.node},
               {"operator", step.op},
               {"kind", to_string(step.kind)},
               {"output", to_string(step.output)},
               {"fused_into", text_or_null(step.fused_into)},
               {"problem", nullptr},
               {"kernel", nullptr},
               {"because", nullptr},
               {"count", nullptr},
               {"time_us", nullptr}};
  if (step.transfer) json["kernel"] = to_string(*step.transfer);
  if (step.decision) {
    json["problem"] = to_string(step.decision->problem);
    json["kernel"] = text_or_null(step.decision->kernel);
    json["because"] = step.decision->because;
  }
  const auto own = std::find_if(times.begin(), times.end(), [&](const CallTime* time) {
    if (time == nullptr || time->node != step.node) return false;
    return step.decision ? time->problem == step.decision->problem
                         : step.transfer && time->kernel == to_string(*step.transfer);
  });
  if (own == times.end()) return json;
  json["count"] = (*own)->count;
  json["time_us"] = (*own)->time_us;
  *own = nullptr;
  return json;
}

Json model_json(const ReportModel& model) {
  Json json = {{"model", model.name},
               {"engine", model.record.engine},
               {"version", model.record.version},
               {"target", to_string(model.record.target)},
               {"because", model.record.because},
               {"rejections", Json::array()},
               {"engines", Json::array()},
               {"nodes", Json::array()},
               {"memory_bytes", model.steps.empty() ? Json(nullptr) : Json(model.memory_bytes)}};
  for (const EngineRejection& one : model.record.rejections) {
    json["rejections"].push_back({{"engine", one.engine}, {"target", to_string(one.target)}, {"reason", one.reason}});
  }
  for (const EngineTime& time : model.engines) json["engines"].push_back(engine_json(time, model.record.engine));
  std::vector<const CallTime*> times;
  for (const CallTime& call : model.calls) times.push_back(&call);
  for (const SessionStep& step : model.steps) json["nodes"].push_back(node_json(step, times));
  return json;
}

}  // namespace

ReportModel report_model(const Session& session, std::span<const Tensor> inputs, std::int64_t runs) {
  ReportModel model{.name = session.model().path, .record = session.record()};
  if (model.record.engine != "native") return model;
  model.steps = session.explain(inputs);
  model.calls = session.profile(inputs, runs).calls;
  model.memory_bytes = session.memory_bytes(inputs);
  return model;
}

std::string report_json(Runtime& runtime, const ReportOptions& options) {
  const ReportRows rows = report_rows(runtime, options);
  Json json = {{"version", report_version},
               {"xpuruntime", version()},
               {"title", text_or_null(options.title)},
               {"made_at", seconds_since_1970()},
               {"lock", options.lock == nullptr ? Json(nullptr) : Json(options.lock_name)},
               {"against", options.against == nullptr ? Json(nullptr) : Json(options.against_name)},
               {"store", options.store == nullptr ? Json(nullptr) : Json(options.store->path())},
               {"models", Json::array()},
               {"decisions", Json::array()},
               {"changes", Json::array()},
               {"environments", Json::array()}};
  for (const ReportModel& model : options.models) json["models"].push_back(model_json(model));
  for (const ReportRow& row : rows.rows) json["decisions"].push_back(row_json(row));
  for (const LockDifference& change : report_changes(runtime, rows, options)) {
    json["changes"].push_back(change_json(change));
  }
  for (const auto& [id, environment] : rows.environments) {
    json["environments"].push_back(environment_json(id, environment));
  }
  // Reasons may quote a driver's text in any encoding.
  return dump_json(json, 1) + "\n";
}

}  // namespace xpuruntime
