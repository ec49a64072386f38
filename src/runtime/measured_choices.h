#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dispatch/tuned_here.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/tune/store.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {

/// A runtime's store, what was frozen of it, and the tuner that fills it.
class MeasuredChoices {
 public:
  /// Without a clock, the system's steady one; see Tuner.
  explicit MeasuredChoices(Dispatcher& dispatcher, Tuner::Clock clock = {});

  /// Seconds since some moment, by the clock that budgets are kept by.
  double now_s() const { return clock_() / 1e6; }

  /// Where the store lies that is opened when it is first asked for, if it is there; empty: none. One that may be
  /// written is made when tuning has found something.
  void set_default_path(std::string path, StoreMode mode = StoreMode::read_only);
  void use(std::shared_ptr<MeasurementStore> store);
  std::shared_ptr<MeasurementStore> store() const;
  /// The one in use, or where none was put in use that at the default path: to read, only if it is there.
  std::shared_ptr<MeasurementStore> store(StoreMode mode) const;
  void refresh();

  /// What the store holds for the devices that are here; the same object until it is refreshed. Null without a store.
  std::shared_ptr<const Measurements> measurements();

  /// What each task is to leave out is filled in here.
  bool tune_all(std::vector<TuneTask> tasks, const TuneOptions& options,
                const std::function<void(const TuneResult&)>& finished);
  void enable_tuning(const TuneOptions& options);
  void disable_tuning();

 private:
  void forget_frozen();
  /// With `tuning_` held.
  bool tune_now(std::vector<TuneTask> tasks, const TuneOptions& options,
                const std::function<void(const TuneResult&)>& finished);
  /// What is known of a problem by now; null: it has to be measured. With `tuning_` held.
  std::shared_ptr<const Measurements> measured_by_now(const Problem& problem);
  /// Keeps kernels that a race found bad from running here. `kernels` are those that took part.
  void quarantine_bad(const TuneResult& result, const KernelList& kernels);
  std::shared_ptr<const Measurements> freeze(std::shared_ptr<const MeasurementStore> store) const;
  std::vector<QuarantineEntry> quarantined(const Problem& problem);
  /// The one to put into; null: none may be written.
  std::shared_ptr<MeasurementStore> store_to_fill() const;
  /// Puts it into the store; returns why that failed, empty: it did not.
  std::string keep(const TuneResult& result);

  Dispatcher& dispatcher_;
  const Tuner::Clock clock_;
  mutable Mutex mutex_;
  LongMutex tuning_;  // two races at once would disturb each other
  TunedHere tuned_;   // what races have found, for threads that waited for one
  LongMutex freezing_;
  std::string default_path_;
  StoreMode default_mode_ = StoreMode::read_only;
  std::shared_ptr<MeasurementStore> store_;
  std::shared_ptr<const Measurements> frozen_;
  std::uint64_t version_ = 0;  // moves when `frozen_` is forgotten
};

}  // namespace xpuruntime
