#include "xpuruntime/graph/engine.h"

#include <algorithm>
#include <mutex>

#include "core/printable.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/quantize.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime {
namespace {

[[noreturn]] void cannot_tell(const char* what) {
  fail(ErrorCode::not_supported, "Session",
       std::string("the engine that runs this model does not tell ") + what + "; set engine \"native\" to see it");
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 64 && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

bool Engine::runs_on(DeviceType type) const {
  const std::vector<DeviceType> types = devices();
  return std::find(types.begin(), types.end(), type) != types.end();
}

EngineRequest request_for(const Engine& engine, const EngineRequest& request) {
  if (request.execution.precision != DataType::int8 || !is_quantized(*request.model)) return request;
  const std::vector<DataType> precisions = engine.precisions();
  const bool tells = !precisions.empty();
  EngineRequest asked = request;
  if (tells && std::find(precisions.begin(), precisions.end(), DataType::int8) == precisions.end()) {
    asked.execution.precision = DataType::float32;
  }
  return asked;
}

std::vector<SessionStep> CompiledModel::explain(std::span<const TensorSpec>) { cannot_tell("what each node is"); }
std::vector<SessionStep> CompiledModel::explain(std::span<const Tensor> inputs) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : inputs) specs.push_back(tensor.spec());
  return explain(specs);
}
SessionProfile CompiledModel::profile(std::span<const Tensor>, std::int64_t, std::chrono::milliseconds) { return {}; }
std::uint64_t CompiledModel::memory_bytes(std::span<const TensorSpec>) { cannot_tell("how much memory a run needs"); }
std::uint64_t CompiledModel::memory_bytes(std::span<const Tensor> inputs) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : inputs) specs.push_back(tensor.spec());
  return memory_bytes(specs);
}

void EngineRegistry::add(std::shared_ptr<const Engine> engine) {
  const std::string name = engine == nullptr ? "" : engine->name();
  if (!is_name(name) || name == "auto" || name == "native") {
    fail(ErrorCode::invalid_argument, "EngineRegistry::add",
         "'" + printable(name) + "' can be no engine's name; give lower-case letters, digits and underscores" +
             (is_name(name) ? ", and not one that is taken" : ""));
  }
  const std::lock_guard lock(mutex_);
  for (auto& one : engines_) {
    if (one->name() != name) continue;
    one = std::move(engine);
    return;
  }
  engines_.push_back(std::move(engine));
}

bool EngineRegistry::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(engines_, [name](const auto& one) { return one->name() == name; }) > 0;
}

std::vector<std::shared_ptr<const Engine>> EngineRegistry::engines() const {
  const std::lock_guard lock(mutex_);
  return engines_;
}

}  // namespace xpuruntime
