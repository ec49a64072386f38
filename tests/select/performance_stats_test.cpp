#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

using K = KernelDtype;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class PerformanceStats : public ::testing::Test {
 protected:
  PerformanceStats() {
    devices.add_driver(std::make_shared<testing::FakeDriver>());
    selector = registry.get_or_create_selector({DeviceType::npu, 0});
  }

  DeviceManager devices;
  KernelRegistry registry{devices};
  std::shared_ptr<KernelSelector> selector;
};

TEST_F(PerformanceStats, AreThereOnceATimeWasGiven) {
  EXPECT_EQ(selector->get_performance_stats("conv2d", K::float16), std::nullopt);
  selector->update_performance_stats("conv2d", K::float16, 0.1);
  EXPECT_EQ(selector->get_performance_stats("conv2d", K::float16),
            (KernelPerformanceStats{"conv2d", K::float16, 0.1, 0.1, 0.1, 1}));
  EXPECT_EQ(selector->get_performance_stats("conv2d", K::float32), std::nullopt);
  EXPECT_EQ(selector->get_performance_stats("matmul", K::float16), std::nullopt);
}

TEST_F(PerformanceStats, KeepAverageRangeAndCountInMilliseconds) {
  for (const double time : {3.0, 1.0, 8.0}) selector->update_performance_stats("conv2d", K::float16, time);
  EXPECT_EQ(selector->get_performance_stats("conv2d", K::float16),
            (KernelPerformanceStats{"conv2d", K::float16, 4, 1, 8, 3}));
}

TEST_F(PerformanceStats, AreFiledUnderTheOpWhateverNameItWasGiven) {
  selector->update_performance_stats("Conv2d", K::float16, 1);
  selector->update_performance_stats("conv2d_fp16", K::float16, 2);
  selector->update_performance_stats("conv_float16", K::auto_select, 3);
  EXPECT_EQ(selector->get_performance_stats(OpId::conv2d, K::float16),
            (KernelPerformanceStats{"conv2d", K::float16, 2, 1, 3, 3}));
  selector->register_kernel_capability("custom_op", KernelCapability::create_float16());
  selector->update_performance_stats("CUSTOM_OP", K::float16, 7);
  EXPECT_EQ(selector->get_performance_stats("custom_op_f16", K::float16)->operation_name, "custom_op");
}

TEST_F(PerformanceStats, TakeATimeOfZero) {
  selector->update_performance_stats(OpId::relu, K::float32, 0);
  EXPECT_EQ(selector->get_performance_stats("relu", K::float32)->execution_count, 1);
}

TEST_F(PerformanceStats, RefuseTimesThatCannotBeAndChangeNothing) {
  for (const double time : {-1.0, -1e-300, nan, infinity, -infinity}) {
    expect_invalid("finite and not negative", [&] { selector->update_performance_stats("relu", K::float32, time); });
  }
  EXPECT_EQ(selector->get_performance_stats("relu", K::float32), std::nullopt);
  selector->update_performance_stats("relu", K::float32, 5);
  EXPECT_THROW(selector->update_performance_stats("relu", K::float32, nan), Error);
  EXPECT_EQ(selector->get_performance_stats("relu", K::float32),
            (KernelPerformanceStats{"relu", K::float32, 5, 5, 5, 1}));
}

TEST_F(PerformanceStats, RefuseATimeOfNoCertainDtype) {
  expect_invalid("a time cannot have the dtype auto",
                 [&] { selector->update_performance_stats("relu", K::auto_select, 1); });
  expect_invalid("outside its range", [&] { selector->update_performance_stats("relu", static_cast<K>(9), 1); });
  expect_invalid("outside its range", [&] { selector->get_performance_stats("relu", static_cast<K>(9)); });
  EXPECT_EQ(selector->get_performance_stats("relu", K::auto_select), std::nullopt);
}

TEST_F(PerformanceStats, SumUpAllDtypesForAuto) {
  selector->update_performance_stats("relu", K::float32, 4);
  selector->update_performance_stats("relu", K::bfloat16, 1);
  selector->update_performance_stats("relu", K::mixed, 1);
  EXPECT_EQ(selector->get_performance_stats("relu", K::auto_select),
            (KernelPerformanceStats{"relu", K::auto_select, 2, 1, 4, 3}));
}

