#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/device.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/profile.h"
#include "xpuruntime/device/source_function.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// How one local size did.
struct WorkGroupTrial {
  WorkSize local = {};       // zeros: the driver's own choice
  double device_us = -1;     // median by the device's clock; negative where it cannot tell
  double host_us = -1;       // median by the host's, waiting included
  std::string failure = {};  // why it could not run; then there are no times

  bool operator==(const WorkGroupTrial&) const = default;
};

/// What a tuner found for one kernel and global size.
struct WorkGroupResult {
  std::string kernel = {};
  WorkSize global = {1, 1, 1};
  WorkSize local = {};  // the fastest; zeros: the driver's own choice
  double time_us = 0;   // its time
  /// Whether times are those of the kernel's own events and agree with the host's clock. Where they do not, those of
  /// the host decided, and `why_untrusted` says what was wrong.
  bool trusted = true;
  std::string why_untrusted = {};
  std::vector<WorkGroupTrial> trials = {};

  bool operator==(const WorkGroupResult&) const = default;
};

struct WorkGroupOptions {
  int runs = 5;                             // of each candidate that count, at least 1; one before them does not
  std::size_t max_candidates = 32;          // at least 2: the driver's own choice is one
  std::function<double()> host_clock = {};  // microseconds; empty: the system's
};

/// Fits the local size of a kernel to a device by running it.
class WorkGroupTuner {
 public:
  explicit WorkGroupTuner(WorkGroupOptions options = {});

  const WorkGroupOptions& options() const { return options_; }

  /// Local sizes within the limits of device and kernel, none much larger than the global size; the driver's own choice
  /// first. Only the one that the source fixes, where it does.
  std::vector<WorkSize> candidates(const FunctionLimits& limits, const WorkSize& global) const;

  /// Goes round the candidates, so that a slow spell hits all alike. The function runs many times on the arguments:
  /// give it memory that may be overwritten. An error where no candidate runs.
  WorkGroupResult tune(SourceFunction& function, std::string kernel, const FunctionLaunch& launch) const;

 private:
  WorkGroupOptions options_;
};

/// A kernel as results know it: another version is another kernel.
struct TunedKernel {
  Device device = {};
  const DeviceProfile* profile = nullptr;  // required
  std::string name = {};
  std::string version = {};
};

/// What stands where texts of problems have an op, in those under which a store has local sizes.
inline constexpr std::string_view opencl_kernel_op = "opencl_kernel";

/// Remembers the local size for each device, kernel and global size, in a store where there is one. Safe for many
/// threads; two that ask for the same at once may both measure.
class Autotuner {
 public:
  /// Where to look, or to put what was found; null: nowhere. Asked each time.
  using StoreSource = std::function<std::shared_ptr<MeasurementStore>(StoreMode)>;

  explicit Autotuner(std::shared_ptr<MeasurementStore> store = nullptr, WorkGroupTuner tuner = WorkGroupTuner());
  /// With a runtime's store: `Autotuner({}, [&](StoreMode mode) { return runtime.store(mode); })`.
  Autotuner(WorkGroupOptions options, StoreSource source);

  /// What is known, without measuring.
  std::optional<WorkSize> known(const TunedKernel& kernel, const WorkSize& global) const;
  /// Measures, remembers and stores. What cannot be stored is remembered all the same.
  WorkGroupResult tune(const TunedKernel& kernel, SourceFunction& function, const FunctionLaunch& launch);

  /// The text under which a store has it: "opencl_kernel(scale 4096x16) @opencl:0".
  static std::string key(const TunedKernel& kernel, const WorkSize& global);

 private:
  StoreSource source_;
  WorkGroupTuner tuner_;
  mutable Mutex mutex_;
  mutable std::map<std::string, WorkSize> known_;
};

}  // namespace xpuruntime
