#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/device/profile.h"

namespace xpuruntime {

/// Where a time was taken: what may change it, and nothing that changes by itself.
struct Environment {
  std::string device = {};                         // "cpu intel Intel(R) Xeon(R) Processor": type, vendor, name
  std::map<std::string, std::string> traits = {};  // "cores" -> "2", "cpu_features" -> "avx2 avx512f ...", "memory" ...
  std::map<std::string, std::string> versions = {};  // "driver" -> "580.1", "openblas" -> "0.3.21", "xpuruntime" -> ...

  bool operator==(const Environment&) const = default;

  /// One line of JSON with sorted keys: equal environments give equal texts.
  std::string to_json() const;
  static Environment from_json(std::string_view json);
  /// Sixteen hex digits of a hash of the JSON: for people to tell environments apart, never for identity.
  std::string id() const;
};

/// The device, what of it bears on speed, and the versions of its driver, its libraries and this one.
Environment environment_of(const DeviceProfile& profile);

/// What an entry that was made elsewhere is worth here.
/// same: use it. revalidate: the same device with other software or settings; measure that entry again before it is
/// used. refuse: another device; it says nothing about this one.
enum class EntryVerdict : std::uint8_t { same, revalidate, refuse };
std::string_view to_string(EntryVerdict verdict);

struct EnvironmentMatch {
  EntryVerdict verdict = EntryVerdict::same;
  std::string reason = {};  // "driver 550.54 there, 580.1 here"; empty for same
};

/// One thing that two environments do not have in common. Of `cpu_features` only the words that differ are shown.
struct EnvironmentDifference {
  std::string field = {};  // "device", or the name of a trait or a version: "cores", "openblas"
  std::string there = {};  // empty: it has none
  std::string here = {};

  bool operator==(const EnvironmentDifference&) const = default;
};

/// Traits by name, then versions; another device is the one difference that counts. A number of threads that is not
/// set is the number of cores.
std::vector<EnvironmentDifference> environment_differences(const Environment& there, const Environment& here);

EnvironmentMatch compare_environments(const Environment& there, const Environment& here);

}  // namespace xpuruntime
