#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "xpuruntime/cache/lru_cache.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime::opencl {

class DeviceContext;

/// A word on the device that a plan's kernels set when a value of the caller's cannot be right, and what it means.
class Fault final : public ValueFault {
 public:
  Fault(DeviceContext& device, std::string message);

  /// The cl_mem of the word. Who asks is about to launch a kernel that may set it.
  void* word() const override;
  /// What kernels have found since the last time; fine where they found nothing. The queue is waited for, unless no
  /// kernel was launched meanwhile.
  Status take(cl_command_queue queue) const;

 private:
  Buffer word_;
  std::string message_;
  mutable std::atomic<bool> used_ = false;
};

/// What one device needs to run anything: a context, a default queue and the programs built so far. Opened on first
/// use, so that listing devices stays cheap. Safe for many threads.
class DeviceContext {
 public:
  explicit DeviceContext(cl_device_id device) : device_(device) {}

  cl_device_id device() const { return device_; }
  cl_context context();
  /// In order, with profiling; what Stream{} stands for.
  cl_command_queue queue();
  Queue make_queue();

  // Queues that were handed out, so that all of the device's work can be waited for.
  void note_queue(cl_command_queue queue);
  void forget_queue(cl_command_queue queue);
  /// Waits for the default queue and for every queue noted; the first failure.
  cl_int finish_all();

  /// A fault that take_faults reads as long as it is held.
  std::unique_ptr<ValueFault> make_fault(std::string message);
  /// The first that kernels have found since the last time.
  Status take_faults();

  /// The program of this source, common.cl before it, built once for each set of options. A failed build throws
  /// device_error with the start of the build log and is not kept.
  std::shared_ptr<Program> program(std::string_view source, const std::string& options);

 private:
  void open();

  cl_device_id device_;
  std::once_flag opened_;
  Context context_;
  Queue queue_;
  Mutex mutex_;
  std::vector<cl_command_queue> noted_;
  std::vector<std::weak_ptr<const Fault>> faults_;
  LRUCache<std::string, Program> programs_{256};  // by options and source, both whole
};

}  // namespace xpuruntime::opencl
