#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "backends/opencl/worker_wire.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::opencl {

/// How a request to a worker ended.
struct Answer {
  enum class State {
    answered,
    unavailable,  // there is no worker
    shortage,     // it cannot be started now
    killed,       // by somebody else, the system for one where memory runs out
    crashed,
    late,
  };
  State state = State::unavailable;
  Message message = {};  // of one that answered; never empty then
  std::string why = {};  // of any other: "crashed with signal 6: ...", "gave no answer within 60 s"; what it was about

  bool answered() const { return state == State::answered; }
};

/// A process beside this one that asks drivers and compiles, where a crash or a hang does no harm. It is started when
/// it is first asked, started again when it is gone, and killed when it does not answer in time. What ends one that
/// served an earlier request is asked again of a fresh one: it may have gone idle, or somebody killed it meanwhile.
/// Safe for many threads: requests wait for each other.
class Worker {
 public:
  /// `environment` overrides variables of this process; `program` is for tests.
  explicit Worker(std::map<std::string, std::string> environment = {}, std::string program = default_program());
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Answer ask(const Message& request, int seconds);

  static std::string default_program();

 private:
  Answer ask_once(const Message& request, int seconds);
  /// 0, or the errno of what failed.
  int start();
  /// Waits for its end, which is near, and says how it came.
  Answer stop(bool kill_it);

  struct End;

  std::map<std::string, std::string> environment_;
  std::string program_;
  LongMutex mutex_;
  pid_t process_ = 0;
  std::shared_ptr<End> end_;  // of that process
  int socket_ = -1;
  int output_ = -1;  // what it prints: the reason of many a crash
};

/// Seconds that a driver may take to answer or to compile: XPURUNTIME_OPENCL_TIMEOUT, or 60.
int worker_seconds();

}  // namespace xpuruntime::opencl
