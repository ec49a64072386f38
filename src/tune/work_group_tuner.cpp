#include "xpuruntime/tune/work_group_tuner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <optional>

#include "tune/timer.h"
#include "xpuruntime/tune/environment.h"

namespace xpuruntime {
namespace {

double median(std::vector<double> times) {
  if (times.empty()) return -1;
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// What speaks against the device's clock; empty: nothing.
std::string doubt(double device_us, double host_us) {
  if (device_us <= 0) return "the device tells no times";
  if (device_us > 1.1 * host_us + 1) return "the device says that a run took longer than the host waited for it";
  // Starting a run costs the host up to milliseconds, not more.
  if (host_us > 50 * device_us + 5000) return "the host waited much longer than the device says that a run took";
  return {};
}

std::size_t items_of(const WorkSize& size) { return size[0] * size[1] * size[2]; }

std::size_t at_least(std::size_t extent) {
  std::size_t power = 1;
  while (power < extent && power <= SIZE_MAX / 2) power *= 2;
  return power;
}

constexpr std::string_view plan_prefix = "local=";

void check_profile(const TunedKernel& kernel) {
  if (kernel.profile == nullptr)
    fail(ErrorCode::invalid_argument, "Autotuner",
         "the profile of '" + kernel.name + "' is null: set TunedKernel::profile to that of its device");
}

std::string memory_key(const TunedKernel& kernel, const std::string& place) {
  return place + " " + kernel.version + " " + kernel.profile->name;
}

}  // namespace

WorkGroupTuner::WorkGroupTuner(WorkGroupOptions options) : options_(std::move(options)) {
  if (options_.runs < 1 || options_.max_candidates < 2)
    fail(ErrorCode::invalid_argument, "WorkGroupTuner", "give at least 1 run and 2 candidates");
}

std::vector<WorkSize> WorkGroupTuner::candidates(const FunctionLimits& limits, const WorkSize& asked) const {
  if (limits.required[0] != 0) return {limits.required};
  const WorkSize global = filled(asked);
  WorkSize most;
  for (std::size_t d = 0; d < 3; ++d) most[d] = std::min(limits.max_sizes[d], at_least(global[d]));
  const bool flat = global[1] == 1 && global[2] == 1;
  std::vector<WorkSize> all;
  for (std::size_t x = 1; x <= most[0]; x *= 2)
    for (std::size_t y = 1; y <= most[1]; y *= 2)
      for (std::size_t z = 1; z <= most[2]; z *= 2) {
        const std::size_t items = x * y * z;
        // With more than one dimension there are many: those that leave parts of the device idle are not tried.
        const bool fills = flat || items >= std::min(limits.multiple, at_least(items_of(global)));
        if (items <= limits.max_items && fills) all.push_back({x, y, z});
      }
  // Evenly, where there are too many.
  std::vector<WorkSize> chosen = {WorkSize{}};
  const std::size_t room = options_.max_candidates - 1;
  const std::size_t step = (all.size() + room - 1) / room;
  for (std::size_t i = 0; i < all.size(); i += std::max<std::size_t>(step, 1)) chosen.push_back(all[i]);
  return chosen;
}

WorkGroupResult WorkGroupTuner::tune(SourceFunction& function, std::string kernel, const FunctionLaunch& launch) const {
  const auto clock = options_.host_clock ? options_.host_clock : std::function<double()>(steady_us);
  WorkGroupResult result{std::move(kernel), filled(launch.global)};
  for (const WorkSize& local : candidates(function.limits(), result.global)) result.trials.push_back({local});
  std::optional<ErrorCode> all_gave;  // the code of all failures, where that is one
  std::vector<std::vector<double>> device(result.trials.size()), host(result.trials.size());
  for (int round = 0; round <= options_.runs; ++round)
    for (std::size_t i = 0; i < result.trials.size(); ++i) {
      WorkGroupTrial& trial = result.trials[i];
      if (!trial.failure.empty()) continue;
      double device_us = -1;
      const double before = clock();
      const Status status = function.run_timed({launch.arguments, result.global, trial.local}, device_us);
      const double host_us = clock() - before;
      if (!status.ok()) {
        trial.failure = status.message();
        all_gave = all_gave.value_or(status.code()) == status.code() ? status.code() : ErrorCode::device_error;
      } else if (round > 0) {  // the first may compile, and finds cold caches
        device[i].push_back(device_us);
        host[i].push_back(host_us);
      }
    }
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    WorkGroupTrial& trial = result.trials[i];
    if (!trial.failure.empty()) continue;
    trial.device_us = median(device[i]);
    trial.host_us = median(host[i]);
    if (result.why_untrusted.empty()) result.why_untrusted = doubt(trial.device_us, trial.host_us);
  }
  result.trusted = result.why_untrusted.empty();
  const WorkGroupTrial* best = nullptr;
  const auto time = [&](const WorkGroupTrial& trial) { return result.trusted ? trial.device_us : trial.host_us; };
  for (const WorkGroupTrial& trial : result.trials)
    if (trial.failure.empty() && (best == nullptr || time(trial) < time(*best))) best = &trial;
  if (best == nullptr) {
    const std::string& failure = result.trials.front().failure;
    if (all_gave == ErrorCode::invalid_argument) fail(*all_gave, "WorkGroupTuner", failure);
    fail(all_gave.value_or(ErrorCode::device_error), "WorkGroupTuner",
         "'" + result.kernel + "' ran with no local size: " + failure);
  }
  result.local = best->local;
  result.time_us = time(*best);
  return result;
}

Autotuner::Autotuner(std::shared_ptr<MeasurementStore> store, WorkGroupTuner tuner)
    : source_([store = std::move(store)](StoreMode) { return store; }), tuner_(std::move(tuner)) {}

Autotuner::Autotuner(WorkGroupOptions options, StoreSource source)
    : source_(std::move(source)), tuner_(std::move(options)) {}

std::string Autotuner::key(const TunedKernel& kernel, const WorkSize& global) {
  return std::string(opencl_kernel_op) + "(" + kernel.name + " " + to_string(filled(global)) + ") @" +
         to_string(kernel.device);
}

std::optional<WorkSize> Autotuner::known(const TunedKernel& kernel, const WorkSize& global) const {
  check_profile(kernel);
  const std::string place = key(kernel, global), mine = memory_key(kernel, place);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(mine); found != known_.end()) return found->second;
  }
  const auto store = source_(StoreMode::read_only);
  if (store == nullptr) return {};
  const auto entry = store->freeze(environment_of(*kernel.profile))->find(place);
  if (!entry || !entry->stale.empty() || !entry->choice || entry->choice->kernel_version != kernel.version) return {};
  const std::string& plan = entry->choice->plan;
  const WorkSize local =
      plan.starts_with(plan_prefix) ? parse_work_size(std::string_view(plan).substr(plan_prefix.size())) : WorkSize{};
  const std::lock_guard lock(mutex_);
  known_[mine] = local;
  return local;
}

