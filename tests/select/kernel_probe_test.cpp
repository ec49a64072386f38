#include "select/kernel_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/expect_error.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

using K = KernelDtype;

std::vector<OpId> builtin_ops() {
  std::vector<OpId> ops;
  for (int i = 0; i < static_cast<int>(OpId::builtin_count); ++i) ops.push_back(static_cast<OpId>(i));
  return ops;
}

bool has_input_of(const Problem& problem, DataType dtype) {
  return std::any_of(problem.inputs.begin(), problem.inputs.end(),
                     [=](const TensorSpec& input) { return input.dtype == dtype; });
}

TEST(KernelProbe, HasAUsualProblemForEveryOpInEveryFloat) {
  for (const OpId op : builtin_ops()) {
    for (const DataType dtype : {DataType::float32, DataType::float16, DataType::bfloat16}) {
      const auto problem = usual_problem(op, std::span(&dtype, 1));
      ASSERT_TRUE(problem) << to_string(op) << ' ' << to_string(dtype);
      EXPECT_EQ(problem->op, op);
      const bool any = op_info(op).sample.empty() || op_info(op).sample.find('T') != std::string_view::npos;
      EXPECT_TRUE(!any || has_input_of(*problem, dtype)) << to_string(*problem);
    }
  }
}

TEST(KernelProbe, MixesDtypesFromTheFirstInputOn) {
  constexpr DataType dtypes[] = {DataType::float16, DataType::float32};
  EXPECT_EQ(to_string(usual_problem(OpId::matmul, dtypes).value()), "matmul(f16[64,64], f32[64,64]) @cpu:0");
}

/// The processor has kernels for every op in all three: 16-bit floats are computed in f32.
TEST(KernelProbe, FindsWhatTheProcessorCanRun) {
  Runtime runtime({false, false, {}});
  const auto selector = runtime.registry().get_or_create_selector({});
  for (const OpId op : builtin_ops()) {
    for (const K dtype : {K::float32, K::float16, K::bfloat16}) {
      const DataType input = *to_data_type(dtype);
      const auto problem = usual_problem(op, std::span(&input, 1));
      ASSERT_TRUE(problem);
      const bool runs = !runtime.dispatcher().explain(*problem).kernel.empty();
      EXPECT_EQ(selector->is_kernel_available(op, dtype), runs && has_input_of(*problem, input)) << to_string(*problem);
    }
  }
  EXPECT_TRUE(selector->is_kernel_available("conv2d", K::float16));
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::bfloat16));
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::float32));
  EXPECT_TRUE(selector->is_kernel_available("add", K::mixed));
  EXPECT_FALSE(selector->is_kernel_available("relu", K::mixed));
}

TEST(KernelProbe, IsAnErrorForADeviceThatIsNotThere) {
  DeviceManager devices;
  KernelRegistry registry(devices);
  const KernelProbe probe(registry, {DeviceType::npu, 0});
  expect_error(ErrorCode::not_supported, "npu:0 is not available", [&] { probe.takes(OpId::matmul, K::float32); });
}

}  // namespace
}  // namespace xpuruntime
