#include "xpuruntime/tune/statistics.h"

#include <algorithm>
#include <cmath>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// A time is filed under what was computed; the limits in force only bound who may be asked.
Problem without_limits(const Problem& problem) {
  Problem key = problem;
  key.limits = {.threads = problem.limits.threads};
  return key;
}

void check_time(double time_us) {
  if (std::isfinite(time_us) && time_us >= 0) return;
  fail(ErrorCode::invalid_argument, "RunningStats::add",
       "a time of " + std::to_string(time_us) + " us; times must be finite and not negative");
}

}  // namespace

void RunningStats::add(double time_us) {
  check_time(time_us);
  ++count_;
  // Welford's way: a sum of times would lose the small ones after many updates.
  move_mean((time_us - mean_us()) / static_cast<double>(count_));
  min_ = std::min(min_, time_us);
  max_ = std::max(max_, time_us);
}

// Times that only grow round every step the same way; ten million such errors would show in the tenth digit.
void RunningStats::move_mean(double step) {
  const double moved = mean_ + step;
  const double taken = moved - mean_;
  lost_ += (mean_ - (moved - taken)) + (step - taken);
  mean_ = moved;
}

void RunningStats::merge(const RunningStats& other) {
  if (other.count_ == 0) return;
  count_ += other.count_;
  move_mean((other.mean_us() - mean_us()) * (static_cast<double>(other.count_) / static_cast<double>(count_)));
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

RunningStats RunningStats::from_sum(std::int64_t count, double sum_us, double min_us, double max_us) {
  RunningStats stats;
  if (count <= 0) return stats;
  stats.count_ = count;
  stats.mean_ = sum_us / static_cast<double>(count);
  stats.min_ = min_us;
  stats.max_ = max_us;
  return stats;
}

std::string timed_name(std::string_view kernel, std::string_view version) {
  return std::string(kernel) + (version.empty() ? "" : "@" + std::string(version));  // no name has an '@'
}

std::optional<double> KnownTimes::time_us(std::string_view kernel, std::string_view version) const {
  const auto found = times_us.find(timed_name(kernel, version));
  return found == times_us.end() ? std::nullopt : std::optional(found->second);
}

KnownTimes Measurements::known(const Problem& problem) const {
  KnownTimes known;
  if (times_.empty() && snapshots_.empty()) return known;
  if (const auto recorded = times_.find(without_limits(problem)); recorded != times_.end()) {
    for (const auto& [kernel, stats] : recorded->second) known.times_us[kernel] = stats.mean_us();
  }
  const auto snapshot = snapshots_.find(problem.device);
  if (snapshot == snapshots_.end()) return known;
  auto entry = snapshot->second->find(to_string(problem));
  if (!entry) return known;
  if (!entry->stale.empty()) {  // times of other software decide nothing here
    known.stale = std::move(entry->stale);
    return known;
  }
  for (const Measurement& measurement : entry->measurements) {
    // A kernel may have been measured with several plans over time; the fastest stands for it.
    const std::string name = timed_name(measurement.kernel, measurement.kernel_version);
    const auto [place, fresh] = known.times_us.emplace(name, measurement.time_us);
    if (!fresh) place->second = std::min(place->second, measurement.time_us);
  }
  known.choice = std::move(entry->choice);
  known.quarantine = std::move(entry->quarantine);
  return known;
}

std::optional<double> Measurements::time_us(const Problem& problem, std::string_view kernel,
                                            std::string_view version) const {
  return empty() ? std::nullopt : known(problem).time_us(kernel, version);
}

void Statistics::record(const Problem& problem, std::string_view kernel, double time_us, std::string_view version) {
  check_time(time_us);  // before an entry is made for it: one without times would read as 0 us
  const std::lock_guard lock(mutex_);
  times_[without_limits(problem)][timed_name(kernel, version)].add(time_us);
  frozen_ = nullptr;
}

void Statistics::merge(const Problem& problem, std::string_view kernel, const RunningStats& stats,
                       std::string_view version) {
  if (stats.count() == 0) return;
  const std::lock_guard lock(mutex_);
  times_[without_limits(problem)][timed_name(kernel, version)].merge(stats);
  frozen_ = nullptr;
}

std::optional<RunningStats> Statistics::find(const Problem& problem, std::string_view kernel,
                                             std::string_view version) const {
  const std::lock_guard lock(mutex_);
  const auto by_kernel = times_.find(without_limits(problem));
  if (by_kernel == times_.end()) return std::nullopt;
  const auto found = by_kernel->second.find(timed_name(kernel, version));
  return found == by_kernel->second.end() ? std::nullopt : std::optional(found->second);
}

RunningStats Statistics::total(const std::function<bool(const Problem&)>& matches) const {
  RunningStats all;
  const std::lock_guard lock(mutex_);
  for (const auto& [problem, by_kernel] : times_) {
    if (!matches(problem)) continue;
    for (const auto& [kernel, stats] : by_kernel) all.merge(stats);
  }
  return all;
}

std::shared_ptr<const Measurements> Statistics::freeze() const {
  const std::lock_guard lock(mutex_);
  if (frozen_ == nullptr) frozen_ = std::make_shared<const Measurements>(times_);
  return frozen_;
}

void Statistics::clear() {
  const std::lock_guard lock(mutex_);
  times_.clear();
  frozen_ = nullptr;
}

}  // namespace xpuruntime
