#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/device.h"

namespace xpuruntime {

/// All that rules and kernels may ask of a device. A plain value: a device that is not here is a profile that
/// was written.
struct DeviceProfile {
  DeviceType type = DeviceType::cpu;
  std::string vendor = {};  // "nvidia", "intel", "amd", "apple", "arm", "pocl" ... always lower case
  std::string name = {};    // as the driver prints it
  std::string driver_version = {};
  std::map<std::string, std::string> library_versions = {};  // "cublasLt" -> "13.0.2"

  int compute_capability_major = 0;  // NVIDIA only
  int compute_capability_minor = 0;
  int compute_units = 0;    // cores, multiprocessors
  bool integrated = false;  // shares memory with the host

  std::uint64_t global_memory_bytes = 0;
  std::uint64_t local_memory_bytes = 0;  // per work-group / block
  std::uint64_t l1_bytes = 0;            // data, per core
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
  std::uint32_t cache_line_bytes = 0;

  std::uint32_t max_work_group_size = 0;
  std::vector<std::uint32_t> max_work_item_sizes = {};
  std::uint32_t sub_group_size = 0;  // warp, wavefront; 0 unknown

  // Arithmetic, not storage: whether the device computes in this type.
  bool fp16 = false;
  bool bf16 = false;
  bool fp64 = false;
  bool int8 = false;
  bool fp8 = false;
  bool tensor_cores = false;  // matrix units of any vendor: tensor cores, AMX, SME

  std::vector<std::string> cpu_features = {};  // "avx2", "avx512f", "amx_bf16", "neon", "asimddp", "sve" ...
  std::vector<std::string> extensions = {};    // "cl_khr_fp16" ...

  bool has_cpu_feature(std::string_view feature) const;
  bool has_extension(std::string_view extension) const;

  bool operator==(const DeviceProfile&) const = default;

  /// Indented JSON with every field, and a "version".
  std::string to_json() const;
  /// Fields may be left out (defaults apply); unknown fields, wrong types and trailing text are errors that say
  /// where.
  static DeviceProfile from_json(std::string_view json);
  static DeviceProfile load(const std::string& path);
};

}  // namespace xpuruntime
