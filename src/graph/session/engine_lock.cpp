#include "graph/session/engine_lock.h"

#include <algorithm>

#include "graph/session/engine_choice.h"
#include "select/lock_needs.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  fail(ErrorCode::not_supported, "Session",
       what + "; record it again (xrt lock record MODEL), or load it without a lock");
}

using Engines = std::vector<std::shared_ptr<const Engine>>;

const std::shared_ptr<const Engine>* find(const Engines& engines, std::string_view name) {
  const auto found = std::find_if(engines.begin(), engines.end(), [&](const auto& one) { return one->name() == name; });
  return found == engines.end() ? nullptr : &*found;
}

/// Fields of the policy that are not those of the lock: "precision is fp32 in the lock, fp16 here".
std::string difference_of_policies(const LockedEngine& locked, const ExecutionPolicy& policy) {
  std::string text;
  const auto field = [&](const char* name, const std::string& there, const std::string& here) {
    if (there != here)
      text += (text.empty() ? "" : ", ") + std::string(name) + " is " + there + " in the lock, " + here + " here";
  };
  if (policy.engine != "auto") field("engine", locked.engine, policy.engine);
  const bool is_fallback = policy.allow_fallback && locked.target == to_string(*policy.allow_fallback);
  if (!is_fallback) field("target", locked.target, std::string(to_string(policy.target)));
  field("precision", locked.precision, std::string(engine_precision_name(policy.precision)));
  field("optimize_level", std::to_string(locked.optimize_level), std::to_string(policy.optimize_level));
  return text;
}

}  // namespace

std::string name_in_lock(const Model& model) { return structure_of_model(model).substr(0, 32); }

LockedEngine locked_engine(const Model& model, const ExecutionPolicy& execution, const SessionRecord& record) {
  return {.model = name_in_lock(model),
          .engine = record.engine,
          .version = record.version,
          .target = std::string(to_string(record.target)),
          .precision = std::string(engine_precision_name(execution.precision)),
          .optimize_level = execution.optimize_level};
}

std::string why_other_engine(const KernelLock& lock, const LockedEngine& locked, const Engine* engine,
                             const DeviceManager& devices, LockMode mode) {
  const std::string name = "engine " + locked.engine;
  if (engine == nullptr) return name + " is not registered here";
  if (const std::string why = engine->why_absent(); !why.empty()) return name + " is not here: " + why;
  const bool is_native = locked.engine == "native";
  if (const std::string here = engine->version(); here != locked.version) {
    // Under revalidation native's kernels are checked one by one.
    if (!is_native || mode == LockMode::strict)
      return name + " is " + locked.version + " in the lock, " + here + " here";
  }
  if (is_native) return {};  // each of its kernels says what it depends on
  const LockNeeds needs{.versions = {"driver"}};
  const Environment here = environment_for(devices, parse_device_type(locked.target));
  return compare_environments(needs.part_of(lock.environment_of(locked)), needs.part_of(here)).reason;
}

ReplayedEngine engine_of_lock(const LockUse& use, EngineRequest& request, const Engines& engines,
                              const DeviceManager& devices) {
  const KernelLock& lock = *use.lock;
  ExecutionPolicy& policy = request.execution;
  if (lock.engines().empty()) {
    if (policy.engine != "auto" && policy.engine != "native") {
      refuse("the lock is of native's kernels and names no engine for this model, the execution policy names " +
             policy.engine);
    }
    return {Engines{*find(engines, "native")}, {"native", XRT_VERSION, "the lock is of its kernels"}};
  }
  const std::string model = name_in_lock(*request.model);
  const auto found = lock.engines().find(model);
  if (found == lock.engines().end()) {
    refuse("the lock has no engine for this model (" + model + "), and has " + std::to_string(lock.engines().size()) +
           " for others");
  }
  const LockedEngine& locked = found->second;
  if (const std::string difference = difference_of_policies(locked, policy); !difference.empty()) refuse(difference);
  const auto* engine = find(engines, locked.engine);
  const std::string why =
      why_other_engine(lock, locked, engine == nullptr ? nullptr : engine->get(), devices, use.mode);
  if (!why.empty()) refuse(why);
  policy.target = parse_device_type(locked.target);
  request.target_is_fixed = true;
  return {Engines{*engine}, {locked.engine, (*engine)->version(), "the lock names it"}};
}

}  // namespace xpuruntime
