// Which kernel the rules for the CPU name, for a Xeon with AMX and a Neoverse N1 that need not be here. The kernels are
// made up and take everything: only the rules decide.

#include "select/cpu_conditions.h"

#include <gtest/gtest.h>

#include "select/made_up_kernels.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {
namespace {

std::string choice(const std::string& text, const std::string& device) {
  static const auto kernels = testing::kernels_named({"reference", "openblas", "onednn", "packed", "small", "skinny",
                                                      "int8", "amx", "depthwise", "direct", "im2col", "winograd",
                                                      "composed", "tiled", "tiled_amx", "single_query"});
  const DeviceProfile profile = DeviceProfile::load(std::string(XRT_TEST_DATA) + "/profiles/" + device + ".json");
  const Problem problem = parse_problem(text);
  return select({problem, profile, kernels, {}, {}, builtin_rules()}).decision.kernel;
}

struct Expected {
  const char* problem;
  const char* xeon;
  const char* neoverse;
};

void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.problem; }

class CpuRules : public ::testing::TestWithParam<Expected> {};

TEST_P(CpuRules, NameAKernelByShapeDtypeAndFeatures) {
  EXPECT_EQ(choice(GetParam().problem, "xeon_amx"), GetParam().xeon);
  EXPECT_EQ(choice(GetParam().problem, "neoverse_n1"), GetParam().neoverse);
}

constexpr Expected products[] = {
    {"matmul(f32[1,4096], f32[4096,4096])", "skinny", "skinny"},
    {"matmul(f32[8,4096], f32[4096,256])", "skinny", "skinny"},
    {"matmul(f32[9,4096], f32[4096,256])", "onednn", "packed"},
    {"matmul(f32[4096,4096], f32[4096])", "skinny", "skinny"},
    {"matmul(f32[64,64], f32[64,64])", "small", "small"},
    {"matmul(f32[65,64], f32[64,64])", "onednn", "packed"},
    {"matmul(f32[1024,1024], f32[1024,1024])", "onednn", "packed"},
    {"matmul(f32[127,131], f32[131,137])", "packed", "packed"},
    {"matmul(f16[512,512], f16[512,512])", "packed", "packed"},
    {"matmul(bf16[512,512], bf16[512,512])", "amx", "packed"},
    {"matmul(bf16[4,4096], bf16[4096,4096])", "skinny", "skinny"},
    {"matmul(bf16[5,4096], bf16[4096,4096])", "amx", "skinny"},
    {"matmul(i8[512,512], i8[512,512])", "onednn", "int8"},
    {"linear(f32[128,768], f32[3072,768], f32[3072]; activation=gelu)", "onednn", "packed"},
    {"linear(f32[1,768], f32[3072,768], f32[3072])", "skinny", "skinny"},
    {"linear(f32[2,8,768], f32[3072,768])", "onednn", "packed"},  // sixteen rows in two batches
};
INSTANTIATE_TEST_SUITE_P(Products, CpuRules, ::testing::ValuesIn(products));

// The extents are those of the forward product: the gradients are products of the same three in other roles.
constexpr Expected product_gradients[] = {
    {"matmul:backward(f32[1,4096], f32[4096,4096], f32[1,4096])", "skinny", "skinny"},
    {"matmul:backward(f32[4096,4096], f32[4096], f32[4096])", "skinny", "skinny"},
    {"matmul:backward(f32[64,64], f32[64,64], f32[64,64])", "small", "small"},
    {"matmul:backward(f32[64,2048], f32[2048,64], f32[64,64])", "onednn", "packed"},
    {"matmul:backward(f32[1024,1024], f32[1024,1024], f32[1024,1024])", "onednn", "packed"},
    {"matmul:backward(f32[1001,1024], f32[1024,1024], f32[1001,1024])", "packed", "packed"},
    {"matmul:backward(f32[2,8,64,48], f32[48,32], f32[2,8,64,32])", "small", "small"},
    {"matmul:backward(f32[256,64], f32[128,256], f32[64,128]; transpose_a=true transpose_b=true)", "onednn", "packed"},
    {"matmul:backward(bf16[512,512], bf16[512,512], bf16[512,512])", "amx", "packed"},
    {"matmul:backward(bf16[512,512], bf16[512,512], f32[512,512])", "packed", "packed"},
    {"matmul:backward(f16[512,512], f16[512,512], f16[512,512])", "packed", "packed"},
    {"linear:backward(f32[128,768], f32[3072,768], f32[3072], f32[128,3072]; activation=gelu)", "onednn", "packed"},
    {"linear:backward(bf16[2,64,768], bf16[3072,768], bf16[3072], bf16[2,64,3072])", "amx", "packed"},
    {"linear:backward(f32[1,768], f32[3072,768], f32[3072], f32[1,3072])", "skinny", "skinny"},
};
INSTANTIATE_TEST_SUITE_P(ProductGradients, CpuRules, ::testing::ValuesIn(product_gradients));

