#include "runtime/measured_choices.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "core/duration.h"
#include "tune/timer.h"

namespace xpuruntime {
namespace {

/// What one race found, as a snapshot of its own.
class OneProblem final : public StoreSnapshot {
 public:
  explicit OneProblem(const TuneResult& result)
      : problem_(to_string(result.problem)), record_(result.record(seconds_since_1970())) {}

  std::optional<Entry> find(std::string_view problem) const override {
    if (problem != problem_) return std::nullopt;
    Entry entry{record_.measurements, {}, record_.quarantine, {}};
    if (!record_.choices.empty()) entry.choice = record_.choices.front();
    return entry;
  }
  std::size_t size() const override { return 1; }

 private:
  std::string problem_;
  TuneRecord record_;
};

/// What a race found, for the next choice; null: without a time there is nothing to go by, unless some kernel must not
/// run.
std::shared_ptr<const Measurements> as_measurements(TuneResult found) {
  if (found.chosen.empty() || found.record(0) == TuneRecord{}) return nullptr;
  if (!found.not_stored.empty()) found.because += "; it was not stored: " + found.not_stored;
  return std::make_shared<const Measurements>(
      Measurements::Snapshots{{found.problem.device, std::make_shared<const OneProblem>(found)}});
}

thread_local const void* tuning_here = nullptr;  // whose tuning this thread is in

/// What a store holds for each device, read when a problem there is first looked up: asking for all devices would start
/// drivers that nobody uses.
class SnapshotsByDevice {
 public:
  SnapshotsByDevice(std::shared_ptr<const MeasurementStore> store, const DeviceManager& devices)
      : store_(std::move(store)), devices_(devices) {}

  std::shared_ptr<const StoreSnapshot> get(Device device) {
    const std::lock_guard lock(mutex_);
    auto& snapshot = made_[device];
    if (snapshot == nullptr && devices_.has(device))
      snapshot = store_->freeze(environment_of(devices_.profile(device)));
    return snapshot;
  }

 private:
  std::shared_ptr<const MeasurementStore> store_;
  const DeviceManager& devices_;
  LongMutex mutex_;
  std::map<Device, std::shared_ptr<const StoreSnapshot>> made_;
};

class Here {
 public:
  explicit Here(const void* owner) { tuning_here = owner; }
  ~Here() { tuning_here = nullptr; }
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;
};

}  // namespace

MeasuredChoices::MeasuredChoices(Dispatcher& dispatcher, Tuner::Clock clock)
    : dispatcher_(dispatcher), clock_(clock ? std::move(clock) : Tuner::Clock(steady_us)) {
  dispatcher_.set_measured_source([this] { return measurements(); });
}

void MeasuredChoices::set_default_path(std::string path, StoreMode mode) {
  const std::lock_guard lock(mutex_);
  default_path_ = std::move(path);
  default_mode_ = mode;
}

void MeasuredChoices::use(std::shared_ptr<MeasurementStore> store) {
  tuned_.clear();  // so that the new one gets what is found
  const std::lock_guard lock(mutex_);
  default_path_.clear();
  store_ = std::move(store);
  forget_frozen();
}

std::shared_ptr<MeasurementStore> MeasuredChoices::store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

std::shared_ptr<MeasurementStore> MeasuredChoices::store(StoreMode mode) const {
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    if (default_path_.empty()) return store_;
    path = default_path_;
  }
  std::error_code ignored;
  if (mode == StoreMode::read_only && !std::filesystem::exists(path, ignored)) return nullptr;
  return open_store(path, mode);  // anew: this process may have been forked since
}

void MeasuredChoices::refresh() {
  const std::lock_guard lock(mutex_);
  forget_frozen();
}

void MeasuredChoices::forget_frozen() {
  frozen_ = nullptr;
  ++version_;
}

std::shared_ptr<const Measurements> MeasuredChoices::freeze(std::shared_ptr<const MeasurementStore> store) const {
  const auto read = std::make_shared<SnapshotsByDevice>(std::move(store), dispatcher_.registry().devices());
  read->get({});  // errors of the file show now
  return std::make_shared<const Measurements>([read](Device device) { return read->get(device); });
}

std::shared_ptr<const Measurements> MeasuredChoices::measurements() {
  {
    const std::lock_guard lock(mutex_);
    if (frozen_ != nullptr || (store_ == nullptr && default_path_.empty())) return frozen_;
  }
  // Opening and reading may wait for another process: a fork must not wait for that.
  const std::lock_guard one_at_a_time(freezing_);
  for (;;) {
    std::unique_lock lock(mutex_);
    if (frozen_ != nullptr) return frozen_;
    auto store = store_;
    const std::string path = default_path_;
    const auto version = version_;
    lock.unlock();
    std::error_code ignored;
    // Opened anew: the file may have been replaced, or this process forked.
    if (!path.empty()) {
      store = std::filesystem::exists(path, ignored) ? open_store(path, StoreMode::read_only) : nullptr;
    }
    const auto made = store == nullptr ? nullptr : freeze(store);
    lock.lock();
    if (version_ != version) continue;  // another store is in use now, or what it holds is wanted anew
    store_ = store;
    return frozen_ = made;
  }
}

