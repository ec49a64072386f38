#include "device/absent_driver.h"

#include <gtest/gtest.h>

namespace xpuruntime {
namespace {

TEST(AbsentDriver, AnswersEverythingWithItsReason) {
  const auto driver = make_absent_driver(DeviceType::npu, "it is on the moon");
  EXPECT_TRUE(driver->devices().empty());
  EXPECT_EQ(driver->why_absent(), "it is on the moon");
  EXPECT_THROW(driver->allocate(0, 8), Error);
  EXPECT_EQ(driver->synchronize(0, {}).message(), "it is on the moon");
}

}  // namespace
}  // namespace xpuruntime
