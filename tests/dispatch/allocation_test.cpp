// Counts what a warm call allocates: nothing.

#include <cstdlib>
#include <new>

#include "dispatch/fixture.h"

// The compiler sees new and free side by side here and takes that for a mix-up.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {
thread_local long allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes == 0 ? 1 : bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace xpuruntime {
namespace {

using Allocation = DispatchTest;

TEST_F(Allocation, TheCounterCounts) {
  const long before = allocations;
  ::operator delete(::operator new(1));  // a new-expression might be left out
  EXPECT_EQ(allocations, before + 1);
}

TEST_F(Allocation, AWarmDecisionAllocatesNothing) {
  selector().register_rule(
      OpId::relu, [](const Problem&, const DeviceProfile&) { return true; }, "reference");
  dispatcher().set_precision_hook([](const Problem&) { return std::optional(DataType::float32); });
  std::vector<std::unique_ptr<Relu>> problems;
  for (int i = 0; i < 64; ++i) problems.push_back(std::make_unique<Relu>(i + 1));
  for (const auto& relu : problems) dispatcher().decide(relu->call());
  const long before = allocations;
  for (int round = 0; round < 100; ++round) {
    for (const auto& relu : problems) dispatcher().decide(relu->call());
  }
  EXPECT_EQ(allocations, before);
}

TEST_F(Allocation, AWarmCallAllocatesNothingLoggedOrNotWithWorkspaceOrWithout) {
  add_kernel("quiet");
  add_kernel("hungry", {}, 4096);
  const Relu relu;
  KernelPolicy policy;
  for (const char* kernel : {"quiet", "hungry"}) {
    policy.force("relu", kernel);
    dispatcher().set_policy(policy);
    for (const bool logging : {false, true}) {
      dispatcher().enable_logging(logging ? 128 : 0);
      for (int i = 0; i < 3; ++i) dispatcher().dispatch(relu.call());
      const long before = allocations;
      for (int i = 0; i < 1000; ++i) dispatcher().dispatch(relu.call());
      EXPECT_EQ(allocations, before) << kernel << (logging ? " logged" : "");
    }
  }
}

TEST_F(Allocation, ASnapshotCopiesOnlyWhatChangedSinceTheLast) {
  Statistics statistics;
  const auto problem_of_size = [](std::int64_t n) {
    return make_problem(OpId::relu, {make_spec(DataType::float32, {n})}, Attributes(OpId::relu));
  };
  for (int n = 1; n <= 10000; ++n) statistics.record(problem_of_size(n), "a", n);
  auto frozen = statistics.freeze();
  const long before = allocations;
  for (int n = 10001; n <= 10010; ++n) {
    statistics.record(problem_of_size(n), "a", n);
    frozen = statistics.freeze();
  }
  EXPECT_LT(allocations - before, 10 * 1000);  // one copy of all alone would take 40,000
  EXPECT_EQ(frozen->problem_count(), 10010u);
}

}  // namespace
}  // namespace xpuruntime
