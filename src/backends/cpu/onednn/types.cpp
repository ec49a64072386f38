#include "backends/cpu/onednn/types.h"

#include <string>

#include "backends/cpu/onednn/kernels.h"

namespace xpuruntime::cpu {
namespace {

Verdict takes_tensor(const TensorSpec& spec, const std::string& name, const DeviceProfile& profile) {
  if (element_count(spec) == 0) return Verdict::no(name + " is empty");
  switch (spec.dtype) {
    case DataType::float32:
    case DataType::int32:
    case DataType::int8:
    case DataType::uint8:
      return Verdict::yes();
    case DataType::bfloat16:
      if (profile.has_cpu_feature("avx512bw") && profile.has_cpu_feature("avx512vl")) return Verdict::yes();
      return Verdict::no(name + " is bf16, for which oneDNN needs AVX-512");
    case DataType::float16:
      return Verdict::no(name + " is f16, which oneDNN 2 has not on the CPU");
    default:
      return refuse_dtype(name, spec.dtype, "f32, bf16 and 8-bit integers");
  }
}

}  // namespace

dnnl::memory::data_type onednn_type(DataType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DataType::bfloat16:
      return Type::bf16;
    case DataType::int32:
      return Type::s32;
    case DataType::int8:
      return Type::s8;
    case DataType::uint8:
      return Type::u8;
    default:
      return Type::f32;
  }
}

Verdict supports_onednn(const Problem& problem, const DeviceProfile& profile) {
  if (const std::string& why = why_no_onednn(); !why.empty()) return Verdict::no(why);
  if (const Verdict verdict = supports_aligned(problem, profile); !verdict.supported) return verdict;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const Verdict verdict = takes_tensor(problem.inputs[i], "input " + std::to_string(i), profile);
    if (!verdict.supported) return verdict;
  }
  for (const TensorSpec& output : problem.outputs) {
    if (const Verdict verdict = takes_tensor(output, "the output", profile); !verdict.supported) return verdict;
  }
  return Verdict::yes();
}

bool breaks_onednn(DataType dtype, std::int64_t summed) {
  if (dtype == DataType::bfloat16) return summed == 63;
  return size_of(dtype) == 1 && summed >= 125 && summed <= 127;
}

bool has_fast_onednn(const DeviceProfile& profile) { return profile.has_cpu_feature("avx2"); }

std::string onednn_version() {
  if (!why_no_onednn().empty()) return {};
  const dnnl_version_t& version = *dnnl::dnnl_version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch);
}

}  // namespace xpuruntime::cpu
