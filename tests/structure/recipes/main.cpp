// Runs the recipes of CONTRIBUTING.md and backend.h, forward and backward: recipes PLUGIN...
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "xpuruntime/registry/backend.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime::cpu {

#include "declarations.inc"

constexpr KernelSpec table[] = {
#include "row.inc"
};

}  // namespace xpuruntime::cpu

namespace {

using namespace xpuruntime;

class FastRelu : public Backend {
 public:
  std::string_view name() const override { return "recipe"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
  std::span<const KernelSpec> kernels() const override { return cpu::table; }
};

Status my_relu(const Problem& problem, const RunArguments& arguments) {
  for (std::int64_t i = 0; i < element_count(problem.inputs[0]); ++i) {
    const float x = arguments.inputs[0]->as<const float>()[i];
    arguments.outputs[0]->as<float>()[i] = x > 0 ? x : 0;
  }
  return {};
}

void add_function_kernel(Runtime& runtime) {
#include "function_kernel.inc"
}

void add_rule(Runtime& runtime, Device device) {
#include "rule.inc"
}

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

/// Forward runs the kernel and gives relu; backward runs another and gives the gradient.
void expect_relu(Runtime& runtime, const std::string& kernel) {
  std::array<float, 4> in = {-1, 2, -3, 4}, gradient = {10, 20, 30, 40}, out = {};
  const Tensor x = Tensor::view(in.data(), DataType::float32, {4});
  const Tensor g = Tensor::view(gradient.data(), DataType::float32, {4});
  const Tensor y = Tensor::view(out.data(), DataType::float32, {4});
  const Tensor *inputs[] = {&x, &g}, *outputs[] = {&y};
  const Call forward{.op = OpId::relu, .inputs = std::span(inputs).first(1), .outputs = outputs};
  const Call backward{.op = OpId::relu, .inputs = inputs, .outputs = outputs, .direction = Direction::backward};
  Dispatcher& dispatcher = runtime.dispatcher();
  expect(dispatcher.decide(forward).kernel == kernel, dispatcher.decide(forward).to_text());
  dispatcher.dispatch(forward);
  expect(out == std::array<float, 4>{0, 2, 0, 4}, kernel + " computes something else");
  const Decision decision = dispatcher.decide(backward);
  expect(decision.kernel != kernel, decision.to_text());
  dispatcher.dispatch(backward);
  expect(out == std::array<float, 4>{0, 20, 0, 40}, "backward of " + decision.kernel + " is wrong beside " + kernel);
  for (const Candidate& candidate : decision.candidates) {
    expect(candidate.kernel != kernel || candidate.reason == "forward only", decision.to_text());
  }
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    Runtime with_plugin({false, false, {arguments[i]}});
    expect_relu(with_plugin, "my_relu");
  }
  Runtime runtime({false, false, {}});
  runtime.registry().add_backend(std::make_shared<FastRelu>());
  expect_relu(runtime, "fast_relu");
  add_function_kernel(runtime);
  expect_relu(runtime, "mine");
  add_rule(runtime, {});
  const KernelList kernels = runtime.registry().kernels(OpId::matmul, DeviceType::cpu);
  const std::vector<Rule> rules = runtime.registry().get_or_create_selector({})->rules(OpId::matmul);
  DeviceProfile profile = runtime.devices().profile({});
  for (const bool integrated : {false, true}) {
    profile.integrated = integrated;
    const Problem problem = parse_problem("matmul(f32[2,64], f32[64,64])");
    const Decision decision = select({problem, profile, kernels, {}, rules}).decision;
    expect((decision.level == Level::rule && decision.kernel == "skinny") == integrated, decision.to_text());
  }
  std::puts("the recipes hold");
  return 0;
}
