#include "dispatch/log_book.h"

#include <algorithm>

namespace xpuruntime {

// Rings that no thread writes to any more are emptied into one list of the same size: many short-lived threads must not
// keep a ring each.
void LogBook::keep_ended(std::size_t capacity) {
  std::erase_if(rings_, [&](const auto& numbered) {
    const auto& [thread, ring] = numbered;
    if (ring.use_count() > 1) return false;
    for (const LogRing::Item& item : ring->read()) ended_.emplace_back(thread, item);
    ended_dropped_ += ring->dropped();
    return true;
  });
  for (; ended_.size() > capacity; ended_.pop_front()) ++ended_dropped_;
}

LogRing& LogBook::make_ring(ThreadState& state, std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  state.ring = nullptr;  // one of another size ends here
  keep_ended(capacity);
  state.ring = std::make_shared<LogRing>(capacity);
  rings_.emplace_back(state.thread, state.ring);
  return *state.ring;
}

std::vector<AsyncLog::Item> LogBook::read_devices() {
  return on_devices.read([this](const DecisionRecord& record, double time_us) {
    const Decision& decision = record.decision;
    archive_->statistics.record(decision.problem, decision.kernel, time_us, decision.kernel_version);
  });
}

void LogBook::collect_statistics() {
  read_devices();
  archive_->collect();
}

std::vector<LogEntry> LogBook::entries() {
  const TickScale& scale = archive_->scale;
  const double scale_us = scale.us_per_tick();
  const auto since_origin = [&](std::uint64_t ticks) { return static_cast<double>(ticks - scale.origin()) * scale_us; };
  std::vector<LogEntry> out;
  for (const AsyncLog::Item& item : read_devices()) {
    out.push_back({{item.record, &item.record->decision},
                   since_origin(item.start_ticks),
                   std::max(item.elapsed_us, 0.0),
                   item.elapsed_us >= 0,
                   item.failed,
                   item.thread});
  }
  const auto push = [&](std::uint64_t thread, const LogRing::Item& item) {
    out.push_back({{item.record, &item.record->decision},
                   since_origin(item.start_ticks),
                   static_cast<double>(item.elapsed_ticks) * scale_us,
                   false,
                   item.failed,
                   thread});
  };
  const std::lock_guard lock(mutex_);
  for (const auto& [thread, item] : ended_) push(thread, item);
  for (const auto& [thread, ring] : rings_) {
    for (const LogRing::Item& item : ring->read()) push(thread, item);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.start_us < b.start_us; });
  return out;
}

void LogBook::add_span(LogSpan span, std::uint64_t start_ticks, std::uint64_t end_ticks, std::size_t capacity) {
  const TickScale& scale = archive_->scale;
  span.start_us = static_cast<double>(start_ticks - scale.origin()) * scale.us_per_tick();
  span.elapsed_us = static_cast<double>(end_ticks - start_ticks) * scale.us_per_tick();
  const std::lock_guard lock(mutex_);
  spans_.push_back(std::move(span));
  while (spans_.size() > capacity) spans_.pop_front();
}

std::vector<LogSpan> LogBook::spans() const {
  std::vector<LogSpan> all;
  {
    const std::lock_guard lock(mutex_);
    all.assign(spans_.begin(), spans_.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.start_us < b.start_us; });
  return all;
}

std::uint64_t LogBook::dropped() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t dropped = on_devices.dropped() + ended_dropped_;
  for (const auto& [thread, ring] : rings_) dropped += ring->dropped();
  return dropped;
}

void LogBook::clear() {
  collect_statistics();
  on_devices.clear();
  const std::lock_guard lock(mutex_);
  for (const auto& [thread, ring] : rings_) ring->forget();
  keep_ended(0);
  ended_dropped_ = 0;
  spans_.clear();
}

}  // namespace xpuruntime
