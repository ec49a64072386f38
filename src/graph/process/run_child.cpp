#include "graph/process/run_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/child_process.h"

extern char** environ;

namespace xpuruntime::process {
namespace {

constexpr int first_free = 16;  // above the child's own files

class File {
 public:
  explicit File(int number = -1) : number_(number) {}
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~File() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// The same under a number that is none of the child's own.
File moved_up(const File& file) { return File(fcntl(file.number(), F_DUPFD_CLOEXEC, first_free)); }

std::string contents(const File& file) {
  struct stat now = {};
  fstat(file.number(), &now);
  std::string bytes(static_cast<std::size_t>(now.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = pread(file.number(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got <= 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

/// True once all other ends are closed, false when the time is over.
bool is_closed_in(const File& pipe_end, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds never = std::chrono::hours(24 * 365);
  const auto end = Clock::now() + std::min(limit, never);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left < 0) return false;
    pollfd wait = {pipe_end.number(), POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left + 1, 60'000))) > 0) return true;
  }
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

ChildRun run_child(std::vector<std::string> words, std::chrono::milliseconds limit) {
  ChildRun run;
  const File output = moved_up(File(memfd_create("child_output", MFD_CLOEXEC)));
  const File result = moved_up(File(memfd_create("child_result", MFD_CLOEXEC)));
  int ends[2] = {-1, -1};
  const bool is_ready = output.number() >= 0 && result.number() >= 0 && pipe2(ends, O_CLOEXEC) == 0;
  run.error = is_ready ? 0 : errno;
  const File ended(ends[0]);
  pid_t process = 0;
  {
    const File held = moved_up(File(ends[1]));  // by the child alone, for as long as it lives
    const File nothing = moved_up(File(open("/dev/null", O_RDONLY | O_CLOEXEC)));
    SpawnSettings settings(nothing.number(), output.number());
    settings.pass(result.number(), result_file);
    settings.pass(held.number(), result_file + 1);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (run.error == 0) {
      run.error =
          posix_spawnp(&process, arguments[0], &settings.actions, &settings.attributes, arguments.data(), environ);
    }
  }
  if (run.error != 0) return run;
  run.is_late = !is_closed_in(ended, limit);
  kill(-process, SIGKILL);
  int status = 0;
  run.ending = waitpid(process, &status, 0) == process ? ending_of(status) : "ended";
  run.output = last_line(contents(output));
  run.result = contents(result);
  return run;
}

}  // namespace xpuruntime::process
