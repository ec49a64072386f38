#pragma once

#include <string>
#include <vector>

#include "backends/opencl/disk_cache.h"
#include "backends/opencl/worker.h"

namespace xpuruntime::opencl {

/// What was found out about a device by trying it in another process.
struct TriedDevice {
  std::string platform = {};  // its name
  std::string device = {};
  std::size_t multiple = 0;  // of work-items that a small kernel prefers; 0 unknown
  bool fp16 = false;         // computes in half, whatever it says of itself

  bool operator==(const TriedDevice&) const = default;
};

/// What was found out about the installed drivers before this process starts them.
struct TriedPlatforms {
  bool tried = false;            // false: nothing is known
  std::string unprotected = {};  // why there is no worker to try them with, and this process does all itself
  std::string absent = {};       // why they cannot be tried now, and are not used
  std::vector<TriedDevice> devices = {};
  std::vector<std::string> left_out = {};    // "pocl.icd: device 0 of platform ... crashed with signal 6: ..."
  std::vector<std::string> not_loaded = {};  // "old.icd: its library cannot be opened: ...": what loaders pass over
  std::vector<std::string> usable = {};      // where something is left out: the .icd files of the other drivers

  bool operator==(const TriedPlatforms&) const = default;
};

/// Asks every driver in a worker. Where that fails, or takes more than a quarter of worker_seconds(), each driver
/// alone, all at the same time, to know which to leave out. The answer is kept in the cache until a driver, the
/// environment or the boot changes; one that leaves something out for ten minutes, for an hour where it hung, and one
/// that a shortage made not at all.
TriedPlatforms try_platforms(const DiskCache& cache, const std::string& worker = Worker::default_program());

/// For one start of OpenCL: a folder with these .icd files only, and the variables that make a loader look there.
class OnlyThese {
 public:
  /// In the first of these folders that takes them.
  explicit OnlyThese(const std::vector<std::string>& icd_files, const std::vector<std::string>& places = folders());
  ~OnlyThese();
  OnlyThese(const OnlyThese&) = delete;
  OnlyThese& operator=(const OnlyThese&) = delete;

  /// The temporary folder, the cache's own, and memory.
  static std::vector<std::string> folders();

  /// Empty where all of them are there.
  const std::string& why_not() const { return why_not_; }
  std::map<std::string, std::string> environment() const;

 private:
  bool write(const std::vector<std::string>& icd_files, const std::string& place);

  std::string folder_;
  std::string why_not_;
  int process_ = 0;  // a forked child leaves it to its parent
};

}  // namespace xpuruntime::opencl
