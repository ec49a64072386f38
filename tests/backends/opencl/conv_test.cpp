#include "backends/opencl/device_fixture.h"

namespace xpuruntime::opencl {
namespace {

DeviceProfile gpu_of(std::uint64_t local_memory) {
  DeviceProfile profile;
  profile.type = DeviceType::opencl;
  profile.max_work_group_size = 256;
  profile.max_work_item_sizes = {256, 256, 64};
  profile.local_memory_bytes = local_memory;
  profile.compute_units = 16;
  return profile;
}

class ConvTest : public OpenClTest {
 protected:
  static std::string refused(std::string_view name, const std::string& text, std::uint64_t local = 32 << 10) {
    return refusal(name, parse_problem(text, device), gpu_of(local));
  }
};

TEST_F(ConvTest, WinogradTakesFiltersOf3x3WithStride1) {
  const std::string name = "CONV2D_WINOGRAD";
  EXPECT_EQ(refused(name, "conv2d(f32[1,8,9,9], f32[8,8,3,3]; padding=1)"), "");
  EXPECT_EQ(refused(name, "conv2d(f32[1,8,9,9], f32[8,8,5,5])"), "the filter is not 3x3");
  EXPECT_EQ(refused(name, "conv2d(f32[1,8,9,9], f32[8,8,3,3]; stride=2)"), "the stride is not 1");
  EXPECT_EQ(refused(name, "conv2d(f32[1,8,9,9], f32[8,8,3,3]; dilation=2)"), "the filter is dilated");
  EXPECT_EQ(refused(name, "conv2d(f32[1,8,9,9], f32[8,4,3,3]; groups=2)"), "there are 2 groups, and it takes 1");
}

TEST_F(ConvTest, WinogradIsNotDeterministicAsItsTilesShareTheirInputs) {
  const std::string text = "conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1) deterministic";
  EXPECT_EQ(refused("CONV2D_WINOGRAD", text),
            "its sums mix neighbouring windows: a NaN spreads over its tile, and errors are larger");
  for (const char* other : {"CONV2D_IM2COL", "CONV2D_IMPLICIT_GEMM", "CONV2D_TILED_LOCAL", "CONV2D_NAIVE_SMALL"})
    EXPECT_EQ(refused(other, text), "") << other;
}

TEST_F(ConvTest, WinogradNamesItsTile) {
  const auto token = [](const std::string& text) {
    return prepare("CONV2D_WINOGRAD", parse_problem(text, device))->token();
  };
  EXPECT_EQ(token("conv2d(f32[1,4,28,28], f32[4,4,3,3]; padding=1,1)"), "tile=4x4");
  EXPECT_EQ(token("conv2d(f32[1,4,14,14], f32[4,4,3,3]; padding=1,1)"), "tile=2x2");
  EXPECT_EQ(token("conv2d(f32[8,4,14,14], f32[4,4,3,3]; padding=1,1)"), "tile=4x4");
  EXPECT_EQ(token("conv2d(f32[1,4,9,9], f32[4,4,3,3])"), "tile=2x2");
}

TEST_F(ConvTest, OthersSayWhatTheyDoNotTake) {
  EXPECT_EQ(refused("CONV2D_IM2COL", "conv2d(f32[1,4,8,8], f32[4,4,3,3]; padding=1) -> f32[1,4,8,8]{1024,256,32,2}"),
            "the pixels of output 0 are not one stride apart");
  EXPECT_EQ(refused("CONV2D_TILED_LOCAL", "conv2d(f32[1,4,64,64], f32[4,4,9,9]; stride=4)", 4096),
            "needs 12804 bytes of local memory, the device has 4096");
  EXPECT_EQ(refused("CONV2D_NAIVE_SMALL", "conv2d(f32[1,4,64,64], f32[4,4,9,9]; stride=4)", 0), "");
}

}  // namespace
}  // namespace xpuruntime::opencl
