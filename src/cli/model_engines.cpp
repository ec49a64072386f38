#include "cli/model_engines.h"

#include <algorithm>
#include <cmath>

#include "cli/table.h"

namespace xpuruntime::cli {

EngineTimes time_engines(Context& context, const std::string& path, const ModelOptions& options,
                         std::shared_ptr<MeasurementStore> store, double budget_s) {
  Runtime& runtime = context.runtime();
  Model model = load_onnx(path);
  // Of any engine that takes it: the inputs are the same.
  const std::vector<Tensor> inputs = options.tensors(options.open(context, model), runtime.devices());
  const SessionOptions session{
      .execution = options.execution_policy(context), .engines = &runtime.engines(), .store = std::move(store)};
  return measure_engines(model, runtime.dispatcher(), runtime.devices(), session, inputs, budget_s);
}

namespace {

std::string difference_of(const EngineTime& time) {
  return time.difference ? figure("%.1e", *time.difference) : std::string("-");
}

}  // namespace

std::string engines_text(const EngineTimes& times, const Painter& paint) {
  Table table({"engine", "version", "first run", "median", "min", "runs", "differs by", "note"});
  for (const EngineTime& time : times.engines) {
    if (!time.reason.empty()) {
      table.add({time.engine, time.version, "-", "-", "-", "-", difference_of(time), time.reason});
      continue;
    }
    table.add({time.engine, time.version, duration_of_us(time.first_us), duration_of_us(time.median_us),
               duration_of_us(time.min_us), std::to_string(time.runs), difference_of(time),
               time.engine == times.chosen ? "fastest" : ""});
  }
  return table.to_text(paint);
}

std::string fastest_text(const EngineTimes& times, const Painter& paint) {
  const auto& engines = times.engines;
  const auto fastest =
      std::find_if(engines.begin(), engines.end(), [&](const EngineTime& time) { return time.engine == times.chosen; });
  if (fastest == engines.end()) return {};
  std::string others;
  for (const EngineTime& time : engines) {
    if (!time.reason.empty() || &time == &*fastest) continue;
    others += (others.empty() ? "" : ", ") + time.engine + " takes " +
              figure("%.2f times as long", time.median_us / std::max(fastest->median_us, 1e-9));
  }
  return paint(Colour::green, "-> " + fastest->engine + ": the fastest engine, " + duration_of_us(fastest->median_us) +
                                  " by median; " + (others.empty() ? "no other takes part" : others)) +
         "\n";
}

Json engines_json(const EngineTimes& times) {
  Json list = Json::array();
  for (const EngineTime& time : times.engines) {
    Json json = {{"engine", time.engine}, {"version", time.version}};
    if (time.reason.empty()) {
      json["first_us"] = time.first_us;
      json["median_us"] = time.median_us;
      json["min_us"] = time.min_us;
    }
    const bool is_number = time.difference && std::isfinite(*time.difference);
    json["difference"] = is_number ? Json(*time.difference) : Json();
    json["runs"] = time.runs;
    json["reason"] = time.reason.empty() ? Json() : Json(time.reason);
    json["fastest"] = time.engine == times.chosen;
    list.push_back(std::move(json));
  }
  return list;
}

namespace {

/// Inputs that no tensor can be given for.
std::string unread_inputs(const Model& model) {
  for (const MissingOp& one : missing_ops(model)) {
    if (one.op.starts_with("inputs of type ")) return one.op + ": " + one.reason;
  }
  return {};
}

}  // namespace

std::vector<EngineAnswer> ask_engines(Context& context, const Model& model, const ModelOptions& options) {
  Runtime& runtime = context.runtime();
  const ExecutionPolicy policy = options.execution_policy(context);
  const EngineRequest request{
      .model = std::make_shared<const Model>(model), .execution = policy, .target = policy.target};
  std::vector<EngineAnswer> answers;
  for (const auto& engine : runtime.engines().engines()) {
    if (options.names_other_engine(context) && engine->name() != policy.engine) continue;
    EngineAnswer answer{engine->name(), {}, engine->why_absent()};
    if (answer.reason.empty()) {
      answer.version = engine->version();
      const std::vector<DeviceType> types = engine->devices();
      const bool runs_there = std::find(types.begin(), types.end(), policy.target) != types.end();
      answer.reason = runs_there ? engine->check(request_for(*engine, request)).reason
                                 : "does not run on " + std::string(to_string(policy.target));
      if (answer.reason.empty()) answer.reason = unread_inputs(model);
    }
    answers.push_back(std::move(answer));
  }
  if (answers.empty() && options.names_other_engine(context)) options.open(context, model);  // there is none: an error
  return answers;
}

}  // namespace xpuruntime::cli
