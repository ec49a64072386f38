#include "xpuruntime/device/workspace_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "core/expect_error.h"
#include "device/fake_driver.h"

namespace xpuruntime {
namespace {

using testing::FakeDriver;

int dummy[2];
const Stream stream_a = {&dummy[0]};
const Stream stream_b = {&dummy[1]};

TEST(WorkspacePool, GivesMemoryThatCanBeWritten) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  const auto lease = pool.acquire(1000, {});
  ASSERT_NE(lease.data(), nullptr);
  ASSERT_GE(lease.size(), 1000U);
  std::memset(lease.data(), 1, lease.size());
  EXPECT_GE(driver.bytes_used(0), 1000U);
  EXPECT_EQ(driver.bytes_used(1), 0U);
}

TEST(WorkspacePool, GivesTheSameBlockAgainToTheSameStream) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  void* first = pool.acquire(1000, stream_a).data();
  EXPECT_EQ(pool.acquire(900, stream_a).data(), first);
  EXPECT_EQ(driver.allocations(), 1);
}

TEST(WorkspacePool, DoesNotGiveABlockToAnotherStream) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  void* first = pool.acquire(1000, stream_a).data();
  const auto other = pool.acquire(1000, stream_b);
  EXPECT_NE(other.data(), first);
  EXPECT_EQ(driver.allocations(), 2);
}

TEST(WorkspacePool, TakesTheSmallestBlockThatFits) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  void* small = nullptr;
  {
    const auto large = pool.acquire(1600, {});
    const auto middle = pool.acquire(1200, {});
    const auto too_small = pool.acquire(900, {});
    small = middle.data();
  }
  EXPECT_EQ(pool.acquire(1000, {}).data(), small);
  EXPECT_EQ(driver.allocations(), 3);
}

TEST(WorkspacePool, WastesAtMostHalfOfABlock) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  void* block = pool.acquire(1000, {}).data();
  EXPECT_NE(pool.acquire(499, {}).data(), block);
  EXPECT_EQ(pool.acquire(500, {}).data(), block);
}

TEST(WorkspacePool, AnswersAHugeRequestWithTheDriversError) {
  FakeDriver driver;
  driver.set_memory_limit(0, 1 << 20);
  WorkspacePool pool(driver, 0);
  pool.acquire(1000, {});
  EXPECT_THROW(pool.acquire(SIZE_MAX, {}), Error);
  EXPECT_EQ(pool.stats().bytes_in_use, 0U);
}

TEST(WorkspacePool, GivesAnEmptyLeaseForNothing) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  const auto lease = pool.acquire(0, {});
  EXPECT_EQ(lease.data(), nullptr);
  EXPECT_EQ(lease.size(), 0U);
  EXPECT_EQ(driver.allocations(), 0);
  EXPECT_EQ(pool.stats().acquired, 0U);
}

TEST(WorkspacePool, CountsWhatItHolds) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  {
    const auto a = pool.acquire(1000, {});
    const auto b = pool.acquire(3000, {});
    EXPECT_EQ(pool.stats().bytes_in_use, 4000U);
    EXPECT_EQ(pool.stats().bytes_cached, 0U);
  }
  const auto again = pool.acquire(1000, {});
  const WorkspaceStats stats = pool.stats();
  EXPECT_EQ(stats.bytes_in_use, 1000U);
  EXPECT_EQ(stats.bytes_cached, 3000U);
  EXPECT_EQ(stats.peak_bytes_in_use, 4000U);
  EXPECT_EQ(stats.acquired, 3U);
  EXPECT_EQ(stats.allocated, 2U);
}

TEST(WorkspacePool, TrimGivesBackWhatIsNotInUse) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  auto kept = pool.acquire(1000, {});
  pool.acquire(5000, {});
  pool.trim();
  EXPECT_EQ(driver.frees(), 1);
  EXPECT_EQ(driver.bytes_used(0), 1000U);
  EXPECT_EQ(pool.stats().bytes_cached, 0U);
  // A lease that was out during the trim goes back to the pool as ever.
  void* data = kept.data();
  kept = {};
  EXPECT_EQ(pool.stats().bytes_cached, 1000U);
  EXPECT_EQ(pool.acquire(1000, {}).data(), data);
}

