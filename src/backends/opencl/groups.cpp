#include "backends/opencl/groups.h"

#include <algorithm>
#include <string>

namespace xpuruntime::opencl {

bool is_cpu(const DeviceProfile& profile) { return profile.vendor == "pocl" || profile.has_cpu_feature("cpu"); }

std::string narrow_option(const Problem& problem, const DeviceProfile& profile) {
  const auto narrow = [](const TensorSpec& spec) { return is_floating(spec.dtype) && size_of(spec.dtype) == 2; };
  const bool all = std::all_of(problem.outputs.begin(), problem.outputs.end(), narrow);
  return all && !is_cpu(profile) ? " -D NARROW" : "";
}

std::int64_t largest_group(const DeviceProfile& profile) {
  // Compilers leave registers for so many unless a kernel says otherwise; no kernel here gains by more.
  const std::int64_t largest = std::min<std::int64_t>(profile.max_work_group_size, 256);
  if (profile.max_work_item_sizes.empty()) return largest;
  return std::min<std::int64_t>(largest, profile.max_work_item_sizes[0]);
}

Verdict has_work_groups(const DeviceProfile& profile, std::int64_t items) {
  const std::int64_t allowed = largest_group(profile);
  if (allowed >= items) return Verdict::yes();
  return Verdict::no("needs work-groups of " + std::to_string(items) + ", the device allows " +
                     std::to_string(allowed));
}

Verdict has_local_memory(const DeviceProfile& profile, std::uint64_t bytes) {
  if (profile.local_memory_bytes >= bytes) return Verdict::yes();
  return Verdict::no("needs " + std::to_string(bytes) + " bytes of local memory, the device has " +
                     std::to_string(profile.local_memory_bytes));
}

}  // namespace xpuruntime::opencl
