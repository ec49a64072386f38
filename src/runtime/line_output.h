#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace xpuruntime {

/// Whole lines to stderr or to the end of a file that several processes may share: each is one write. What cannot be
/// written is lost, which is said once on stderr; a program must not fail because somebody watches it.
class LineOutput {
 public:
  /// Empty: stderr. A file that cannot be opened is an error, which names `variable`.
  LineOutput(const std::string& path, const char* variable);
  ~LineOutput();
  LineOutput(const LineOutput&) = delete;
  LineOutput& operator=(const LineOutput&) = delete;

  void write(std::string_view text) const noexcept;

 private:
  const char* variable_;
  int handle_;
  mutable std::atomic_flag told_ = {};  // that lines are lost
};

/// The path with every %p as the number of this process.
std::string with_process_number(std::string path);

}  // namespace xpuruntime
