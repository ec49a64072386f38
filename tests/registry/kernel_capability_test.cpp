#include "xpuruntime/registry/kernel_capability.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

TEST(KernelCapability, HasTheDefaultsOfAPlainFloat32Kernel) {
  const KernelCapability capability;
  EXPECT_EQ(capability.dtype, KernelDtype::float32);
  EXPECT_TRUE(capability.is_available);
  EXPECT_FALSE(capability.supports_tensor_cores);
  EXPECT_EQ(capability.performance_factor, 1.0f);
  EXPECT_EQ(capability.memory_efficiency, 1.0f);
  EXPECT_NO_THROW(capability.check());
}

TEST(KernelCapability, IsMadeForEachPrecision) {
  EXPECT_EQ(KernelCapability::create_float32(), (KernelCapability{KernelDtype::float32, true, false, 1.0f, 1.0f}));
  EXPECT_EQ(KernelCapability::create_float16(), (KernelCapability{KernelDtype::float16, true, true, 2.0f, 2.0f}));
  EXPECT_EQ(KernelCapability::create_bfloat16(), (KernelCapability{KernelDtype::bfloat16, true, true, 2.0f, 2.0f}));
  EXPECT_TRUE(KernelCapability::create_float32(true).supports_tensor_cores);
  EXPECT_FALSE(KernelCapability::create_float16(false).supports_tensor_cores);
  EXPECT_FALSE(KernelCapability::create_bfloat16(false).supports_tensor_cores);
}

TEST(KernelCapability, MayBeMixedButNotAuto) {
  EXPECT_NO_THROW(KernelCapability{.dtype = KernelDtype::mixed}.check());
  expect_invalid("the dtype auto", [] { KernelCapability{.dtype = KernelDtype::auto_select}.check(); });
  expect_invalid("outside its range", [] { KernelCapability{.dtype = static_cast<KernelDtype>(99)}.check(); });
}

TEST(KernelCapability, NeedsFactorsThatAreFiniteAndPositive) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float factor : {0.0f, -0.0f, -1.0f, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    expect_invalid("performance_factor is", [&] { KernelCapability{.performance_factor = factor}.check(); });
    expect_invalid("memory_efficiency is", [&] { KernelCapability{.memory_efficiency = factor}.check(); });
  }
  EXPECT_NO_THROW((KernelCapability{.performance_factor = 0.25f, .memory_efficiency = 1e-30f}.check()));
}

}  // namespace
}  // namespace xpuruntime
