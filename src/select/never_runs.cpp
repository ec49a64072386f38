#include "select/never_runs.h"

#include <algorithm>

#include "select/kernel_probe.h"
#include "select/unavailable.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime {
namespace {

constexpr DataType asked_dtypes[] = {DataType::float32, DataType::bfloat16, DataType::float16,
                                     DataType::float64, DataType::int8,     DataType::uint8};

/// The same type of device with every feature that a kernel may ask for.
DeviceProfile with_everything(DeviceProfile profile) {
  profile.compute_capability_major = std::max(profile.compute_capability_major, 12);
  profile.local_memory_bytes = std::max<std::uint64_t>(profile.local_memory_bytes, 1 << 20);
  profile.max_work_group_size = std::max(profile.max_work_group_size, 1024u);
  profile.fp16 = profile.bf16 = profile.fp64 = profile.int8 = profile.fp8 = profile.tensor_cores = true;
  for (const char* feature :
       {"avx",      "avx2",        "fma",         "f16c",        "avx512f",  "avx512bw", "avx512dq",
        "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16",
        "amx_int8", "amx_fp16",    "neon",        "asimd",       "asimdhp",  "asimddp",  "bf16",
        "i8mm",     "sve",         "sve2",        "sme"}) {
    profile.cpu_features.emplace_back(feature);
  }
  for (const char* extension : {"cl_khr_fp16", "cl_khr_fp64", "cl_khr_subgroups", "cl_intel_subgroups"}) {
    profile.extensions.emplace_back(extension);
  }
  return profile;
}

Verdict verdict_of(const Kernel& kernel, const Problem& problem, const DeviceProfile& profile) {
  try {
    return kernel.supports(problem, profile);
  } catch (...) {
    return Verdict::no("it threw while it was asked");  // as in a choice: one that throws is refused
  }
}

/// Why it turns down here all that it would take on a better device; empty where it takes something, or nothing there.
std::string lacks_here(const Kernel& kernel, const DeviceProfile& profile, Device device) {
  const DeviceProfile best = with_everything(profile);
  std::string reason;
  for (const DataType dtype : asked_dtypes) {
    const auto problem = usual_problem(kernel.op(), std::span(&dtype, 1), device);
    if (!problem || !verdict_of(kernel, *problem, best).supported) continue;
    const Verdict here = verdict_of(kernel, *problem, profile);
    if (here.supported) return {};
    if (reason.empty()) reason = here.reason.empty() ? "it gave no reason" : here.reason;
  }
  return reason;
}

std::optional<Problem> asked_problem(OpId op, DataType dtype, Direction direction, Device device) {
  const auto forward = usual_problem(op, std::span(&dtype, 1), device);
  if (!forward || direction == Direction::forward) return forward;
  std::vector<TensorSpec> inputs = forward->inputs;
  inputs.push_back(forward->outputs.front());
  try {
    return make_problem(op, std::move(inputs), forward->attributes, device, Direction::backward);
  } catch (const Error&) {
    return std::nullopt;  // the op has no backward
  }
}

}  // namespace

std::optional<NeverRuns> never_runs(const KernelRegistry& registry, Device device, OpId op, const std::string& kernel,
                                    bool deterministic) {
  const KernelList kernels = registry.kernels(op, device.type);
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k->name() == kernel; });
  if (found == kernels.end()) {
    const auto entries = find_in_catalogue(op, kernel);
    const bool here = std::any_of(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.device_type == device.type; });
    return NeverRuns{why_unavailable(op, kernel, device), !here};
  }
  if (deterministic && !(*found)->deterministic()) {
    return NeverRuns{"it may give other bits each time, and the policy asks for deterministic kernels"};
  }
  const std::string reason = lacks_here(**found, registry.devices().profile(device), device);
  return reason.empty() ? std::nullopt : std::optional(NeverRuns{reason});
}

bool any_kernel_takes(const KernelRegistry& registry, Device device, OpId op, DataType dtype, Direction direction) {
  const auto problem = asked_problem(op, dtype, direction, device);
  if (!problem) return false;
  const DeviceProfile& profile = registry.devices().profile(device);
  const KernelList kernels = registry.kernels(op, device.type);
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const auto& kernel) { return verdict_of(*kernel, *problem, profile).supported; });
}

}  // namespace xpuruntime
