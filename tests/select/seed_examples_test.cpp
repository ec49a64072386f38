// The usage examples of the kernel selector's seed, line by line.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

class SeedExamples : public ::testing::Test {
 protected:
  Runtime runtime{{false, false, {}}};
  const Device device = {};
  const std::shared_ptr<KernelSelector> selector = runtime.registry().get_or_create_selector(device);
};

TEST_F(SeedExamples, BasicKernelSelection) {
  const Tensor tensor = Tensor::empty(DataType::bfloat16, {2, 2});
  const KernelDtype of_a_tensor = selector->get_kernel_dtype(tensor);
  const KernelDtype of_an_op = selector->get_kernel_dtype("conv2d", {DataType::float16});
  EXPECT_EQ(of_a_tensor, KernelDtype::bfloat16);
  EXPECT_EQ(of_an_op, KernelDtype::float16);
  EXPECT_EQ(selector->device(), device);
}

TEST_F(SeedExamples, RegisterCustomKernel) {
  const KernelCapability capability{.dtype = KernelDtype::float16,
                                    .is_available = true,
                                    .supports_tensor_cores = true,
                                    .performance_factor = 2.0f,  // 2x faster than FP32
                                    .memory_efficiency = 2.0f};  // 2x more memory efficient
  selector->register_kernel_capability("custom_op", capability);
  EXPECT_EQ(selector->find_kernel_capability("custom_op", KernelDtype::float16), capability);
  EXPECT_TRUE(selector->is_kernel_available("custom_op", KernelDtype::float16));
}

TEST_F(SeedExamples, CheckKernelAvailability) {
  const bool has_fp16_kernel = selector->is_kernel_available("conv2d", KernelDtype::float16);
  const bool has_bf16_kernel = selector->is_kernel_available("matmul", KernelDtype::bfloat16);
  EXPECT_TRUE(has_fp16_kernel);  // the processor's kernels take both, whatever it computes in
  EXPECT_TRUE(has_bf16_kernel);
}

TEST_F(SeedExamples, GetPerformanceStats) {
  selector->update_performance_stats("conv2d", KernelDtype::float16, 1.25);
  selector->update_performance_stats("conv2d", KernelDtype::float16, 1.75);
  std::ostringstream out;
  const auto stats = selector->get_performance_stats("conv2d", KernelDtype::float16);
  if (stats) {
    out << "Avg time: " << stats->average_execution_time << "ms\n";
    out << "Executions: " << stats->execution_count << "\n";
  }
  EXPECT_EQ(out.str(), "Avg time: 1.5ms\nExecutions: 2\n");
}

TEST_F(SeedExamples, DefaultCapabilities) {
  const DeviceProfile& profile = runtime.devices().profile(device);
  for (const char* name : {"conv2d", "matmul", "relu", "gelu", "maxpool2d", "avgpool2d"}) {
    EXPECT_TRUE(selector->find_kernel_capability(name, KernelDtype::float32)) << name;
    EXPECT_TRUE(selector->is_kernel_available(name, KernelDtype::float32)) << name;
  }
  for (const char* name : {"conv2d", "matmul"}) {
    EXPECT_EQ(selector->find_kernel_capability(name, KernelDtype::float16).has_value(), profile.fp16) << name;
    EXPECT_EQ(selector->find_kernel_capability(name, KernelDtype::bfloat16).has_value(), profile.bf16) << name;
  }
}

/// What ran through the dispatcher counts as well as what was given by hand.
TEST_F(SeedExamples, GetPerformanceStatsOfCallsThatRan) {
  Dispatcher& dispatcher = runtime.dispatcher();
  dispatcher.enable_logging();
  const Tensor in = Tensor::empty(DataType::float32, {4});
  const Tensor out = Tensor::empty(DataType::float32, {4});
  std::fill_n(in.as<float>(), 4, 1.0f);
  const Tensor* inputs[] = {&in};
  const Tensor* outputs[] = {&out};
  for (int i = 0; i < 3; ++i) dispatcher.dispatch({OpId::relu, inputs, outputs});
  dispatcher.collect_statistics();
  const auto stats = selector->get_performance_stats("relu", KernelDtype::float32, &dispatcher.statistics());
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->execution_count, 3);
  EXPECT_LE(stats->min_execution_time, stats->average_execution_time);
  EXPECT_LE(stats->average_execution_time, stats->max_execution_time);
  EXPECT_EQ(selector->get_performance_stats("relu", KernelDtype::float16, &dispatcher.statistics()), std::nullopt);
}

}  // namespace
}  // namespace xpuruntime
