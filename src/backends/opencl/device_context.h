#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "xpuruntime/cache/lru_cache.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::opencl {

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
  LRUCache<std::string, Program> programs_{256};  // by options and source, both whole
};

}  // namespace xpuruntime::opencl
