#include <array>
#include <map>
#include <regex>
#include <thread>

#include "backends/cuda_fixture.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime::cuda_tests {
namespace {

TEST(CudaModule, OpensAndSaysWhatIsHere) {
  EXPECT_EQ(backend().name(), "cuda");
  EXPECT_EQ(backend().device_type(), DeviceType::nvidia);
  EXPECT_EQ(driver().type(), DeviceType::nvidia);
  EXPECT_TRUE(driver().asynchronous());
  EXPECT_EQ(driver().why_absent().empty(), !driver().devices().empty());
}

// What needs a GPU.

using CudaDriverTest = CudaTest;

/// Work of some tens of milliseconds, so that what is asked right after its launch is asked while it runs.
constexpr const char* long_work = "matmul(f32[1024,8192], f32[8192,1024])";

TEST_F(CudaDriverTest, ProfileDescribesTheDevice) {
  EXPECT_EQ(profile().vendor, "nvidia");
  EXPECT_FALSE(profile().name.empty());
  EXPECT_FALSE(profile().driver_version.empty());
  EXPECT_TRUE(profile().library_versions.contains("cuda"));
  EXPECT_GE(profile().compute_capability_major, 5);
  EXPECT_GT(profile().compute_units, 0);
  EXPECT_GT(profile().global_memory_bytes, std::uint64_t{1} << 30);
  EXPECT_GE(profile().local_memory_bytes, 48u << 10);
  EXPECT_GT(profile().l2_bytes, 0u);
  EXPECT_EQ(profile().sub_group_size, 32u);
  EXPECT_EQ(profile().bf16, profile().compute_capability_major >= 8);
}

TEST_F(CudaDriverTest, LaunchReturnsWhileTheWorkGoesOn) {
  Launch launch(problem_of(long_work), "reference");
  launch.fill(random());
  const Stream stream = driver().create_stream(0);
  Event begin = driver().create_event(0);
  Event end = driver().create_event(0);
  ASSERT_TRUE(launch.run(stream).ok());  // once to load the code
  ASSERT_TRUE(driver().record_event(0, begin, stream).ok());
  ASSERT_TRUE(launch.queue(stream).ok());
  ASSERT_TRUE(driver().record_event(0, end, stream).ok());
  EXPECT_FALSE(driver().event_done(0, end));
  ASSERT_TRUE(driver().wait_event(0, end).ok());
  EXPECT_TRUE(driver().event_done(0, end));
  EXPECT_GT(driver().elapsed_us(0, begin, end), 100);
  driver().destroy_event(0, begin);
  driver().destroy_event(0, end);
  driver().destroy_stream(0, stream);
}

TEST_F(CudaDriverTest, ASmallValueIsWrittenWithoutAWait) {
  Launch before(problem_of(long_work), "reference");
  before.fill(random());
  const Stream stream = driver().create_stream(0);
  ASSERT_TRUE(before.run(stream).ok());
  void* const memory = driver().allocate(0, 32);
  std::array<unsigned char, 32> bytes = {};
  ASSERT_TRUE(driver().copy_from_host(0, memory, 0, bytes.data(), 32, stream).ok());
  ASSERT_TRUE(driver().write_value(0, memory, bytes.data(), 1, stream).ok());  // once to load the code
  Event end = driver().create_event(0);
  ASSERT_TRUE(before.queue(stream).ok());
  for (std::size_t i = 1; i <= 16; ++i) {
    const std::array<unsigned char, 16> value = {
        static_cast<unsigned char>(i), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    ASSERT_TRUE(driver().write_value(0, memory, value.data(), i, stream).ok());
  }
  ASSERT_TRUE(driver().record_event(0, end, stream).ok());
  EXPECT_FALSE(driver().event_done(0, end));
  EXPECT_FALSE(driver().write_value(0, memory, bytes.data(), 17, stream).ok());
  ASSERT_TRUE(driver().copy_to_host(0, bytes.data(), memory, 0, 32, stream).ok());
  EXPECT_EQ(bytes[0], 16);
  for (std::size_t i = 1; i < 32; ++i) EXPECT_EQ(bytes[i], i < 16 ? i + 1 : 0);
  driver().destroy_event(0, end);
  driver().deallocate(0, memory);
  driver().destroy_stream(0, stream);
}

TEST_F(CudaDriverTest, PlanMayGoWhileItsWorkIsQueued) {
  for (const std::string name : {"skinny", "cublasLt", "reference"}) {
    Launch before(problem_of(long_work), "reference");
    Launch launch(problem_of("matmul(bf16[4,512], bf16[512,64])"), name);
    if (!launch.verdict().supported) continue;
    before.fill(random());
    launch.fill(random());
    const Stream stream = driver().create_stream(0);
    ASSERT_TRUE(before.upload().ok() && launch.upload().ok());
    ASSERT_TRUE(before.queue(stream).ok());
    ASSERT_TRUE(launch.queue(stream).ok());
    launch.drop_plan();
    ASSERT_TRUE(driver().synchronize(0, stream).ok());
    ASSERT_TRUE(launch.output().download().ok());
    double expected = 0;
    for (std::int64_t i = 0; i < 512; ++i) expected += launch.input(0).at({3, i}) * launch.input(1).at({i, 63});
    EXPECT_NEAR(launch.output().at({3, 63}), expected, 0.15) << name;
    driver().destroy_stream(0, stream);
  }
}

TEST_F(CudaDriverTest, MemoryIsKeptUntilQueuedWorkIsDone) {
  auto launch = std::make_unique<Launch>(problem_of(long_work), "reference");
  launch->fill(random());
  ASSERT_TRUE(launch->upload().ok());
  const Stream stream = driver().create_stream(0);
  ASSERT_TRUE(launch->queue(stream).ok());
  launch.reset();  // frees inputs and output under the running kernel
  const Status status = driver().synchronize(0, stream);
  EXPECT_TRUE(status.ok()) << status.message();
  driver().destroy_stream(0, stream);
}

TEST_F(CudaDriverTest, ThreadsWithTheirOwnStreamsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(6);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([t, &failures] {
      std::mt19937_64 random(t + 1);
      const Stream stream = driver().create_stream(0);
      const char* names[] = {"skinny", "cublasLt", "reference"};
      Launch launch(problem_of("matmul(f32[9,300], f32[300,50])"), names[t % 3]);
      for (int round = 0; launch.verdict().supported && round < 20 && failures[t].empty(); ++round) {
        launch.fill(random);
        if (const Status status = launch.run(stream); !status.ok()) failures[t] = status.message();
        double expected = 0;
        for (std::int64_t i = 0; i < 300; ++i) expected += launch.input(0).at({8, i}) * launch.input(1).at({i, 49});
        if (!(std::fabs(launch.output().at({8, 49}) - expected) < 1e-3)) failures[t] = "a wrong sum";
      }
      driver().destroy_stream(0, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_F(CudaDriverTest, OnePlanRunsFromSeveralThreads) {
  Launch launch(problem_of("matmul(bf16[4,512], bf16[512,64])"), "skinny");
  launch.fill(random());
  ASSERT_TRUE(launch.run().ok());
  const double expected = launch.output().at({2, 5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&launch] {
      const Stream stream = driver().create_stream(0);
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(launch.queue(stream).ok());
      EXPECT_TRUE(driver().synchronize(0, stream).ok());
      driver().destroy_stream(0, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(launch.output().download().ok());
  EXPECT_EQ(launch.output().at({2, 5}), expected);
}

TEST_F(CudaDriverTest, RunningOutOfMemoryIsAnErrorAndNothingMore) {
  const std::uint64_t bytes = profile().global_memory_bytes * 2;
  try {
    driver().allocate(0, bytes);
    ADD_FAILURE() << "twice the device's memory was handed out";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    const std::regex text(std::to_string(bytes) + " bytes on cuda:0, where \\d+ of \\d+ bytes are free: ");
    EXPECT_TRUE(std::regex_search(error.what(), text)) << error.what();
  }
  Launch launch(problem_of("add(f32[8], f32[8])"), "elementwise");
  launch.fill(random());
  const Status status = launch.run();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(CudaDriverTest, NothingCanBeAllocatedAndCopied) {
  void* memory = driver().allocate(0, 0);
  EXPECT_NE(memory, nullptr);
  EXPECT_TRUE(driver().copy_from_host(0, memory, 0, nullptr, 0, {}).ok());
  EXPECT_TRUE(driver().copy_to_host(0, nullptr, memory, 0, 0, {}).ok());
  driver().deallocate(0, memory);
  driver().deallocate(0, nullptr);
}

TEST_F(CudaDriverTest, CurrentDeviceFollowsIntoTheRuntime) {
  const Device device{DeviceType::nvidia, 0};
  EXPECT_NO_THROW(set_current_device(device));
  EXPECT_EQ(current_device(), device);
  EXPECT_THROW(set_current_device(Device{DeviceType::nvidia, 200}), Error);
  EXPECT_EQ(current_device(), device);
  set_current_device(Device{});
}

TEST_F(CudaDriverTest, EventsThatWereNeverRecordedTellNoTime) {
  const Event from = driver().create_event(0);
  const Event to = driver().create_event(0);
  EXPECT_LT(driver().elapsed_us(0, from, to), 0);
  EXPECT_TRUE(driver().event_done(0, from));
  driver().destroy_event(0, from);
  driver().destroy_event(0, to);
}

TEST_F(CudaDriverTest, SecondDeviceRunsItsOwnPlans) {
  if (driver().devices().size() < 2) GTEST_SKIP() << "one GPU only";
  std::mt19937_64 random(1);
  for (const int index : {1, 0, 1}) {
    Launch launch(problem_of("add(f32[100], f32[100])"), "elementwise", index);
    launch.fill(random);
    ASSERT_TRUE(launch.run().ok());
    EXPECT_EQ(launch.output().at({99}),
              static_cast<double>(static_cast<float>(launch.input(0).at({99}) + launch.input(1).at({99}))));
  }
}

// --- the vendor's own functions, as a program beside us calls them ---

/// A function of the CUDA driver; the tests run where there is no toolkit.
template <class Function>
Function* cuda_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

TEST_F(CudaDriverTest, AStreamIsToldFromALaterOneWithItsHandle) {
  std::map<void*, std::uint64_t> seen;
  bool again = false;
  for (int i = 0; i < 200; ++i) {
    const Stream stream = driver().create_stream(0);
    EXPECT_EQ(driver().stream_id(0, stream.handle), driver().stream_id(0, stream.handle));
    const std::uint64_t id = driver().stream_id(0, stream.handle);
    const auto known = seen.find(stream.handle);
    if (known != seen.end()) {
      again = true;
      EXPECT_NE(known->second, id);
    }
    seen[stream.handle] = id;
    driver().destroy_stream(0, stream);
  }
  EXPECT_TRUE(again) << "no handle came back: this shows nothing";
}

TEST_F(CudaDriverTest, AStreamWaitsForAnEventOfAnother) {
  Launch launch(problem_of(long_work), "reference");
  launch.fill(random());
  const Stream first = driver().create_stream(0), second = driver().create_stream(0);
  ASSERT_TRUE(launch.run(first).ok());
  Event done = driver().create_event(0), behind = driver().create_event(0);
  ASSERT_TRUE(launch.queue(first).ok());
  ASSERT_TRUE(driver().record_event(0, done, first).ok());
  ASSERT_TRUE(driver().queue_wait(0, second, done).ok());
  ASSERT_TRUE(driver().record_event(0, behind, second).ok());
  EXPECT_FALSE(driver().event_done(0, behind)) << "the host did not wait, and the second stream does";
  ASSERT_TRUE(driver().synchronize(0, second).ok());
  EXPECT_TRUE(driver().event_done(0, done));
  for (const Event event : {done, behind}) driver().destroy_event(0, event);
  for (const Stream stream : {first, second}) driver().destroy_stream(0, stream);
}

TEST_F(CudaDriverTest, MemoryOfAStreamComesAndGoesInItsOrder) {
  const Stream stream = driver().create_stream(0);
  for (int i = 0; i < 100; ++i) {
    void* memory = driver().allocate_ordered(0, 1 << 20, stream);
    ASSERT_NE(memory, nullptr);
    driver().deallocate_ordered(0, memory, stream);
  }
  EXPECT_TRUE(driver().synchronize(0, stream).ok());
  driver().destroy_stream(0, stream);
}

TEST_F(CudaDriverTest, KnowsWhetherAStreamIsCaptured) {
  auto* begin = cuda_function<int(void*, int)>("cuStreamBeginCapture_v2");
  auto* end = cuda_function<int(void*, void**)>("cuStreamEndCapture");
  ASSERT_TRUE(begin != nullptr && end != nullptr);
  Launch launch(problem_of("add(f32[8], f32[8])"), "elementwise");
  launch.fill(random());
  const Stream stream = driver().create_stream(0);
  ASSERT_TRUE(launch.run(stream).ok());
  EXPECT_FALSE(driver().capturing(0, stream));
  constexpr int relaxed = 2;
  ASSERT_EQ(begin(stream.handle, relaxed), 0);
  EXPECT_TRUE(driver().capturing(0, stream));
  EXPECT_TRUE(launch.queue(stream).ok());
  void* graph = nullptr;
  ASSERT_EQ(end(stream.handle, &graph), 0);
  EXPECT_FALSE(driver().capturing(0, stream));
  driver().destroy_stream(0, stream);
}

TEST_F(CudaDriverTest, AWrongValueIsReportedAtTheNextSynchronisationOnce) {
  auto* set = cuda_function<int(std::uint64_t, unsigned, std::size_t, void*)>("cuMemsetD32Async");
  ASSERT_NE(set, nullptr);
  const Stream stream = driver().create_stream(0);
  {
    const auto quiet = driver().make_value_fault(0, "never");
    const auto fault = driver().make_value_fault(0, "embedding(...): an index is past the end");
    EXPECT_TRUE(driver().synchronize(0, stream).ok());
    ASSERT_EQ(set(reinterpret_cast<std::uint64_t>(fault->word()), 1, 1, stream.handle), 0);  // as a kernel would
    const Status status = driver().synchronize(0, stream);
    EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(status.message(), "embedding(...): an index is past the end");
    EXPECT_TRUE(driver().synchronize(0, stream).ok());
  }
  const auto again = driver().make_value_fault(0, "a plan that came later");
  EXPECT_TRUE(driver().synchronize(0, stream).ok());
  driver().destroy_stream(0, stream);
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
