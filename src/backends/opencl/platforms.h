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
  bool tried = false;  // false: there is no worker to try them with; nothing is known
  std::vector<TriedDevice> devices = {};
  std::vector<std::string> left_out = {};    // "pocl.icd: device 0 of platform ... crashed with signal 6: ..."
  std::vector<std::string> not_loaded = {};  // "old.icd: its library cannot be opened: ...": what loaders pass over
  std::vector<std::string> usable = {};      // where something is left out: the .icd files of the other drivers

  bool operator==(const TriedPlatforms&) const = default;
};

/// Asks every driver in a worker. Where that fails, each driver alone, to know which to leave out. The answer is kept
/// in the cache until a driver, the environment or the boot changes; one that leaves something out for ten minutes.
TriedPlatforms try_platforms(const DiskCache& cache, const std::string& worker = Worker::default_program());

/// For one start of OpenCL: a folder with these .icd files only, and the variables that make a loader look there.
class OnlyThese {
 public:
  explicit OnlyThese(const std::vector<std::string>& icd_files);
  ~OnlyThese();
  OnlyThese(const OnlyThese&) = delete;
  OnlyThese& operator=(const OnlyThese&) = delete;

  std::map<std::string, std::string> environment() const;

 private:
  std::string folder_;
  int process_ = 0;  // a forked child leaves it to its parent
};

}  // namespace xpuruntime::opencl
