#pragma once

#include "cli/model_commands.h"
#include "xpuruntime/graph/measure_engines.h"

namespace xpuruntime::cli {

/// Every engine that takes a model, or the one of --engine, in turns under the policy in force. The choice is stored
/// where `store` is not null.
EngineTimes time_engines(Context& context, const std::string& path, const ModelOptions& options,
                         std::shared_ptr<MeasurementStore> store, double budget_s);
std::string engines_text(const EngineTimes& times, const Painter& paint);
/// Which was the fastest, in a line; empty: none was measured.
std::string fastest_text(const EngineTimes& times, const Painter& paint);
Json engines_json(const EngineTimes& times);

/// What each engine says of a model, without making it ready.
struct EngineAnswer {
  std::string engine = {};
  std::string version = {};
  std::string reason = {};  // empty: it takes the model
};
std::vector<EngineAnswer> ask_engines(Context& context, const Model& model, const ModelOptions& options);

}  // namespace xpuruntime::cli
