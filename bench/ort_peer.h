#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace xpuruntime::bench {

/// A program that answers each line it reads with one line.
class LineProgram {
 public:
  explicit LineProgram(const std::vector<std::string>& command);
  ~LineProgram();
  LineProgram(const LineProgram&) = delete;
  LineProgram& operator=(const LineProgram&) = delete;

  /// The next line; nothing once the program has ended or says nothing for two minutes.
  std::optional<std::string> read_line();
  /// Sends a line and reads the answer.
  std::optional<std::string> ask(const std::string& line);
  double seconds_used() const;

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string pending_;
};

}  // namespace xpuruntime::bench
