#include "graph/session/pick_engine.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/printable.h"
#include "graph/session/model_cache.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

using Engines = std::vector<std::shared_ptr<const Engine>>;

/// One choice in the making.
class Picking {
 public:
  Picking(const Engines& engines, EngineRequest request, const DeviceManager& devices,
          std::vector<EngineRejection> asked_before)
      : engines_(engines),
        request_(std::move(request)),
        devices_(devices),
        is_on_target_(!asked_before.empty()),
        code_(asked_before.empty() ? std::nullopt : std::optional(ErrorCode::not_supported)),
        asked_before_(asked_before.size()),
        rejections_(std::move(asked_before)) {}

  PickedEngine run(EnginePreference preferred) {
    check_version(preferred);
    const ExecutionPolicy& policy = request_.execution;
    std::vector<DeviceType> targets = {policy.target};
    const bool may_fall_back = policy.allow_fallback && !request_.target_is_fixed;
    if (may_fall_back && *policy.allow_fallback != policy.target) targets.push_back(*policy.allow_fallback);
    for (const DeviceType target : targets) {
      request_.target = target;
      for (const auto& engine : in_order(preferred.engine)) {
        if (was_asked(*engine)) continue;
        if (std::unique_ptr<CompiledModel> compiled = try_engine(*engine)) {
          return {std::move(compiled), record_of(*engine, preferred)};
        }
      }
    }
    refuse();
  }

 private:
  /// Forgets a preference for an engine that is another by now.
  void check_version(EnginePreference& preferred) {
    for (const auto& engine : engines_) {
      if (engine->name() != preferred.engine || !engine->why_absent().empty()) continue;
      if (engine->version() != preferred.version) {
        rejections_.push_back({preferred.engine, request_.execution.target,
                               "was measured as version " + preferred.version + " and is " + engine->version()});
        preferred = {};
      }
      return;
    }
  }

  /// Those of the policy's name, the preferred one first.
  Engines in_order(const std::string& preferred) const {
    const std::string& name = request_.execution.engine;
    Engines chosen;
    std::vector<std::string> names;
    std::vector<std::string_view> views = {"auto"};
    for (const auto& engine : engines_) {
      names.push_back(engine->name());
      if (name == "auto" || name == names.back()) chosen.push_back(engine);
    }
    views.insert(views.end(), names.begin(), names.end());
    if (chosen.empty()) fail_unknown("Session", "engine", name, views);
    std::stable_partition(chosen.begin(), chosen.end(),
                          [&](const auto& engine) { return engine->name() == preferred; });
    return chosen;
  }

  bool was_asked(const Engine& engine) const {
    const auto before = std::span(rejections_).first(asked_before_);
    return std::any_of(before.begin(), before.end(), [&](const EngineRejection& one) {
      return one.engine == engine.name() && one.target == request_.target;
    });
  }

  std::unique_ptr<CompiledModel> try_engine(const Engine& engine) {
    if (!request_.only_native.empty() && engine.name() != "native") {
      return pass_over(engine, "does not choose our kernels, and " + request_.only_native, ErrorCode::not_supported);
    }
    if (const std::string why = engine.why_absent(); !why.empty()) return pass_over(engine, "is not here: " + why);
    if (!engine.runs_on(request_.target)) {
      const std::vector<DeviceType> types = engine.devices();
      std::string text = "does not run on " + std::string(to_string(request_.target)) + "; it runs on ";
      for (std::size_t i = 0; i < types.size(); ++i) text += (i == 0 ? "" : ", ") + std::string(to_string(types[i]));
      return pass_over(engine, text);
    }
    is_on_target_ = true;
    try {
      const EngineRequest asked = request_for(engine, request_);
      if (const EngineVerdict verdict = engine.check(asked); !verdict.ok()) {
        return pass_over(engine, verdict.reason, ErrorCode::not_supported);
      }
      return compile_with_cache(engine, asked, devices_);
    } catch (const Error& error) {
      return pass_over(engine, std::string(error.message()), error.code());
    }
  }

