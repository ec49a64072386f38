#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "dispatch/async_log.h"
#include "dispatch/log_ring.h"
#include "dispatch/thread_state.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatch_log.h"

namespace xpuruntime {

/// What was logged: a ring for each thread, one list of all threads that ended, and the calls that a device times.
class LogBook {
 public:
  explicit LogBook(std::shared_ptr<RecordArchive> archive) : archive_(std::move(archive)) {}

  LogRing& make_ring(ThreadState& state, std::size_t capacity);
  /// Oldest first; waits for device times that are not there yet.
  std::vector<LogEntry> entries();
  /// Keeps the last `capacity`; its times are filled in.
  void add_span(LogSpan span, std::uint64_t start_ticks, std::uint64_t end_ticks, std::size_t capacity);
  std::vector<LogSpan> spans() const;
  std::uint64_t dropped() const;
  void clear();
  /// Adds the times of what was logged so far to the statistics.
  void collect_statistics();

  AsyncLog on_devices;

 private:
  void keep_ended(std::size_t capacity);  // with the lock held
  std::vector<AsyncLog::Item> read_devices();

  const std::shared_ptr<RecordArchive> archive_;
  mutable Mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<LogRing>>> rings_;  // thread number, its log
  std::deque<std::pair<std::uint64_t, LogRing::Item>> ended_;              // what ended threads logged, oldest first
  std::uint64_t ended_dropped_ = 0;
  std::deque<LogSpan> spans_ = {};  // in the order of their ends
};

}  // namespace xpuruntime
