#include "dispatch/async_log.h"

#include <iterator>
#include <utility>

namespace xpuruntime {

Event AsyncLog::take_event(DeviceDriver& driver, int index) {
  {
    const std::lock_guard lock(mutex_);
    auto& events = free_[{&driver, index}];
    if (!events.empty()) {
      const Event event = events.back();
      events.pop_back();
      return event;
    }
  }
  return driver.create_event(index);
}

void AsyncLog::put_back(const Item& item) {
  auto& events = free_[{item.driver, item.index}];
  events.push_back(item.begin);
  events.push_back(item.end);
}

void AsyncLog::push(Item item, std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  items_.push_back(std::move(item));
  while (items_.size() > capacity) {
    if (items_.front().driver != nullptr) put_back(items_.front());
    items_.pop_front();
    ++dropped_;
  }
}

void AsyncLog::read_time(Item& item, const std::function<void(const DecisionRecord&, double)>& visit_time) {
  if (item.driver == nullptr) return;
  if (item.driver->wait_event(item.index, item.end).ok()) {
    item.elapsed_us = item.driver->elapsed_us(item.index, item.begin, item.end);
  }
  if (item.elapsed_us >= 0 && !item.failed) visit_time(*item.record, item.elapsed_us);
  const std::lock_guard lock(mutex_);
  put_back(item);
  item.driver = nullptr;
}

// Calls go on while this one waits for the device: they push behind what was taken out.
std::vector<AsyncLog::Item> AsyncLog::read(const std::function<void(const DecisionRecord&, double)>& visit_time) {
  const std::lock_guard one_reader(reader_mutex_);
  std::deque<Item> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(items_);
  }
  for (Item& item : taken) read_time(item, visit_time);
  const std::lock_guard lock(mutex_);
  std::vector<Item> out(taken.begin(), taken.end());
  taken.insert(taken.end(), std::make_move_iterator(items_.begin()), std::make_move_iterator(items_.end()));
  items_.swap(taken);
  return out;
}

std::uint64_t AsyncLog::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void AsyncLog::clear() {
  const std::lock_guard one_reader(reader_mutex_);
  decltype(free_) unused;
  {
    const std::lock_guard lock(mutex_);
    for (const Item& item : items_) {
      if (item.driver != nullptr) put_back(item);
    }
    items_.clear();
    unused.swap(free_);
    dropped_ = 0;
  }
  for (const auto& [device, events] : unused) {
    for (const Event event : events) device.first->destroy_event(device.second, event);
  }
}

}  // namespace xpuruntime
