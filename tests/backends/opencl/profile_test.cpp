#include "backends/opencl/profile.h"

#include <gtest/gtest.h>

namespace xpuruntime::opencl {
namespace {

TEST(VendorName, IsOneWordForEverySpellingOfAVendor) {
  EXPECT_EQ(vendor_name("NVIDIA CUDA", "NVIDIA Corporation", false), "nvidia");
  EXPECT_EQ(vendor_name("Intel(R) OpenCL Graphics", "Intel(R) Corporation", false), "intel");
  EXPECT_EQ(vendor_name("Intel(R) OpenCL", "GenuineIntel", true), "intel");
  EXPECT_EQ(vendor_name("AMD Accelerated Parallel Processing", "Advanced Micro Devices, Inc.", false), "amd");
  EXPECT_EQ(vendor_name("rusticl", "AMD", false), "amd");
  EXPECT_EQ(vendor_name("Apple", "Apple", false), "apple");
  EXPECT_EQ(vendor_name("ARM Platform", "ARM", false), "arm");
  EXPECT_EQ(vendor_name("Clover", "Somebody Else Ltd.", false), "somebody");
  EXPECT_EQ(vendor_name("Clover", "", false), "unknown");
}

TEST(VendorName, IsPoclForProcessorsThatPoclDrives) {
  EXPECT_EQ(vendor_name("Portable Computing Language", "GenuineIntel", true), "pocl");
  EXPECT_EQ(vendor_name("Portable Computing Language", "NVIDIA Corporation", false), "nvidia");
}

TEST(SplitWords, TakesAnyNumberOfSpaces) {
  EXPECT_EQ(split_words("  cl_khr_fp64  cl_khr_icd "), (std::vector<std::string>{"cl_khr_fp64", "cl_khr_icd"}));
  EXPECT_TRUE(split_words("").empty());
  EXPECT_TRUE(split_words("   ").empty());
}

}  // namespace
}  // namespace xpuruntime::opencl