  std::unique_ptr<CompiledModel> pass_over(const Engine& engine, std::string reason,
                                           std::optional<ErrorCode> code = {}) {
    if (code && !code_) code_ = code;
    rejections_.push_back({engine.name(), request_.target, std::move(reason)});
    return nullptr;
  }

  SessionRecord record_of(const Engine& engine, const EnginePreference& preferred) const {
    const ExecutionPolicy& policy = request_.execution;
    SessionRecord record{.engine = engine.name(),
                         .version = engine.version(),
                         .target = request_.target,
                         .is_fallback = request_.target != policy.target,
                         .rejections = rejections_};
    record.because = policy.engine != "auto"             ? "the execution policy names it"
                     : record.engine == preferred.engine ? preferred.because
                     : rejections_.empty()               ? "the first that takes the model; none was measured for it"
                                                         : "the first that takes the model";
    if (record.is_fallback) {
      record.because += "; on " + std::string(to_string(record.target)) + ", the fallback of " +
                        std::string(to_string(policy.target));
    }
    if (request_.has_choices && record.engine != "native") {
      record.because += "; the kernel policy's choices are for native alone";
    }
    for (const EngineRejection& rejection : rejections_) {
      record.because +=
          "; " + rejection.engine + " on " + std::string(to_string(rejection.target)) + ": " + rejection.reason;
    }
    return record;
  }

  [[noreturn]] void refuse() const {
    if (!is_on_target_) refuse_target();
    std::vector<EngineRejection> asked;  // those that are on the target say more
    for (const EngineRejection& one : rejections_) {
      if (!one.reason.starts_with("does not run on ")) asked.push_back(one);
    }
    std::string text = asked.size() == 1 ? asked[0].reason : "no engine takes the model";
    for (std::size_t i = 0; asked.size() > 1 && i < asked.size(); ++i) {
      text += (i == 0 ? ": " : "; ") + asked[i].engine + ": " + asked[i].reason;
    }
    fail(code_.value_or(ErrorCode::not_supported), "Session", text);
  }

  [[noreturn]] void refuse_target() const {
    const ExecutionPolicy& policy = request_.execution;
    if (policy.engine != "auto" && policy.engine != "native") {
      std::string text;
      for (const EngineRejection& one : rejections_) {
        text += (text.empty() ? "engine " : "; ") + (text.empty() ? one.engine + " " : "") + one.reason;
        if (!one.reason.starts_with("does not run on ")) break;  // it is not here: so for every target
      }
      fail(ErrorCode::not_supported, "Session", text);
    }
    std::string here, others;
    for (const Device device : devices_.devices()) here += (here.empty() ? "" : ", ") + to_string(device);
    for (const EngineRejection& one : rejections_) {
      if (one.engine != "native") others += "; " + one.engine + " " + one.reason;
    }
    const std::string why = devices_.why_absent(policy.target);
    fail(ErrorCode::not_supported, "Session",
         "target " + std::string(to_string(policy.target)) +
             " is not here: " + (why.empty() ? "no engine that was asked runs there" : why) + "; here are " + here +
             "; set target or allow_fallback to one of them" + others);
  }

  const Engines& engines_;
  EngineRequest request_;
  const DeviceManager& devices_;
  bool is_on_target_;
  std::optional<ErrorCode> code_;  // of the first that was asked
  const std::size_t asked_before_;
  std::vector<EngineRejection> rejections_;
};

}  // namespace

PickedEngine pick_engine(const Engines& engines, EngineRequest request, const DeviceManager& devices,
                         const EnginePreference& preferred, std::vector<EngineRejection> asked_before) {
  return Picking(engines, std::move(request), devices, std::move(asked_before)).run(preferred);
}

}  // namespace xpuruntime
