#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xpuruntime/core/problem.h"

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

/// Times by (problem, kernel), frozen: the same snapshot always gives the same choice.
class Measurements {
 public:
  using Times = std::unordered_map<Problem, std::unordered_map<std::string, RunningStats>>;

  Measurements() = default;
  explicit Measurements(Times times) : times_(std::move(times)) {}

  /// Mean time of a kernel on a problem, if it was measured. Limits do not matter to a time.
  std::optional<double> time_us(const Problem& problem, std::string_view kernel) const;
  bool empty() const { return times_.empty(); }
  const Times& times() const { return times_; }

 private:
  Times times_;
};

/// Collects times from many threads and freezes them on demand.
class Statistics {
 public:
  void record(const Problem& problem, std::string_view kernel, double time_us);
  void merge(const Problem& problem, std::string_view kernel, const RunningStats& stats);
  std::optional<RunningStats> find(const Problem& problem, std::string_view kernel) const;
  /// The times of all kernels on all problems that `matches` holds for, as one. It must not come back here.
  RunningStats total(const std::function<bool(const Problem&)>& matches) const;
  /// What was recorded so far; the same object again as long as nothing was added.
  std::shared_ptr<const Measurements> freeze() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  Measurements::Times times_;
  mutable std::shared_ptr<const Measurements> frozen_;
};

}  // namespace xpuruntime
