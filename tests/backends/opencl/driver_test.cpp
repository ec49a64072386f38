#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <thread>

#include "backends/opencl/device_fixture.h"
#include "core/in_child.h"

namespace xpuruntime::opencl {
namespace {

using DriverTest = OpenClTest;
using PlanTest = OpenClTest;

constexpr int index = 0;

Problem square_matmul(std::int64_t size) {
  return matmul_of(make_spec(DataType::float32, {size, size}), make_spec(DataType::float32, {size, size}));
}

/// Every element equal.
HostTensor filled(const TensorSpec& spec, double value) {
  HostTensor host(spec);
  for (std::size_t i = 0; i < host.bytes.size() / host.width(); ++i) host.set(i, value);
  return host;
}

void expect_all(const HostTensor& got, double value) {
  for (std::size_t i = 0; i < got.bytes.size() / got.width(); ++i) ASSERT_EQ(got.get(i), value) << "element " << i;
}

ErrorCode code_of_allocating(DeviceDriver& driver, std::size_t bytes) {
  try {
    driver.deallocate(index, driver.allocate(index, bytes));
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("[OpenClDriver::allocate] "), 0u) << error.what();
    return error.code();
  }
  ADD_FAILURE() << bytes << " bytes were given";
  return ErrorCode::internal;
}

TEST_F(DriverTest, DescribesItsDevices) {
  EXPECT_EQ(driver().why_absent(), "");
  for (const DeviceProfile& profile : driver().devices()) {
    EXPECT_EQ(profile.type, DeviceType::opencl);
    EXPECT_FALSE(profile.vendor.empty());
    EXPECT_FALSE(profile.name.empty());
    EXPECT_FALSE(profile.driver_version.empty());
    EXPECT_EQ(profile.library_versions.at("opencl").find("OpenCL "), 0u);
    EXPECT_GT(profile.compute_units, 0);
    EXPECT_GT(profile.global_memory_bytes, std::uint64_t{1} << 20);
    EXPECT_GE(profile.local_memory_bytes, 1024u);
    EXPECT_GT(profile.max_work_group_size, 0u);
    EXPECT_GE(profile.max_work_item_sizes.size(), 3u);
    EXPECT_EQ(profile.fp64, profile.has_extension("cl_khr_fp64"));
  }
}

TEST_F(DriverTest, CopiesToAndFromTheMiddleOfABuffer) {
  void* memory = driver().allocate(index, 100);
  const std::string zeros(100, '0');
  ASSERT_TRUE(driver().copy_from_host(index, memory, 0, zeros.data(), 100, {}).ok());
  ASSERT_TRUE(driver().copy_from_host(index, memory, 40, "hello", 5, {}).ok());
  std::string got(9, '?');
  ASSERT_TRUE(driver().copy_to_host(index, got.data(), memory, 38, 9, {}).ok());
  EXPECT_EQ(got, "00hello00");
  driver().deallocate(index, memory);
}

TEST_F(DriverTest, CopyingPastTheEndIsAStatus) {
  void* memory = driver().allocate(index, 16);
  char host[32] = {};
  const Status status = driver().copy_to_host(index, host, memory, 8, 32, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::device_error);
  EXPECT_NE(status.message().find("CL_INVALID_VALUE"), std::string::npos) << status.message();
  driver().deallocate(index, memory);
}

TEST_F(DriverTest, NoBytesCanBeAllocatedAndCopied) {
  void* memory = driver().allocate(index, 0);
  EXPECT_NE(memory, nullptr);
  EXPECT_TRUE(driver().copy_from_host(index, memory, 0, nullptr, 0, {}).ok());
  EXPECT_TRUE(driver().copy_to_host(index, nullptr, memory, 0, 0, {}).ok());
  driver().deallocate(index, memory);
  driver().deallocate(index, nullptr);
}

TEST_F(DriverTest, TooMuchMemoryIsAnErrorAndTheDeviceGoesOn) {
  EXPECT_EQ(code_of_allocating(driver(), std::size_t{1} << 50), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of_allocating(driver(), ~std::size_t{0}), ErrorCode::out_of_memory);
  void* memory = driver().allocate(index, 1024);
  EXPECT_NE(memory, nullptr);
  driver().deallocate(index, memory);
}

TEST_F(DriverTest, SaysInAForkedChildThatItCannotWorkThere) {
  void* memory = driver().allocate(index, 16);
  const auto says = [](const std::string& text) { return text.find("before this process was forked") != text.npos; };
  const auto lost = [&](const Status& status) {
    return status.code() == ErrorCode::device_lost && says(status.message());
  };
  const auto body = [&] {
    char host[16] = {};
    bool refused = lost(driver().copy_to_host(index, host, memory, 0, 16, {})) && lost(driver().synchronize(index, {}));
    try {
      driver().allocate(index, 16);
      return false;
    } catch (const Error& error) {
      refused = refused && error.code() == ErrorCode::device_lost && says(error.what());
    }
    driver().deallocate(index, memory);  // which does not wait for threads that are not there
    return refused && OpenClDriver().devices().empty() && says(OpenClDriver().why_absent());
  };
  EXPECT_EQ(in_child(body), 0);
  driver().deallocate(index, memory);
}

TEST_F(DriverTest, EventsFollowTheOrderOfTheStreamAndTellDeviceTime) {
  const Problem problem = square_matmul(256);
  const auto plan = prepare("MATMUL_DIRECT", problem);
  const Tensor a = upload(filled(problem.inputs[0], 1));
  const Tensor c = upload(HostTensor(problem.outputs[0]));
  const Stream stream = driver().create_stream(index);
  Event before = driver().create_event(index);
  Event after = driver().create_event(index);
  ASSERT_TRUE(driver().record_event(index, before, stream).ok());
  run(*plan, {a, a}, c, stream);
  ASSERT_TRUE(driver().record_event(index, after, stream).ok());
  ASSERT_TRUE(driver().wait_event(index, after).ok());
  EXPECT_TRUE(driver().event_done(index, before));
  EXPECT_TRUE(driver().event_done(index, after));
  const double elapsed = driver().elapsed_us(index, before, after);
  EXPECT_GT(elapsed, 0);
  EXPECT_LT(driver().elapsed_us(index, after, before), 0);
  driver().destroy_event(index, before);
  driver().destroy_event(index, after);
  driver().destroy_stream(index, stream);
}

TEST_F(DriverTest, AnEventThatWasNeverRecordedIsDoneAndHasNoTime) {
  const Event event = driver().create_event(index);
  EXPECT_TRUE(driver().event_done(index, event));
  EXPECT_TRUE(driver().wait_event(index, event).ok());
  EXPECT_LT(driver().elapsed_us(index, event, event), 0);
  driver().destroy_event(index, event);
}

TEST_F(DriverTest, RecordingAgainMovesTheEvent) {
  Event first = driver().create_event(index);
  Event moved = driver().create_event(index);
  ASSERT_TRUE(driver().record_event(index, moved, {}).ok());
  ASSERT_TRUE(driver().record_event(index, first, {}).ok());
  ASSERT_TRUE(driver().synchronize(index, {}).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ASSERT_TRUE(driver().record_event(index, moved, {}).ok());
  ASSERT_TRUE(driver().wait_event(index, moved).ok());
  EXPECT_GT(driver().elapsed_us(index, first, moved), 0);
  driver().destroy_event(index, first);
  driver().destroy_event(index, moved);
}

TEST_F(PlanTest, ServesManyThreadsWithQueuesOfTheirOwn) {
  constexpr int threads = 4;
  constexpr int rounds = 40;
  const TensorSpec spec = make_spec(DataType::float32, {777});
  const Problem problem = problem_of(OpId::add, {spec, spec}, Attributes(OpId::add));
  const auto plan = prepare("ADD_DIRECT", problem);
  const auto work = [&](int number) {
    const Stream stream = driver().create_stream(index);
    for (int round = 0; round < rounds; ++round) {
      const Tensor a = upload(filled(spec, number), 1, stream);
      const Tensor b = upload(filled(spec, 100 * round), 2, stream);
      const Tensor c = upload(HostTensor(spec), 3, stream);
      run(*plan, {a, b}, c, stream);
      expect_all(download(c, stream), number + 100 * round);
    }
    driver().destroy_stream(index, stream);
  };
  std::vector<std::thread> all;
  for (int number = 1; number <= threads; ++number) all.emplace_back(work, number);
  for (std::thread& thread : all) thread.join();
}

TEST_F(PlanTest, MayBeDroppedWithItsMemoryBeforeTheQueueIsDone) {
  const Problem problem = square_matmul(320);
  const Stream stream = driver().create_stream(index);
  const Tensor c = upload(HostTensor(problem.outputs[0]), 0, stream);
  for (const char* name : {"MATMUL_DIRECT", "MATMUL_TILED_LOCAL"}) {
    const Tensor a = upload(filled(problem.inputs[0], 2), 0, stream);
    const Tensor b = upload(filled(problem.inputs[1], 3), 0, stream);
    run(*prepare(name, problem), {a, b}, c, stream);
  }
  EXPECT_TRUE(driver().synchronize(index, stream).ok());
  expect_all(download(c, stream), 6 * 320);
  driver().destroy_stream(index, stream);
}

TEST_F(PlanTest, OutlivesTheDriverThatMadeIt) {
  const TensorSpec spec = make_spec(DataType::float32, {64});
  const Problem problem = problem_of(OpId::add, {spec, spec}, Attributes(OpId::add));
  auto own = std::make_unique<OpenClDriver>();
  std::unique_ptr<const Plan> plan = kernel("ADD_DIRECT").prepare(problem, PrepareContext{device, profile(), *own});
  own.reset();
  plan.reset();
}

TEST_F(PlanTest, RunsOnTheDefaultQueueWhenNoStreamIsGiven) {
  const TensorSpec spec = make_spec(DataType::float32, {64});
  const auto plan = prepare("ADD_DIRECT", problem_of(OpId::add, {spec, spec}, Attributes(OpId::add)));
  const Tensor c = upload(HostTensor(spec));
  run(*plan, {upload(filled(spec, 1)), upload(filled(spec, 2))}, c);
  expect_all(download(c), 3);
}

TEST_F(PlanTest, AnOffsetBetweenElementsIsAStatus) {
  const TensorSpec spec = make_spec(DataType::float32, {4});
  const auto plan = prepare("ADD_DIRECT", problem_of(OpId::add, {spec, spec}, Attributes(OpId::add)));
  const Tensor whole = upload(HostTensor(spec));
  const Tensor crooked(whole.data(), spec, device, 2, whole.owner());
  const Tensor* inputs[] = {&crooked, &whole};
  const Tensor* outputs[] = {&whole};
  const Status status = plan->run({inputs, outputs, nullptr, {}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(status.message(), "byte offset 2 is not a multiple of the element size: copy the tensor first");
}

TEST_F(PlanTest, CannotBePreparedForADeviceThatIsNotThere) {
  const TensorSpec spec = make_spec(DataType::float32, {4});
  const Problem problem = problem_of(OpId::add, {spec, spec}, Attributes(OpId::add));
  EXPECT_THROW(kernel("ADD_DIRECT").prepare(problem, {{DeviceType::opencl, 255}, profile(), driver()}), Error);
  EXPECT_THROW(kernel("ADD_DIRECT").prepare(problem, {{DeviceType::cpu, 0}, profile(), driver()}), Error);
}

// Run by the test below in a process of its own: loaders look for drivers once, some before main begins.
TEST(MissingDriver, DISABLED_Report) {
  const OpenClDriver driver;
  std::cout << "devices: " << driver.devices().size() << "; why: " << driver.why_absent() << std::endl;
}

TEST(MissingDriver, IsReportedWithWhatToInstall) {
  const auto empty = std::filesystem::temp_directory_path() / "xrt_no_opencl_drivers";
  std::filesystem::create_directories(empty);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "OCL_ICD_VENDORS='" + empty.string() + "' '" + self +
                              "' --gtest_filter=MissingDriver.DISABLED_Report --gtest_also_run_disabled_tests 2>&1";
  std::FILE* child = popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string output;
  for (char line[512]; std::fgets(line, sizeof line, child) != nullptr;) output += line;
  pclose(child);
  if (output.find("devices: 0") == std::string::npos && output.find("devices: ") != std::string::npos) {
    GTEST_SKIP() << "this OpenCL loader finds its drivers whatever OCL_ICD_VENDORS says";
  }
  EXPECT_NE(output.find("no OpenCL platform: install an ICD such as pocl-opencl-icd, or the vendor's driver"),
            std::string::npos)
      << output;
}

TEST_F(DriverTest, AStreamIsToldFromALaterOneWithItsHandle) {
  std::map<void*, std::uint64_t> seen;
  for (int i = 0; i < 50; ++i) {
    const Stream stream = driver().create_stream(device.index);
    EXPECT_NE(stream.id, 0u);
    EXPECT_EQ(driver().stream_id(device.index, stream.handle), stream.id);
    const auto known = seen.find(stream.handle);
    if (known != seen.end()) {
      EXPECT_NE(known->second, stream.id);
    }
    seen[stream.handle] = stream.id;
    driver().destroy_stream(device.index, stream);
  }
}

TEST_F(DriverTest, AStreamWaitsForAnEventOfAnother) {
  const Stream first = driver().create_stream(device.index), second = driver().create_stream(device.index);
  Event done = driver().create_event(device.index);
  EXPECT_TRUE(driver().queue_wait(device.index, second, done).ok()) << "what was never recorded is done";
  ASSERT_TRUE(driver().record_event(device.index, done, first).ok());
  ASSERT_TRUE(driver().queue_wait(device.index, second, done).ok());
  ASSERT_TRUE(driver().synchronize(device.index, second).ok());
  EXPECT_TRUE(driver().event_done(device.index, done));
  driver().destroy_event(device.index, done);
  for (const Stream stream : {first, second}) driver().destroy_stream(device.index, stream);
}

}  // namespace
}  // namespace xpuruntime::opencl
