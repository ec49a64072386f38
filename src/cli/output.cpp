#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/printable.h"

namespace xpuruntime::cli {
namespace {

/// The errno of the write that failed, 0 if all was written.
int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

bool write_to_stdout(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return true;
  write_message(std::string("the output could not be written: ") + std::strerror(error));
  return false;
}

void write_message(std::string_view text) {
  std::string lines = "xrt: ";
  for (const char c : printable_lines(text)) {
    lines += c;
    if (c == '\n') lines += "     ";
  }
  lines += '\n';
  write_all(STDERR_FILENO, lines);
}

}  // namespace xpuruntime::cli
