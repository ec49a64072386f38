#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/cpu/backend.h"
#include "select/made_up_kernels.h"
#include "xpuruntime/registry/backend.h"
#include "xpuruntime/registry/catalogue.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {
namespace {

using testing::kernels_named;
using Kernels = std::vector<std::shared_ptr<const Kernel>>;

DeviceProfile profile(const std::string& name) {
  return DeviceProfile::load(std::string(XRT_TEST_DATA) + "/profiles/" + name + ".json");
}

Decision decide(const std::string& text, const DeviceProfile& device, const Kernels& kernels) {
  const Problem problem = parse_problem(text);
  return select({problem, device, kernels, {}, {}, builtin_rules()}).decision;
}

/// The kernels of one op of a backend's real table.
Kernels rows_of(const Backend& backend, OpId op) {
  Kernels kernels;
  for (const KernelSpec& row : backend.kernels()) {
    if (row.ops.contains(op)) kernels.push_back(make_kernel(row, op, backend.device_type()));
  }
  return kernels;
}

Backend* open_module(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto* info = static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin"));
  return info == nullptr ? nullptr : info->create();
}

TEST(BuiltinRules, NameOnlyKernelsOfTheCatalogue) {
  for (const BuiltinRule& rule : builtin_rules()) {
    EXPECT_FALSE(find_in_catalogue(rule.op, rule.kernel).empty()) << rule.kernel;
    EXPECT_FALSE(rule.because.empty()) << rule.kernel;
    EXPECT_NE(rule.condition, nullptr) << rule.kernel;
  }
}

TEST(BuiltinRules, EndInACatchAllForEachOpAndDeviceType) {
  // Whatever the problem, the last rule of the op takes it.
  const char* const problems[] = {"matmul(f32[1,1], f32[1,1]) @cuda",
                                  "matmul(f32[512,512], f32[512,512]) @cuda",
                                  "matmul(f32[2,2], f32[2,2]) @opencl",
                                  "matmul(f32[512,512], f32[512,512]) @opencl",
                                  "linear(f32[2,2], f32[2,2]) @opencl",
                                  "conv2d(f32[1,3,9,9], f32[8,3,5,5]; stride=2,2) @opencl",
                                  "conv3d(f32[1,3,9,9,9], f32[8,3,5,5,5]) @opencl",
                                  "matmul(f32[512,512], f32[512,512])",
                                  "linear(f64[9,512], f64[7,512])",
                                  "conv2d(f32[1,3,9,9], f32[8,3,5,5]; stride=2,2)",
                                  "conv3d(f32[1,3,9,9,9], f32[8,3,5,5,5])",
                                  "attention(f32[1,1,9,8], f32[1,1,9,8], f32[1,1,9,8])"};
  for (const char* text : problems) {
    const Problem problem = parse_problem(text);
    const BuiltinRule* last = nullptr;
    for (const BuiltinRule& rule : builtin_rules()) {
      if (rule.op == problem.op && rule.device_type == problem.device.type) last = &rule;
    }
    ASSERT_NE(last, nullptr) << text;
    EXPECT_TRUE(last->condition(problem, {})) << text;
  }
}

// The H200.

TEST(H200, ReadsTheWeightsOnceWhereThereIsOneRow) {
  const Decision decision = decide("matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0", profile("h200"),
                                   kernels_named({"reference", "cublasLt", "skinny"}));
  EXPECT_EQ(decision.kernel, "skinny");
  EXPECT_EQ(decision.because, "built-in rule: one row and a row-major weight of at most 48 MiB");
}

TEST(H200, UsesTensorCoresForLargeProducts) {
  const Kernels kernels = kernels_named({"reference", "skinny", "cublasLt"});
  const DeviceProfile h200 = profile("h200");
  EXPECT_EQ(decide("matmul(bf16[4096,4096], bf16[4096,4096]) @cuda:0", h200, kernels).kernel, "cublasLt");
  EXPECT_EQ(decide("matmul(bf16[17,4096], bf16[4096,4096]) @cuda:0", h200, kernels).kernel, "cublasLt");
  EXPECT_EQ(decide("matmul(bf16[1,4096], bf16[4096,28672]) @cuda:0", h200, kernels).kernel, "cublasLt");
}

TEST(H200, UsesSkinnyForFewRowsUntilTheWeightIsLarge) {
  const Kernels kernels = kernels_named({"reference", "cublasLt", "skinny"});
  DeviceProfile h200 = profile("h200");
  const auto linear = [&](const std::string& rows, const std::string& weight) {
    return decide("matmul(bf16[" + rows + ",2048], bf16" + weight + "; transpose_b=true) @cuda:0", h200, kernels)
        .kernel;
  };
  EXPECT_EQ(linear("1", "[1000,2048]"), "skinny");
  EXPECT_EQ(linear("1", "[65536,2048]"), "skinny");
  EXPECT_EQ(linear("8", "[36864,2048]"), "skinny");  // 144 MiB
  EXPECT_EQ(linear("8", "[36872,2048]"), "cublasLt");
  EXPECT_EQ(linear("16", "[10240,2048]"), "skinny");  // 40 MiB
  EXPECT_EQ(linear("16", "[10248,2048]"), "cublasLt");
  EXPECT_EQ(linear("17", "[1000,2048]"), "cublasLt");
  EXPECT_EQ(linear("64", "[128,2048]"), "skinny");
  EXPECT_EQ(linear("64", "[136,2048]"), "cublasLt");
  EXPECT_EQ(decide("linear(bf16[64,128], bf16[64,128]) @cuda:0", h200, kernels).kernel, "cublasLt");
  // The same bytes, written as a column-major [k,n].
  EXPECT_EQ(decide("matmul(bf16[8,2048], bf16[2048,1000]{1,2048}) @cuda:0", h200, kernels).kernel, "skinny");
  EXPECT_EQ(decide("matmul(bf16[1,4096], bf16[4096,8192]) @cuda:0", h200, kernels).kernel, "cublasLt");
  // Measured on Hopper alone.
  h200.compute_capability_major = 8;
  EXPECT_EQ(linear("8", "[1280,2048]"), "skinny");  // 5 MiB
  EXPECT_EQ(linear("8", "[1288,2048]"), "cublasLt");
  EXPECT_EQ(linear("9", "[1000,2048]"), "cublasLt");
}

TEST(H200, UsesSkinnyForFewRowsThatAreNotWhole16Bytes) {
  const Kernels kernels = kernels_named({"reference", "skinny", "cublasLt", "cublas"});
  const DeviceProfile h200 = profile("h200");
  const auto chosen = [&](const std::string& text) { return decide(text + " @cuda:0", h200, kernels).kernel; };
  // Each matrix alone: a's rows, b's rows, and those of the output.
  EXPECT_EQ(chosen("linear(bf16[64,4097], bf16[1024,4097])"), "skinny");
  EXPECT_EQ(chosen("matmul(f16[32,4096]{4097,1}, f16[4096,1024])"), "skinny");
  EXPECT_EQ(chosen("matmul(f16[32,4096], f16[4096,1024]{1028,1})"), "skinny");
  EXPECT_EQ(chosen("linear(bf16[64,4096], bf16[250,4096])"), "skinny");
  EXPECT_EQ(chosen("matmul(bf16[64,4096], bf16[4096,252]{256,1}) -> f32[64,252]"), "cublasLt");
  EXPECT_EQ(chosen("matmul(bf16[3,26,1253], bf16[3,1253,817])"), "skinny");
  EXPECT_EQ(chosen("matmul(f16[4,555], f16[555,777])"), "skinny");
  // Even rows, whatever the extents; wider types; and more rows.
  EXPECT_EQ(chosen("matmul(f16[33,555]{560,1}, f16[555,776]) -> f16[33,776]"), "cublasLt");
  EXPECT_EQ(chosen("matmul(f32[32,4097], f32[4097,1023])"), "cublasLt");
  EXPECT_EQ(chosen("linear(bf16[65,4097], bf16[1024,4097])"), "cublasLt");
  EXPECT_EQ(chosen("linear(bf16[64,4096], bf16[50257,4096])"), "cublasLt");
  EXPECT_EQ(decide("matmul(f16[32,555], f16[555,777]) @cuda:0", h200, kernels).because,
            "built-in rule: few rows that are not multiples of 16 bytes, and a small weight");
}

TEST(NewerThanHopper, SaysThatItsComputeCapabilityWasNotMeasured) {
  const Kernels kernels = kernels_named({"reference", "cublasLt", "skinny"});
  DeviceProfile device = profile("h200");
  const auto reason = [&](const std::string& text, int major) {
    device.compute_capability_major = major;
    return decide(text + " @cuda:0", device, kernels).because;
  };
  const std::string large = "matmul(bf16[4096,4096], bf16[4096,4096])", row = "linear(bf16[1,64], bf16[64,64])";
  const std::string tiles = "built-in rule: tensor cores for everything else";
  const std::string few = "built-in rule: one row, or up to 8 and a weight of at most 5 MiB";
  for (const int major : {8, 9}) {
    EXPECT_EQ(reason(large, major), tiles);
    EXPECT_EQ(reason(row, major), few);
  }
  EXPECT_EQ(reason(large, 10), tiles + ", compute capability 10.0 was not measured");
  EXPECT_EQ(reason(row, 12), few + ", compute capability 12.0 was not measured");
}

TEST(H200, ChoosesTheSameFromTheRealTable) {
  Backend* backend = open_module(XRT_CUDA_MODULE);
  ASSERT_NE(backend, nullptr) << dlerror();
  const std::unique_ptr<Backend> owner(backend);
  const Kernels kernels = rows_of(*backend, OpId::matmul);
  if (kernels.empty()) GTEST_SKIP() << backend->driver()->why_absent();
  const DeviceProfile h200 = profile("h200");
  const Decision row = decide("matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0", h200, kernels);
  EXPECT_EQ(row.kernel, "skinny") << row.to_text();
  const Decision large = decide("matmul(bf16[4096,4096], bf16[4096,4096]) @cuda:0", h200, kernels);
  EXPECT_EQ(large.kernel, "cublasLt") << large.to_text();
  const Decision uneven = decide("matmul(bf16[32,555], bf16[555,777]) @cuda:0", h200, kernels);
  EXPECT_EQ(uneven.kernel, "skinny") << uneven.to_text();
}

// OpenCL convolutions.

const Kernels& convolutions() {
  static const Kernels kernels = kernels_named(
      {"CONV2D_NAIVE_SMALL", "CONV2D_TILED_LOCAL", "CONV2D_IM2COL", "CONV2D_IMPLICIT_GEMM", "CONV2D_WINOGRAD"});
  return kernels;
}

std::string convolve(const std::string& device, const std::string& filter, const std::string& attributes = "") {
  const std::string text = "conv2d(f32[1,64,56,56], f32[64,64," + filter + "]" + attributes + ") @opencl:0";
  return decide(text, profile(device), convolutions()).kernel;
}

/// As `xrt explain --profile` asks: the device is a description, and the build may lack its kernels.
Decision described(const std::string& device, const std::string& filter, const Kernels& kernels) {
  const Problem problem = parse_problem("conv2d(f32[1,64,56,56], f32[64,64," + filter + "]) @opencl:0");
  const DeviceProfile there = profile(device);
  SelectionInputs inputs{problem, there, kernels, {}, {}, builtin_rules()};
  inputs.described = true;
  return select(inputs).decision;
}

TEST(BuiltinRules, AreNamedWhereTheyHoldAndTheirKernelIsNotBuilt) {
  const std::pair<const char*, const char*> cases[] = {{"apple_m2", "CONV2D_WINOGRAD"},
                                                       {"intel_iris_xe", "CONV2D_TILED_LOCAL"}};
  for (const auto& [device, kernel] : cases) {
    for (const Kernels& kernels : {Kernels(), kernels_named({"CONV2D_NAIVE_SMALL"})}) {
      const Decision decision = described(device, "3,3", kernels);
      EXPECT_EQ(decision.kernel, kernels.empty() ? "" : "CONV2D_NAIVE_SMALL");
      EXPECT_NE(decision.because.find("asks for " + std::string(kernel) + ", but it needs"), std::string::npos)
          << decision.because;
      EXPECT_EQ(decision.because.find("CONV2D_IMPLICIT_GEMM"), std::string::npos) << "only the rule that would decide";
      ASSERT_EQ(decision.candidates.size(), kernels.size() + 1);
      EXPECT_EQ(decision.candidates.back().kernel, kernel);
      EXPECT_EQ(decision.candidates.back().outcome, Outcome::refused);
    }
  }
  EXPECT_EQ(described("apple_m2", "3,3", convolutions()).because, "built-in rule: Apple GPU, 3x3 filter, stride 1");
}

TEST(AppleM2, ConvolvesByFilterAndStride) {
  EXPECT_EQ(convolve("apple_m2", "3,3", "; padding=1,1"), "CONV2D_WINOGRAD");
  EXPECT_EQ(convolve("apple_m2", "1,1"), "CONV2D_IM2COL");
  EXPECT_EQ(convolve("apple_m2", "3,3", "; stride=2,2 padding=1,1"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(convolve("apple_m2", "3,3", "; stride=1,2"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(convolve("apple_m2", "5,5"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(convolve("apple_m2", "3,1"), "CONV2D_IMPLICIT_GEMM");
}

TEST(IntelIrisXe, ConvolvesInTilesOfLocalMemory) {
  EXPECT_EQ(convolve("intel_iris_xe", "3,3", "; padding=1,1"), "CONV2D_TILED_LOCAL");
  EXPECT_EQ(convolve("intel_iris_xe", "5,5"), "CONV2D_TILED_LOCAL");
  EXPECT_EQ(convolve("intel_iris_xe", "1,1"), "CONV2D_IM2COL");
}

TEST(Nvidia, ConvolvesByWhatWasFastestOnAnH200) {
  const auto chosen = [](const std::string& text) {
    return decide(text + " @opencl:0", profile("nvidia_opencl"), convolutions()).kernel;
  };
  EXPECT_EQ(chosen("conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)"), "CONV2D_WINOGRAD");
  EXPECT_EQ(chosen("conv2d(f32[1,64,56,56], f32[64,8,3,3]; padding=1,1 groups=8)"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(chosen("conv2d(f32[1,3,224,224], f32[64,3,7,7]; stride=2,2 padding=3,3)"), "CONV2D_TILED_LOCAL");
  EXPECT_EQ(chosen("conv2d(f32[1,256,56,56], f32[512,256,1,1]; stride=2,2)"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(chosen("conv2d(f32[1,256,28,28], f32[256,256,3,3]; stride=2,2 padding=1,1)"), "CONV2D_IM2COL");
  EXPECT_EQ(chosen("conv2d(f32[64,256,28,28], f32[256,256,3,3]; stride=2,2 padding=1,1)"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(chosen("conv2d(f32[1,256,28,28], f32[64,256,1,1])"), "CONV2D_IM2COL");
}

TEST(OtherGpus, ConvolveAsAnImplicitProduct) {
  for (const char* device : {"amd_rx_7900", "mali_g710"}) {
    EXPECT_EQ(convolve(device, "3,3", "; padding=1,1"), "CONV2D_IMPLICIT_GEMM") << device;
    EXPECT_EQ(convolve(device, "5,5", "; stride=2,2"), "CONV2D_IMPLICIT_GEMM") << device;
    EXPECT_EQ(convolve(device, "1,1"), "CONV2D_IM2COL") << device;
  }
  DeviceProfile arc = profile("intel_iris_xe");
  arc.integrated = false;
  const std::string text = "conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1) @opencl:0";
  EXPECT_EQ(decide(text, arc, convolutions()).kernel, "CONV2D_IMPLICIT_GEMM");
}

TEST(Pocl, ConvolvesByWinogradOrWithCopiedWindows) {
  EXPECT_EQ(convolve("pocl_neoverse", "3,3", "; padding=1,1"), "CONV2D_WINOGRAD");
  EXPECT_EQ(convolve("pocl_neoverse", "1,1"), "CONV2D_IM2COL");
  EXPECT_EQ(convolve("pocl_neoverse", "3,3", "; stride=2,2"), "CONV2D_IM2COL");
  const auto chosen = [](const std::string& text) {
    return decide(text + " @opencl:0", profile("pocl_neoverse"), convolutions()).kernel;
  };
  EXPECT_EQ(chosen("conv2d(f32[1,3,64,64], f32[16,3,3,3]; padding=1,1)"), "CONV2D_IM2COL");
  EXPECT_EQ(chosen("conv2d(f32[1,8,8,8], f32[8,8,3,3]; padding=1,1)"), "CONV2D_IMPLICIT_GEMM");
  EXPECT_EQ(chosen("conv2d(f32[1,320,7,7], f32[1280,320,1,1])"), "CONV2D_NAIVE_SMALL");
  EXPECT_EQ(chosen("conv2d(f32[4,320,7,7], f32[1280,320,1,1])"), "CONV2D_IM2COL");
}

TEST(OpenClDevices, ConvolveWithoutTilesWhereTheseWouldBeEmpty) {
  for (const char* device :
       {"amd_rx_7900", "nvidia_opencl", "mali_g710", "intel_iris_xe", "apple_m2", "pocl_neoverse"}) {
    const auto decided = [&](const std::string& text) {
      return decide(text + " @opencl:0", profile(device), convolutions());
    };
    const Decision depthwise = decided("conv2d(f32[1,32,56,56], f32[32,1,5,5]; groups=32)");
    EXPECT_EQ(depthwise.kernel, "CONV2D_NAIVE_SMALL") << device;
    EXPECT_EQ(depthwise.because,
              "built-in rule: fewer than 4 channels in a group leave most of a product's tile empty");
    EXPECT_NE(decided("conv2d(f32[1,32,56,56], f32[32,8,5,5]; groups=4)").kernel, "CONV2D_NAIVE_SMALL") << device;
  }
  for (const char* device : {"amd_rx_7900", "mali_g710", "apple_m2", "nvidia_opencl"}) {
    const std::string text = "conv2d(f32[1,3,18,18], f32[8,3,5,5]) @opencl:0";
    EXPECT_EQ(decide(text, profile(device), convolutions()).kernel, "CONV2D_NAIVE_SMALL") << device;
  }
}

const Kernels& products() {
  static const Kernels kernels = kernels_named(
      {"MATMUL_DIRECT", "MATMUL_TILED_LOCAL", "MATMUL_REGISTER_BLOCKED", "MATMUL_SPLIT_K", "MATMUL_FEW_ROWS"});
  return kernels;
}

TEST(OpenClMatmul, UsesTilesWhereThereAreRowsToFillThem) {
  for (const char* device : {"intel_iris_xe", "apple_m2", "amd_rx_7900", "mali_g710"}) {
    const auto chosen = [&](const std::string& text) {
      return decide(text + " @opencl:0", profile(device), products()).kernel;
    };
    EXPECT_EQ(chosen("matmul(f32[512,512], f32[512,512])"), "MATMUL_TILED_LOCAL") << device;
    EXPECT_EQ(chosen("matmul(f32[16,512], f32[512,8])"), "MATMUL_TILED_LOCAL") << device;
    EXPECT_EQ(chosen("matmul(f32[15,512], f32[512,512])"), "MATMUL_DIRECT") << device;
    EXPECT_EQ(chosen("linear(f32[64,512], f32[512,512])"), "MATMUL_TILED_LOCAL") << device;
    EXPECT_EQ(chosen("linear(f32[9,512], f32[512,512])"), "MATMUL_DIRECT") << device;
    EXPECT_EQ(chosen("matmul(f32[1,512], f32[512,512])"), "MATMUL_FEW_ROWS") << device;
    EXPECT_EQ(chosen("linear(f32[8,512], f32[512,512])"), "MATMUL_FEW_ROWS") << device;
  }
}

TEST(OpenClMatmul, PacksOnlyLargeProductsWhereWorkGroupsAreTooSmallForTiles) {
  const Kernels kernels = kernels_named({"MATMUL_REGISTER_BLOCKED", "MATMUL_DIRECT"});  // what is left there
  for (const char* device : {"mali_g710", "amd_rx_7900", "nvidia_opencl"}) {
    const auto chosen = [&](const std::string& text) { return decide(text + " @opencl:0", profile(device), kernels); };
    EXPECT_EQ(chosen("matmul(f32[512,512], f32[512,512])").kernel, "MATMUL_DIRECT") << device;
    EXPECT_EQ(chosen("linear(f32[64,1024], f32[4096,1024])").kernel, "MATMUL_DIRECT") << device;
    EXPECT_EQ(chosen("matmul(f32[2048,2048], f32[2048,2048])").kernel, "MATMUL_REGISTER_BLOCKED") << device;
    EXPECT_NE(chosen("linear(f32[64,64], f32[64,64])").because.find("too small for tiles"), std::string::npos);
  }
}

TEST(OpenClMatmul, SharesLongSumsWhereThereAreFewTiles) {
  const auto chosen = [](const char* device, const std::string& text) {
    return decide(text + " @opencl:0", profile(device), products()).kernel;
  };
  for (const char* device : {"intel_iris_xe", "apple_m2", "amd_rx_7900", "nvidia_opencl", "mali_g710"}) {
    EXPECT_EQ(chosen(device, "matmul(f32[64,8192], f32[8192,64])"), "MATMUL_SPLIT_K") << device;
    EXPECT_EQ(chosen(device, "matmul(f32[8192,64], f32[8192,64]; transpose_a=true)"), "MATMUL_SPLIT_K") << device;
    EXPECT_EQ(chosen(device, "linear(f32[9,1024], f32[64,1024])"), "MATMUL_SPLIT_K") << device;
    EXPECT_NE(chosen(device, "matmul(f32[64,255], f32[255,64])"), "MATMUL_SPLIT_K") << device;
    EXPECT_NE(chosen(device, "matmul(f32[1024,1024], f32[1024,1024])"), "MATMUL_SPLIT_K") << device;
  }
  EXPECT_NE(chosen("amd_rx_7900", "matmul(f32[64,1023], f32[1023,64])"), "MATMUL_SPLIT_K");
  EXPECT_EQ(chosen("nvidia_opencl", "matmul(f32[64,256], f32[256,64])"), "MATMUL_SPLIT_K");
  EXPECT_EQ(chosen("nvidia_opencl", "linear(f32[1,512], f32[512,512])"), "MATMUL_FEW_ROWS");
  EXPECT_EQ(chosen("nvidia_opencl", "linear(f32[8,512], f32[512,512])"), "MATMUL_SPLIT_K");
  EXPECT_EQ(chosen("nvidia_opencl", "matmul(f32[8,512], f32[512,512])"), "MATMUL_FEW_ROWS");
  EXPECT_EQ(chosen("pocl_neoverse", "matmul(f32[64,8192], f32[8192,64])"), "MATMUL_REGISTER_BLOCKED");
}

TEST(OpenClMatmul, KeepsSumsInRegistersOnACpuDevice) {
  const auto chosen = [&](const std::string& text) {
    return decide(text + " @opencl:0", profile("pocl_neoverse"), products()).kernel;
  };
  EXPECT_EQ(chosen("matmul(f32[256,256], f32[256,256])"), "MATMUL_REGISTER_BLOCKED");
  EXPECT_EQ(chosen("linear(f32[9,512], f32[512,512])"), "MATMUL_REGISTER_BLOCKED");
  EXPECT_EQ(chosen("matmul(f32[1,512], f32[512,512])"), "MATMUL_FEW_ROWS");
  EXPECT_EQ(chosen("linear(f32[8,512], f32[512,512])"), "MATMUL_FEW_ROWS");
}

// Processors, from the real table.

TEST(Xeon, PacksFewRowsWhereBothMatricesAreTransposed) {
  const Kernels kernels = kernels_named({"packed", "onednn"});
  const DeviceProfile device = profile("xeon_amx");
  EXPECT_EQ(decide("linear(f32[128,768]{1,128}, f32[3072,768])", device, kernels).kernel, "packed");
  EXPECT_EQ(decide("linear(f32[512,768]{1,512}, f32[768,768])", device, kernels).kernel, "onednn");
  EXPECT_EQ(decide("linear(f32[128,768], f32[3072,768])", device, kernels).kernel, "onednn");
}

TEST(XeonAndNeoverse, LeaveDoublePrecisionToBlasAndKeepAReferenceForAllElse) {
  const Kernels kernels = rows_of(*make_cpu_backend(), OpId::matmul);
  for (const char* name : {"xeon_amx", "neoverse_n1"}) {
    const DeviceProfile device = profile(name);
    EXPECT_EQ(decide("matmul(f64[256,256], f64[256,256])", device, kernels).kernel, "openblas") << name;
    const Decision halves = decide("matmul(f16[256,256], f16[256,256])", device, kernels);
    EXPECT_EQ(halves.kernel, "packed") << halves.to_text();
    const Decision mixed = decide("matmul(f64[256,256], f32[256,256])", device, kernels);
    EXPECT_EQ(mixed.kernel, "reference") << mixed.to_text();
    EXPECT_EQ(mixed.candidates.front().outcome, Outcome::refused);
    EXPECT_FALSE(mixed.candidates.front().reason.empty());
  }
}

}  // namespace
}  // namespace xpuruntime
