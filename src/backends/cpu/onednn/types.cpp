#include "backends/cpu/onednn/types.h"

#include <string>
#include <string_view>

#include "backends/cpu/onednn/kernels.h"

namespace xpuruntime::cpu {
namespace {

Verdict takes_tensor(const TensorSpec& spec, const std::string& name, const DeviceProfile& profile) {
  if (spec.dtype != DataType::bfloat16) return Verdict::yes();
  if (profile.has_cpu_feature("avx512bw") && profile.has_cpu_feature("avx512vl")) return Verdict::yes();
  return Verdict::no(name + " is bf16, for which oneDNN needs AVX-512");
}

/// "avx2" of "cpu_isa_avx2".
std::string without_prefix(std::string_view name) {
  constexpr std::string_view prefix = "cpu_isa_";
  return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
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
  if (const Verdict verdict = is_not_empty(problem); !verdict.supported) return verdict;
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

std::string onednn_version() {
  if (!why_no_onednn().empty()) return {};
  const dnnl_version_t& version = *dnnl::dnnl_version();
  // ONEDNN_MAX_CPU_ISA and ONEDNN_CPU_ISA_HINTS give other code, and other bits.
  const auto hints = dnnl::dnnl_get_cpu_isa_hints();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch) +
         " " + without_prefix(dnnl::dnnl_cpu_isa2str(dnnl::dnnl_get_effective_cpu_isa())) +
         (hints == dnnl_cpu_isa_no_hints ? "" : " " + without_prefix(dnnl::dnnl_cpu_isa_hints2str(hints)));
}

}  // namespace xpuruntime::cpu
