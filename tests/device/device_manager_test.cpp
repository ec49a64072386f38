#include "xpuruntime/device/device_manager.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

using testing::FakeDriver;

constexpr Device cpu = {};
constexpr Device npu0 = {DeviceType::npu, 0};
constexpr Device npu1 = {DeviceType::npu, 1};
constexpr Device opencl1 = {DeviceType::opencl, 1};

/// A manager with a CPU, two devices with pointers and two with handles, added out of order.
class Manager : public ::testing::Test {
 protected:
  void SetUp() override {
    manager.add_driver(opencl);
    manager.add_driver(npu);
    manager.add_driver(host);
  }
  Tensor numbers(const Dims& shape, Device device) {
    const Tensor tensor = Tensor::empty(DataType::int32, shape);
    std::iota(tensor.as<int>(), tensor.as<int>() + element_count(tensor.spec()), 0);
    return manager.copy_to(tensor, device);
  }
  std::vector<int> values(const Tensor& tensor) {
    const Tensor host_copy = manager.copy_to(tensor, cpu);
    return {host_copy.as<int>(), host_copy.as<int>() + element_count(host_copy.spec())};
  }

  std::shared_ptr<FakeDriver> host = std::make_shared<FakeDriver>(DeviceType::cpu, 1);
  std::shared_ptr<FakeDriver> npu = std::make_shared<FakeDriver>(DeviceType::npu);
  std::shared_ptr<FakeDriver> opencl = std::make_shared<FakeDriver>(DeviceType::opencl);
  DeviceManager manager;
};

TEST_F(Manager, ListsTheCpuFirst) {
  const std::vector<Device> expected = {cpu, {DeviceType::opencl, 0}, opencl1, npu0, npu1};
  EXPECT_EQ(manager.devices(), expected);
  EXPECT_TRUE(manager.has(npu1));
  EXPECT_FALSE(manager.has({DeviceType::npu, 2}));
  EXPECT_FALSE(manager.has({DeviceType::nvidia, 0}));
}

