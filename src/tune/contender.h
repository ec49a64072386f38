#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tune/operands.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {

// What is said of a kernel wherever it is found out.
inline constexpr const char* gave_wrong_numbers = "it gave wrong numbers";
inline constexpr const char* wrote_to_its_inputs = "it wrote to its inputs";

/// Runs a kernel's own code. What it throws becomes a status: a refusal, lack of memory or a lost device as they are,
/// anything else a device_error that begins with "it threw in <stage>".
Status contained(const char* stage, const std::function<Status()>& function);

/// One kernel on one problem, from the question whether it can run to its plan.
struct Contender {
  std::shared_ptr<const Kernel> kernel = {};
  bool third_party = false;
  std::unique_ptr<const Plan> plan = {};
  bool same_as_another = false;  // another row has its plan already
  double first_us = 0;           // its first run, or the second where that was needed
  bool ran_again = false;        // it is the second's
  bool wrong_numbers = false;    // now or when it was put in quarantine
  TunedCandidate row = {};

  bool usable() const { return row.outcome == TuneOutcome::lost; }
  void refuse(std::string why);
  /// Refuses it where it may not run the problem. One that refuses only layout or alignment runs on copies from now on.
  void refuse_unless_runs(const Problem& problem, const DeviceProfile& profile,
                          std::span<const std::shared_ptr<const Kernel>> copy_kernels);
  void quarantine(std::string why);
  /// Refuses or quarantines it for what a run came back with: a lack of memory
  /// is not the kernel's fault.
  void fail_with(const Status& status);
};

/// Why a kernel may not run a problem under its limits; empty: it may, and
/// `workspace_bytes` is set.
std::string refusal_of(const Kernel& kernel, const Problem& problem, const DeviceProfile& profile,
                       std::optional<std::uint64_t>& workspace_bytes);

/// Where contenders run: the device, its stream and its temporary memory.
class Track {
 public:
  Track(const KernelRegistry& registry, const Problem& problem, const Operands& operands);
  /// Waits for the device: plans may be destroyed after it.
  ~Track();
  Track(const Track&) = delete;
  Track& operator=(const Track&) = delete;

  PrepareContext context() const { return {problem_.device, profile_, driver_}; }
  /// The plans that the contender's kernel can make.
  std::vector<std::string> variants(const Contender& contender) const;
  /// Makes the contender's plan; a throw becomes a status.
  Status prepare(Contender& contender) const;
  /// Queues that many calls and waits for them.
  Status run(const Contender& contender, std::int64_t calls) const;
  /// Temporary memory for a run that is checked, full of NaN as the outputs are: a kernel that reads there what it has
  /// not written shows.
  Status blank_workspace(const Contender& contender, WorkspacePool::Lease& workspace) const;
  /// One call with that memory.
  Status run_in(const Contender& contender, const WorkspacePool::Lease& workspace) const;
  /// Whether the device times its own work, on operands that none of its caches holds.
  bool times_cold() const { return !events_.empty(); }
  bool asynchronous() const { return asynchronous_; }
  /// Calls that run_cold makes at most: each takes much longer than its own work.
  static constexpr std::int64_t most_cold_calls = 10;
  /// The same with cold caches before each call; `device_us` is what the calls took, by the device's events.
  Status run_cold(const Contender& contender, std::int64_t calls, double& device_us) const;

 private:
  void prepare_cold();
  Status call(const Contender& contender, void* workspace, std::int64_t calls) const;
  Status waited_for(const Status& queued) const;
  Status queue_cold(const Contender& contender, const RunArguments& arguments, std::size_t call) const;

  const Problem& problem_;
  const Operands& operands_;
  const DeviceManager& devices_;
  const DeviceProfile& profile_;
  DeviceDriver& driver_;
  WorkspacePool& pool_;
  Stream stream_;
  bool asynchronous_;
  Tensor flushed_;                     // what caches hold instead of operands
  mutable std::vector<Event> events_;  // before and after each call
};

}  // namespace xpuruntime
