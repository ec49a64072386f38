#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/device/profile.h"

namespace xpuruntime {

/// What a cpuinfo text says. Nothing here reads the system, so a test can ask about a processor that is not here.
struct CpuInfo {
  std::string vendor = {};                 // empty if the text does not say
  std::string name = {};                   // empty if the text does not say
  std::vector<std::string> features = {};  // those that every processor has; empty if the text does not say
};

/// Reads the text of /proc/cpuinfo, of x86_64 or aarch64. Garbage gives empty fields, never an error.
CpuInfo parse_cpuinfo(std::string_view text);

/// "Neoverse-N1" for 0x41, 0xd0c; an unknown core is named by its numbers.
std::string arm_core_name(unsigned implementer, unsigned part);
std::string arm_vendor(unsigned implementer);

/// Sets the arithmetic flags that the features imply.
void set_arithmetic(DeviceProfile& profile);

/// "48K", "2048K", "300M" as the system writes cache sizes; 0 for anything else.
std::uint64_t parse_cache_size(std::string_view text);

struct CpuCaches {
  std::uint64_t l1_bytes = 0;  // data
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
  std::uint32_t line_bytes = 0;

  bool operator==(const CpuCaches&) const = default;
};

/// Reads a folder like /sys/devices/system/cpu/cpu0/cache; what is missing there stays 0.
CpuCaches read_caches(const std::string& folder);

}  // namespace xpuruntime
