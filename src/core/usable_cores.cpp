#include "core/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace xpuruntime {
namespace {

constexpr int most_cores = 1 << 20;

int bound_cores() {
  for (int most = 1024; most <= most_cores; most *= 4) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !known && errno == EINVAL;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return count;
    if (!too_small) break;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// Quota over period, a large number where there is none ("max", -1).
int cores_of(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return most_cores;
  return std::clamp(static_cast<int>(std::ceil(quota / period)), 1, most_cores);
}

int cores_of_group(const std::string& folder) {
  double quota = 0, period = 0;
  std::ifstream both(folder + "/cpu.max");  // "200000 100000" is two cores
  if (both >> quota >> period) return cores_of(quota, period);
  if (std::ifstream(folder + "/cpu.cfs_quota_us") >> quota && std::ifstream(folder + "/cpu.cfs_period_us") >> period) {
    return cores_of(quota, period);
  }
  return most_cores;
}

/// The share of a container: the least of this process's control group and those around it, of version 1 or 2.
int quota_cores() {
  int cores = most_cores;
  std::ifstream groups("/proc/self/cgroup");  // "0::/a/b", or "4:cpu,cpuacct:/a/b"
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool has_cpu = ("," + controllers + ",").find(",cpu,") != std::string::npos;
    if (!controllers.empty() && !has_cpu) continue;
    const std::string root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    std::string path = line.substr(second + 1);
    for (;;) {
      cores = std::min(cores, cores_of_group(root + (path == "/" ? "" : path)));
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return cores;
}

}  // namespace

int usable_cores() { return std::max(1, std::min(bound_cores(), quota_cores())); }

}  // namespace xpuruntime
