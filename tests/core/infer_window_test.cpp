#include <gtest/gtest.h>

#include "core/infer_calls.h"

namespace xpuruntime {
namespace {

// Counts the windows by sliding one: the oracle for the formulas.
std::int64_t slid(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                  std::int64_t dilation, bool ceil_mode) {
  std::int64_t count = 0;
  std::int64_t covered = -padding - 1;  // the last place that a whole window reached
  for (std::int64_t start = -padding;; start += stride) {
    const std::int64_t last = start + dilation * (kernel - 1);
    if (last >= extent + padding) {
      // One window may hang over the end, if something is left for it and it starts on the input.
      const bool left_over = covered < extent + padding - 1 && start < extent;
      return count + (ceil_mode && count > 0 && left_over ? 1 : 0);
    }
    covered = last;
    ++count;
  }
}

std::string pooled(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                   std::int64_t dilation, bool ceil_mode) {
  const std::string n = std::to_string(extent);
  return outputs_of("max_pool2d(f32[1,1," + n + "," + n + "]; kernel_size=" + std::to_string(kernel) +
                    " stride=" + std::to_string(stride) + " padding=" + std::to_string(padding) +
                    " dilation=" + std::to_string(dilation) + " ceil_mode=" + (ceil_mode ? "true" : "false") + ")");
}

TEST(InferWindow, CountsWindowsAsSlidingOneDoes) {
  int seen = 0;
  for (std::int64_t extent = 1; extent <= 9; ++extent) {
    for (std::int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (std::int64_t stride = 1; stride <= 4; ++stride) {
        for (std::int64_t padding = 0; padding <= kernel / 2; ++padding) {
          for (std::int64_t dilation = 1; dilation <= 2; ++dilation) {
            for (const bool ceil_mode : {false, true}) {
              const std::int64_t count = slid(extent, kernel, stride, padding, dilation, ceil_mode);
              if (count == 0) continue;
              const std::string n = std::to_string(count);
              EXPECT_EQ(pooled(extent, kernel, stride, padding, dilation, ceil_mode), "f32[1,1," + n + "," + n + "]")
                  << extent << " " << kernel << " " << stride << " " << padding << " " << dilation << " " << ceil_mode;
              ++seen;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(seen, 900);
}

TEST(InferWindow, ConvolvesAsPyTorchDoes) {
  EXPECT_EQ(outputs_of("conv2d(f32[1,64,56,56], f32[64,64,3,3]; stride=1,1 padding=1,1)"), "f32[1,64,56,56]");
  EXPECT_EQ(outputs_of("conv2d(f16[8,3,224,224], f16[64,3,7,7], f16[64]; stride=2 padding=3)"), "f16[8,64,112,112]");
  EXPECT_EQ(outputs_of("conv2d(f32[1,32,10,9], f32[32,1,3,3]; groups=32)"), "f32[1,32,8,7]");
  EXPECT_EQ(outputs_of("conv2d(f32[1,1,10,10], f32[1,1,3,3]; dilation=2,3)"), "f32[1,1,6,4]");
  EXPECT_EQ(outputs_of("conv2d(i8[1,4,4,4], i8[8,4,1,1])"), "i32[1,8,4,4]");
  EXPECT_EQ(outputs_of("conv2d(f32[0,3,4,4], f32[2,3,1,1])"), "f32[0,2,4,4]");
  EXPECT_EQ(outputs_of("conv3d(f32[2,3,8,16,16], f32[6,3,3,3,3]; padding=1 stride=2,1,2)"), "f32[2,6,4,16,8]");
}

TEST(InferWindow, RefusesConvolutionsThatDoNotFit) {
  expect_refused("conv2d(f32[1,3,8,8], f32[4,4,3,3])", "takes 4 channels a group and the input has 3");
  expect_refused("conv2d(f32[1,6,8,8], f32[4,2,3,3]; groups=4)", "4 groups do not divide the 6 input");
  expect_refused("conv2d(f32[1,6,8,8], f32[5,3,3,3]; groups=2)", "5 output channels");
  expect_refused("conv2d(f32[1,6,8,8], f32[5,3,3,3]; groups=0)", "groups is 0");
  expect_refused("conv2d(f32[1,3,8,8], f32[4,3,3,3]; padding=-1)", "padding is negative");
  expect_refused("conv2d(f32[1,3,8,8], f32[4,3,3,3]; stride=0)", "stride is not positive");
  expect_refused("conv2d(f32[1,3,8,8], f32[4,3,3,3]; dilation=0)", "dilation is not positive");
  expect_refused("conv2d(f32[1,3,2,8], f32[4,3,3,3])", "larger than the padded input");
  expect_refused("conv2d(f32[1,3,8,8], f32[4,3,0,3])", "the kernel is empty");
  expect_refused("conv2d(f32[1,3,0,8], f32[4,3,1,3]; padding=1)", "the input is empty");
  expect_refused("conv2d(f32[3,8,8], f32[4,3,3,3])", "has 3 dims, not 4");
  expect_refused("conv2d(f32[1,3,8,8], f32[4,3,3])", "[out, in / groups, height, width]");
  expect_refused("conv2d(f32[1,3,8,8], f32[4,3,3,3], f32[3])", "the bias is [3]; make it [4]");
  expect_refused("conv2d(bool[1,3,8,8], f32[4,3,3,3])", "boolean");
  expect_refused("conv3d(f32[1,3,8,8], f32[4,3,3,3])", "has 4 dims, not 5");
}

TEST(InferWindow, SurvivesAttributesOfAnySize) {
  const std::string huge = "9223372036854775807";
  const std::string conv = "conv2d(i8[1,1,8,8], i8[1,1,3,3]; ";
  EXPECT_EQ(outputs_of("conv2d(f32[1,1,8,8], f32[1,1,3,3]; stride=" + huge + ")"), "f32[1,1,1,1]");
  expect_refused(conv + "padding=" + huge + ")", "63 bits");
  expect_refused(conv + "dilation=" + huge + ")", "larger than the padded input");
  expect_refused("max_pool2d(f32[1,1,8,8]; kernel_size=" + huge + " dilation=" + huge + ")", "larger than");
  expect_refused("max_pool2d(f32[1,1,8,8]; kernel_size=-9223372036854775808)", "the padding is over half");
  expect_refused("avg_pool2d(f32[1,1,8,8]; kernel_size=2 stride=-1)", "stride is not positive");
}

TEST(InferWindow, PoolsWithTheKernelAsDefaultStride) {
  EXPECT_EQ(outputs_of("max_pool2d(f32[2,3,8,9]; kernel_size=2)"), "f32[2,3,4,4]");
  EXPECT_EQ(outputs_of("avg_pool2d(bf16[2,3,8,9]; kernel_size=2,3 stride=1)"), "bf16[2,3,7,7]");
  EXPECT_EQ(outputs_of("max_pool3d(i32[2,3,8,8,8]; kernel_size=2)"), "i32[2,3,4,4,4]");
  EXPECT_EQ(outputs_of("avg_pool3d(f32[2,3,8,8,8]; kernel_size=3 padding=1 ceil_mode=true)"), "f32[2,3,3,3,3]");
  expect_refused("max_pool2d(f32[2,3,8,8])", "kernel_size is 0 or not set; give 1 or more");
  expect_refused("avg_pool2d(f32[2,3,8,8]; kernel_size=2,0)", "kernel_size is 0 or not set; give 1 or more");
  expect_refused("max_pool2d(f32[2,3,8,8]; kernel_size=3 padding=2)", "padding is over half the kernel");
  expect_refused("avg_pool2d(i32[2,3,8,8]; kernel_size=2)", "not floating");
  expect_refused("max_pool2d(f32[3,8,8]; kernel_size=2)", "[batch, channels, height, width]");
}

}  // namespace
}  // namespace xpuruntime
