#include "runtime/line_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/json_text.h"
#include "core/printable.h"

namespace xpuruntime {
namespace {

int open_to_append(const std::string& path, const char* variable) {
  const JsonSource source = {variable, "file '" + path + "': ", "file"};
  if (const std::string flaw = flaw_of_output_file(path); !flaw.empty()) source.refuse(ErrorCode::io_error, flaw);
  const int handle = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  if (handle < 0) {
    source.refuse(ErrorCode::io_error,
                  std::string("cannot be written: ") + std::strerror(errno) + "; name a file that you may write");
  }
  return handle;
}

/// The errno of the write that failed, 0 if all was written.
int write_line(int handle, std::string_view text) {
  const std::string line = printable(text) + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t wrote = ::write(handle, line.data() + done, line.size() - done);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return 0;
}

}  // namespace

LineOutput::LineOutput(const std::string& path, const char* variable)
    : variable_(variable),
      handle_(path.empty() ? STDERR_FILENO : open_to_append(with_process_number(path), variable)) {}

LineOutput::~LineOutput() {
  if (handle_ != STDERR_FILENO) close(handle_);
}

void LineOutput::write(std::string_view text) const noexcept {
  try {
    const int error = write_line(handle_, text);
    if (error == 0 || handle_ == STDERR_FILENO || told_.test_and_set()) return;
    write_line(STDERR_FILENO,
               std::string("xpuruntime: ") + variable_ +
                   ": its file cannot be written, and lines are missing from it: " + std::strerror(error));
  } catch (const std::bad_alloc&) {
    return;
  }
}

std::string with_process_number(std::string path) {
  const std::string number = std::to_string(getpid());
  for (std::size_t at = 0; (at = path.find("%p", at)) != path.npos; at += number.size()) path.replace(at, 2, number);
  return path;
}

}  // namespace xpuruntime
