#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "xpuruntime/core/error.h"

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
  std::fprintf(stderr, "xrt: the answer could not be written: %s\n", std::strerror(error));
  return false;
}

void write_file(const char* path, std::string_view text) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int error = file < 0 ? errno : write_all(file, text);
  if (file >= 0 && close(file) != 0 && error == 0) error = errno;
  if (error == 0) return;
  fail(ErrorCode::io_error, "xrt",
       "'" + std::string(path) + "' could not be written: " + std::strerror(error) + "; check the path and the disk");
}

}  // namespace xpuruntime::cli