// None of the rules for forward windows may name a kernel that has no backward.
constexpr Expected window_gradients[] = {
    {"conv2d:backward(f32[1,64,56,56], f32[64,64,3,3], f32[1,64,56,56]; padding=1,1)", "onednn", "im2col"},
    {"conv2d:backward(f32[1,64,56,56], f32[64,64,1,1], f32[1,64,56,56])", "onednn", "im2col"},
    {"conv2d:backward(f32[1,3,224,224], f32[32,3,3,3], f32[1,32,112,112]; stride=2 padding=1)", "onednn", "im2col"},
    {"conv2d:backward(f32[1,32,112,112], f32[32,1,3,3], f32[1,32,112,112]; padding=1 groups=32)", "onednn", "im2col"},
    {"conv2d:backward(f32[1,128,56,56], f32[128,4,3,3], f32[1,128,56,56]; padding=1 groups=32)", "onednn", "im2col"},
    {"conv3d:backward(f32[1,16,8,28,28], f32[16,1,3,3,3], f32[1,16,6,26,26]; groups=16)", "onednn", "im2col"},
};
INSTANTIATE_TEST_SUITE_P(WindowGradients, CpuRules, ::testing::ValuesIn(window_gradients));

constexpr Expected windows[] = {
    {"conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)", "winograd", "winograd"},
    {"conv2d(f32[1,256,14,14], f32[256,256,3,3]; padding=1,1)", "onednn", "direct"},
    {"conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=2,2 dilation=2,2)", "onednn", "direct"},
    {"conv2d(f32[1,64,56,56], f32[64,64,3,3]; stride=2,2)", "onednn", "direct"},
    {"conv2d(f32[1,64,56,56], f32[64,64,3,1])", "onednn", "direct"},
    {"conv2d(f32[1,3,224,224], f32[32,3,3,3]; stride=2,2 padding=1,1)", "im2col", "im2col"},
    {"conv2d(f32[1,3,224,224], f32[64,3,7,7]; stride=2,2 padding=3,3)", "onednn", "direct"},
    {"conv2d(f32[1,64,56,56], f32[64,64,1,1])", "im2col", "im2col"},
    {"conv2d(f32[1,64,56,56], f32[256,64,1,1])", "im2col", "im2col"},
    {"conv2d(f32[1,256,56,56], f32[64,256,1,1])", "onednn", "im2col"},
    {"conv2d(f32[1,64,56,56], f32[64,64,1,1]; stride=2,2)", "im2col", "im2col"},
    {"conv2d(f32[1,32,112,112], f32[32,1,3,3]; padding=1,1 groups=32)", "depthwise", "depthwise"},
    {"conv2d(f32[1,384,14,14], f32[384,1,3,3]; padding=1,1 groups=384)", "onednn", "depthwise"},
    {"conv2d(f32[1,960,7,7], f32[960,1,3,3]; padding=1,1 groups=960)", "onednn", "depthwise"},
    {"conv2d(bf16[1,64,56,56], bf16[64,64,3,3]; padding=1,1)", "onednn", "winograd"},
    {"conv2d(f32[1,64,56,56]{200704,1,3584,64}, f32[64,64,3,3]; padding=1,1)", "onednn", "winograd"},
    {"conv2d(f32[1,32,112,112]{401408,1,3584,32}, f32[32,1,3,3]; padding=1,1 groups=32)", "onednn", "depthwise"},
    {"conv2d(f32[1,512,7,7]{25088,1,3584,512}, f32[512,512,3,3]; padding=1,1)", "onednn", "im2col"},
    {"conv2d(f32[1,2048,7,7]{100352,1,14336,2048}, f32[512,2048,1,1])", "im2col", "im2col"},
    {"conv2d(f32[1,128,56,56], f32[128,4,3,3]; padding=1,1 groups=32)", "direct", "direct"},
    {"conv3d(f32[1,16,8,28,28], f32[32,16,3,3,3])", "onednn", "direct"},
    {"conv3d(f32[1,16,8,28,28], f32[16,1,3,3,3]; groups=16)", "depthwise", "depthwise"},
};
INSTANTIATE_TEST_SUITE_P(Windows, CpuRules, ::testing::ValuesIn(windows));

constexpr Expected attentions[] = {
    {"attention(f32[1,12,128,64], f32[1,12,128,64], f32[1,12,128,64])", "tiled", "tiled"},
    {"attention(bf16[1,12,128,64], bf16[1,12,128,64], bf16[1,12,128,64])", "tiled_amx", "tiled"},
    {"attention(bf16[1,12,1,64], bf16[1,12,128,64], bf16[1,12,128,64])", "single_query", "single_query"},
};
INSTANTIATE_TEST_SUITE_P(Attentions, CpuRules, ::testing::ValuesIn(attentions));

}  // namespace
}  // namespace xpuruntime
