#include "xpuruntime/device/current.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "device/fake_driver.h"

namespace xpuruntime {
namespace {

using testing::ActivationRecord;
using Calls = std::vector<int>;

constexpr Device cpu = {};
constexpr Device npu0 = {DeviceType::npu, 0};
constexpr Device npu1 = {DeviceType::npu, 1};
constexpr Device npu200 = {DeviceType::npu, 200};

int dummy[2];
const Stream stream_a = {&dummy[0]};
const Stream stream_b = {&dummy[1]};

class CurrentDevice : public ::testing::Test {
 protected:
  void TearDown() override {
    record.fail_on(-1);
    set_current_device(cpu);
  }
  ActivationRecord record;
};

TEST_F(CurrentDevice, IsTheCpuOnANewThread) {
  set_current_device(npu1);
  Device seen = npu1;
  std::thread([&] { seen = current_device(); }).join();
  EXPECT_EQ(seen, cpu);
  EXPECT_EQ(current_device(), npu1);
}

TEST_F(CurrentDevice, IsMadeCurrentInTheVendorsRuntimeToo) {
  set_current_device(npu1);
  set_current_device(npu0);
  EXPECT_EQ(record.take(), (Calls{1, 0}));
  EXPECT_EQ(current_device(), npu0);
}

TEST_F(CurrentDevice, StaysWhatItWasWhenActivationThrows) {
  set_current_device(npu0);
  record.fail_on(1);
  EXPECT_THROW(set_current_device(npu1), Error);
  EXPECT_EQ(current_device(), npu0);
}

TEST_F(CurrentDevice, NeedsNoActivationFunction) {
  set_vendor_runtime(DeviceType::npu, nullptr);
  set_current_device(npu1);
  EXPECT_EQ(current_device(), npu1);
  EXPECT_TRUE(record.take().empty());
}

// What CUDA is for one thread.
thread_local int vendors_device = 0;
constexpr VendorRuntime fake_vendor = {
    .activate = [](int index) { vendors_device = index; },
    .active = [] { return vendors_device; },
    .stream_id = [](int, void* handle) { return static_cast<std::uint64_t>(*static_cast<int*>(handle)); }};

TEST_F(CurrentDevice, GuardLeavesTheVendorsRuntimeAsItWas) {
  set_vendor_runtime(DeviceType::npu, &fake_vendor);
  vendors_device = 1;  // by the caller himself: our note still says the CPU
  {
    const DeviceGuard guard(npu0);
    EXPECT_EQ(vendors_device, 0);
    EXPECT_EQ(current_device(), npu0);
    {
      const DeviceGuard inner(npu1);
      EXPECT_EQ(vendors_device, 1);
    }
    EXPECT_EQ(vendors_device, 0);
  }
  EXPECT_EQ(vendors_device, 1);
  EXPECT_EQ(current_device(), cpu);
}

TEST_F(CurrentDevice, AStreamThatComesAsAHandleGetsItsIdentity) {
  set_vendor_runtime(DeviceType::npu, &fake_vendor);
  int first = 7;
  set_current_stream(npu0, {&first});
  EXPECT_EQ(current_stream(npu0), (Stream{&first, 7}));
  first = 8;  // another stream at the same address
  set_current_stream(npu0, {&first});
  EXPECT_EQ(current_stream(npu0), (Stream{&first, 8}));
  set_current_stream(npu0, {});
  EXPECT_EQ(current_stream(npu0).id, 0u);
}

TEST_F(CurrentDevice, OfATypeThatDoesNotExistIsAnError) {
  const Device wrong = {static_cast<DeviceType>(99), 0};
  EXPECT_THROW(set_current_device(wrong), Error);
  EXPECT_THROW(set_current_stream(wrong, stream_a), Error);
  EXPECT_THROW(set_vendor_runtime(wrong.type, nullptr), Error);
  EXPECT_EQ(current_device(), cpu);
}

TEST_F(CurrentDevice, GuardBringsTheOldOneBack) {
  set_current_device(npu0);
  record.take();
  {
    const DeviceGuard guard(npu1);
    EXPECT_EQ(current_device(), npu1);
  }
  EXPECT_EQ(current_device(), npu0);
  EXPECT_EQ(record.take(), (Calls{1, 0}));
}

TEST_F(CurrentDevice, GuardBringsTheOldOneBackWhenTheBlockThrows) {
  set_current_device(npu0);
  try {
    const DeviceGuard guard(npu1);
    throw std::runtime_error("from the block");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(current_device(), npu0);
}

TEST_F(CurrentDevice, GuardForTheCurrentOneAsksTheVendorNothing) {
  set_current_device(npu1);
  record.take();
  { const DeviceGuard guard(npu1); }
  EXPECT_TRUE(record.take().empty());
}

TEST_F(CurrentDevice, GuardBringsTheOldOneBackAfterTheBlockMovedOn) {
  set_current_device(npu0);
  {
    const DeviceGuard guard(npu0);
    set_current_device(npu1);
  }
  EXPECT_EQ(current_device(), npu0);
}

TEST_F(CurrentDevice, GuardThatCannotActivateThrowsAndChangesNothing) {
  set_current_device(npu0);
  record.fail_on(1);
  EXPECT_THROW(DeviceGuard{npu1}, Error);
  EXPECT_EQ(current_device(), npu0);
}

TEST_F(CurrentDevice, GuardContainsAFailureToGoBackAndTheNextOneTriesAgain) {
  set_current_device(npu0);
  {
    const DeviceGuard guard(npu1);
    record.fail_on(0);
  }
  // The truth: the vendor's runtime is still on the other device.
  EXPECT_EQ(current_device(), npu1);
  EXPECT_THROW(DeviceGuard{npu0}, Error);
  record.fail_on(-1);
  const DeviceGuard guard(npu0);
  EXPECT_EQ(current_device(), npu0);
}

TEST(CurrentStream, IsTheNullStreamUntilSetAndBelongsToOneDeviceAndThread) {
  EXPECT_EQ(current_stream(npu0), Stream{});
  EXPECT_EQ(current_stream(npu200), Stream{});
  set_current_stream(npu0, stream_a);
  set_current_stream(npu200, stream_b);
  EXPECT_EQ(current_stream(npu0), stream_a);
  EXPECT_EQ(current_stream(npu1), Stream{});
  EXPECT_EQ(current_stream(npu200), stream_b);
  EXPECT_EQ(current_stream({DeviceType::opencl, 0}), Stream{});
  Stream seen = stream_a;
  std::thread([&] { seen = current_stream(npu0); }).join();
  EXPECT_EQ(seen, Stream{});
  set_current_stream(npu0, {});
  set_current_stream(npu200, {});
  EXPECT_EQ(current_stream(npu0), Stream{});
  EXPECT_EQ(current_stream(npu200), Stream{});
}

TEST(CurrentStream, GuardsNestAndUnwindOnExceptions) {
  for (const Device device : {npu0, npu200}) {
    const StreamGuard outer(device, stream_a);
    try {
      const StreamGuard inner(device, stream_b);
      EXPECT_EQ(current_stream(device), stream_b);
      throw std::runtime_error("from the block");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(current_stream(device), stream_a);
  }
  EXPECT_EQ(current_stream(npu0), Stream{});
  EXPECT_EQ(current_stream(npu200), Stream{});
}

TEST(CurrentDeviceFromManyThreads, DoesNotMixThemUp) {
  ActivationRecord record;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::uint8_t t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      const Device own = {DeviceType::npu, t};
      for (int i = 0; i < 500; ++i) {
        const DeviceGuard guard(own);
        const StreamGuard stream(own, {&dummy[t % 2]});
        if (current_device() != own || current_stream(own).handle != &dummy[t % 2]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(record.take().size(), 4U * 500U);
}

}  // namespace
}  // namespace xpuruntime
