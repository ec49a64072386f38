#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "python/bound_array.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/graph_capture.h"

namespace xpuruntime::python {

/// What xpuruntime.cuda.graph() gives: records the ops of a with block. Keeps the arrays of recorded calls.
class GraphObject {
 public:
  explicit GraphObject(Device device) : device_(device) {}

  void begin();
  /// A block that raised leaves nothing to replay.
  void finish(bool raised);
  /// On the current stream of the package whose arrays were recorded, or on ours.
  void replay() const;

  /// For a call on this device, after it was recorded.
  void keep(const BoundArray& array);
  void keep(nb::object array) { arrays_.push_back(std::move(array)); }
  Device device() const { return device_; }

  /// What this thread records on a device; null where it runs what it calls.
  static GraphObject* recording(Device device);

 private:
  Device device_;
  GraphObject* outer_ = nullptr;  // that this thread records as well, on another device
  const ExchangeApi* api_ = nullptr;
  std::vector<nb::object> arrays_;
  std::unique_ptr<GraphCapture> capture_;
};

/// Makes the stream current that the work of a call goes to, for a block: the one that its arrays' package has queued
/// its own work on, but for a graph that is recorded.
class WorkStream {
 public:
  explicit WorkStream(const BoundArray& array);

 private:
  std::optional<StreamGuard> guard_;
};

}  // namespace xpuruntime::python
