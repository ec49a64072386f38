#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/expect_error.h"
#include "select/dtype_kernels.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

using K = KernelDtype;

/// What a device with this profile has by default.
class DefaultCapabilities : public ::testing::Test {
 protected:
  std::shared_ptr<KernelSelector> selector_for(const DeviceProfile& profile) {
    devices.add_driver(std::make_shared<testing::ProfiledDriver>(profile));
    return registry.get_or_create_selector({profile.type, 0});
  }

  /// Of the two matrix ops: 'N' not there, '-' without matrix units, 'T' with them. In the order f32 f16 bf16.
  std::string matrix_rows(const DeviceProfile& profile) {
    const auto selector = selector_for(profile);
    std::string matmul;
    std::string conv2d;
    for (const K dtype : {K::float32, K::float16, K::bfloat16}) {
      for (auto& [op, text] : {std::pair<OpId, std::string&>{OpId::matmul, matmul}, {OpId::conv2d, conv2d}}) {
        const auto row = selector->find_kernel_capability(op, dtype);
        text += !row ? 'N' : row->supports_tensor_cores ? 'T' : '-';
      }
    }
    EXPECT_EQ(matmul, conv2d);
    return matmul;
  }

  DeviceManager devices;
  KernelRegistry registry{devices};
};

/// A registry without kernels has none to run it.
KernelCapability without_kernel(KernelCapability capability) {
  capability.is_available = false;
  return capability;
}

TEST_F(DefaultCapabilities, AreAvailableExactlyWhereAKernelIs) {
  const auto selector = selector_for({.type = DeviceType::npu, .fp16 = true});
  const auto available = [&](const char* op, K dtype) {
    EXPECT_EQ(selector->find_kernel_capability(op, dtype)->is_available, selector->is_kernel_available(op, dtype));
    return selector->is_kernel_available(op, dtype);
  };
  EXPECT_FALSE(available("matmul", K::float32));
  EXPECT_FALSE(available("matmul", K::float16));
  registry.register_kernel(testing::kernel_for(OpId::matmul, "half", {DataType::float16}));
  EXPECT_FALSE(available("matmul", K::float32));
  EXPECT_TRUE(available("matmul", K::float16));
  EXPECT_FALSE(available("conv2d", K::float16));
}

TEST_F(DefaultCapabilities, HaveNoSixteenBitRowsOnAPlainProcessor) {
  EXPECT_EQ(matrix_rows({.type = DeviceType::cpu, .cpu_features = {"avx2", "fma"}}), "-NN");
}

TEST_F(DefaultCapabilities, HaveNoMatrixUnitsOnAProcessorWithoutThem) {
  EXPECT_EQ(matrix_rows({.type = DeviceType::cpu, .fp16 = true, .bf16 = true, .cpu_features = {"avx512_bf16"}}), "---");
}

TEST_F(DefaultCapabilities, HaveAmxOnlyForTheDtypesItMultiplies) {
  EXPECT_EQ(matrix_rows({.type = DeviceType::cpu,
                         .fp16 = true,
                         .bf16 = true,
                         .tensor_cores = true,
                         .cpu_features = {"amx_tile", "amx_bf16", "avx512_fp16"}}),
            "--T");
}

TEST_F(DefaultCapabilities, HaveBothOnAProcessorWithSme) {
  EXPECT_EQ(
      matrix_rows({.type = DeviceType::cpu, .fp16 = true, .bf16 = true, .tensor_cores = true, .cpu_features = {"sme"}}),
      "-TT");
}

TEST_F(DefaultCapabilities, HaveTensorCoresOnAnH200) {
  EXPECT_EQ(matrix_rows({.type = DeviceType::nvidia,
                         .compute_capability_major = 9,
                         .fp16 = true,
                         .bf16 = true,
                         .tensor_cores = true}),
            "-TT");
}

TEST_F(DefaultCapabilities, HaveNoBfloat16OnAVolta) {
  EXPECT_EQ(
      matrix_rows({.type = DeviceType::nvidia, .compute_capability_major = 7, .fp16 = true, .tensor_cores = true}),
      "-TN");
}

TEST_F(DefaultCapabilities, HaveFloat32AloneForActivationsAndPooling) {
  const auto selector = selector_for({.type = DeviceType::nvidia, .fp16 = true, .bf16 = true, .tensor_cores = true});
  for (const char* op : {"relu", "gelu", "maxpool2d", "avgpool2d"}) {
    EXPECT_EQ(selector->find_kernel_capability(op, K::float32), without_kernel(KernelCapability::create_float32()));
    EXPECT_EQ(selector->find_kernel_capability(op, K::float16), std::nullopt) << op;
    EXPECT_EQ(selector->find_kernel_capability(op, K::bfloat16), std::nullopt) << op;
  }
}

TEST_F(DefaultCapabilities, ArePutBackOnDemandAndLeaveOtherRowsAlone) {
  const auto selector = selector_for({.type = DeviceType::npu, .fp16 = true});
  const KernelCapability mine{K::float16, false, true, 3, 4};
  selector->register_kernel_capability("matmul", mine);
  selector->register_kernel_capability("softmax", mine);
  EXPECT_EQ(selector->find_kernel_capability("matmul", K::float16), mine);
  registry.register_default_capabilities({DeviceType::npu, 0}, *selector);
  EXPECT_EQ(selector->find_kernel_capability("matmul", K::float16),
            without_kernel(KernelCapability::create_float16(false)));
  EXPECT_EQ(selector->find_kernel_capability("softmax", K::float16), mine);
}

TEST_F(DefaultCapabilities, GoIntoASelectorThatSomebodyMadeAlone) {
  selector_for({.type = DeviceType::npu, .fp16 = true});
  KernelSelector bare(registry, {DeviceType::npu, 0});
  EXPECT_EQ(bare.find_kernel_capability("conv2d", K::float32), std::nullopt);
  registry.register_default_capabilities({DeviceType::npu, 0}, bare);
  EXPECT_EQ(bare.find_kernel_capability("conv2d_fp16", K::float16),
            without_kernel(KernelCapability::create_float16(false)));
}

TEST_F(DefaultCapabilities, AreRefusedForASelectorOfAnotherDevice) {
  devices.add_driver(std::make_shared<testing::FakeDriver>());
  const auto selector = registry.get_or_create_selector({DeviceType::npu, 1});
  expect_invalid("the selector is for npu:1, not for npu:0", [&] {
    registry.register_default_capabilities({DeviceType::npu, 0}, *selector);
  });
}

TEST_F(DefaultCapabilities, StayWithThoseWhoHoldASelectorWhileOthersClear) {
  const Device device = {DeviceType::npu, 0};
  selector_for({.type = DeviceType::npu, .fp16 = true});
  registry.register_kernel(testing::kernel_for(OpId::matmul, "half", {DataType::float16}));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int user = 0; user < 3; ++user) {
    threads.emplace_back([&, user] {
      for (int i = 0; i < 200; ++i) {
        const auto held = registry.get_or_create_selector(device);
        const std::string own = "own_" + std::to_string(user);
        held->register_kernel_capability(own, KernelCapability::create_float16());
        held->update_performance_stats(own, K::float16, 1);
        if (!held->is_kernel_available(own, K::float16) || !held->is_kernel_available("matmul", K::float16)) ++wrong;
        if (!held->get_performance_stats(own, K::float16)) ++wrong;
        if (!held->find_kernel_capability("conv2d", K::float16)) ++wrong;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    registry.clear();
    if (registry.get_all_selectors().size() > 1) ++wrong;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace xpuruntime
