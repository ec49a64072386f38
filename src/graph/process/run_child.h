#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace xpuruntime::process {

/// The child's number of the file that a result goes to.
constexpr int result_file = 3;

/// What became of a child process.
struct ChildRun {
  int error = 0;            // why it could not be started; 0: it was
  bool is_late = false;     // it was killed, as its time was over
  std::string ending = {};  // "ended with exit code 0"; where the program ignores SIGCHLD "ended"
  std::string output = {};  // the last line that it printed
  std::string result = {};  // what it wrote to result_file
};

/// Runs a program, which is looked for on PATH, to its end, and kills it and what it started when the time is over.
ChildRun run_child(std::vector<std::string> words, std::chrono::milliseconds limit);

}  // namespace xpuruntime::process
