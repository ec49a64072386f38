#pragma once

#include <sys/types.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "core/json_text.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::process {

/// `python3 -m xpuruntime.engine_process`: where an engine may crash or hang without harm. It is killed with whoever
/// owns this, and with the process. For one thread at a time.
class HelperProcess {
 public:
  /// Fails with `not_supported` where Python cannot be started.
  HelperProcess();
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  using Clock = std::chrono::steady_clock;
  /// Sends a request and waits for its answer. An error of the engine is thrown as it was raised there. Fails with
  /// `timeout` when the time is over, and with `device_error` if the process ended: it is dead after both.
  Json ask(const Json& request, Clock::time_point end, const std::string& about);

  /// Memory that the helper has too, of at least so many bytes; what it was before is gone when it has to grow.
  /// Requests that put bytes at its beginning say how many with "bytes"; answers say where theirs are with "offset" and
  /// "bytes".
  std::byte* memory(std::size_t bytes);
  /// Those of an answer.
  std::span<const std::byte> bytes_of(const Json& answer);

  /// A forked child has none.
  bool alive() const { return socket_ >= 0 && generation_ == process_generation(); }

 private:
  [[noreturn]] void fail_late(const std::string& about);
  [[noreturn]] void fail_ended(const std::string& about);
  bool transfer(char* bytes, std::size_t size, bool sends, Clock::time_point end, const std::string& about);
  std::string stop();

  const std::int32_t generation_ = process_generation();
  pid_t process_ = 0;
  int socket_ = -1;
  int lifeline_ = -1;  // nothing is written: when it closes, the helper is killed
  int output_ = -1;    // what it prints
  int memory_ = -1;
  std::byte* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace xpuruntime::process