TEST(WorkspacePool, GivesItsCacheBackWhenTheDeviceIsFullAndAsksOnceMore) {
  FakeDriver driver;
  driver.set_memory_limit(0, 10000);
  WorkspacePool pool(driver, 0);
  pool.acquire(6000, stream_a);
  const auto lease = pool.acquire(8000, stream_b);
  EXPECT_NE(lease.data(), nullptr);
  EXPECT_EQ(driver.refused_allocations(), 1);
  EXPECT_EQ(driver.bytes_used(0), 8000U);
}

TEST(WorkspacePool, ReportsAFullDeviceAndWorksAfterwards) {
  FakeDriver driver;
  driver.set_memory_limit(0, 10000);
  WorkspacePool pool(driver, 0);
  const auto held = pool.acquire(6000, {});
  error_text(ErrorCode::out_of_memory, [&] { pool.acquire(8000, {}); });
  EXPECT_EQ(driver.refused_allocations(), 2);
  EXPECT_EQ(pool.stats().bytes_in_use, 6000U);
  EXPECT_NE(pool.acquire(4000, {}).data(), nullptr);
}

TEST(WorkspacePool, LeasesMoveAndGoBackOnce) {
  FakeDriver driver;
  {
    WorkspacePool pool(driver, 0);
    auto a = pool.acquire(100, {});
    void* data = a.data();
    auto b = std::move(a);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(a.data(), nullptr);  // NOLINT: a moved-from lease is empty
    auto c = pool.acquire(5000, {});
    c = std::move(b);  // the 5000 bytes go back
    EXPECT_EQ(c.data(), data);
    EXPECT_EQ(pool.stats().bytes_cached, 5000U);
    auto& same = c;
    c = std::move(same);
    EXPECT_EQ(c.data(), data);
    EXPECT_EQ(pool.stats().bytes_in_use, 100U);
    c = {};
    EXPECT_EQ(pool.stats().bytes_in_use, 0U);
    EXPECT_EQ(pool.stats().bytes_cached, 5100U);
  }
  EXPECT_EQ(driver.frees(), 2);
  EXPECT_EQ(driver.wrong_frees(), 0);
}

TEST(WorkspacePool, GivesAllBackToItsOwnDeviceInTheEnd) {
  FakeDriver driver(DeviceType::opencl);
  {
    WorkspacePool pool(driver, 1);
    pool.acquire(100, stream_a);
    pool.acquire(100, stream_b);
    EXPECT_EQ(driver.bytes_used(1), 200U);
  }
  EXPECT_EQ(driver.live_blocks(), 0U);
  EXPECT_EQ(driver.wrong_frees(), 0);
}

TEST(WorkspacePool, NeverGivesOneBlockToTwoThreads) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  std::atomic<int> clashes = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto lease = pool.acquire(64 + 32 * static_cast<std::size_t>(i % 5), {});
        std::memset(lease.data(), t + 1, lease.size());
        std::this_thread::yield();
        for (std::size_t b = 0; b < lease.size(); ++b) clashes += static_cast<char*>(lease.data())[b] != t + 1;
        if (i % 50 == 0) pool.trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(pool.stats().bytes_in_use, 0U);
  EXPECT_EQ(pool.stats().acquired, 1200U);
  pool.trim();
  EXPECT_EQ(driver.live_blocks(), 0U);
  EXPECT_EQ(driver.allocations(), driver.frees());
}

TEST(WorkspacePool, TellsAStreamFromALaterOneAtItsAddress) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  int address = 0;
  void* const of_first = pool.acquire(100, {&address, 1}).data();
  EXPECT_NE(pool.acquire(100, {&address, 2}).data(), of_first);
  EXPECT_EQ(pool.acquire(100, {&address, 1}).data(), of_first);
}

