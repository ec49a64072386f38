#include "xpuruntime/runtime/runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/expect_error.h"
#include "xpuruntime/registry/catalogue.h"
#include "xpuruntime/runtime/ops.h"

namespace xpuruntime {
namespace {

TEST(RuntimeTest, AlwaysHasTheProcessor) {
  Runtime runtime({false, false, {}});
  ASSERT_EQ(runtime.devices().devices(), std::vector<Device>{Device{}});
  DeviceProfile profile = runtime.devices().profile({});
  EXPECT_FALSE(profile.library_versions["openblas"].empty());
  profile.library_versions.clear();
  EXPECT_EQ(profile, probe_cpu());
}

TEST(RuntimeTest, SaysWhyADeviceTypeIsNotThere) {
  Runtime runtime({false, false, {}});
  EXPECT_NE(runtime.devices().why_absent(DeviceType::nvidia).find("turned off"), std::string::npos);
  EXPECT_NE(runtime.devices().why_absent(DeviceType::opencl).find("turned off"), std::string::npos);
  EXPECT_FALSE(runtime.devices().why_absent(DeviceType::kunlun).empty());
  EXPECT_TRUE(runtime.devices().why_absent(DeviceType::cpu).empty());
}

TEST(RuntimeTest, OpensItsOwnBackendsOrSaysWhyNot) {
  Runtime& runtime = Runtime::global();
  EXPECT_EQ(&runtime, &Runtime::global());
  for (const DeviceType type : {DeviceType::nvidia, DeviceType::opencl}) {
    const std::string why = runtime.devices().why_absent(type);
    EXPECT_EQ(why.empty(), runtime.devices().has({type, 0}));
    // A module that is beside the library must never be missing or unfit: absence is about drivers and devices.
    EXPECT_EQ(why.find("could not be opened"), std::string::npos) << why;
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they look at threads at exit themselves
TEST(RuntimeDeathTest, MainMayReturnWhileThreadsAreInCalls) {
  GTEST_FLAG_SET(death_test_style, "fast");  // the other style starts the program anew, which an emulator cannot
  for (const char* kernel : {"openblas", "onednn", "packed"}) {
    const auto leave = [&] {
      KernelPolicy policy;
      policy.set("matmul", kernel);
      Runtime::global().dispatcher().set_policy(policy);
      std::atomic<int> started = 0;
      for (int i = 0; i < 3; ++i) {
        std::thread([&started] {
          const Tensor a = Tensor::empty(DataType::float32, {256, 256});
          for (std::fill_n(a.as<float>(), 256 * 256, 1.0F); true; ++started) static_cast<void>(ops::matmul(a, a));
        }).detach();
      }
      while (started < 100) std::this_thread::yield();
      std::exit(0);
    };
    EXPECT_EXIT(leave(), ::testing::ExitedWithCode(0), "") << kernel;
  }
}
#endif

TEST(RuntimeTest, APluginThatCannotBeOpenedIsAnErrorNotASilence) {
  expect_error(ErrorCode::io_error, "no_such_plugin.so", [] {
    Runtime runtime({false, false, {"./no_such_plugin.so"}});
  });
}

TEST(RuntimeTest, EveryRegisteredKernelIsInTheCatalogue) {
  Runtime& runtime = Runtime::global();
  for (const OpId op : runtime.registry().registered_ops()) {
    for (const std::string& name : runtime.registry().kernel_names(op)) {
      EXPECT_FALSE(find_in_catalogue(op, name).empty()) << to_string(op) << " " << name;
    }
  }
}

TEST(Version, IsThatOfTheProject) { EXPECT_EQ(version(), "0.1.0"); }

}  // namespace
}  // namespace xpuruntime
