#include "backends/opencl/checks.h"

namespace xpuruntime::opencl {
namespace {

/// Inputs are called a, b ...; after them comes the output.
struct NamedSpec {
  std::string name = {};
  const TensorSpec& spec;
};

std::vector<NamedSpec> named_specs(const Problem& problem) {
  std::vector<NamedSpec> all;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i)
    all.push_back({std::string(1, static_cast<char>('a' + i)), problem.inputs[i]});
  for (const TensorSpec& output : problem.outputs) all.push_back({"output", output});
  return all;
}

bool stored_as_float(DataType dtype) {
  return dtype == DataType::float32 || dtype == DataType::float16 || dtype == DataType::bfloat16;
}

std::string in_braces(const Dims& dims) {
  std::string text = to_string(dims);
  text.front() = '{';
  text.back() = '}';
  return text;
}

}  // namespace

Verdict verdict_of(const Problem& problem, const DeviceProfile& profile, std::initializer_list<Check> checks) {
  for (const Check check : checks) {
    std::string reason = check(problem, profile);
    if (!reason.empty()) return Verdict::no(std::move(reason));
  }
  return Verdict::yes();
}

std::string only_stored_floats(const Problem& problem, const DeviceProfile&) {
  for (const auto& [name, spec] : named_specs(problem))
    if (!stored_as_float(spec.dtype))
      return name + " is " + std::string(to_string(spec.dtype)) + ": takes f32, f16, bf16";
  return {};
}

std::string only_contiguous(const Problem& problem, const DeviceProfile&) {
  for (const auto& [name, spec] : named_specs(problem))
    if (!spec.contiguous) return name + " is not contiguous: strides " + in_braces(spec.strides);
  return {};
}

}  // namespace xpuruntime::opencl
