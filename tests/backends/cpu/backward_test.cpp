// Backward calls through the dispatcher: which kernel runs them, what they refuse, and values at the edges.

#include <gtest/gtest.h>

#include "backends/cpu/forced_call.h"
#include "backends/cpu/plan_run.h"
#include "core/expect_error.h"

namespace xpuruntime::cpu_tests {
namespace {

/// A backward call on tensors of the test's own, with outputs as inferred from good inputs.
struct BackwardCall {
  BackwardCall(const Attributes& made, std::vector<Tensor> given, std::vector<Tensor> results)
      : attributes(made), inputs(std::move(given)), outputs(std::move(results)) {}

  void run() const {
    const auto in = oracle::pointers(inputs), out = oracle::pointers(outputs);
    Runtime::global().dispatcher().dispatch({.op = attributes.op(),
                                             .inputs = in,
                                             .outputs = out,
                                             .attributes = &attributes,
                                             .direction = Direction::backward});
  }

  Attributes attributes;
  std::vector<Tensor> inputs, outputs;
};

std::vector<float> values_of(const Tensor& tensor) {
  const auto* data = tensor.as<const float>();
  return {data, data + element_count(tensor.spec())};
}

Tensor sevens(const Dims& shape) {
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  std::fill_n(tensor.as<float>(), element_count(tensor.spec()), 7.0f);
  return tensor;
}

/// The error must be invalid_argument, hold `part` and say what to do; no output may have been touched.
void expect_refused(const BackwardCall& call, const std::string& part) {
  const std::string text = error_text(ErrorCode::invalid_argument, [&] { call.run(); });
  EXPECT_HAS(text, part) << "lacks: " << part;
  EXPECT_HAS(text, "; ");
  for (const Tensor& output : call.outputs) {
    for (const float value : values_of(output)) EXPECT_EQ(value, 7.0f);
  }
}

TEST(Backward, RefusesGradientsThatAreMissingOrDoNotFit) {
  const Tensor a = sevens({2, 3}), b = sevens({3, 4}), good = sevens({2, 4}), wrong = sevens({2, 5});
  const Tensor da = sevens({2, 3}), db = sevens({3, 4});
  const Tensor whole = tensor_of({2, 4}, std::vector<std::int64_t>(8, 1));
  const Attributes attributes(OpId::matmul);
  expect_refused({attributes, {a, b, wrong}, {da, db}}, "does not match the output f32[2,4]");
  expect_refused({attributes, {a, b}, {da, db}}, "got 1 input");
  expect_refused({attributes, {a, b, whole}, {da, db}}, "must be floating");
  expect_refused({attributes, {a, b, good}, {da}}, "got 1 output");
  expect_refused({attributes, {a, b, good}, {da, sevens({4, 3})}}, "output 1");
}

TEST(Backward, RefusesOutputsOverWhatIsStillRead) {
  const Tensor a = sevens({4, 4}), b = sevens({4, 4}), g = sevens({4, 4});
  expect_refused({Attributes(OpId::matmul), {a, b, g}, {a, sevens({4, 4})}}, "output 0 overlaps input 0");
}

TEST(Backward, OfAnActivationMayWriteOverItsGradient) {
  const Tensor x = tensor_of({4}, std::vector<float>{-1, 2, 0, 3}), g = tensor_of({4}, std::vector<float>{5, 6, 7, 8});
  BackwardCall(Attributes(OpId::relu), {x, g}, {g}).run();
  EXPECT_EQ(values_of(g), (std::vector<float>{0, 6, 0, 8}));
}

/// The kernel that runs a problem when a policy forces this one.
std::string forced(const std::string& kernel, const std::string& text) {
  Runtime& runtime = Runtime::global();
  const Problem problem = parse_problem(text);
  KernelPolicy policy;
  policy.force(to_string(problem.op), kernel);
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  return runtime.dispatcher().explain(problem).kernel;
}

TEST(Backward, IsRunByTheKernelThatAPolicyForcesForTheOp) {
  for (const char* kernel : {"small", "packed", "openblas", "reference"}) {
    EXPECT_EQ(forced(kernel, "matmul(f32[16,32], f32[32,48])"), kernel);
    EXPECT_EQ(forced(kernel, "matmul:backward(f32[16,32], f32[32,48], f32[16,48])"), kernel);
    EXPECT_EQ(forced(kernel, "linear:backward(f32[16,32], f32[48,32], f32[48], f32[16,48]; activation=silu)"), kernel);
  }
  EXPECT_EQ(forced("skinny", "matmul:backward(f32[1,512], f32[512,300], f32[1,300])"), "skinny");
  EXPECT_EQ(forced("im2col", "conv2d:backward(f32[1,4,8,8], f32[6,4,3,3], f32[1,6,6,6])"), "im2col");
  EXPECT_EQ(forced("simd", "layer_norm:backward(f32[4,8], f32[8], f32[4,8])"), "simd");
}

/// The reason that a kernel gives for a problem it does not take.
std::string refusal(const std::string& kernel, const std::string& text) {
  const Problem problem = parse_problem(text);
  for (const auto& candidate : cpu_kernels(problem.op)) {
    if (candidate->name() == kernel) return candidate->supports(problem, cpu_profile()).reason;
  }
  return "there is no such kernel";
}

TEST(Backward, IsRefusedWithAReasonWhereAKernelHasNone) {
  EXPECT_EQ(refusal("simd", "exp:backward(f32[8], f32[8])"), "forward only");
  EXPECT_EQ(refusal("reference", "max_pool2d:backward(f32[1,1,4,4], f32[1,1,2,2]; kernel_size=2)"), "forward only");
  EXPECT_EQ(refusal("direct", "conv2d:backward(f32[1,4,8,8], f32[6,4,3,3], f32[1,6,6,6])"), "forward only");
  EXPECT_EQ(refusal("simd", "softmax:backward(bf16[4,8], f32[4,8])"),
            "the gradient is f32, and this kernel takes the input's bf16");
  EXPECT_EQ(refusal("skinny", "matmul:backward(f32[100,100], f32[100,100], f32[100,100])"),
            "m = 100 and n = 100 are both over 8");
}

// A mean over no target at all is NaN, but what does not count has no gradient.
TEST(Backward, OfTargetsThatDoNotCountIsZero) {
  for (const char* kernel : {"simd", "reference"}) {
    KernelPolicy policy;
    policy.force("cross_entropy", kernel).force("nll_loss", kernel);
    const ScopedPolicy scope(Runtime::global().dispatcher(), policy);
    for (const OpId op : {OpId::cross_entropy, OpId::nll_loss}) {
      const Tensor targets = tensor_of({2}, std::vector<std::int64_t>{-100, -100});
      const Tensor out = sevens({2, 3});
      BackwardCall(Attributes(op), {sevens({2, 3}), targets, tensor_of({}, std::vector<float>{1})}, {out}).run();
      EXPECT_EQ(values_of(out), std::vector<float>(6, 0.0f)) << kernel;
    }
  }
}

// One exponential past the range of f32 beside others: no step may leave it.
TEST(Backward, OfSoftmaxHoldsForHugeScores) {
  for (const char* kernel : {"simd", "reference"}) {
    KernelPolicy policy;
    policy.force("softmax", kernel);
    const ScopedPolicy scope(Runtime::global().dispatcher(), policy);
    const Tensor x = tensor_of({3}, std::vector<float>{1e30f, 1e30f, -1e30f});
    const Tensor g = tensor_of({3}, std::vector<float>{1, 3, 100}), out = sevens({3});
    BackwardCall(Attributes(OpId::softmax), {x, g}, {out}).run();
    EXPECT_EQ(values_of(out), (std::vector<float>{-0.5f, 0.5f, 0})) << kernel;
  }
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
