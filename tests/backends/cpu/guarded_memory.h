#pragma once

#include <cstddef>

namespace xpuruntime::cpu_tests {

/// Memory between two pages that nothing may touch: a byte too far is a fault.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t capacity);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::size_t capacity() const { return capacity_; }
  /// `bytes` right after the first page. What follows them is filled, to be looked at by `untouched`.
  std::byte* at_begin(std::size_t bytes);
  /// `bytes` right before the last page, as far as the alignment allows; the few bytes in between are filled.
  std::byte* at_end(std::size_t bytes, std::size_t alignment);
  /// Whether the filled bytes behind the last placement are as they were.
  bool untouched() const;

 private:
  void fill_behind(std::byte* end);

  std::byte* mapped_ = nullptr;
  std::size_t page_ = 0;
  std::size_t capacity_ = 0;
  std::byte* filled_ = nullptr;
  std::size_t filled_bytes_ = 0;
};

/// What is said should a fault end the process. The text must live on.
void announce_before_fault(const char* text);

}  // namespace xpuruntime::cpu_tests
