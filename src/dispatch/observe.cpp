#include <algorithm>
#include <utility>

#include "dispatch/dispatcher_impl.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

/// A start event that is recorded, or null where the device has no events to give.
std::optional<Event> start_event(AsyncLog& log, DeviceDriver& driver, Device device, Stream stream) {
  try {
    Event event = log.take_event(driver, device.index);
    if (driver.record_event(device.index, event, stream).ok()) return event;
    driver.destroy_event(device.index, event);
  } catch (const Error&) {
    // Logging must not fail a call that could run.
  }
  return std::nullopt;
}

}  // namespace

Status Dispatcher::launch_logged_on_device(const TableEntry& entry, const Call& call, ThreadState& state,
                                           std::size_t capacity) {
  const CachedPlan& plan = *entry.prepared->plan;
  const Stream stream = current_stream(plan.device);
  const DeviceGuard guard(plan.device);
  AsyncLog& log = impl_->async_log;
  AsyncLog::Item item{entry.prepared->record, read_ticks(), state.thread};
  const auto begin = start_event(log, *plan.driver, plan.device, stream);
  Status status = launch(entry, call);
  const auto end = begin ? start_event(log, *plan.driver, plan.device, stream) : std::nullopt;
  item.failed = !status.ok();
  if (end) {
    item.driver = plan.driver;
    item.index = plan.device.index;
    item.begin = *begin;
    item.end = *end;
  } else if (begin) {
    plan.driver->destroy_event(plan.device.index, *begin);
  }
  log.push(std::move(item), capacity);
  return status;
}

// Rings that no thread writes to any more are emptied into one list of the same size: many short-lived threads must not
// keep a ring each.
void Dispatcher::Impl::keep_ended_logs(std::size_t capacity) {
  std::erase_if(rings, [&](const auto& numbered) {
    const auto& [thread, ring] = numbered;
    if (ring.use_count() > 1) return false;
    for (const LogRing::Item& item : ring->read()) ended.emplace_back(thread, item);
    ended_dropped += ring->dropped();
    return true;
  });
  for (; ended.size() > capacity; ended.pop_front()) ++ended_dropped;
}

LogRing& Dispatcher::Impl::make_ring(ThreadState& state, std::size_t capacity) {
  const std::lock_guard lock(mutex);
  state.ring = nullptr;  // one of another size ends here
  keep_ended_logs(capacity);
  state.ring = std::make_shared<LogRing>(capacity);
  rings.emplace_back(state.thread, state.ring);
  return *state.ring;
}

void Dispatcher::Impl::collect_statistics() {
  async_log.read([this](const DecisionRecord& record, double time_us) {
    archive->statistics.record(record.decision.problem, record.decision.kernel, time_us,
                               record.decision.kernel_version);
  });
  archive->collect();
}

void Dispatcher::enable_logging(std::size_t capacity) {
  if (capacity == 0) return disable_logging();
  if (capacity > (std::size_t{1} << 24)) {
    fail(ErrorCode::invalid_argument, "enable_logging",
         std::to_string(capacity) + " entries per thread are too many; use at most 16777216");
  }
  set_log_capacity(capacity);
}

void Dispatcher::disable_logging() { set_log_capacity(0); }

void Dispatcher::set_default_strategy(Strategy strategy) { impl_->default_strategy.store(strategy); }

void Dispatcher::set_log_capacity(std::size_t capacity) {
  const std::lock_guard lock(impl_->mutex);
  log_capacity_.store(capacity | (impl_->call_hook == nullptr ? 0 : calls_are_told));
}

void Dispatcher::set_decision_hook(DecisionHook hook) {
  const std::lock_guard lock(impl_->mutex);
  impl_->decision_hook = hook ? std::make_shared<const DecisionHook>(std::move(hook)) : nullptr;
}

void Dispatcher::set_call_hook(CallHook hook) {
  const std::lock_guard lock(impl_->mutex);
  impl_->call_hook = hook ? std::make_shared<const CallHook>(std::move(hook)) : nullptr;
  log_capacity_.store((log_capacity_.load() & ~calls_are_told) | (impl_->call_hook == nullptr ? 0 : calls_are_told));
}

void Dispatcher::Impl::tell(const std::shared_ptr<const DecisionRecord>& record) {
  std::shared_ptr<const DecisionHook> held;
  {
    const std::lock_guard lock(mutex);
    held = decision_hook;
  }
  if (held != nullptr) (*held)({record, &record->decision});
}

Status Dispatcher::launch_told(const TableEntry& entry, const Call& call, ThreadState& state, std::size_t capacity) {
  std::shared_ptr<const CallHook> held;
  {
    const std::lock_guard lock(impl_->mutex);
    held = impl_->call_hook;
  }
  // A kernel may call: its own calls change the table, and are told of first.
  const std::shared_ptr<const DecisionRecord> record = entry.prepared->record;
  const std::uint64_t start = read_ticks();
  Status status = capacity != 0 ? launch_logged(entry, call, state, capacity) : launch(entry, call);
  const std::uint64_t elapsed = read_ticks() - start;
  if (held == nullptr) return status;
  const TickScale& scale = impl_->archive->scale;
  const double scale_us = scale.us_per_tick();
  (*held)({{record, &record->decision},
           static_cast<double>(start - scale.origin()) * scale_us,
           static_cast<double>(elapsed) * scale_us,
           false,
           !status.ok(),
           state.thread});
  return status;
}

std::vector<LogEntry> Dispatcher::logs() const {
  const TickScale& scale = impl_->archive->scale;
  const double scale_us = scale.us_per_tick();
  const auto since_origin = [&](std::uint64_t ticks) { return static_cast<double>(ticks - scale.origin()) * scale_us; };
  std::vector<LogEntry> out;
  const auto add = [this](const DecisionRecord& record, double time_us) {
    impl_->archive->statistics.record(record.decision.problem, record.decision.kernel, time_us,
                                      record.decision.kernel_version);
  };
  for (const AsyncLog::Item& item : impl_->async_log.read(add)) {
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
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [thread, item] : impl_->ended) push(thread, item);
  for (const auto& [thread, ring] : impl_->rings) {
    for (const LogRing::Item& item : ring->read()) push(thread, item);
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.start_us < b.start_us; });
  return out;
}

std::uint64_t Dispatcher::dropped_logs() const {
  const std::lock_guard lock(impl_->mutex);
  std::uint64_t dropped = impl_->async_log.dropped() + impl_->ended_dropped;
  for (const auto& [thread, ring] : impl_->rings) dropped += ring->dropped();
  return dropped;
}

void Dispatcher::clear_logs() {
  impl_->collect_statistics();
  impl_->async_log.clear();
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [thread, ring] : impl_->rings) ring->forget();
  impl_->keep_ended_logs(0);
  impl_->ended_dropped = 0;
}

Statistics& Dispatcher::statistics() const { return impl_->archive->statistics; }
void Dispatcher::collect_statistics() const { impl_->collect_statistics(); }

}  // namespace xpuruntime
