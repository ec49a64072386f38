#include <atomic>
#include <thread>

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

TEST_F(PlanClassTest, ThreadsMayUseOnePlanForOtherLengthsAtOnce) {
  const auto problem = [](int length) {
    const std::string spec = "f32[" + std::to_string(length) + ",3]";
    return parse_problem("add(" + spec + ", " + spec + ")", device);
  };
  const auto plan = prepare("ADD_DIRECT", problem(127));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      const Stream stream = driver().create_stream(device.index);
      for (int length = 65 + 2 * number; length < 127; length += 4) {
        const Problem now = problem(length);
        HostTensor x(now.inputs[0]);
        const auto count = static_cast<std::size_t>(3 * length);
        for (std::size_t i = 0; i < count; ++i) x.set(i, static_cast<double>(i));
        const Tensor in = upload(x, 0, stream), out = upload(HostTensor(now.outputs[0]), 0, stream);
        run(*plan, {in, in}, out, stream);
        const HostTensor got = download(out, stream);
        for (std::size_t i = 0; i < count; ++i) wrong += got.get(i) != 2 * static_cast<double>(i);
      }
      driver().destroy_stream(device.index, stream);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace xpuruntime::opencl
