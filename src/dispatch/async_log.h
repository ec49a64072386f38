#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "dispatch/decision_record.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime {

/// Logged calls whose time the device measures. Events are read when they are done, and waited for when logs are read.
class AsyncLog {
 public:
  struct Item {
    std::shared_ptr<const DecisionRecord> record = {};
    std::uint64_t start_ticks = 0;
    std::uint64_t thread = 0;
    double elapsed_us = -1;
    bool failed = false;
    DeviceDriver* driver = nullptr;  // null once the time was read
    int index = 0;
    Event begin = {};
    Event end = {};
  };

  ~AsyncLog() { clear(); }

  /// An event of the device, from those that were used before if there is one.
  Event take_event(DeviceDriver& driver, int index);
  void push(Item item, std::size_t capacity);
  /// All items with their times; `visit_time` gets each time once.
  std::vector<Item> read(const std::function<void(const DecisionRecord&, double)>& visit_time);
  std::uint64_t dropped() const;
  void clear();

 private:
  void read_time(Item& item, const std::function<void(const DecisionRecord&, double)>& visit_time);
  void put_back(const Item& item);  // with the lock held

  LongMutex reader_mutex_;  // before the other, and while the device is waited for: no call needs it, nor does a fork
  mutable Mutex mutex_;
  std::deque<Item> items_;
  std::map<std::pair<DeviceDriver*, int>, std::vector<Event>> free_;
  std::uint64_t dropped_ = 0;
};

}  // namespace xpuruntime
