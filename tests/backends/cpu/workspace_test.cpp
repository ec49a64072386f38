// No kernel reads or writes a byte outside its tensors and its declared workspace: all of them lie against pages that
// fault. A fault ends the process after saying whose it was; under AddressSanitizer with its report.

#include <gtest/gtest.h>

#include <deque>

#include "backends/cpu/guarded_memory.h"
#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

/// Guarded memory for each slot of a run, used again and again: only pages that are touched cost anything.
class Slots {
 public:
  std::byte* place(std::size_t slot, std::size_t bytes, std::size_t alignment, bool at_end) {
    while (slots_.size() <= slot) slots_.emplace_back(64 * megabyte);
    if (bytes > slots_[slot].capacity()) throw std::length_error("a tensor is too large for this test");
    used_ = std::max(used_, slot + 1);
    return at_end ? slots_[slot].at_end(bytes, alignment) : slots_[slot].at_begin(bytes);
  }
  bool untouched() {
    bool all = true;
    for (std::size_t i = 0; i < used_; ++i) all = all && slots_[i].untouched();
    used_ = 0;
    return all;
  }

 private:
  std::deque<GuardedMemory> slots_;
  std::size_t used_ = 0;
};

/// The problem with every tensor aligned to its elements alone, so that it can end exactly at a page.
Problem least_aligned(Problem problem) {
  for (auto* specs : {&problem.inputs, &problem.outputs}) {
    for (TensorSpec& spec : *specs) spec.alignment = static_cast<std::uint8_t>(size_of(spec.dtype));
  }
  return problem;
}

class GuardPages : public ::testing::Test {
 protected:
  void run(const Kernel& kernel, const Problem& problem, const oracle::Case& one, bool at_end) {
    announcement_ = "a byte outside its memory was touched by " + text_of(kernel, problem) + "\n";
    announce_before_fault(announcement_.c_str());
    const PlanRun out = run_plan(kernel, problem, one, [&](std::size_t slot, std::size_t bytes, std::size_t alignment) {
      return slots_.place(slot, bytes, alignment, at_end);
    });
    announce_before_fault(nullptr);
    const bool untouched = slots_.untouched();
    if (!untouched) failures_.add(kernel, text_of(kernel, problem) + " wrote behind its memory");
    const std::string verdict = compare(out, kernel, one);
    if (!verdict.empty()) failures_.add(kernel, text_of(kernel, problem) + ": " + verdict);
  }

  Slots slots_;
  FirstFailures failures_;
  std::string announcement_;
};

TEST_F(GuardPages, KernelsStayInsideMemoryThatEndsAtAGuardPage) {
  for_each_subject([&](const Kernel& kernel, const oracle::Case& one) {
    const Problem exact = least_aligned(one.problem());
    const bool takes_it = kernel.supports(exact, cpu_profile()).supported;
    run(kernel, takes_it ? exact : one.problem(), one, true);
  });
}

TEST_F(GuardPages, KernelsStayInsideMemoryThatBeginsAtAGuardPage) {
  for_each_subject([&](const Kernel& kernel, const oracle::Case& one) { run(kernel, one.problem(), one, false); });
}

// The guards themselves: a test that could not fail would prove nothing.
TEST(GuardPagesDeathTest, AByteTooFarIsAFault) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // the pool's threads would not be there after a plain fork
  GuardedMemory memory(100);
  std::byte* const end = memory.at_end(100, 4) + 100;
  EXPECT_DEATH(*const_cast<volatile std::byte*>(end) = std::byte{1}, "");
  std::byte* const begin = memory.at_begin(100);
  EXPECT_DEATH(*const_cast<volatile std::byte*>(begin - 1) = std::byte{1}, "");
  EXPECT_TRUE(memory.untouched());
  begin[100] = std::byte{1};
  EXPECT_FALSE(memory.untouched());
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
