#include "xpuruntime/graph/execution_policy.h"

namespace xpuruntime {
namespace {

std::string absent(const DeviceManager& devices, DeviceType type) {
  const std::string why = devices.why_absent(type);
  return why.empty() ? why : std::string(to_string(type)) + " is not here: " + why;
}

PolicyFinding about_target(const ExecutionPolicy& policy, const std::string& why, bool fallback_is_here) {
  if (!fallback_is_here) {
    return {Severity::error, "target", why + ". Nothing can run there; name another, or allow a fallback that is here"};
  }
  return {Severity::warning, "target",
          why + ". Everything falls back to " + std::string(to_string(*policy.allow_fallback))};
}

}  // namespace

std::vector<PolicyFinding> validate_policy(const ExecutionPolicy& policy, const DeviceManager& devices) {
  policy.check();
  std::vector<PolicyFinding> findings;
  const std::string no_fallback = policy.allow_fallback ? absent(devices, *policy.allow_fallback) : "none is allowed";
  if (const std::string why = absent(devices, policy.target); !why.empty()) {
    findings.push_back(about_target(policy, why, no_fallback.empty()));
  }
  if (policy.precision == DataType::int8) {
    findings.push_back(
        {Severity::note, "precision",
         "a model of floats needs calibration inputs where it is loaded; one that is quantized does not"});
  }
  if (!policy.static_shape && !policy.fixed_shapes.empty()) {
    findings.push_back({Severity::note, "fixed_shapes", "not read: static_shape is false"});
  }
  if (policy.allow_fallback == policy.target) {
    findings.push_back({Severity::warning, "allow_fallback", "the same as target; name another, or leave it out"});
  } else if (policy.allow_fallback && !no_fallback.empty()) {
    findings.push_back({Severity::warning, "allow_fallback", no_fallback});
  }
  if (!policy.cache_compiled && !policy.cache_dir.empty()) {
    findings.push_back({Severity::note, "cache_dir", "not used: cache_compiled is false"});
  }
  return findings;
}

}  // namespace xpuruntime
