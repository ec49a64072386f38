#include "xpuruntime/graph/execution_policy.h"

#include <limits>

#include "core/names.h"
#include "core/printable.h"
#include "xpuruntime/core/dims.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr DataType engine_precisions[] = {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8};

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::invalid_argument, "ExecutionPolicy", message); }

void check_shape(const std::vector<std::int64_t>& shape, std::size_t index) {
  const std::string name = "fixed_shapes[" + std::to_string(index) + "]";
  if (shape.size() > max_rank) {
    refuse(name + " has " + std::to_string(shape.size()) + " extents; a tensor has at most " +
           std::to_string(max_rank));
  }
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 1) refuse(name + " has the extent " + std::to_string(extent) + "; give 1 or more");
    if (extent > std::numeric_limits<std::int64_t>::max() / elements) {
      refuse(name + " has more elements than 64 bits can count; give smaller extents");
    }
    elements *= extent;
  }
}

void check_timeout(const char* name, std::int64_t value) {
  if (value < 1) refuse(std::string(name) + " is " + std::to_string(value) + "; give 1 millisecond or more");
}

}  // namespace

std::string_view engine_precision_name(DataType precision) {
  for (const DataType dtype : engine_precisions) {
    if (dtype == precision) return precision_name(dtype);
  }
  refuse("no engine computes in " + std::string(to_string(precision)) + "; give fp32, fp16, bf16 or int8");
}

DataType parse_engine_precision(std::string_view name) {
  const DataType dtype = parse_data_type(name);
  engine_precision_name(dtype);
  return dtype;
}

ExecutionPolicy ExecutionPolicy::with_precision(std::string_view name) const {
  ExecutionPolicy changed = *this;
  changed.precision = parse_engine_precision(name);
  return changed;
}

ExecutionPolicy ExecutionPolicy::with_fallback(std::optional<std::string_view> device) const {
  ExecutionPolicy changed = *this;
  changed.allow_fallback = device ? std::optional(parse_device_type(*device)) : std::nullopt;
  return changed;
}

void ExecutionPolicy::check() const {
  engine_precision_name(precision);
  if (static_shape && fixed_shapes.empty()) {
    refuse("fixed_shapes required when static_shape is true; give the shape of each input");
  }
  for (std::size_t i = 0; i < fixed_shapes.size(); ++i) check_shape(fixed_shapes[i], i);
  if (optimize_level < 0 || optimize_level > 3) {
    refuse("optimize_level is " + std::to_string(optimize_level) + "; give 0, 1, 2 or 3");
  }
  if (cache_dir.find('\0') != cache_dir.npos) refuse("cache_dir holds a zero byte; name a folder");
  check_timeout("compile_timeout_ms", compile_timeout_ms);
  check_timeout("execution_timeout_ms", execution_timeout_ms);
  const bool is_name = !engine.empty() && engine.size() <= 64 && engine[0] >= 'a' && engine[0] <= 'z' &&
                       engine.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == engine.npos;
  if (!is_name) refuse("engine is '" + printable(engine) + "'; give auto, or a name such as native or onnxruntime");
}

}  // namespace xpuruntime
