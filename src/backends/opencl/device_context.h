#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "backends/opencl/programs.h"
#include "xpuruntime/cache/lru_cache.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime::opencl {

class DeviceContext;

/// A queue to put work into. Where it is the device's own, that one is not exchanged as long as this lives.
class QueueUse {
 public:
  QueueUse(std::shared_lock<std::shared_mutex> lock, cl_command_queue queue) : lock_(std::move(lock)), queue_(queue) {}
  operator cl_command_queue() const { return queue_; }  // NOLINT(google-explicit-constructor)

 private:
  std::shared_lock<std::shared_mutex> lock_;
  cl_command_queue queue_;
};

class DeviceContext;

/// Words on the device, one for each stream, that a plan's kernels set when a value of the caller's cannot be right,
/// and what it means. Nothing that is set is lost, whoever launches or waits meanwhile.
class Fault final : public ValueFault {
 public:
  Fault(DeviceContext& device, std::string message) : device_(device), message_(std::move(message)) {}
  /// Its plan goes, whose work is done: what nobody was told is left to the device's next take_faults.
  ~Fault() override;
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

  /// The word of the default stream. Who asks is about to launch a kernel that may set it.
  void* word() const override;
  /// `enqueue` gets the word that a kernel on this stream is to set.
  cl_int launch(Stream stream, const std::function<cl_int(cl_mem)>& enqueue) const;
  /// What kernels on this stream, whose queue is waited for, have found since the last time; with `others` also those
  /// on other streams. Nothing is read where none was launched.
  Status take(Stream stream, bool others) const;

 private:
  struct Word {
    std::uint64_t stream = 0;
    Buffer memory;
    bool used = false;
  };
  Word& word_of(Stream stream) const;  // under the mutex
  cl_int read(Word& word, cl_command_queue queue, cl_uint& found, cl_event* done) const;

  DeviceContext& device_;
  std::string message_;
  mutable Mutex mutex_;
  mutable std::vector<Word> words_;
};

/// What one device needs to run anything: a context, a default queue and the programs built so far. Opened on first
/// use, so that listing devices stays cheap. Safe for many threads.
class DeviceContext {
 public:
  explicit DeviceContext(cl_device_id device) : device_(device) {}

  cl_device_id device() const { return device_; }
  cl_context context();
  /// The stream's queue; for Stream{} the device's own, which is in order.
  QueueUse use(Stream stream);
  /// An event of the device's own queue has a time from now on. Queues keep times only if they are made so, and then
  /// cost more to use: the queue is exchanged for one that does, which begins after the work of the old one.
  void keep_times();
  /// In order, with times: those of a stream cannot be had later.
  Queue make_queue(bool times = true);
  /// Waits for its own queue and for every other that was used with this context (queue_id); the first failure.
  cl_int finish_all();
  /// To be called for each launch. A device may let work lie until somebody waits for it; so that it does not idle
  /// until then, it is told to begin with every 16th.
  void launched(cl_command_queue queue);

  /// A fault that take_faults reads as long as it is held.
  std::shared_ptr<const Fault> make_fault(std::string message);
  /// What kernels on this stream have found since the last time; for Stream{}, on any.
  Status take_faults(Stream stream);
  /// For the next take_faults.
  void leave_finding(Status status);

  /// The program of this source, built once for each set of options; ours have common.cl before them. A failed build
  /// throws device_error with the start of the build log and is not kept. Nor is one that may read other files.
  std::shared_ptr<Program> program(std::string_view source, const std::string& options, bool ours = true);
  /// Before a launch of a function of that program (programs.h). Remembers what was made; nothing for other drivers.
  void make_machine_code(std::string_view source, const std::string& options, const std::string& function,
                         const CodeVariant& variant, bool ours = true);

 private:
  void open();
  BuildRequest request_for(std::string_view source, const std::string& options, bool ours);

  cl_device_id device_;
  std::once_flag opened_;
  Context context_;
  Queue queue_;
  bool is_pocl_ = false;
  std::shared_mutex queue_mutex_;  // exchanging queue_ waits for who uses it
  std::atomic<bool> times_ = false;
  std::atomic<std::uint32_t> launches_ = 0;
  Mutex mutex_;
  std::vector<std::weak_ptr<const Fault>> faults_;
  std::vector<Status> left_;                      // found by kernels of plans that are gone since
  LRUCache<std::string, Program> programs_{256};  // by options and source, both whole
  LRUCache<std::string, bool> made_{4096};        // machine code, by all that tells launches apart
};

}  // namespace xpuruntime::opencl