WorkGroupResult Autotuner::tune(const TunedKernel& kernel, SourceFunction& function, const FunctionLaunch& launch) {
  check_profile(kernel);
  const WorkGroupResult result = tuner_.tune(function, kernel.name, launch);
  const std::string place = key(kernel, launch.global);
  {
    const std::lock_guard lock(mutex_);
    known_[memory_key(kernel, place)] = result.local;
  }
  const auto plan_of = [](const WorkSize& local) {
    return local[0] == 0 ? std::string() : std::string(plan_prefix) + to_string(local);
  };
  const std::int64_t now = std::time(nullptr);
  TuneRecord record;
  for (const WorkGroupTrial& trial : result.trials) {
    if (!trial.failure.empty()) continue;
    Measurement row{place, kernel.name, plan_of(trial.local)};
    row.time_us = result.trusted ? trial.device_us : trial.host_us;
    row.runs = tuner_.options().runs;
    row.measured_at = now;
    row.kernel_version = kernel.version;
    record.measurements.push_back(std::move(row));
  }
  record.choices.push_back({place, kernel.name, plan_of(result.local), kernel.name,
                            "the fastest local size of " + std::to_string(record.measurements.size()) +
                                (result.trusted ? "" : ", by the host's clock: " + result.why_untrusted),
                            false, now, kernel.version});
  try {
    const auto store = source_(StoreMode::read_write);
    if (store != nullptr && !store->read_only()) store->put(environment_of(*kernel.profile), record);
  } catch (const Error&) {
    // The store may be full, locked for long or not writable; the next process measures again.
  }
  return result;
}

}  // namespace xpuruntime
