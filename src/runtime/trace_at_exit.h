#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"

namespace xpuruntime {

/// Logs all calls from now on and writes them as a trace when the process ends by exit or by leaving main. A child that
/// was forked writes one of its own only where the path has %p, its number, in it. Once a process.
class TraceAtExit {
 public:
  /// A path that can be no file to write is an error; a relative one is of the folder that the process is in now.
  TraceAtExit(Dispatcher& dispatcher, const std::string& path);

  /// Every problem is to be in the trace, however many calls the log drops.
  void add(const std::shared_ptr<const Decision>& decision);

 private:
  static void write_at_exit();
  void write();

  Dispatcher& dispatcher_;
  const std::string path_;
  const int process_;
  Mutex mutex_;
  std::vector<std::shared_ptr<const Decision>> decisions_;
};

}  // namespace xpuruntime
