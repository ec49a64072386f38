// Counts what a warm call allocates: nothing.

#include <cstdlib>
#include <new>
#include <thread>

#include "dispatch/fixture.h"
#include "xpuruntime/device/workspace_pool.h"

// The compiler sees new and free side by side here and takes that for a mix-up.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {
thread_local long allocations = 0;
thread_local std::size_t allocated_bytes = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  allocated_bytes += bytes;
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

TEST_F(Allocation, AWarmCallOnCopiesAllocatesNothing) {
  const Tensor memory = Tensor::empty(DataType::float32, {64});
  std::fill_n(memory.as<float>(), 64, 1.0f);
  const Tensor target = Tensor::empty(DataType::float32, {64});
  const Tensor out(target.data(), make_spec(DataType::float32, {4, 8}, {1, 8}));
  const Tensor half(memory.data(), make_spec(DataType::float32, {4, 8}, {1, 8}));
  const Tensor* const inputs[] = {&half};
  const Tensor* const outputs[] = {&out};
  const Call call{OpId::softmax, inputs, outputs};
  ASSERT_EQ(dispatcher().decide(call).copies.size(), 2u);
  for (const bool logging : {false, true}) {
    dispatcher().enable_logging(logging ? 128 : 0);
    for (int i = 0; i < 3; ++i) dispatcher().dispatch(call);
    const auto leases = runtime.devices().workspace({}).stats().allocated;
    const long before = allocations;
    for (int i = 0; i < 1000; ++i) dispatcher().dispatch(call);
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(runtime.devices().workspace({}).stats().allocated, leases);
  }
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

TEST_F(Allocation, AWarmCallUnderAutocastAllocatesNothingAndAsksThePoolForNothing) {
  add_kernel("quiet");
  const Relu small, large(1000);
  Relu weight(100);
  weight.in.set_version(Tensor::new_version());
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  WorkspacePool& pool = runtime.devices().workspace({});
  ASSERT_EQ(dispatcher().decide(small.call()).casts.size(), 2u);
  for (const bool logging : {false, true}) {
    dispatcher().enable_logging(logging ? 128 : 0);
    const auto round = [&] {
      for (const Relu* relu : {&small, &large, static_cast<const Relu*>(&weight)}) dispatcher().dispatch(relu->call());
    };
    for (int i = 0; i < 3; ++i) round();
    const long before = allocations;
    const std::uint64_t leases = pool.stats().acquired;
    for (int i = 0; i < 1000; ++i) round();
    EXPECT_EQ(allocations, before) << (logging ? "logged" : "");
    EXPECT_EQ(pool.stats().acquired, leases) << (logging ? "logged" : "");
  }
}

TEST_F(Allocation, APrecisionWithoutAScopeAllocatesNothingEither) {
  add_kernel("quiet");
  const Relu relu;
  Call call = relu.call();
  call.precision = DataType::bfloat16;
  ASSERT_EQ(dispatcher().decide(call).casts.size(), 2u);
  for (int i = 0; i < 3; ++i) dispatcher().dispatch(call);
  const long before = allocations;
  for (int i = 0; i < 1000; ++i) dispatcher().dispatch(call);
  EXPECT_EQ(allocations, before);
}

TEST_F(Allocation, AThreadWithOneProblemTakesLittleMemory) {
  const Relu relu;
  dispatcher().decide(relu.call());  // decided, for all threads
  std::thread([&] {
    const std::size_t before = allocated_bytes;
    dispatcher().decide(relu.call());
    EXPECT_LT(allocated_bytes - before, 8192u);
  }).join();
}

}  // namespace
}  // namespace xpuruntime