std::vector<QuarantineEntry> MeasuredChoices::quarantined(const Problem& problem) {
  const auto known = measurements();
  return known == nullptr ? std::vector<QuarantineEntry>{} : known->known(problem).quarantine;
}

std::shared_ptr<MeasurementStore> MeasuredChoices::store_to_fill() const {
  {
    const std::lock_guard lock(mutex_);
    if (default_path_.empty() || default_mode_ == StoreMode::read_only)
      return store_ == nullptr || store_->read_only() ? nullptr : store_;
  }
  return store(StoreMode::read_write);
}

// What was measured is good also where it cannot be kept: a full disk must not fail a call.
std::string MeasuredChoices::keep(const TuneResult& result) {
  const TuneRecord record = result.record(seconds_since_1970());
  if (record == TuneRecord{}) return {};
  try {
    const auto kept = store_to_fill();
    if (kept == nullptr) return {};
    kept->put(environment_of(dispatcher_.registry().devices().profile(result.problem.device)), record);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

bool MeasuredChoices::tune_all(std::vector<TuneTask> tasks, const TuneOptions& options,
                               const std::function<void(const TuneResult&)>& finished) {
  if (tuning_here != nullptr) {
    fail(ErrorCode::invalid_argument, "tune",
         "called while this thread tunes; call it after the callback has returned");
  }
  const std::lock_guard one_at_a_time(tuning_);
  return tune_now(std::move(tasks), options, finished);
}

bool MeasuredChoices::tune_now(std::vector<TuneTask> tasks, const TuneOptions& options,
                               const std::function<void(const TuneResult&)>& finished) {
  const Here here(this);
  for (TuneTask& task : tasks) task.quarantined = quarantined(task.problem);
  KernelRegistry& registry = dispatcher_.registry();
  std::size_t done = 0;
  std::uint32_t generation = 0;
  KernelList kernels;  // of the race that is next: one that is registered meanwhile under an old name is another
  const auto look_at_next = [&] {
    generation = registry.generation();
    if (done < tasks.size()) kernels = registry.kernels(tasks[done].problem.op, tasks[done].problem.device.type);
    ++done;
  };
  look_at_next();
  return Tuner(registry, clock_).tune_all(tasks, options, [&](const TuneResult& result) {
    TuneResult kept = result;
    if (kept.not_stored.empty()) kept.not_stored = keep(result);
    if (kept.not_stored.empty() && !kept.chosen.empty() && !kept.measured()) kept.not_stored = "nothing was timed";
    quarantine_bad(kept, kernels);
    if (auto found = as_measurements(kept)) tuned_.add(SharedProblem(kept.problem), generation, std::move(found));
    if (finished) finished(kept);
    look_at_next();
  });
}

void MeasuredChoices::quarantine_bad(const TuneResult& result, const KernelList& kernels) {
  for (const TunedCandidate& candidate : result.candidates) {
    // Of a kernel that is well, one of the plans beside its own may be bad: that runs only where somebody names it.
    if (candidate.outcome != TuneOutcome::quarantined || !candidate.variant.empty()) continue;
    const auto found = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const auto& kernel) { return kernel->name() == candidate.kernel; });
    if (found != kernels.end()) dispatcher_.quarantine(result.problem, *found, candidate.reason + " (found by tuning)");
  }
}

std::shared_ptr<const Measurements> MeasuredChoices::measured_by_now(const Problem& problem) {
  const KernelRegistry& registry = dispatcher_.registry();
  if (auto found = tuned_.find(SharedProblem(problem), registry.generation())) return found;
  auto stored = measurements();
  return raced(stored.get(), problem, registry) ? stored : nullptr;
}

void MeasuredChoices::enable_tuning(const TuneOptions& options) {
  try {
    Tuner(dispatcher_.registry()).tune_all({}, options, {});  // says what is wrong with the options
  } catch (const Error& error) {
    fail(error.code(), "enable_tuning", std::string(error.message()));
  }
  // What is left of the budget, which is for all problems together.
  const auto left_s = std::make_shared<double>(options.total_budget_s.value_or(INFINITY));
  tuned_.clear();
  dispatcher_.set_tuner([this, options, left_s](const Problem& problem, const std::string& incumbent) -> TuneAnswer {
    // A callback of tuning that calls an op gets it untuned: a race within a race would wait for itself.
    if (tuning_here != nullptr) return std::string();
    const std::lock_guard one_at_a_time(tuning_);
    if (auto known = measured_by_now(problem)) return known;  // by another thread, while this one waited
    if (*left_s <= 0) return "the budget of " + duration_text(*options.total_budget_s) + " for all problems is spent";
    TuneOptions now = options;
    if (now.total_budget_s) now.total_budget_s = *left_s;
    TuneResult found;
    tune_now({{problem, incumbent, {}}}, now, [&](const TuneResult& result) { found = result; });
    *left_s -= found.spent_s;
    if (auto made = as_measurements(found)) return made;
    return found.because;
  });
}

void MeasuredChoices::disable_tuning() { dispatcher_.set_tuner({}); }

}  // namespace xpuruntime
