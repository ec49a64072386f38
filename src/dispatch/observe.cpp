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
  AsyncLog& log = impl_->log.on_devices;
  AsyncLog::Item item{entry.prepared->record, read_ticks(), state.thread};
  // What is recorded does not run now: it has no time.
  const bool recorded = plan.driver->capturing(plan.device.index, stream);
  const auto begin = recorded ? std::nullopt : start_event(log, *plan.driver, plan.device, stream);
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
  log_capacity_.store(capacity | (log_capacity_.load() & calls_are_told));
}

void Dispatcher::set_decision_hook(DecisionHook hook) { impl_->decision_hook.set(std::move(hook)); }

void Dispatcher::set_call_hook(CallHook hook) {
  const std::lock_guard lock(impl_->mutex);
  const std::size_t told = hook ? calls_are_told : 0;
  impl_->call_hook.set(std::move(hook));
  log_capacity_.store((log_capacity_.load() & ~calls_are_told) | told);
}

void Dispatcher::Impl::tell(const std::shared_ptr<const DecisionRecord>& record) const {
  if (const auto held = decision_hook.get()) (*held)({record, &record->decision});
}

Status Dispatcher::launch_told(const TableEntry& entry, const Call& call, ThreadState& state, std::size_t capacity) {
  const auto held = impl_->call_hook.get();
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

ScopedSpan::ScopedSpan(Dispatcher& dispatcher, std::string name, std::string category,
                       std::vector<std::pair<std::string, std::string>> arguments)
    : dispatcher_(dispatcher),
      span_{.name = std::move(name),
            .category = std::move(category),
            .arguments = std::move(arguments),
            .thread = dispatcher.thread_state().thread},
      start_(read_ticks()) {}

ScopedSpan::~ScopedSpan() {
  const std::uint64_t end = read_ticks();
  const std::size_t capacity = dispatcher_.log_capacity_.load() & ~Dispatcher::calls_are_told;
  try {
    if (capacity != 0) dispatcher_.impl_->log.add_span(std::move(span_), start_, end, capacity);
  } catch (const std::exception&) {
    // Without memory for it the block was still what it was.
  }
}

std::vector<LogSpan> Dispatcher::spans() const { return impl_->log.spans(); }
std::vector<LogEntry> Dispatcher::logs() const { return impl_->log.entries(); }
std::uint64_t Dispatcher::dropped_logs() const { return impl_->log.dropped(); }
void Dispatcher::clear_logs() { impl_->log.clear(); }

Statistics& Dispatcher::statistics() const { return impl_->archive->statistics; }
void Dispatcher::collect_statistics() const { impl_->log.collect_statistics(); }

}  // namespace xpuruntime
