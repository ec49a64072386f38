#include "xpuruntime/device/graph_capture.h"

#include <utility>

#include "xpuruntime/device/current.h"

namespace xpuruntime {

GraphCapture::GraphCapture(const DeviceManager& devices, Device device)
    : driver_(devices.driver(device)), device_(device), previous_(current_stream(device)) {
  if (driver_.capturing(device.index, previous_)) {
    fail(ErrorCode::invalid_argument, "GraphCapture",
         "this thread's stream on " + to_string(device) + " is being recorded already; end that recording first");
  }
  stream_ = driver_.create_stream(device.index);
  try {
    stream_ = devices.stream(device, stream_.handle);
    driver_.begin_capture(device.index, stream_);
  } catch (...) {
    driver_.destroy_stream(device.index, stream_);
    throw;
  }
  recording_ = true;
  set_current_stream(device, stream_);
}

GraphCapture::~GraphCapture() {
  try {
    if (recording_) graph_ = finish();
  } catch (...) {
    // It was broken; nobody wants it.
  }
  driver_.destroy_graph(device_.index, graph_);
}

DeviceGraph GraphCapture::finish() {
  recording_ = false;
  // Another thread has a stream of its own: only a graph that is dropped comes here on one.
  if (thread_ == std::this_thread::get_id()) set_current_stream(device_, previous_);
  const Stream stream = std::exchange(stream_, {});
  try {
    const DeviceGraph graph = driver_.end_capture(device_.index, stream);
    driver_.destroy_stream(device_.index, stream);
    return graph;
  } catch (...) {
    driver_.destroy_stream(device_.index, stream);
    throw;
  }
}

void GraphCapture::end() {
  if (!recording_) {
    fail(ErrorCode::invalid_argument, "GraphCapture::end", "the recording has ended already; make a new one");
  }
  if (thread_ != std::this_thread::get_id()) {
    fail(ErrorCode::invalid_argument, "GraphCapture::end",
         "another thread began the recording; end it on the thread whose calls it records");
  }
  graph_ = finish();
}

void GraphCapture::replay() const {
  if (graph_.handle == nullptr) {
    fail(ErrorCode::invalid_argument, "GraphCapture::replay",
         recording_ ? "the graph is being recorded; end the recording first"
                    : "the recording was broken, and there is nothing to replay; record it again");
  }
  const Stream stream = current_stream(device_);
  if (driver_.capturing(device_.index, stream)) {
    fail(ErrorCode::not_supported, "GraphCapture::replay",
         "another graph is being recorded on this stream; replay before or after");
  }
  const Status status = driver_.launch_graph(device_.index, graph_, stream);
  if (!status.ok()) fail(status.code(), "GraphCapture::replay", status.message());
}

}  // namespace xpuruntime
