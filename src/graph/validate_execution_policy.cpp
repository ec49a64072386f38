#include <algorithm>

#include "core/json_text.h"
#include "core/printable.h"
#include "graph/execution_policy_json.h"
#include "select/policy_places.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/graph/model_cache.h"

namespace xpuruntime {
namespace {

/// An engine, asked once; native's devices are those of the process.
struct AskedEngine {
  std::string name = {};
  std::string absent = {};
  std::vector<DeviceType> devices = {};
  std::vector<DataType> precisions = {};  // empty: it does not tell

  bool runs_on(DeviceType type) const { return std::find(devices.begin(), devices.end(), type) != devices.end(); }
  bool takes(DataType precision) const {
    return precisions.empty() || std::find(precisions.begin(), precisions.end(), precision) != precisions.end();
  }
};

template <class List, class Text>
std::string joined(const List& list, Text text) {
  std::string all;
  for (const auto& one : list) all += (all.empty() ? "" : ", ") + std::string(text(one));
  return all;
}

class Validation {
 public:
  Validation(const ExecutionPolicy& policy, const DeviceManager& devices, const EngineRegistry& engines)
      : policy_(policy), devices_(devices), engines_(engines.engines()) {}

  std::vector<PolicyFinding> run() {
    policy_.check();
    if (is_known_engine()) {
      check_target();
      check_precision();
    }
    if (!policy_.static_shape && !policy_.fixed_shapes.empty()) {
      add(Severity::error, "fixed_shapes", "not read: static_shape is false; no model is loaded under this policy");
    }
    check_fallback();
    if (!policy_.cache_compiled && !policy_.cache_dir.empty()) note("cache_dir", "not used: cache_compiled is false");
    check_cache_dir();
    return std::move(findings_);
  }

 private:
  void check_cache_dir() {
    if (!policy_.cache_compiled || policy_.cache_dir.empty() || policy_.engine == "native") return;
    const std::string flaw = flaw_of_cache_folder(policy_.cache_dir);
    if (!flaw.empty()) add(Severity::error, "cache_dir", flaw);
  }

  void add(Severity severity, const char* field, std::string text) {
    findings_.push_back({severity, field, std::move(text)});
  }
  void note(const char* field, const char* text) { add(Severity::note, field, text); }

  AskedEngine native() const {
    AskedEngine engine{.name = "native",
                       .precisions = {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}};
    for (const Device device : devices_.devices()) engine.devices.push_back(device.type);
    return engine;
  }

  /// Those that the policy lets run a model, native first: each is asked when it is needed, as that may start a
  /// process.
  template <class Fits>
  const AskedEngine* find(const Fits& fits) {
    const bool any = policy_.engine == "auto";
    if (asked_.empty() && (any || policy_.engine == "native")) asked_.push_back(native());
    for (std::size_t i = 0;; ++i) {
      while (i == asked_.size() && next_ < engines_.size()) ask(*engines_[next_++], any);
      if (i == asked_.size()) return nullptr;
      if (asked_[i].absent.empty() && fits(asked_[i])) return &asked_[i];
    }
  }

  void ask(const Engine& engine, bool any) {
    if (!any && engine.name() != policy_.engine) return;
    AskedEngine& asked = asked_.emplace_back();
    asked.name = engine.name();
    asked.absent = engine.why_absent();
    if (!asked.absent.empty()) return;
    asked.devices = engine.devices();
    asked.precisions = engine.precisions();
  }

  bool is_known_engine() {
    std::vector<std::string> names = {"auto", "native"};
    for (const auto& engine : engines_) names.push_back(engine->name());
    if (std::find(names.begin(), names.end(), policy_.engine) == names.end()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      std::vector<std::string> near = near_names(policy_.engine, views);
      const bool none_near = near.empty();
      if (none_near) near = names;
      add(Severity::error, "engine",
          "no engine '" + printable(policy_.engine) + "' is known here; " +
              (none_near ? "there are " : "did you mean ") +
              joined(near, [](const std::string& name) { return name; }) + ", or does the program register one?");
      return false;
    }
    const bool is_here = find([](const AskedEngine&) { return true; }) != nullptr;
    if (!is_here) add(Severity::error, "engine", policy_.engine + " is not here: " + asked_.back().absent);
    return is_here;
  }

