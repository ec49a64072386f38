// Devices that time their own work, with cold caches.

#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "tune/tuner_fixture.h"

namespace xpuruntime {
namespace {

using testing::TunerTest;

/// A device with a clock and a cache of its own.
class CachingDriver final : public testing::FakeDriver {
 public:
  Status flush_caches(int, void* memory, std::size_t bytes, Stream) override {
    if (!can_flush) return Status(ErrorCode::not_supported, "it cannot");
    if (bytes > 0 && bytes_of(memory) == nullptr) return Status(ErrorCode::device_error, "no such memory");
    flushed_bytes = bytes;
    is_cold = bytes > 0;
    return {};
  }
  Status record_event(int, Event& event, Stream) override {
    *static_cast<int*>(event.handle) = now;
    return {};
  }

  bool can_flush = true;
  bool is_cold = false;
  std::size_t flushed_bytes = 0;
  int now = 0;
};

class ColdTunerTest : public TunerTest {
 protected:
  ColdTunerTest() { devices.add_driver(driver); }

  /// A kernel that takes so long on the device, and as long as the others on the host.
  void add_on_device(const std::string& name, int cold_us, int warm_us) {
    FunctionKernel kernel;
    kernel.op = OpId::relu;
    kernel.name = name;
    kernel.device_type = DeviceType::npu;
    add(kernel, 10 + warm_us, [this, cold_us, warm_us](const RunArguments& arguments) {
      driver->now += driver->is_cold ? cold_us : warm_us;
      driver->is_cold = false;
      if (!loses_the_device) return testing::relu(arguments);
      driver->synchronize_status = Status(ErrorCode::device_lost, "an illegal address was read");
      return Status(ErrorCode::device_error, "the library says: internal error");
    });
  }

  const Problem on_device = parse_problem("relu(f32[64]) @npu:0");
  std::shared_ptr<CachingDriver> driver = std::make_shared<CachingDriver>();
  bool loses_the_device = false;
};

TEST_F(ColdTunerTest, TheDeviceTimesItsWorkOnOperandsThatNoCacheHolds) {
  add_on_device("caching", 50, 5);
  add_on_device("steady", 20, 20);
  const TuneResult result = tune("caching", on_device);
  EXPECT_EQ(result.chosen, "steady") << result.because;
  EXPECT_EQ(row(result, "steady").time_us, 20);
  EXPECT_EQ(row(result, "caching").time_us, 50);
  EXPECT_GE(driver->flushed_bytes, std::size_t{128} << 20);
  EXPECT_EQ(driver->live_events(), 0);
}

TEST_F(ColdTunerTest, WhereItCannotTheHostsClockCounts) {
  driver->can_flush = false;
  add_on_device("caching", 50, 5);
  add_on_device("steady", 20, 20);
  const TuneResult result = tune("steady", on_device);
  EXPECT_EQ(result.chosen, "caching") << result.because;
  EXPECT_EQ(row(result, "steady").time_us, 30);
}

TEST_F(ColdTunerTest, OneWithoutTheMemoryForItIsTimedByTheHost) {
  driver->set_memory_limit(0, 1 << 20);
  add_on_device("caching", 50, 5);
  add_on_device("steady", 20, 20);
  EXPECT_EQ(tune("steady", on_device).chosen, "caching");
}

TEST_F(ColdTunerTest, ALostDeviceEndsTheTuningAndNothingIsBlamed) {
  add_on_device("steady", 20, 20);
  loses_the_device = true;
  expect_error(ErrorCode::device_lost, "an illegal address was read", [&] { tune("steady", on_device); });
}

}  // namespace
}  // namespace xpuruntime
