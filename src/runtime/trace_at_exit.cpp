#include "runtime/trace_at_exit.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/json_text.h"
#include "runtime/line_output.h"

namespace xpuruntime {
namespace {

constexpr const char* variable = "XPURUNTIME_TRACE";
constexpr std::size_t calls_kept = 65536;        // of each thread, the last ones
constexpr std::size_t decisions_kept = 100'000;  // as many as `xrt tune --from-log` takes

TraceAtExit* instance = nullptr;

/// The program may change its folder before it ends.
std::string absolute(const std::string& path) {
  std::error_code failed;
  const auto whole = std::filesystem::absolute(path, failed);
  return failed ? path : whole.string();
}

}  // namespace

TraceAtExit::TraceAtExit(Dispatcher& dispatcher, const std::string& path)
    : dispatcher_(dispatcher), path_(absolute(path)), process_(getpid()) {
  if (const std::string flaw = flaw_of_output_file(with_process_number(path_)); !flaw.empty())
    fail(ErrorCode::io_error, variable, "file '" + path_ + "' " + flaw);
  dispatcher_.enable_logging(calls_kept);
  instance = this;
  std::atexit(write_at_exit);
}

void TraceAtExit::add(const std::shared_ptr<const Decision>& decision) {
  const std::lock_guard lock(mutex_);
  if (decisions_.size() < decisions_kept) decisions_.push_back(decision);
}

void TraceAtExit::write_at_exit() {
  try {
    instance->write();
  } catch (...) {
    LineOutput({}, variable).write("xpuruntime: " + exception_text());
  }
}

void TraceAtExit::write() {
  if (getpid() != process_ && path_.find("%p") == path_.npos) return;
  const std::string path = with_process_number(path_);
  std::vector<std::shared_ptr<const Decision>> decisions;
  {
    const std::lock_guard lock(mutex_);
    decisions = decisions_;
  }
  const std::string text = to_trace_json(dispatcher_.logs(), decisions, dispatcher_.spans());
  write_file_atomically(path, text, {variable, "file '" + path + "': ", "trace"});
}

}  // namespace xpuruntime