  bool runs_on(DeviceType type) {
    return find([=](const AskedEngine& engine) { return engine.runs_on(type); }) != nullptr;
  }

  std::string why_not_on(DeviceType type) const {
    const std::string name(to_string(type));
    if (policy_.engine != "auto" && policy_.engine != "native") {
      return policy_.engine + " does not run on " + name + " here; it runs on " +
             joined(asked_.back().devices, [](DeviceType one) { return to_string(one); });
    }
    const std::string why = devices_.why_absent(type);
    return name + " is not here" + (why.empty() ? "" : ": " + why);
  }

  void check_target() {
    if (runs_on(policy_.target)) return;
    const std::string why = why_not_on(policy_.target);
    if (policy_.allow_fallback && runs_on(*policy_.allow_fallback)) {
      add(Severity::warning, "target",
          why + ". Everything falls back to " + std::string(to_string(*policy_.allow_fallback)));
    } else {
      add(Severity::error, "target", why + ". Nothing can run there; name another, or allow a fallback that is here");
    }
  }

  void check_precision() {
    const bool on_target = runs_on(policy_.target);
    if (!on_target && !(policy_.allow_fallback && runs_on(*policy_.allow_fallback))) return;
    const DeviceType place = on_target ? policy_.target : *policy_.allow_fallback;
    const AskedEngine* engine =
        find([&](const AskedEngine& one) { return one.runs_on(place) && one.takes(policy_.precision); });
    if (engine == nullptr) {
      std::string text = "no engine here takes " + std::string(engine_precision_name(policy_.precision)) + " on " +
                         std::string(to_string(place));
      for (const AskedEngine& one : asked_) {
        if (one.absent.empty() && one.runs_on(place)) {
          text += "; " + one.name + " takes " + joined(one.precisions, engine_precision_name);
        }
      }
      add(Severity::error, "precision", text);
    } else if (policy_.precision == DataType::int8 && engine->name == "native") {
      note("precision",
           "a model of floats needs calibration inputs where it is loaded; one that is quantized does not");
    }
  }

  void check_fallback() {
    if (!policy_.allow_fallback) return;
    if (policy_.allow_fallback == policy_.target) {
      add(Severity::warning, "allow_fallback", "the same as target; name another, or leave it out");
    } else if (!asked_.empty() && asked_.front().absent.empty() && !runs_on(*policy_.allow_fallback)) {
      add(Severity::warning, "allow_fallback", why_not_on(*policy_.allow_fallback));
    }
  }

  const ExecutionPolicy& policy_;
  const DeviceManager& devices_;
  const std::vector<std::shared_ptr<const Engine>> engines_;
  std::vector<AskedEngine> asked_ = {};
  std::size_t next_ = 0;  // of the engines that were not asked yet
  std::vector<PolicyFinding> findings_ = {};
};

}  // namespace

std::vector<PolicyFinding> validate_policy(const ExecutionPolicy& policy, const DeviceManager& devices,
                                           const EngineRegistry& engines) {
  return Validation(policy, devices, engines).run();
}

std::vector<PolicyFinding> validate_policy_file(const std::string& path, const KernelRegistry& registry, Device device,
                                                const EngineRegistry& engines) {
  const std::string text = read_text_file(path, {"validate_policy", "policy file '" + path + "': "});
  if (!is_execution_policy(text)) return validate_policy_file(path, registry, device);
  std::vector<PolicyFinding> findings = validate_policy(ExecutionPolicy::load(path), registry.devices(), engines);
  const PolicyPlaces places(text);
  for (PolicyFinding& finding : findings) {
    const auto place = places.find(finding.field);
    if (place) finding.line = place->line, finding.column = place->column;
  }
  return findings;
}

}  // namespace xpuruntime
