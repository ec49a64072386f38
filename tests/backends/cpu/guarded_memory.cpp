#include "backends/cpu/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace xpuruntime::cpu_tests {
namespace {

constexpr std::byte filling{0xc3};
constexpr std::size_t most_filled = 4096;

std::atomic<const char*> announced{nullptr};

// Only what is safe in a handler; the return meets the fault again, now with the default action.
void on_fault(int signal) {
  const char* text = announced.load();
  if (text != nullptr && write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(3);
  struct sigaction normal = {};
  normal.sa_handler = SIG_DFL;
  sigaction(signal, &normal, nullptr);
}

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

GuardedMemory::GuardedMemory(std::size_t capacity) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
  capacity_ = rounded_up(std::max<std::size_t>(capacity, 1), page_);
  void* memory = mmap(nullptr, capacity_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapped_ = static_cast<std::byte*>(memory);
  if (mprotect(mapped_ + page_, capacity_, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped_, capacity_ + 2 * page_);
    throw std::bad_alloc();
  }
}

GuardedMemory::~GuardedMemory() { munmap(mapped_, capacity_ + 2 * page_); }

std::byte* GuardedMemory::at_begin(std::size_t bytes) {
  std::byte* const begin = mapped_ + page_;
  fill_behind(begin + bytes);
  return begin;
}

std::byte* GuardedMemory::at_end(std::size_t bytes, std::size_t alignment) {
  std::byte* const begin = mapped_ + page_ + capacity_ - rounded_up(bytes, alignment);
  fill_behind(begin + bytes);
  return begin;
}

void GuardedMemory::fill_behind(std::byte* end) {
  filled_ = end;
  filled_bytes_ = std::min(most_filled, static_cast<std::size_t>(mapped_ + page_ + capacity_ - end));
  std::fill(filled_, filled_ + filled_bytes_, filling);
}

bool GuardedMemory::untouched() const {
  return std::all_of(filled_, filled_ + filled_bytes_, [](std::byte b) { return b == filling; });
}

void announce_before_fault(const char* text) {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_handler = on_fault;
    return sigaction(SIGSEGV, &action, nullptr) == 0 && sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  announced.store(installed ? text : nullptr);
}

}  // namespace xpuruntime::cpu_tests