TEST(WorkspacePool, WhatACapturedStreamUsesStaysWithItsGraph) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  void* const before = pool.acquire(100, stream_a).data();
  driver.is_capturing = true;
  void* const recorded = pool.acquire(100, stream_a).data();
  EXPECT_NE(recorded, before);
  EXPECT_EQ(pool.acquire(100, stream_a).data(), recorded) << "later calls of the same graph run after the first";
  const DeviceGraph graph = driver.end_capture(0, stream_a);
  EXPECT_EQ(pool.acquire(100, stream_a).data(), before);
  pool.trim();
  EXPECT_NE(pool.acquire(100, stream_a).data(), recorded);
  driver.is_capturing = true;
  EXPECT_NE(pool.acquire(100, stream_a).data(), recorded) << "another graph may run at the same time";
  const DeviceGraph other = driver.end_capture(0, stream_a);
  EXPECT_EQ(pool.stats().bytes_in_use, 200U);
  driver.destroy_graph(0, graph);
  EXPECT_EQ(pool.stats().bytes_in_use, 100U);
  EXPECT_EQ(pool.acquire(100, stream_b).data(), recorded) << "no work is left that uses it";
  driver.destroy_graph(0, other);
  pool.trim();
  EXPECT_EQ(driver.live_blocks(), 0U);
}

TEST(WorkspacePool, ALeaseMayEndAfterItsGraph) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  driver.is_capturing = true;
  auto lease = pool.acquire(100, stream_a);
  driver.destroy_graph(0, driver.end_capture(0, stream_a));
  EXPECT_EQ(pool.stats().bytes_in_use, 100U);
  lease = {};
  EXPECT_EQ(pool.stats().bytes_in_use, 0U);
  EXPECT_EQ(pool.stats().bytes_cached, 100U);
}

TEST(WorkspacePool, AGraphMayOutliveThePool) {
  FakeDriver driver;
  DeviceGraph graph;
  {
    WorkspacePool pool(driver, 0);
    driver.is_capturing = true;
    pool.acquire(100, stream_a);
    graph = driver.end_capture(0, stream_a);
  }
  driver.destroy_graph(0, graph);
  EXPECT_EQ(driver.live_blocks(), 0U);
}

TEST(WorkspacePool, NothingIsFreedForACaptureOnAFullDevice) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  pool.acquire(100, stream_a);
  driver.set_memory_limit(0, 150);
  driver.is_capturing = true;
  EXPECT_THROW(pool.acquire(120, stream_a), Error);
  EXPECT_EQ(driver.frees(), 0);
}

TEST(WorkspacePool, DoesNotKeepTheBlocksOfStreamsThatNeverComeBack) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  int address = 0;
  for (std::uint64_t id = 1; id <= 5000; ++id) pool.acquire(100, {&address, id});
  EXPECT_LE(pool.stats().bytes_cached, 1024u * 100u);
  EXPECT_EQ(driver.live_blocks() * 100u, pool.stats().bytes_cached);
  pool.acquire(100, {&address, 5000});
  EXPECT_EQ(driver.allocations(), 5000);  // the latest is still there
}

/// Counts what is out.
class Lender final : public LentAllocator {
 public:
  void* allocate(int, std::size_t bytes, Stream stream) override {
    streams.push_back(stream);
    ++out;
    return ::operator new(bytes);
  }
  void deallocate(int, void* memory, Stream stream) noexcept override {
    EXPECT_EQ(stream, streams.back());
    --out;
    ::operator delete(memory);
  }
  std::vector<Stream> streams;
  int out = 0;
};

TEST(WorkspacePool, TakesMemoryThatAFrameworkLends) {
  FakeDriver driver;
  WorkspacePool pool(driver, 0);
  pool.acquire(100, stream_a);
  const auto lender = std::make_shared<Lender>();
  pool.set_allocator(lender);
  EXPECT_EQ(driver.live_blocks(), 0u) << "our own is not needed any more";
  {
    auto lease = pool.acquire(100, stream_b);
    EXPECT_EQ(lender->out, 1);
    pool.set_allocator(nullptr);  // what is lent goes back to its lender all the same
    const auto own = pool.acquire(100, stream_b);
    EXPECT_EQ(driver.live_blocks(), 1u);
    const auto moved = std::move(lease);
    EXPECT_EQ(lender->out, 1);
  }
  EXPECT_EQ(lender->out, 0);
  EXPECT_EQ(pool.stats().bytes_in_use, 0u);
}

}  // namespace
}  // namespace xpuruntime
