#include "xpuruntime/cache/op_dispatcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

using Fn = int (*)();
int one() { return 1; }
int two() { return 2; }

constexpr auto no_such_type = static_cast<DeviceType>(max_device_types);

TEST(OpDispatcher, StartsWithAllSlotsEmpty) {
  const OpDispatcher<Fn> dispatcher;
  for (const DeviceType type : device_types()) {
    EXPECT_EQ(dispatcher.find(type), nullptr);
    error_text(ErrorCode::not_supported, [&] { dispatcher.lookup(type); });
  }
}

TEST(OpDispatcher, IsAValue) {
  OpDispatcher<Fn> first;
  first.register_device(DeviceType::cpu, one);
  OpDispatcher<Fn> second = first;
  second.register_device(DeviceType::cpu, two);
  second.register_device(DeviceType::npu, two);
  EXPECT_EQ(first.lookup(DeviceType::cpu), one);
  EXPECT_EQ(first.find(DeviceType::npu), nullptr);
  first = second;
  EXPECT_EQ(first.lookup(DeviceType::npu), two);
  first = OpDispatcher<Fn>();
  EXPECT_EQ(first.find(DeviceType::npu), nullptr);
  EXPECT_EQ(second.lookup(DeviceType::cpu), two);
}

TEST(OpDispatcher, NamesTheDeviceTypeThatHasNoFunction) {
  const OpDispatcher<Fn> dispatcher;
  const std::string text = error_text(ErrorCode::not_supported, [&] { dispatcher.lookup(DeviceType::npu); });
  EXPECT_TRUE(text.starts_with("[OpDispatcher::lookup]")) << text;
  EXPECT_HAS(text, "'npu'");
}

TEST(OpDispatcher, GivesEachDeviceTypeItsOwnFunction) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_device(DeviceType::cpu, one);
  dispatcher.register_device({DeviceType::nvidia, DeviceType::moore}, two);
  EXPECT_EQ(dispatcher.lookup(DeviceType::cpu)(), 1);
  EXPECT_EQ(dispatcher.lookup(DeviceType::nvidia)(), 2);
  EXPECT_EQ(dispatcher.lookup(DeviceType::moore)(), 2);
  EXPECT_EQ(dispatcher.find(DeviceType::opencl), nullptr);
}

TEST(OpDispatcher, ReplacesAFunctionOnlyWhenToldTo) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_device(DeviceType::cpu, one);
  dispatcher.register_device(DeviceType::cpu, two, false);
  EXPECT_EQ(dispatcher.lookup(DeviceType::cpu)(), 1);
  dispatcher.register_device({DeviceType::cpu, DeviceType::npu}, two, false);
  EXPECT_EQ(dispatcher.lookup(DeviceType::cpu)(), 1);
  EXPECT_EQ(dispatcher.lookup(DeviceType::npu)(), 2);
  dispatcher.register_device(DeviceType::cpu, two);
  EXPECT_EQ(dispatcher.lookup(DeviceType::cpu)(), 2);
}

TEST(OpDispatcher, AFallbackForAllFillsOnlyEmptySlots) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_device(DeviceType::nvidia, one);
  dispatcher.register_all(two, false);
  for (const DeviceType type : device_types()) {
    EXPECT_EQ(dispatcher.lookup(type)(), type == DeviceType::nvidia ? 1 : 2);
  }
}

TEST(OpDispatcher, RegistersOneFunctionForAllTypes) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_device(DeviceType::nvidia, one);
  dispatcher.register_all(two);
  for (const DeviceType type : device_types()) EXPECT_EQ(dispatcher.lookup(type)(), 2);
}

TEST(OpDispatcher, RefusesATypeOutsideTheEnum) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_all(one);
  EXPECT_EQ(dispatcher.find(no_such_type), nullptr);
  EXPECT_EQ(dispatcher.find(static_cast<DeviceType>(255)), nullptr);
  error_text(ErrorCode::invalid_argument, [&] { dispatcher.lookup(no_such_type); });
  error_text(ErrorCode::invalid_argument, [&] { dispatcher.register_device(no_such_type, two); });
}

TEST(OpDispatcher, RegistersNoneOfAListWithABadType) {
  OpDispatcher<Fn> dispatcher;
  error_text(ErrorCode::invalid_argument, [&] { dispatcher.register_device({DeviceType::cpu, no_such_type}, one); });
  EXPECT_EQ(dispatcher.find(DeviceType::cpu), nullptr);
}

TEST(OpDispatcher, RefusesANullFunction) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_device(DeviceType::cpu, one);
  error_text(ErrorCode::invalid_argument, [&] { dispatcher.register_device(DeviceType::cpu, nullptr); });
  error_text(ErrorCode::invalid_argument, [&] { dispatcher.register_all(nullptr); });
  EXPECT_EQ(dispatcher.lookup(DeviceType::cpu)(), 1);
}

// Plain, not atomic: the reader may only see it set up if registering publishes what came before it.
int set_up_before_registering = 0;
int late() { return set_up_before_registering; }

TEST(OpDispatcher, ReadersDuringALateRegistrationSeeNothingOrAllOfIt) {
  OpDispatcher<Fn> dispatcher;
  std::thread reader([&] {
    Fn fn = nullptr;
    while ((fn = dispatcher.find(DeviceType::opencl)) == nullptr) std::this_thread::yield();
    EXPECT_EQ(fn(), 42);
  });
  set_up_before_registering = 42;
  dispatcher.register_device(DeviceType::opencl, late);
  reader.join();
}

TEST(OpDispatcher, ReadersDuringReplacementSeeTheOldFunctionOrTheNewOne) {
  OpDispatcher<Fn> dispatcher;
  dispatcher.register_all(one);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      dispatcher.register_all(two);
      dispatcher.register_all(one);
    }
  });
  for (int i = 0; i < 20000; ++i) {
    const Fn fn = dispatcher.lookup(DeviceType::cpu);
    ASSERT_TRUE(fn == one || fn == two);
  }
  stop = true;
  writer.join();
}

TEST(OpDispatcher, OfManyThatFillAnEmptySlotTheFirstStays) {
  for (int round = 0; round < 200; ++round) {
    OpDispatcher<Fn> dispatcher;
    Fn seen[2] = {};
    std::thread first([&] {
      dispatcher.register_device(DeviceType::npu, one, false);
      seen[0] = dispatcher.lookup(DeviceType::npu);
    });
    dispatcher.register_device(DeviceType::npu, two, false);
    seen[1] = dispatcher.lookup(DeviceType::npu);
    first.join();
    ASSERT_EQ(seen[0], seen[1]);
  }
}

}  // namespace
}  // namespace xpuruntime
