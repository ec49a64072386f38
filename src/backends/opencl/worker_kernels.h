#pragma once

#include <string>

namespace xpuruntime::opencl {

/// As long as it lives, PoCL runs an empty function instead of each kernel that it loads. It makes, writes and opens
/// their machine code as ever, which it does only where a kernel is about to run. For the worker.
class Disarmed {
 public:
  Disarmed();
  ~Disarmed();
  Disarmed(const Disarmed&) = delete;
  Disarmed& operator=(const Disarmed&) = delete;

  /// False where no library of PoCL's was found that looks kernels up: they would run.
  bool is() const { return is_; }

 private:
  bool is_;
};

/// The file with the machine code that was loaded since the last call; empty where none was.
std::string take_loaded_code();

}  // namespace xpuruntime::opencl