TEST_F(PerformanceStats, BelongToOneDevice) {
  selector->update_performance_stats("relu", K::float32, 4);
  const auto other = registry.get_or_create_selector({DeviceType::npu, 1});
  EXPECT_EQ(other->get_performance_stats("relu", K::float32), std::nullopt);
}

TEST_F(PerformanceStats, TakeInWhatADispatcherMeasured) {
  Statistics measured;
  measured.record(parse_problem("matmul(f16[8,8], f16[8,8]) @npu:0"), "a", 1000);
  measured.record(parse_problem("matmul(f16[4,8], f16[8,8]) @npu:0"), "b", 3000);
  measured.record(parse_problem("matmul(f16[8,8], f32[8,8]) @npu:0"), "a", 5000);  // ran in f32
  measured.record(parse_problem("matmul(f64[8,8], f64[8,8]) @npu:0"), "a", 7000);  // of no kernel dtype
  measured.record(parse_problem("matmul(f16[8,8], f16[8,8]) @npu:1"), "a", 9000);  // another device
  measured.record(parse_problem("relu(f16[8]) @npu:0"), "a", 11000);               // another op
  EXPECT_EQ(selector->get_performance_stats("matmul", K::float16), std::nullopt);
  EXPECT_EQ(selector->get_performance_stats("matmul", K::float16, &measured),
            (KernelPerformanceStats{"matmul", K::float16, 2, 1, 3, 2}));
  EXPECT_EQ(selector->get_performance_stats("matmul", K::float32, &measured),
            (KernelPerformanceStats{"matmul", K::float32, 5, 5, 5, 1}));
  selector->update_performance_stats("matmul", K::float16, 8);
  EXPECT_EQ(selector->get_performance_stats("matmul", K::float16, &measured),
            (KernelPerformanceStats{"matmul", K::float16, 4, 1, 8, 3}));
  const auto all = selector->get_performance_stats("matmul", K::auto_select, &measured);
  EXPECT_EQ(all->execution_count, 5);
  EXPECT_DOUBLE_EQ(all->average_execution_time, (1 + 3 + 5 + 7 + 8) / 5.0);
}

TEST_F(PerformanceStats, AreWrittenForPeople) {
  EXPECT_EQ((KernelPerformanceStats{"conv2d", K::float16, 1.5, 1, 2, 3}.to_string()),
            "conv2d f16: 3 runs, 1.5 ms on average, from 1 to 2 ms");
  EXPECT_EQ((KernelPerformanceStats{"relu", K::float32, 0.25, 0.25, 0.25, 1}.to_string()),
            "relu f32: 1 run, 0.25 ms on average, from 0.25 to 0.25 ms");
}

/// Times are whole numbers, so their sum in integers is the exact mean's oracle.
TEST_F(PerformanceStats, LoseNothingWhenManyThreadsUpdate) {
  constexpr int workers = 4;
  constexpr int rounds = 50'000;
  std::atomic<int> running = workers;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      for (int i = 0; i < rounds; ++i) {
        const K dtype = i % 2 ? K::float16 : K::bfloat16;
        selector->update_performance_stats(OpId::matmul, dtype, worker * 1000 + i % 7);
      }
      --running;
    });
  }
  std::int64_t seen = 0;
  while (running > 0) {
    const auto stats = selector->get_performance_stats(OpId::matmul, K::auto_select);
    if (!stats) continue;
    ASSERT_GE(stats->execution_count, seen);
    seen = stats->execution_count;
  }
  for (std::thread& thread : threads) thread.join();
  for (const int odd : {0, 1}) {
    std::int64_t sum = 0;
    for (int worker = 0; worker < workers; ++worker) {
      for (int i = odd; i < rounds; i += 2) sum += worker * 1000 + i % 7;
    }
    constexpr std::int64_t count = workers * rounds / 2;
    const auto stats = selector->get_performance_stats("matmul", odd ? K::float16 : K::bfloat16);
    ASSERT_TRUE(stats);
    EXPECT_EQ(stats->execution_count, count);
    EXPECT_DOUBLE_EQ(stats->average_execution_time, static_cast<double>(sum) / count);
    EXPECT_EQ(stats->min_execution_time, 0);
    EXPECT_EQ(stats->max_execution_time, 3006);
  }
}

}  // namespace
}  // namespace xpuruntime