TEST_F(Manager, LooksForDevicesOfATypeWhenOneOfThemIsAskedFor) {
  manager.profile(cpu);
  manager.workspace(cpu);
  manager.copy_to(Tensor::empty(DataType::float32, {4}), cpu);
  EXPECT_TRUE(manager.has(cpu));
  EXPECT_EQ(npu->asked() + opencl->asked(), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { manager.profile(npu1); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(npu->asked(), 1);
  EXPECT_EQ(opencl->asked(), 0);
  manager.devices();
  EXPECT_EQ(opencl->asked(), 1);
}

TEST_F(Manager, GivesTheProfileAndDriverOfADevice) {
  EXPECT_EQ(manager.profile(npu1).name, "fake device 1");
  EXPECT_EQ(&manager.driver(opencl1), opencl.get());
}

TEST_F(Manager, SaysWhyADeviceIsNotThereAndWhichAre) {
  const std::string text = error_text(ErrorCode::not_supported, [&] { manager.profile({DeviceType::nvidia, 0}); });
  EXPECT_HAS(text, "[DeviceManager::profile]");
  EXPECT_HAS(text, "cuda:0");
  EXPECT_HAS(text, "no backend for cuda");
  EXPECT_HAS(text, "use one of cpu:0, opencl:0, opencl:1, npu:0, npu:1");
}

TEST_F(Manager, RepeatsTheDriversReasonForHavingNoDevice) {
  const auto none = std::make_shared<FakeDriver>(DeviceType::nvidia, 0);
  none->absent_reason = "libcuda.so.1 was not found";
  manager.add_driver(none);
  EXPECT_EQ(manager.why_absent(DeviceType::nvidia), "libcuda.so.1 was not found");
  const std::string text = error_text(ErrorCode::not_supported, [&] {
    manager.allocate(DataType::float32, {1}, {DeviceType::nvidia, 0});
  });
  EXPECT_HAS(text, "libcuda.so.1 was not found");
}

TEST_F(Manager, HasNoReasonForATypeThatIsThere) {
  EXPECT_EQ(manager.why_absent(DeviceType::npu), "");
  EXPECT_NE(manager.why_absent(DeviceType::moore), "");
}

TEST_F(Manager, RefusesAnIndexPastTheLastDevice) {
  const std::string text = error_text(ErrorCode::not_supported, [&] { manager.driver({DeviceType::npu, 7}); });
  EXPECT_HAS(text, "npu:7");
  EXPECT_HAS(text, "npu:0, npu:1");
}

TEST_F(Manager, RefusesASecondDriverOfATypeAndNone) {
  error_text(ErrorCode::invalid_argument, [&] { manager.add_driver(std::make_shared<FakeDriver>(DeviceType::npu)); });
  error_text(ErrorCode::invalid_argument, [&] { manager.add_driver(nullptr); });
  EXPECT_EQ(&manager.driver(npu0), npu.get());
}

TEST(EmptyManager, SaysThatThereIsNoDevice) {
  const DeviceManager manager;
  EXPECT_TRUE(manager.devices().empty());
  const std::string text = error_text(ErrorCode::not_supported, [&] { manager.workspace(cpu); });
  EXPECT_HAS(text, "add a driver");
}

TEST_F(Manager, KeepsProfilesAndPoolsInPlaceWhenDriversAreAdded) {
  const DeviceProfile* profile = &manager.profile(npu1);
  const WorkspacePool* pool = &manager.workspace(npu1);
  for (const DeviceType type : {DeviceType::nvidia, DeviceType::kunlun, DeviceType::hygon, DeviceType::moore}) {
    manager.add_driver(std::make_shared<FakeDriver>(type));
  }
  EXPECT_EQ(&manager.profile(npu1), profile);
  EXPECT_EQ(&manager.workspace(npu1), pool);
  EXPECT_NE(&manager.workspace(npu0), pool);
}

TEST_F(Manager, AllocatesInTheLayoutThatIsAskedFor) {
  const TensorSpec turned = make_spec(DataType::float32, {2, 3}, {1, 2});
  EXPECT_EQ(manager.allocate(turned, npu1).spec(), turned);
  TensorSpec by_hand = turned;
  by_hand.strides = {1};
  expect_invalid("give one stride per extent", [&] { manager.allocate(by_hand, npu1); });
}

TEST_F(Manager, AllocatesOnTheDeviceAndFreesThere) {
  {
    const Tensor tensor = manager.allocate(DataType::float16, {3, 5}, npu1);
    EXPECT_EQ(tensor.device(), npu1);
    EXPECT_EQ(tensor.shape(), (Dims{3, 5}));
    EXPECT_EQ(npu->bytes_used(1), 30U);
    const Tensor copy = tensor;
    EXPECT_EQ(npu->allocations(), 1);
  }
  EXPECT_EQ(npu->frees(), 1);
  EXPECT_EQ(npu->wrong_frees(), 0);
}

TEST_F(Manager, AsksNoMemoryForAnEmptyTensor) {
  const Tensor tensor = manager.allocate(DataType::float32, {0, 4}, opencl1);
  EXPECT_EQ(opencl->allocations(), 0);
  EXPECT_EQ(manager.copy_to(tensor, npu0).shape(), (Dims{0, 4}));
}

TEST_F(Manager, RefusesShapesThatOverflow) {
  const Dims huge = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  error_text(ErrorCode::invalid_argument, [&] { manager.allocate(DataType::float32, huge, npu0); });
  EXPECT_EQ(npu->allocations(), 0);
}

TEST_F(Manager, GivesWorkspaceBackBeforeItReportsAFullDevice) {
  npu->set_memory_limit(0, 1000);
  manager.workspace(npu0).acquire(900, {});
  const Tensor tensor = manager.allocate(DataType::int8, {800}, npu0);
  EXPECT_EQ(npu->bytes_used(0), 800U);
  error_text(ErrorCode::out_of_memory, [&] { manager.allocate(DataType::int8, {800}, npu0); });
}

TEST(ManagerThatEnded, LeavesItsTensorsTheDriver) {
  bool destroyed = false;
  Tensor tensor;
  {
    DeviceManager manager;
    auto driver = std::make_shared<FakeDriver>();
    driver->destroyed = &destroyed;
    manager.add_driver(std::move(driver));
    manager.workspace(npu0).acquire(100, {});
    tensor = manager.allocate(DataType::float32, {4}, npu0);
  }
  EXPECT_FALSE(destroyed);
  tensor = {};
  EXPECT_TRUE(destroyed);
}

TEST_F(Manager, CopiesBetweenEveryPairOfDevices) {
  std::vector<int> expected(24);
  std::iota(expected.begin(), expected.end(), 0);
  for (const Device from : manager.devices()) {
    for (const Device to : manager.devices()) {
      const Tensor there = manager.copy_to(numbers({2, 3, 4}, from), to);
      EXPECT_EQ(there.device(), to);
      EXPECT_EQ(values(there), expected) << to_string(from) << " to " << to_string(to);
    }
  }
  EXPECT_EQ(npu->live_blocks() + opencl->live_blocks() + host->live_blocks(), 0U);
}

TEST_F(Manager, CopiesViewsWithStridesAndOffsetsFromHandlesAndPointers) {
  // The transpose of the right 2 columns of a 3x4 matrix.
  const TensorSpec view = make_spec(DataType::int32, {2, 3}, {1, 4}, 8);
  const std::vector<int> expected = {2, 6, 10, 3, 7, 11};
  for (const Device from : manager.devices()) {
    const Tensor whole = numbers({3, 4}, from);
    const Tensor part(whole.data(), view, from, 2 * sizeof(int), whole.owner());
    for (const Device to : manager.devices()) {
      const Tensor there = manager.copy_to(part, to);
      EXPECT_TRUE(there.contiguous());
      EXPECT_EQ(there.shape(), (Dims{2, 3}));
      EXPECT_EQ(values(there), expected) << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST_F(Manager, CopiesIntoMemoryThatIsThere) {
  const TensorSpec turned = make_spec(DataType::int32, {2, 3}, {1, 2});
  for (const Device from : {cpu, npu0, opencl1}) {
    for (const Device to : {cpu, npu1, opencl1}) {
      const Tensor source = numbers({6}, from), target = numbers({7}, to);
      const Tensor across(source.data(), turned, from, 0, source.owner());
      manager.copy_into(across, Tensor(target.data(), turned, to, 4, target.owner()));
      EXPECT_EQ(values(target), (std::vector<int>{0, 0, 1, 2, 3, 4, 5}));
    }
  }
  const Tensor six = numbers({6}, npu0);
  manager.copy_into(numbers({0}, cpu), numbers({0}, npu0));
  expect_invalid("i32[6] does not go into i32[5]; give memory of the same",
                 [&] { manager.copy_into(six, numbers({5}, cpu)); });
  expect_invalid("into read-only i32[6]", [&] { manager.copy_into(six, numbers({6}, npu1).as_read_only()); });
  npu->copy_status = {ErrorCode::device_error, "the cable is out"};
  expect_error(ErrorCode::device_error, "copying from npu:0 failed: the cable is out",
               [&] { manager.copy_into(six, numbers({6}, cpu)); });
}

TEST_F(Manager, CopiesBroadcastViewsAndScalars) {
  const Tensor row = numbers({3}, opencl1);
  const Tensor twice(row.data(), make_spec(DataType::int32, {2, 3}, {0, 1}), opencl1, 0, row.owner());
  EXPECT_EQ(values(manager.copy_to(twice, npu0)), (std::vector<int>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(values(numbers({}, npu0)), std::vector<int>{0});
}

TEST_F(Manager, WaitsForACopyOnTheCallersStream) {
  const Stream stream = npu->create_stream(0);
  const int before = npu->synchronizations();
  {
    const StreamGuard guard(npu0, stream);
    numbers({4}, npu0);
  }
  EXPECT_EQ(npu->last_copy_stream(), stream);
  EXPECT_EQ(npu->synchronizations(), before + 1);
  npu->destroy_stream(0, stream);
}

TEST_F(Manager, ReportsAFailedCopyAndLosesNoMemory) {
  const Tensor tensor = numbers({4}, npu0);
  npu->copy_status = Status(ErrorCode::device_error, "the bus is gone");
  const std::string text = error_text(ErrorCode::device_error, [&] { manager.copy_to(tensor, opencl1); });
  EXPECT_HAS(text, "the bus is gone");
  EXPECT_HAS(text, "npu:0");
  EXPECT_EQ(opencl->live_blocks(), 0U);
  npu->copy_status = {};
  opencl->synchronize_status = Status(ErrorCode::device_error, "an earlier kernel failed");
  error_text(ErrorCode::device_error, [&] { manager.copy_to(tensor, opencl1); });
  EXPECT_EQ(opencl->live_blocks(), 0U);
}

TEST_F(Manager, RefusesToCopyATensorWithoutMemory) {
  error_text(ErrorCode::invalid_argument, [&] { manager.copy_to(Tensor(), npu0); });
}

TEST_F(Manager, CanBeAskedWhileDriversAreAdded) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const Tensor tensor = manager.allocate(DataType::float32, {4}, npu1);
        if (manager.profile(npu1).name != "fake device 1" || manager.devices().size() < 5) ++wrong;
      }
    });
  }
  for (const DeviceType type : {DeviceType::nvidia, DeviceType::kunlun, DeviceType::hygon, DeviceType::moore}) {
    manager.add_driver(std::make_shared<FakeDriver>(type));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(manager.devices().size(), 13U);
  EXPECT_EQ(npu->live_blocks(), 0U);
}

}  // namespace
}  // namespace xpuruntime
