#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/tensor.h"
#include "xpuruntime/device/profile.h"
#include "xpuruntime/device/stream.h"

namespace xpuruntime {

/// A word that a plan's kernels set on the device when a value of the caller's cannot be right, such as an index past
/// the end. They write nothing for that value and go on; nothing waits. Owned by the plan.
class ValueFault {
 public:
  virtual ~ValueFault() = default;
  /// 32 bits in memory that the device can write, 0 until a kernel writes something else.
  virtual void* word() const = 0;
};

/// How the library reaches the devices of one type: what is there, memory, streams, events.
/// Every function may be called from several threads at once. `index` is always below devices().size().
class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;

  virtual DeviceType type() const = 0;

  /// The devices that can be used, in index order. Empty if there is none: then why_absent() says why. May look for
  /// them when it is first called, which is not before a device of this type is asked for.
  virtual const std::vector<DeviceProfile>& devices() const = 0;
  /// "no NVIDIA driver: libcuda.so.1 was not found"; empty where there are devices.
  virtual std::string why_absent() const = 0;

  /// Memory as Tensor::data holds it. Throws Error(out_of_memory) when there is not enough. Also called while a stream
  /// is captured: it is not part of what is recorded.
  virtual void* allocate(int index, std::size_t bytes) = 0;
  /// Work queued before this call may still use the memory: the driver keeps it until that is done.
  virtual void deallocate(int index, void* memory) noexcept = 0;

  /// Temporary memory in the order of a stream: for work that is queued there from now on. It is free again once the
  /// work queued there before deallocate_ordered is done; neither waits. A driver without such memory allocates as
  /// above.
  virtual void* allocate_ordered(int index, std::size_t bytes, Stream stream);
  virtual void deallocate_ordered(int index, void* memory, Stream stream) noexcept;

  /// Copies between this device and host memory, queued on `stream`; blocks until the host memory may be reused.
  virtual Status copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                                Stream stream) = 0;
  virtual Status copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                              Stream stream) = 0;

  /// Queues the writing of up to 16 bytes, which are read before it returns. A driver that can does not wait, and takes
  /// it in a capture too; this one copies.
  virtual Status write_value(int index, void* memory, const void* value, std::size_t bytes, Stream stream);

  /// Streams. A device without streams returns the null stream and does nothing. Failures throw.
  virtual Stream create_stream(int index) = 0;
  virtual void destroy_stream(int index, Stream stream) noexcept = 0;
  /// Waits for all that was queued on the stream, and for the null stream on the whole device, by whatever stream;
  /// an error of earlier work shows here.
  virtual Status synchronize(int index, Stream stream) = 0;
  /// Waits for the whole device, and leaves what kernels found wrong in a caller's values (make_value_fault) to the
  /// next synchronize. The library calls it before it destroys a plan that ran.
  virtual Status wait(int index) { return synchronize(index, {}); }

  /// What Stream::id is for this handle, of a stream that anybody made and that is alive now.
  virtual std::uint64_t stream_id(int index, void* handle);
  /// Not 0 while what is queued there is recorded, by any code, to be run later: then nothing may be prepared, tuned or
  /// waited for. No other capture of the process has the number.
  virtual std::uint64_t capture_id(int index, Stream stream);
  bool capturing(int index, Stream stream) { return capture_id(index, stream) != 0; }
  /// Releases `held` once the graph that is being recorded there is destroyed and its last run is over; that may
  /// be some calls of the driver later. Throws where it cannot.
  virtual void keep_with_graph(int index, Stream stream, std::shared_ptr<void> held);

  /// Graphs; GraphCapture is the way to use them. Throw where the device has none.
  /// What this process queues on the stream from now on is recorded and not run.
  virtual void begin_capture(int index, Stream stream);
  /// Ends the recording, also where it throws.
  virtual DeviceGraph end_capture(int index, Stream stream);
  virtual Status launch_graph(int index, DeviceGraph graph, Stream stream);
  /// A run that is not over yet goes on.
  virtual void destroy_graph(int index, DeviceGraph graph) noexcept;

  /// Events, made with timing. record_event replaces what the event held.
  virtual Event create_event(int index) = 0;
  virtual void destroy_event(int index, Event event) noexcept = 0;
  virtual Status record_event(int index, Event& event, Stream stream) = 0;
  virtual Status wait_event(int index, Event event) = 0;
  /// Work queued on the stream from now on begins after the event. The host waits only where the device cannot.
  virtual Status queue_wait(int index, Stream stream, Event event);
  virtual bool event_done(int index, Event event) = 0;
  /// Microseconds of device time between two recorded, finished events; negative where the device cannot tell.
  virtual double elapsed_us(int index, Event from, Event to) = 0;
  /// Queues work after which no cache of the device holds anything but this memory, and nothing that has to be written
  /// back: what is read next comes from the device's memory. It overwrites the first half and reads the second, so each
  /// should be twice the caches. not_supported where the device cannot; then times are the host's, and warm.
  virtual Status flush_caches(int index, void* memory, std::size_t bytes, Stream stream);
  /// True when work goes on after a launch returns.
  virtual bool asynchronous() const = 0;

  /// For kernels that find out on the device that a caller's value cannot be right. `message` names the call and the
  /// value's place: the next synchronize after such a find fails with it, as an invalid argument. Null where kernels
  /// can return such a Status themselves.
  virtual std::unique_ptr<ValueFault> make_value_fault(int index, std::string message);
};

}  // namespace xpuruntime
