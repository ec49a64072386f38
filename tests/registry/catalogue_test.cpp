#include "xpuruntime/registry/catalogue.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <tuple>

#include "backends/cpu/backend.h"

namespace xpuruntime {
namespace {

bool in_catalogue(OpId op, std::string_view name, DeviceType type) {
  const auto found = find_in_catalogue(op, name);
  return std::any_of(found.begin(), found.end(), [&](const auto& entry) { return entry.device_type == type; });
}

void expect_rows_in_catalogue(const Backend& backend) {
  for (const KernelSpec& row : backend.kernels()) {
    for (const OpId op : row.ops) {
      EXPECT_TRUE(in_catalogue(op, row.name, backend.device_type()))
          << to_string(op) << " " << row.name << " on " << to_string(backend.device_type());
    }
  }
}

/// The backend of a module as its own door gives it, without the registry, which would add the names itself.
std::unique_ptr<Backend> backend_of_module(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  const auto* info = static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin"));
  return std::unique_ptr<Backend>(info == nullptr ? nullptr : info->create());
}

TEST(Catalogue, HoldsEveryRowOfTheCpusTable) {
  const auto backend = make_cpu_backend();
  ASSERT_FALSE(backend->kernels().empty());
  expect_rows_in_catalogue(*backend);
}

TEST(Catalogue, HoldsEveryRowOfTheCudaModulesTable) {
  const auto backend = backend_of_module(XRT_CUDA_MODULE);
  ASSERT_NE(backend, nullptr);
  if (backend->kernels().empty()) GTEST_SKIP() << backend->driver()->why_absent();
  expect_rows_in_catalogue(*backend);
}

TEST(Catalogue, HoldsEveryRowOfTheOpenClModulesTable) {
  const auto backend = backend_of_module(XRT_OPENCL_MODULE);
  ASSERT_NE(backend, nullptr);
  if (backend->kernels().empty()) GTEST_SKIP() << backend->driver()->why_absent();
  expect_rows_in_catalogue(*backend);
}

TEST(Catalogue, KnowsEveryKernelNameThatPoliciesAreWrittenWith) {
  for (const char* name : {"cublas", "cublasLt", "cutlass"}) {
    EXPECT_TRUE(in_catalogue(OpId::matmul, name, DeviceType::nvidia)) << name;
  }
  for (const char* name : {"torch", "flash_v2", "xformers"}) {
    EXPECT_TRUE(in_catalogue(OpId::attention, name, DeviceType::nvidia)) << name;
  }
  for (const char* name : {"cudnn", "cudnn_implicit_gemm", "cudnn_winograd"}) {
    EXPECT_TRUE(in_catalogue(OpId::conv2d, name, DeviceType::nvidia)) << name;
  }
  for (const char* name :
       {"CONV2D_WINOGRAD", "CONV2D_IM2COL", "CONV2D_TILED_LOCAL", "CONV2D_IMPLICIT_GEMM", "CONV2D_NAIVE_SMALL"}) {
    EXPECT_TRUE(in_catalogue(OpId::conv2d, name, DeviceType::opencl)) << name;
  }
}

TEST(Catalogue, GoesByOpAndWithinOneByDeviceTypeAndTable) {
  std::vector<std::string> matmuls;
  OpId last = OpId::matmul;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.needs == "the code that registers it") break;  // by other tests
    EXPECT_LE(last, entry.op);
    last = entry.op;
    if (entry.op == OpId::matmul)
      matmuls.push_back(std::string(to_string(entry.device_type)) + "/" + std::string(entry.name));
  }
  const std::vector<std::string> first(matmuls.begin(), matmuls.begin() + 2), rest(matmuls.begin() + 7, matmuls.end());
  EXPECT_EQ(first, (std::vector<std::string>{"cpu/small", "cpu/skinny"}));
  EXPECT_EQ(rest, (std::vector<std::string>{"cpu/reference", "cuda/skinny", "cuda/cublasLt", "cuda/cublas",
                                            "cuda/cutlass", "cuda/reference", "opencl/MATMUL_FEW_ROWS",
                                            "opencl/MATMUL_REGISTER_BLOCKED", "opencl/MATMUL_TILED_LOCAL",
                                            "opencl/MATMUL_SPLIT_K", "opencl/MATMUL_CLBLAST", "opencl/MATMUL_DIRECT"}));
}

