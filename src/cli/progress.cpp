#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/printable.h"

namespace xpuruntime::cli {
namespace {

constexpr std::size_t bar_width = 20;

std::size_t terminal_width() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(std::size_t done, std::size_t of) {
  const std::size_t filled = of == 0 ? bar_width : std::min(bar_width, done * bar_width / of);
  return "[" + std::string(filled, '#') + std::string(bar_width - filled, '.') + "]";
}

}  // namespace

ProgressShow::ProgressShow(std::size_t problems) : problems_(problems), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressShow::~ProgressShow() { clear(); }

void ProgressShow::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void ProgressShow::moved(const TuneProgress& progress) {
  constexpr double often_enough_s = 0.1;
  if (!terminal_ || (shown_at_s_ >= 0 && progress.spent_s - shown_at_s_ < often_enough_s)) return;
  shown_at_s_ = progress.spent_s;
  char left[96];
  std::snprintf(left, sizeof left,
                " %zu/%zu, %zu kernels left in the race, at most %.0f s more: ", std::min(done_ + 1, problems_),
                problems_, progress.candidates_left, progress.remaining_s);
  const std::string line = bar(done_, problems_) + left + printable(progress.problem);
  std::fprintf(stderr, "\r\033[K%s", line.substr(0, terminal_width() - 1).c_str());
  drawn_ = true;
}

void ProgressShow::finished(const TuneResult& result) {
  ++done_;
  if (terminal_) return;
  std::fprintf(stderr, "xrt: %zu/%zu %s: %s\n", done_, problems_, to_string(result.problem).c_str(),
               printable(result.chosen.empty() ? result.because : result.chosen).c_str());
}

}  // namespace xpuruntime::cli
