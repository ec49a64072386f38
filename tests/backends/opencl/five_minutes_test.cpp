// The kernel that docs/opencl.md adds in five minutes, as it stands there: CMakeLists.txt takes its blocks out of the
// page.

#include "backends/opencl/device_fixture.h"
#include "five_minutes/relu_plain.inc"

namespace xpuruntime::opencl {
namespace {

constexpr KernelSpec documented[] = {
#include "five_minutes/row.inc"
};

using FiveMinutesTest = OpenClTest;

TEST_F(FiveMinutesTest, TheDocumentedKernelIsRightInEveryDtypeOfItsRow) {
  const auto kernel = make_kernel(documented[0], OpId::relu, DeviceType::opencl);
  EXPECT_EQ(kernel->name(), "RELU_PLAIN");
  for (const DataType dtype : {DataType::float32, DataType::float16, DataType::bfloat16}) {
    const TensorSpec spec = make_spec(dtype, {3, 333});
    const Problem problem = problem_of(OpId::relu, {spec}, Attributes(OpId::relu));
    ASSERT_TRUE(kernel->supports(problem, profile()).supported) << to_string(dtype);
    const auto plan = kernel->prepare(problem, {device, profile(), driver()}, {});
    const HostTensor host = random_tensor(spec);
    const Tensor output = upload(HostTensor(spec));
    run(*plan, {upload(host)}, output);
    const HostTensor got = download(output);
    for (std::size_t i = 0; i < 999; ++i) ASSERT_EQ(got.get(i), std::max(0.0, host.get(i))) << to_string(dtype) << i;
  }
}

TEST_F(FiveMinutesTest, ItRefusesWhatItCannotRun) {
  const auto kernel = make_kernel(documented[0], OpId::relu, DeviceType::opencl);
  const auto refusal = [&](const TensorSpec& spec) {
    return kernel->supports(problem_of(OpId::relu, {spec}, Attributes(OpId::relu)), profile()).reason;
  };
  EXPECT_NE(refusal(make_spec(DataType::float32, {4, 4}, {1, 4})), "");
  EXPECT_NE(refusal(make_spec(DataType::float64, {4})), "");
}

}  // namespace
}  // namespace xpuruntime::opencl
