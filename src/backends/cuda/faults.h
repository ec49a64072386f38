#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime::cuda {

/// Words in host memory that kernels write to when they find a caller's value wrong, and what each of them means.
/// Looking at them costs no wait and no copy.
class Faults {
 public:
  ~Faults();

  /// A word of its own. `shared` is this object, which the word keeps alive.
  std::unique_ptr<ValueFault> make(const std::shared_ptr<Faults>& shared, int index, std::string message);
  /// What kernels of a device have found since the last time; fine where they found nothing.
  Status take(int index);

 private:
  class Word;
  struct Slot {
    int index = -1;  // of the device; -1: free
    std::string message = {};
  };
  void reserve();  // with the lock held
  void release(std::size_t slot);

  Mutex mutex_;
  volatile std::uint32_t* words_ = nullptr;  // host memory that devices can write
  std::vector<Slot> slots_;
  std::vector<Slot> left_;  // found by kernels of plans that are gone since
};

}  // namespace xpuruntime::cuda
