#pragma once

#include <thread>

#include "xpuruntime/device/device_manager.h"

namespace xpuruntime {

/// Records what one thread queues on a device, to queue all of it again with one launch. A Dispatcher's calls are
/// recorded with the kernels that were chosen for them before:
///
///   runtime.dispatcher().dispatch(call);  // chooses and prepares: neither is done while a graph is recorded
///   GraphCapture graph(runtime.devices(), device);
///   runtime.dispatcher().dispatch(call);  // recorded, not run
///   graph.end();
///   graph.replay();
///
/// The graph keeps the plans that it runs, their workspace, and the memory of tensors that own theirs, until it is
/// destroyed and its last run is over. Memory that a tensor only views is the caller's to keep. Destroy it before the
/// DeviceManager and the Dispatcher.
class GraphCapture {
 public:
  /// From now on this thread's calls on the device are recorded. An error where the device has no graphs, or this
  /// thread is recording one there.
  GraphCapture(const DeviceManager& devices, Device device);
  /// A recording that was not ended is dropped.
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  /// Ends the recording, on the thread that began it. An error where something broke it: waiting, or using another
  /// stream. A call that failed did not.
  void end();
  /// Queues all of it on the device's current stream, after the graph's last run. What it computes is what the
  /// recorded calls would compute now, from the memory they named.
  void replay() const;

  Device device() const { return device_; }

 private:
  DeviceGraph finish();

  DeviceDriver& driver_;
  Device device_;
  Stream stream_ = {};
  Stream previous_ = {};
  std::thread::id thread_ = std::this_thread::get_id();
  bool recording_ = false;
  DeviceGraph graph_ = {};
};

}  // namespace xpuruntime