TEST(Catalogue, SaysWhatAKernelNeedsThatIsNotBuiltHere) {
  const auto needs = [](OpId op, std::string_view name, DeviceType type) {
    return find_in_catalogue(op, name, type)->needs;
  };
  EXPECT_EQ(needs(OpId::add, "simd", DeviceType::cpu), "nothing more");
  EXPECT_EQ(needs(OpId::linear, "amx", DeviceType::cpu), "a CPU with AMX");
  EXPECT_EQ(needs(OpId::add, "elementwise", DeviceType::nvidia), "an NVIDIA GPU");
  EXPECT_EQ(needs(OpId::matmul, "cublasLt", DeviceType::nvidia), "an NVIDIA GPU and libcublasLt");
  EXPECT_EQ(needs(OpId::attention, "flash_v2", DeviceType::nvidia), "a later version of xpuruntime");
  EXPECT_EQ(needs(OpId::cast, "CAST_DIRECT", DeviceType::opencl), "an OpenCL device");
}

TEST(Catalogue, SaysWhatEachKernelIsGoodForAndNeeds) {
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_FALSE(entry.summary.empty()) << entry.name;
    EXPECT_FALSE(entry.needs.empty()) << entry.name;
  }
}

TEST(Catalogue, NamesTheLibrariesThatKernelsCall) {
  const auto driver = make_cpu_backend()->driver();
  const auto& versions = driver->devices().front().library_versions;
  int calling = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.device_type != DeviceType::cpu) continue;
    const bool named_after_one = entry.name == "openblas" || entry.name == "onednn";
    EXPECT_EQ(entry.libraries, named_after_one ? entry.name : "") << to_string(entry.op) << " " << entry.name;
    calling += named_after_one && versions.contains(std::string(entry.libraries));
  }
  EXPECT_GE(calling, 2);  // of OpenBLAS, which every build has
  EXPECT_EQ(find_in_catalogue(OpId::matmul, "cublasLt", DeviceType::nvidia)->libraries, "cublasLt");
  EXPECT_EQ(find_in_catalogue(OpId::matmul, "cublasLt", DeviceType::cpu), std::nullopt);
}

TEST(Catalogue, HoldsEachNameOncePerOpAndDeviceType) {
  std::set<std::tuple<OpId, std::string_view, DeviceType>> seen;
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_TRUE(seen.emplace(entry.op, entry.name, entry.device_type).second) << entry.name;
  }
}

TEST(Catalogue, FindsAllDeviceTypesOfAName) {
  EXPECT_EQ(find_in_catalogue(OpId::matmul, "reference").size(), 2u);
  EXPECT_TRUE(find_in_catalogue(OpId::matmul, "Reference").empty());
  EXPECT_TRUE(find_in_catalogue(OpId::softmax, "cublasLt").empty());
}

TEST(Catalogue, RemembersNamesButLeavesKnownOnesAlone) {
  const auto before = catalogue().size();
  remember_kernel({OpId::matmul, "cublasLt", DeviceType::nvidia});
  EXPECT_EQ(catalogue().size(), before);
  remember_kernel({OpId::gelu, std::string("temporary_") + "text", DeviceType::npu});
  remember_kernel({OpId::gelu, "temporary_text", DeviceType::npu});
  EXPECT_EQ(catalogue().size(), before + 1);
  EXPECT_EQ(find_in_catalogue(OpId::gelu, "temporary_text", DeviceType::npu)->summary, "registered at run time");
  remember_kernel({OpId::gelu, "described", DeviceType::npu, std::string("for ") + "tests", "luck", "lib"});
  const auto described = find_in_catalogue(OpId::gelu, "described", DeviceType::npu);
  ASSERT_TRUE(described);
  EXPECT_EQ(described->summary, "for tests");
  EXPECT_EQ(described->needs, "luck");
  EXPECT_EQ(described->libraries, "lib");
}

TEST(Catalogue, RemembersANameOnceWhenManyThreadsBringIt) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int name = 0; name < 200; ++name) {
        remember_kernel({OpId::tanh, "shared_" + std::to_string(name), DeviceType::npu});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int name = 0; name < 200; ++name) {
    EXPECT_EQ(find_in_catalogue(OpId::tanh, "shared_" + std::to_string(name)).size(), 1u) << name;
  }
}

}  // namespace
}  // namespace xpuruntime
