#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/data_type.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/select/validate_policy.h"

namespace xpuruntime {

/// How an engine runs a whole model: where, how exact, on which shapes, and for how long at most. A value: versioned as
/// a file, compared. Fields may be set by hand; a policy is checked when it is read, written or used.
struct ExecutionPolicy {
  DeviceType target = DeviceType::nvidia;
  DataType precision = DataType::float32;  // or float16, bfloat16, int8
  bool static_shape = false;
  std::vector<std::vector<std::int64_t>> fixed_shapes = {};  // of each input; needed where shapes are static
  std::optional<DeviceType> allow_fallback = {};             // where the model, or what target lacks, may run
  int optimize_level = 2;                                    // 0 none, 1 basic, 2 extended, 3 aggressive
  bool cache_compiled = true;
  std::string cache_dir = {};  // empty: the usual one
  std::int64_t compile_timeout_ms = 300000;
  std::int64_t execution_timeout_ms = 30000;
  std::string engine = "auto";  // or the name of one: "native", "onnxruntime", "openvino" ...

  bool operator==(const ExecutionPolicy&) const = default;

  /// This policy with one field changed and all others kept.
  ExecutionPolicy with_precision(std::string_view precision) const;
  /// By any name of the device type; nothing: no fallback.
  ExecutionPolicy with_fallback(std::optional<std::string_view> device) const;

  /// Fails if static shapes are not given, an extent is not positive, a number is out of its range, or the engine's
  /// name is none.
  void check() const;

  /// The file format; docs/interfaces.md describes it.
  std::string to_json() const;
  /// Fields may be left out (defaults apply). Unknown keys, wrong types, comments and trailing text are errors
  /// with line and column.
  static ExecutionPolicy from_json(std::string_view json);
  static ExecutionPolicy load(const std::string& path);
  /// Writes to a temporary name, syncs, renames: the file is the old one or the new one.
  void save(const std::string& path) const;
};

/// The precisions that engines know: fp32, fp16, bf16, int8, which are the names in files. Reads any spelling of them.
DataType parse_engine_precision(std::string_view name);
std::string_view engine_precision_name(DataType precision);

class EngineRegistry;

/// What of a policy will not work as written on this machine, by `native` and these engines. Empty if no problems were
/// found.
std::vector<PolicyFinding> validate_policy(const ExecutionPolicy& policy, const DeviceManager& devices,
                                           const EngineRegistry& engines);

/// Loads a file, which is an execution policy or a kernel policy for a device, and validates it; findings then have a
/// line and a column.
std::vector<PolicyFinding> validate_policy_file(const std::string& path, const KernelRegistry& registry, Device device,
                                                const EngineRegistry& engines);

}  // namespace xpuruntime
