#include "runtime/measured_choices.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

namespace xpuruntime {
namespace {

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

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

thread_local const void* tuning_here = nullptr;  // whose tuning this thread is in

class Here {
 public:
  explicit Here(const void* owner) { tuning_here = owner; }
  ~Here() { tuning_here = nullptr; }
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;
};

}  // namespace

MeasuredChoices::MeasuredChoices(Dispatcher& dispatcher) : dispatcher_(dispatcher) {
  dispatcher_.set_measured_source([this] { return measurements(); });
}

void MeasuredChoices::set_default_path(std::string path, StoreMode mode) {
  const std::lock_guard lock(mutex_);
  default_path_ = std::move(path);
  default_mode_ = mode;
}

void MeasuredChoices::use(std::shared_ptr<MeasurementStore> store) {
  const std::lock_guard lock(mutex_);
  default_path_.clear();
  store_ = std::move(store);
  forget_frozen();
}

std::shared_ptr<MeasurementStore> MeasuredChoices::store() const {
  const std::lock_guard lock(mutex_);
  return store_;
}

void MeasuredChoices::refresh() {
  const std::lock_guard lock(mutex_);
  forget_frozen();
}

void MeasuredChoices::forget_frozen() {
  frozen_ = nullptr;
  ++version_;
}

std::shared_ptr<const Measurements> MeasuredChoices::freeze(const MeasurementStore& store) const {
  const DeviceManager& devices = dispatcher_.registry().devices();
  Measurements::Snapshots snapshots;
  for (const Device device : devices.devices()) {
    snapshots[device] = store.freeze(environment_of(devices.profile(device)));
  }
  return std::make_shared<const Measurements>(std::move(snapshots));
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
    const auto made = store == nullptr ? nullptr : freeze(*store);
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
  std::string path;
  {
    const std::lock_guard lock(mutex_);
    if (default_path_.empty() || default_mode_ == StoreMode::read_only)
      return store_ == nullptr || store_->read_only() ? nullptr : store_;
    path = default_path_;
  }
  return open_store(path, StoreMode::read_write);  // anew: this process may have been forked since
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
  return Tuner(dispatcher_.registry()).tune_all(tasks, options, [&](const TuneResult& result) {
    TuneResult kept = result;
    if (kept.not_stored.empty()) kept.not_stored = keep(result);
    if (finished) finished(kept);
  });
}

void MeasuredChoices::enable_tuning(const TuneOptions& options) {
  // What is left of the budget, which is for all problems together.
  const auto left_s = std::make_shared<double>(options.total_budget_s.value_or(INFINITY));
  dispatcher_.set_tuner([this, options, left_s](const Problem& problem,
                                                const std::string& incumbent) -> std::shared_ptr<const Measurements> {
    // A callback of tuning that calls an op gets it untuned: a race within a race would wait for itself.
    if (tuning_here != nullptr) return nullptr;
    TuneResult found;
    {
      const std::lock_guard one_at_a_time(tuning_);
      if (*left_s <= 0) return nullptr;
      TuneOptions now = options;
      if (now.total_budget_s) now.total_budget_s = *left_s;
      tune_now({{problem, incumbent, {}}}, now, [&](const TuneResult& result) { found = result; });
      *left_s -= found.spent_s;
    }
    if (found.chosen.empty()) return nullptr;
    if (!found.not_stored.empty()) found.because += "; it was not stored: " + found.not_stored;
    return std::make_shared<const Measurements>(
        Measurements::Snapshots{{problem.device, std::make_shared<const OneProblem>(found)}});
  });
}

void MeasuredChoices::disable_tuning() { dispatcher_.set_tuner({}); }

}  // namespace xpuruntime
