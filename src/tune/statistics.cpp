#include "xpuruntime/tune/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// A time is filed under what was computed; the limits in force only bound who may be asked.
Problem without_limits(const Problem& problem) {
  Problem key = problem;
  key.limits = {.threads = problem.limits.threads};
  return key;
}

std::size_t slot_of(const Problem& problem, std::size_t slots) { return hash_of(problem) % slots; }

const ProblemTimes* find_times(const Measurements::Parts& parts, const Problem& key) {
  const auto& part = parts[slot_of(key, parts.size())];
  if (part == nullptr) return nullptr;
  const auto found = part->find(key);
  return found == part->end() ? nullptr : &found->second;
}

/// Whether a snapshot with the old figures of `kernel` would choose otherwise or be out of date.
bool is_news(const ProblemTimes& times, std::string_view kernel, const RunningStats& old, const RunningStats& now) {
  const auto power = [](std::int64_t count) { return std::bit_width(static_cast<std::uint64_t>(count)); };
  if (power(old.count()) != power(now.count())) return true;
  return std::any_of(times.by_kernel.begin(), times.by_kernel.end(), [&](const auto& other) {
    const double mean = other.second.mean_us();
    return other.first != kernel && (old.mean_us() <=> mean) != (now.mean_us() <=> mean);
  });
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
  if (times_us.empty()) return {};
  const auto found = times_us.find(timed_name(kernel, version));
  return found == times_us.end() ? std::nullopt : std::optional(found->second);
}

Measurements::Measurements(const Times& times) {
  Part part;
  for (const auto& [problem, by_kernel] : times) part[problem] = {by_kernel};
  parts_.push_back(std::make_shared<const Part>(std::move(part)));
}

Measurements::Measurements(Snapshots snapshots) {
  if (snapshots.empty()) return;
  snapshot_of_ = [snapshots = std::move(snapshots)](Device device) {
    const auto found = snapshots.find(device);
    return found == snapshots.end() ? nullptr : found->second;
  };
}

std::size_t Measurements::problem_count() const {
  std::size_t count = 0;
  for (const auto& part : parts_) count += part == nullptr ? 0 : part->size();
  return count;
}

KnownTimes Measurements::known(const Problem& problem) const {
  KnownTimes known;
  if (const ProblemTimes* recorded = parts_.empty() ? nullptr : find_times(parts_, without_limits(problem))) {
    for (const auto& [kernel, stats] : recorded->by_kernel) known.times_us[kernel] = stats.mean_us();
  }
  const auto snapshot = snapshot_of_ ? snapshot_of_(problem.device) : nullptr;
  if (snapshot == nullptr) return known;
  auto entry = snapshot->find(to_string(problem));
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
  update(problem, timed_name(kernel, version), [&](RunningStats& stats) { stats.add(time_us); });
}

void Statistics::merge(const Problem& problem, std::string_view kernel, const RunningStats& added,
                       std::string_view version) {
  if (added.count() == 0) return;
  update(problem, timed_name(kernel, version), [&](RunningStats& stats) { stats.merge(added); });
}

template <typename Add>
void Statistics::update(const Problem& problem, std::string_view kernel, const Add& add) {
  const Problem key = without_limits(problem);
  const std::lock_guard lock(mutex_);
  ProblemTimes& times = writable(slot_of(key, slots_.size()))[key];
  const auto [place, is_new] = times.by_kernel.try_emplace(std::string(kernel));
  const RunningStats old = place->second;
  add(place->second);
  times.turn = ++turn_;
  if (is_news(times, kernel, old, place->second)) frozen_ = nullptr;
  if (is_new && ++pairs_ > limit_) forget_oldest();
}

Measurements::Part& Statistics::writable(std::size_t slot) {
  auto& [part, frozen] = slots_[slot];
  if (part == nullptr || frozen) part = std::make_shared<Measurements::Part>(part ? *part : Measurements::Part());
  frozen = false;
  return *part;
}

// An eighth at a time: looking for the oldest costs as much for many as for one.
void Statistics::forget_oldest() {
  std::vector<std::pair<std::uint64_t, std::size_t>> turns;  // with the number of pairs
  for (const auto& [part, frozen] : slots_) {
    if (part == nullptr) continue;
    for (const auto& [problem, times] : *part) turns.emplace_back(times.turn, times.by_kernel.size());
  }
  std::sort(turns.begin(), turns.end());
  std::uint64_t last = 0;
  for (auto turn = turns.begin(); turn != turns.end() && pairs_ > limit_ - limit_ / 8; ++turn) {
    last = turn->first;
    pairs_ -= turn->second;
  }
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].part == nullptr) continue;
    std::erase_if(writable(slot), [&](const auto& entry) { return entry.second.turn <= last; });
  }
  frozen_ = nullptr;
}

std::optional<RunningStats> Statistics::find(const Problem& problem, std::string_view kernel,
                                             std::string_view version) const {
  const Problem key = without_limits(problem);
  const std::lock_guard lock(mutex_);
  const auto& part = slots_[slot_of(key, slots_.size())].part;
  if (part == nullptr) return std::nullopt;
  const auto times = part->find(key);
  if (times == part->end()) return std::nullopt;
  const auto found = times->second.by_kernel.find(timed_name(kernel, version));
  return found == times->second.by_kernel.end() ? std::nullopt : std::optional(found->second);
}

RunningStats Statistics::total(const std::function<bool(const Problem&)>& matches) const {
  RunningStats all;
  const std::lock_guard lock(mutex_);
  for (const auto& [part, frozen] : slots_) {
    if (part == nullptr) continue;
    for (const auto& [problem, times] : *part) {
      if (!matches(problem)) continue;
      for (const auto& [kernel, stats] : times.by_kernel) all.merge(stats);
    }
  }
  return all;
}

std::shared_ptr<const Measurements> Statistics::freeze() const {
  const std::lock_guard lock(mutex_);
  if (frozen_ != nullptr) return frozen_;
  Measurements::Parts parts;
  for (auto& [part, frozen] : slots_) {
    frozen = true;
    parts.push_back(part);
  }
  return frozen_ = std::make_shared<const Measurements>(std::move(parts));
}

void Statistics::clear() {
  const std::lock_guard lock(mutex_);
  for (Slot& slot : slots_) slot = {};
  pairs_ = 0;
  frozen_ = nullptr;
}

}  // namespace xpuruntime
