#include "backends/opencl/profile.h"

#include <gtest/gtest.h>

namespace xpuruntime::opencl {
namespace {

TEST(VendorName, IsOneWordForEverySpellingOfAVendor) {
  EXPECT_EQ(vendor_name("NVIDIA CUDA", 0x10de, "NVIDIA Corporation", false), "nvidia");
  EXPECT_EQ(vendor_name("Intel(R) OpenCL Graphics", 0, "Intel(R) Corporation", false), "intel");
  EXPECT_EQ(vendor_name("Intel(R) OpenCL", 0, "GenuineIntel", true), "intel");
  EXPECT_EQ(vendor_name("AMD Accelerated Parallel Processing", 0, "Advanced Micro Devices, Inc.", false), "amd");
  EXPECT_EQ(vendor_name("rusticl", 0, "AMD", false), "amd");
  EXPECT_EQ(vendor_name("Apple", 0, "Apple", false), "apple");
  EXPECT_EQ(vendor_name("ARM Platform", 0, "ARM", false), "arm");
  EXPECT_EQ(vendor_name("Clover", 0, "Somebody Else Ltd.", false), "somebody");
  EXPECT_EQ(vendor_name("Clover", 0, "", false), "unknown");
}

TEST(VendorName, GoesByTheIdWhereThatIsKnown) {
  EXPECT_EQ(vendor_name("rusticl", 0x1002, "Somebody Else Ltd.", false), "amd");
  EXPECT_EQ(vendor_name("Clover", 0x8086, "Mesa", false), "intel");
  EXPECT_EQ(vendor_name("ARM Platform", 0x13b5, "", false), "arm");
  EXPECT_EQ(vendor_name("Clover", 0x1234, "Mesa", false), "mesa");
}

TEST(VendorName, IsPoclForProcessorsThatPoclDrives) {
  EXPECT_EQ(vendor_name("Portable Computing Language", 0, "GenuineIntel", true), "pocl");
  EXPECT_EQ(vendor_name("Portable Computing Language", 0, "NVIDIA Corporation", false), "nvidia");
}

TEST(SplitWords, TakesAnyNumberOfSpaces) {
  EXPECT_EQ(split_words("  cl_khr_fp64  cl_khr_icd "), (std::vector<std::string>{"cl_khr_fp64", "cl_khr_icd"}));
  EXPECT_TRUE(split_words("").empty());
  EXPECT_TRUE(split_words("   ").empty());
}

}  // namespace
}  // namespace xpuruntime::opencl
