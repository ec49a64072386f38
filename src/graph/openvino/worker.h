#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "graph/openvino/library.h"

namespace xpuruntime::openvino {

/// `xpuruntime_openvino_worker`: where compiling may crash or hang without harm. One process for each question; it is
/// killed when its time is over, and with the thread that asks.
class Worker {
 public:
  /// `library`: the file of OpenVINO's C interface.
  explicit Worker(std::string library);

  /// What Library::devices says there. Empty where it crashes or takes too long.
  std::vector<std::string> devices() const;
  /// A compiled model, as Library::import takes it; empty: it compiles, and cannot be taken from one process to
  /// another. Fails as the library does, with `timeout` when the time is over, and with `device_error` if the process
  /// ended.
  std::string compile(const std::string& path, const Settings& settings, std::chrono::milliseconds limit) const;

 private:
  const std::string library_, program_;
};

/// Throws what a Failure says as an Error.
[[noreturn]] void fail_as(Failure::Kind kind, const std::string& text);

// How settings are written among the arguments of the worker.
std::vector<std::string> words_of(const Settings& settings);
Settings settings_of(const char* const* words);
constexpr int words_of_settings = 4;

}  // namespace xpuruntime::openvino
