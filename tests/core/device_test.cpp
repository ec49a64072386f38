#include "xpuruntime/core/device.h"

#include <gtest/gtest.h>

#include <set>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

TEST(DeviceType, ReadsBackTheNameItPrints) {
  for (const DeviceType type : device_types()) EXPECT_EQ(parse_device_type(to_string(type)), type);
  EXPECT_GE(device_types().size(), 7u);
  EXPECT_EQ(to_string(DeviceType::nvidia), "cuda");
}

TEST(DeviceType, TakesNvidiaForCudaInAnyCase) {
  for (const char* name : {"cuda", "CUDA", "nvidia", "NVIDIA", "Nvidia"}) {
    EXPECT_EQ(parse_device_type(name), DeviceType::nvidia) << name;
  }
}

TEST(DeviceType, ListsNearNamesForAnUnknownOne) {
  expect_error(ErrorCode::unknown_name, "did you mean opencl?", [] { parse_device_type("opencll"); });
  expect_error(ErrorCode::unknown_name, "use one of: cpu, cuda", [] { parse_device_type("quantum-thing"); });
  expect_error(ErrorCode::unknown_name, "use one of", [] { parse_device_type(""); });
}

TEST(DeviceType, RefusesValuesOutsideTheEnum) {
  expect_invalid("is not a device type", [] { to_string(static_cast<DeviceType>(max_device_types - 1)); });
}

TEST(DeviceType, IsOpenToNamesOfOthers) {
  const DeviceType type = register_device_type("test_chip");
  EXPECT_EQ(register_device_type("test_chip"), type);
  EXPECT_TRUE(is_device_type(type));
  EXPECT_EQ(to_string(type), "test_chip");
  EXPECT_EQ(parse_device("Test_Chip:3"), (Device{type, 3}));
  EXPECT_EQ(device_types().back(), type);
  EXPECT_EQ(register_device_type("cuda"), DeviceType::nvidia);
  EXPECT_EQ(register_device_type("nvidia"), DeviceType::nvidia);
  for (const char* name : {"", "a b", "a:0", "Tpu", "1x", "_x", "a-b", "thirty_three_characters_are_too_many"}) {
    expect_invalid("is not a name", [&] { register_device_type(name); });
  }
}

TEST(Device, ReadsBackEveryTextItPrints) {
  for (const DeviceType type : device_types()) {
    for (int index = 0; index < 256; ++index) {
      const Device device{type, static_cast<std::uint8_t>(index)};
      ASSERT_EQ(parse_device(to_string(device)), device);
    }
  }
}

TEST(Device, IsTheFirstWhereTheTextNamesNoIndex) {
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::nvidia, 0}));
  EXPECT_EQ(parse_device("cpu:0"), Device{});
}

TEST(Device, RefusesAnIndexThatIsNoneOrTooLarge) {
  for (const char* text : {"cuda:", "cuda:256", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:1:2", "cuda:99999999999"}) {
    expect_invalid("no index from 0 to 255", [&] { parse_device(text); });
  }
  expect_error(ErrorCode::unknown_name, "device type ''", [] { parse_device(":0"); });
}

TEST(Device, HasADifferentHashForEveryDevice) {
  std::set<std::size_t> hashes;
  for (const DeviceType type : device_types()) {
    for (int index = 0; index < 256; ++index) {
      hashes.insert(std::hash<Device>{}({type, static_cast<std::uint8_t>(index)}));
    }
  }
  EXPECT_EQ(hashes.size(), device_types().size() * 256);
}

TEST(Device, SortsTheCpuFirst) {
  EXPECT_LT((Device{DeviceType::cpu, 5}), (Device{DeviceType::nvidia, 0}));
  EXPECT_LT((Device{DeviceType::nvidia, 0}), (Device{DeviceType::nvidia, 1}));
}

}  // namespace
}  // namespace xpuruntime
