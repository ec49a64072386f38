#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// Count, mean and range of a row of times; the mean stays exact over any number of them.
class RunningStats {
 public:
  /// Microseconds; negative, infinite or NaN is an error and changes nothing.
  void add(double time_us);
  /// Takes in times that were summed up elsewhere.
  void merge(const RunningStats& other);
  static RunningStats from_sum(std::int64_t count, double sum_us, double min_us, double max_us);

  std::int64_t count() const { return count_; }
  double mean_us() const { return mean_ + lost_; }
  double min_us() const { return min_; }
  double max_us() const { return max_; }

 private:
  void move_mean(double step);

  std::int64_t count_ = 0;
  double mean_ = 0;
  double lost_ = 0;  // what rounding cut off the mean so far
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = 0;
};

/// What is known about one problem on one device.
struct KnownTimes {
  std::unordered_map<std::string, double> times_us = {};  // by timed_name
  std::optional<TunedChoice> choice = {};                 // of a race, under exactly the problem's limits
  std::vector<QuarantineEntry> quarantine = {};
  std::string stale = {};  // why a stored choice must be measured again before it counts

  std::optional<double> time_us(std::string_view kernel, std::string_view version = {}) const;
};

/// What the times of a kernel are kept under: its name, and its version where it has one (Kernel::version).
std::string timed_name(std::string_view kernel, std::string_view version);

/// What was recorded of one problem.
struct ProblemTimes {
  std::unordered_map<std::string, RunningStats> by_kernel = {};
  std::uint64_t turn = 0;  // the number of the last addition: who has the lowest is forgotten first
};

/// Times by problem and timed_name, frozen: the same snapshot always gives the same choice. Made of the times that a
/// program recorded, or of what a store holds for each device.
class Measurements {
 public:
  using Times = std::unordered_map<Problem, std::unordered_map<std::string, RunningStats>>;
  using Snapshots = std::map<Device, std::shared_ptr<const StoreSnapshot>>;
  /// Null: nothing is known on that device. Called from many threads.
  using SnapshotOf = std::function<std::shared_ptr<const StoreSnapshot>(Device)>;
  /// Recorded times, split by the problem's hash: snapshots share the parts that are the same in both.
  using Part = std::unordered_map<Problem, ProblemTimes>;
  using Parts = std::vector<std::shared_ptr<const Part>>;

  Measurements() = default;
  explicit Measurements(const Times& times);
  explicit Measurements(Parts parts) : parts_(std::move(parts)) {}
  explicit Measurements(Snapshots snapshots);
  explicit Measurements(SnapshotOf snapshot_of) : snapshot_of_(std::move(snapshot_of)) {}

  /// Recorded times whatever the limits were; what a store says only where it was found under the same.
  KnownTimes known(const Problem& problem) const;
  /// Time of a kernel on a problem, if it was measured.
  std::optional<double> time_us(const Problem& problem, std::string_view kernel, std::string_view version = {}) const;
  bool empty() const { return problem_count() == 0 && !snapshot_of_; }
  /// Problems with recorded times.
  std::size_t problem_count() const;

 private:
  Parts parts_;
  SnapshotOf snapshot_of_;
};

/// Collects times from many threads and freezes them on demand. Bounded: where more than `limit` pairs of problem and
/// kernel have times, an eighth goes, the problems first that nothing was added to for longest.
class Statistics {
 public:
  static constexpr std::size_t default_limit = 16384;

  explicit Statistics(std::size_t limit = default_limit) : limit_(limit) {}

  void record(const Problem& problem, std::string_view kernel, double time_us, std::string_view version = {});
  void merge(const Problem& problem, std::string_view kernel, const RunningStats& stats, std::string_view version = {});
  std::optional<RunningStats> find(const Problem& problem, std::string_view kernel,
                                   std::string_view version = {}) const;
  /// The times of all kernels on all problems that `matches` holds for, as one. It must not come back here.
  RunningStats total(const std::function<bool(const Problem&)>& matches) const;
  /// What was recorded so far. The same object again until there is news: a kernel's first time on a problem, another
  /// order of a problem's kernels, or a count that passes a power of two. So every choice is as of now, and each mean
  /// is that of at least half of the times.
  std::shared_ptr<const Measurements> freeze() const;
  void clear();

 private:
  struct Slot {
    std::shared_ptr<Measurements::Part> part = {};
    bool frozen = false;  // a snapshot may have it: it is copied before it changes
  };

  Measurements::Part& writable(std::size_t slot);
  template <typename Add>
  void update(const Problem& problem, std::string_view kernel, const Add& add);
  void forget_oldest();

  const std::size_t limit_;
  mutable Mutex mutex_;
  mutable std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::size_t pairs_ = 0;  // of problem and kernel
  std::uint64_t turn_ = 0;
  mutable std::shared_ptr<const Measurements> frozen_;
};

}  // namespace xpuruntime
