#include "backends/opencl/device_fixture.h"
#include "backends/opencl/programs.h"

namespace xpuruntime::opencl {
namespace {

using PlanClassTest = OpenClTest;

TEST_F(PlanClassTest, NothingIsCompiledWhileASequenceGrows) {
  const auto problem = [](int keys) {
    const std::string kv = "f32[1,2," + std::to_string(keys) + ",16]";
    return parse_problem("attention(f32[1,4,1,16], " + kv + ", " + kv + ")", device);
  };
  const auto step = [&](const Plan& plan, const Problem& now) {
    std::vector<Tensor> inputs;
    for (const TensorSpec& spec : now.inputs) inputs.push_back(upload(random_tensor(spec)));
    run(plan, inputs, upload(HostTensor(now.outputs[0])));
  };
  const auto plan = prepare("ATTENTION_SINGLE_QUERY", problem(1023));
  step(*plan, problem(1023));
  const BuildCounts before = build_counts();
  for (int keys = 513; keys < 1024; keys += 2) step(*plan, problem(keys));
  const BuildCounts after = build_counts();
  EXPECT_EQ(before.compiled, after.compiled);
  EXPECT_EQ(before.loaded, after.loaded);
}

}  // namespace
}  // namespace xpuruntime::opencl
