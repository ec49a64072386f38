// Calls that a GPU records and runs again: by GraphCapture, and in a capture that a program beside us began.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "backends/cuda_fixture.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/graph_capture.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/runtime/ops.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cuda_tests {
namespace {

constexpr Device gpu{DeviceType::nvidia, 0};
constexpr std::int64_t many = std::int64_t{1} << 22;  // so many that a sum needs workspace

/// sum(relu(x)), with its memory. The sum of so many small whole numbers is exact in f32.
class CudaGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (!devices().has(gpu)) GTEST_SKIP() << devices().why_absent(gpu.type);
    x_ = devices().allocate(DataType::float32, {many}, gpu);
    y_ = devices().allocate(DataType::float32, {many}, gpu);
    sum_ = devices().allocate(DataType::float32, {1}, gpu);
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_TRUE(workspace_comes_back_to(0));
    }
  }

  static DeviceManager& devices() { return Runtime::global().devices(); }
  static DeviceDriver& device() { return devices().driver(gpu); }
  static std::uint64_t workspace_in_use() { return devices().workspace(gpu).stats().bytes_in_use; }

  /// Returns what is to come out.
  double fill(int seed) {
    std::vector<float> values(static_cast<std::size_t>(many));
    double expected = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<int>((i * 2654435761u + static_cast<unsigned>(seed)) >> 7 & 7) - 4);
      if (values[i] > 0) expected += static_cast<double>(values[i]);
    }
    EXPECT_TRUE(device().copy_from_host(0, x_.data(), 0, values.data(), values.size() * sizeof(float), {}).ok());
    return expected;
  }
  void set_sum(float value) { EXPECT_TRUE(device().copy_from_host(0, sum_.data(), 0, &value, sizeof(value), {}).ok()); }
  float sum() {
    EXPECT_TRUE(device().synchronize(0, {}).ok());
    float value = 0;
    EXPECT_TRUE(device().copy_to_host(0, &value, sum_.data(), 0, sizeof(value), {}).ok());
    return value;
  }
  void call() {
    ops::relu_out(y_, x_);
    ops::reduce_sum_out(sum_, y_, {.keepdim = true});
  }
  /// What a graph held is let go a little after it was destroyed.
  static bool workspace_comes_back_to(std::uint64_t bytes) {
    for (int i = 0; i < 500 && workspace_in_use() != bytes; ++i) {
      EXPECT_TRUE(device().synchronize(0, {}).ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return workspace_in_use() == bytes;
  }

  Tensor x_, y_, sum_;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(CudaGraphs, ReplaysWhatWasRecordedOnWhatTheMemoryHoldsNow) {
  fill(1);
  call();
  set_sum(-1);
  ASSERT_TRUE(workspace_comes_back_to(0));
  {
    GraphCapture graph(devices(), gpu);
    call();
    graph.end();
    EXPECT_EQ(sum(), -1) << "it ran while it was recorded";
    EXPECT_GT(workspace_in_use(), 0u);
    for (int seed : {1, 2, 3}) {
      const double expected = fill(seed);
      graph.replay();
      EXPECT_EQ(sum(), expected);
      call();  // other work uses other workspace
      graph.replay();
      EXPECT_EQ(sum(), expected);
    }
  }
}

TEST_F(CudaGraphs, NumbersAreRecordedWithTheirCalls) {
  const double expected = fill(5);
  const auto doubled = [this] {
    ops::relu_out(y_, x_);
    ops::mul_out(y_, y_, 2.0);
    ops::reduce_sum_out(sum_, y_, {.keepdim = true});
  };
  doubled();
  EXPECT_EQ(sum(), 2 * expected);
  set_sum(-1);
  GraphCapture graph(devices(), gpu);
  doubled();
  graph.end();
  EXPECT_EQ(sum(), -1);
  ops::mul_out(y_, x_, 3.0);  // another number, in other memory
  graph.replay();
  EXPECT_EQ(sum(), 2 * expected);
}

TEST_F(CudaGraphs, OneRunsOnAnyStreamAndAfterItsLastRun) {
  const double expected = fill(4);
  call();
  GraphCapture graph(devices(), gpu);
  call();
  graph.end();
  set_sum(-1);
  const Stream made = device().create_stream(0);
  {
    const StreamGuard guard(gpu, devices().stream(gpu, made.handle));
    for (int i = 0; i < 10; ++i) graph.replay();
  }
  ASSERT_TRUE(device().synchronize(0, made).ok());
  EXPECT_EQ(sum(), expected);
  device().destroy_stream(0, made);
}

TEST_F(CudaGraphs, TensorsThatOwnTheirMemoryLiveAsLongAsTheGraph) {
  const double expected = fill(5);
  ops::reduce_sum_out(sum_, ops::relu(x_), {.keepdim = true});
  GraphCapture graph(devices(), gpu);
  ops::reduce_sum_out(sum_, ops::relu(x_), {.keepdim = true});  // the one in the middle is the graph's alone
  graph.end();
  const Tensor there = devices().allocate(DataType::float32, {many}, gpu);  // would get its memory
  ASSERT_TRUE(device().copy_from_host(0, there.data(), 0, std::vector<float>(many, 7).data(), many * 4, {}).ok());
  graph.replay();
  EXPECT_EQ(sum(), expected);
}

TEST_F(CudaGraphs, WhatCannotBeRecordedIsAnErrorAndLeavesTheRecordingUsable) {
  const double expected = fill(6);
  call();
  GraphCapture graph(devices(), gpu);
  const Tensor other = devices().allocate(DataType::float32, {12345}, gpu);
  EXPECT_SAYS(error_of([&] { ops::relu_out(other, other); }), "run the same calls once before the capture");
  EXPECT_SAYS(error_of([&] { ops::relu(other); }), "run the same calls once before the capture");
  EXPECT_SAYS(error_of([&] { devices().copy_to(sum_, {}); }), "a graph is being recorded");
  EXPECT_EQ(device().synchronize(0, {}).code(), ErrorCode::not_supported);
  std::string elsewhere;
  std::thread([&] { elsewhere = error_of([&] { devices().copy_to(sum_, {}); }); }).join();
  EXPECT_EQ(elsewhere, "no error") << "other threads go on";
  call();
  graph.end();
  set_sum(-1);
  graph.replay();
  EXPECT_EQ(sum(), expected);
}

TEST_F(CudaGraphs, AWrongValueIsReportedByTheNextWait) {
  const Tensor table = devices().allocate(DataType::float32, {8, 4}, gpu);
  const Tensor index = devices().allocate(DataType::int64, {1}, gpu);
  const Tensor out = devices().allocate(DataType::float32, {1, 4}, gpu);
  const auto set_index = [&](std::int64_t value) {
    ASSERT_TRUE(device().copy_from_host(0, index.data(), 0, &value, sizeof(value), {}).ok());
  };
  set_index(3);
  ops::embedding_out(out, index, table);
  GraphCapture graph(devices(), gpu);
  ops::embedding_out(out, index, table);
  graph.end();
  graph.replay();
  EXPECT_TRUE(device().synchronize(0, {}).ok());
  set_index(8);
  graph.replay();
  const Status status = device().synchronize(0, {});
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  EXPECT_SAYS(status.message(), "embedding");
}

/// A function of the CUDA driver; the tests run where there is no toolkit.
template <class Function>
Function* vendors(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

TEST_F(CudaGraphs, ACaptureThatSomebodyElseBeganKeepsWhatItUsesUntilItsGraphIsDestroyed) {
  auto* begin = vendors<int(void*, int)>("cuStreamBeginCapture_v2");
  auto* end = vendors<int(void*, void**)>("cuStreamEndCapture");
  auto* instantiate = vendors<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags");
  auto* launch = vendors<int(void*, void*)>("cuGraphLaunch");
  auto* destroy = vendors<int(void*)>("cuGraphDestroy");
  auto* destroy_ready = vendors<int(void*)>("cuGraphExecDestroy");
  ASSERT_TRUE(begin && end && instantiate && launch && destroy && destroy_ready);
  const double expected = fill(7);
  call();
  set_sum(-1);
  ASSERT_TRUE(workspace_comes_back_to(0));
  const Tensor other = devices().allocate(DataType::float32, {54321}, gpu);
  const Stream made = device().create_stream(0);
  void* graph = nullptr;
  {
    const StreamGuard guard(gpu, devices().stream(gpu, made.handle));
    constexpr int global = 0;  // the strictest
    ASSERT_EQ(begin(made.handle, global), 0);
    call();  // workspace was never used on this stream
    EXPECT_SAYS(error_of([&] { ops::relu(other); }), "run the same calls once before the capture");
    ASSERT_EQ(end(made.handle, &graph), 0);
  }
  void* ready = nullptr;
  ASSERT_EQ(instantiate(&ready, graph, 0), 0);
  ASSERT_EQ(destroy(graph), 0);
  EXPECT_EQ(sum(), -1);
  EXPECT_GT(workspace_in_use(), 0u);
  ASSERT_EQ(launch(ready, made.handle), 0);
  ASSERT_TRUE(device().synchronize(0, made).ok());
  EXPECT_EQ(sum(), expected);
  ASSERT_EQ(destroy_ready(ready), 0);
  device().destroy_stream(0, made);
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
