#include "xpuruntime/core/problem.h"

#include <gtest/gtest.h>

#include <set>
#include <unordered_map>

#include "core/expect_error.h"
#include "core/infer_calls.h"
#include "core/random_problem.h"

namespace xpuruntime {
namespace {

TensorSpec f32(const Dims& shape) { return make_spec(DataType::float32, shape); }

TEST(Problem, InfersItsOutputs) {
  const Problem problem = make_problem(OpId::matmul, {f32({2, 3}), f32({3, 4})}, Attributes(OpId::matmul));
  ASSERT_EQ(problem.outputs.size(), 1U);
  EXPECT_EQ(problem.outputs[0], f32({2, 4}));
  EXPECT_EQ(problem.op, OpId::matmul);
  EXPECT_EQ(problem.direction, Direction::forward);
}

TEST(Problem, TakesAttributesOfNoOpAsDefaults) {
  const Problem problem = make_problem(OpId::softmax, {f32({2, 3})}, {});
  EXPECT_EQ(problem.attributes, Attributes(OpId::softmax));
  EXPECT_EQ(make_problem(OpId::relu, {f32({2})}, {}).attributes.op(), OpId::relu);
}

TEST(Problem, RefusesTheAttributesOfAnotherOp) {
  expect_invalid("the attributes of conv2d do not belong to matmul", [] {
    make_problem(OpId::matmul, {f32({2, 3}), f32({3, 4})}, Attributes(OpId::conv2d));
  });
}

TEST(Problem, MakesHandWrittenSpecsCanonicalAndChecksThem) {
  TensorSpec by_hand;
  by_hand.shape = {2, 3};
  const Problem problem = make_problem(OpId::relu, {by_hand}, {});
  EXPECT_EQ(problem.inputs[0], f32({2, 3}));
  by_hand.shape = {-1};
  expect_invalid("negative", [&] { make_problem(OpId::relu, {by_hand}, {}); });
  by_hand.shape = {2};
  by_hand.alignment = 3;
  expect_invalid("alignment", [&] { make_problem(OpId::relu, {by_hand}, {}); });
}

TEST(Problem, GivesBackwardTheGradientsOfTheFloatingInputs) {
  EXPECT_EQ(outputs_of("matmul:backward(f16[2,3], bf16[3,4], f32[2,4])"), "f16[2,3], bf16[3,4]");
  EXPECT_EQ(outputs_of("embedding:backward(i64[7], f32[10,4], f32[7,4])"), "f32[10,4]");
  EXPECT_EQ(outputs_of("cross_entropy:backward(f32[8,10], i64[8], f32[])"), "f32[8,10]");
}

TEST(Problem, KeepsTheLayoutOfElementsAndOfImages) {
  EXPECT_EQ(outputs_of("relu(f32[2,3]{1,2})"), "f32[2,3]{1,2}");
  EXPECT_EQ(outputs_of("relu:backward(f32[2,3]{1,2}, f32[2,3])"), "f32[2,3]{1,2}");
  EXPECT_EQ(outputs_of("add(f32[3], f16[4,2,3]{3,12,1})"), "f32[4,2,3]{3,12,1}");
  EXPECT_EQ(outputs_of("add(f32[2,3], f32[2,3]{1,2})"), "f32[2,3]") << "the first one decides";
  EXPECT_EQ(outputs_of("add:backward(f32[2,3]{1,2}, f32[3], f32[2,3])"), "f32[2,3]{1,2}, f32[3]");
  EXPECT_EQ(outputs_of("relu(f32[2,3]{1,4})"), "f32[2,3]{1,2}") << "a slice has gaps";
  EXPECT_EQ(outputs_of("relu(f32[2,3]{4,1})"), "f32[2,3]");
  EXPECT_EQ(outputs_of("relu(f32[2,1,3]{1,7,4})"), "f32[2,1,3]{1,6,2}");
  EXPECT_EQ(outputs_of("relu(f32[2,3]{0,1})"), "f32[2,3]");
  EXPECT_EQ(outputs_of("batch_norm2d(f32[2,4,5,5]{100,1,20,4}, f32[4], f32[4])"), "f32[2,4,5,5]{100,1,20,4}");
  EXPECT_EQ(outputs_of("batch_norm2d(f32[2,4,5,5]{200,1,40,8}, f32[4], f32[4])"), "f32[2,4,5,5]") << "a slice";
  EXPECT_EQ(outputs_of("max_pool2d(f32[2,4,6,6]{144,1,24,4}; kernel_size=2,2)"), "f32[2,4,3,3]{36,1,12,4}");
  EXPECT_EQ(outputs_of("max_pool2d(f32[2,4,6,6]{288,1,48,8}; kernel_size=2,2)"), "f32[2,4,3,3]{36,1,12,4}");
  EXPECT_EQ(outputs_of("avg_pool2d(f32[2,4,6,6]{144,1,24,4}; kernel_size=6,6)"), "f32[2,4,1,1]");
  EXPECT_EQ(outputs_of("max_pool2d(f32[2,4,6,6]{144,1,4,24}; kernel_size=2,2)"), "f32[2,4,3,3]") << "columns first";
  EXPECT_EQ(outputs_of("conv2d(f32[2,4,6,6]{144,1,24,4}, f32[8,4,3,3]{36,1,12,4})"), "f32[2,8,4,4]{128,1,32,8}");
  EXPECT_EQ(outputs_of("conv2d(f32[2,4,6,6]{144,1,24,4}, f32[8,4,1,1])"), "f32[2,8,6,6]{288,1,48,8}");
  EXPECT_EQ(outputs_of("conv2d(f32[2,4,6,6]{144,1,24,4}, f32[8,4,3,3])"), "f32[2,8,4,4]") << "the weight's differs";
  EXPECT_EQ(outputs_of("cast(f32[2,3]{1,2}; dtype=f16)"), "f16[2,3]{1,2}");
  EXPECT_EQ(outputs_of("normalize(f32[2,4,5]{20,1,4}; dim=1)"), "f32[2,4,5]{20,1,4}");
  EXPECT_EQ(outputs_of("concat(f32[2,4,5]{20,1,4}, f32[2,1,5]; dim=1)"), "f32[2,5,5]{25,1,5}");
  EXPECT_EQ(outputs_of("concat(f32[2,4,5]{20,1,4}, f32[2,4,5]; dim=1)"), "f32[2,8,5]");
  EXPECT_EQ(outputs_of("softmax(f32[2,3]{1,2})"), "f32[2,3]");
  EXPECT_EQ(outputs_of("copy(f32[2,3]{1,2})"), "f32[2,3]");
}

TEST(Problem, RefusesBackwardWhereNothingHasAGradient) {
  expect_invalid("no input that can have a gradient is floating", [] {
    Attributes to_half(OpId::cast);
    to_half.set("dtype", static_cast<std::int64_t>(DataType::float16));
    make_problem(OpId::cast, {make_spec(DataType::int64, {2}), make_spec(DataType::float16, {2})}, to_half, {},
                 Direction::backward);
  });
}

TEST(Problem, GivesBackwardNoGradientForWhatIsNotDifferentiable) {
  EXPECT_EQ(outputs_of("cross_entropy:backward(f32[8,10], i64[8], f32[10], f32[])"), "f32[8,10]");
  EXPECT_EQ(outputs_of("cross_entropy:backward(f16[8,10], f32[8,10], f32[])"), "f16[8,10]");
  EXPECT_EQ(outputs_of("nll_loss:backward(f32[8,10], i64[8], f32[10], f32[])"), "f32[8,10]");
  EXPECT_EQ(outputs_of("batch_norm1d:backward(f32[8,4], f32[4], f32[4], f16[4], f64[4], f32[8,4])"),
            "f32[8,4], f16[4], f64[4]");
  EXPECT_EQ(outputs_of("attention:backward(f32[1,2,3,4], f32[1,2,5,4], f32[1,2,5,4], f32[3,5], f32[1,2,3,4])"),
            "f32[1,2,3,4], f32[1,2,5,4], f32[1,2,5,4]");
  EXPECT_EQ(outputs_of("dropout:backward(f32[8], i64[2], f32[8])"), "f32[8]");
}

TEST(Problem, RefusesGradientsThatDoNotFit) {
  expect_refused("matmul:backward(f32[2,3], f32[3,4], f32[2,5])", "the gradient f32[2,5] does not match");
  expect_refused("matmul:backward(f32[2,3], f32[3,4])", "got 1 input");
  expect_refused("relu:backward()", "got no inputs");
  expect_refused("relu:backward(i32[2], f32[2])", "must be floating");
  expect_refused("relu:backward(f32[2], i32[2])", "must be floating");
  expect_refused("linear:backward(f32[2,3], f32[4,3], f32[4])", "does not match the output f32[2,4]");
  expect_error(ErrorCode::not_supported, "has no single output to take a gradient of; use it forward only",
               [] { parse_problem("batch_norm1d:backward(f32[8,4], f32[4], f32[4], f32[8,4]; training=true)"); });
}

TEST(Problem, RefusesMoreInputsThanThereIsRoomFor) {
  const std::vector<TensorSpec> many(65, f32({1}));
  expect_invalid("over the limit of 64", [&] { make_problem(OpId::concat, many, {}); });
  const std::vector<TensorSpec> most(64, f32({1}));
  EXPECT_EQ(make_problem(OpId::concat, most, {}).outputs[0].shape, (Dims{64}));
}

TEST(Problem, TakesGivenOutputsOfTheRightShape) {
  Problem problem = make_problem(OpId::add, {f32({2, 3}), f32({2, 3})}, {});
  const TensorSpec strided = make_spec(DataType::float16, {2, 3}, {1, 2}, 4);
  set_outputs(problem, {strided});
  EXPECT_EQ(problem.outputs[0], strided);
  expect_invalid("give the shape of f16[2,3]", [&] { set_outputs(problem, {f32({3, 2})}); });
  expect_invalid("got 2 outputs", [&] { set_outputs(problem, {strided, strided}); });
  expect_invalid("got 0 outputs", [&] { set_outputs(problem, {}); });
  expect_invalid("written twice", [&] { set_outputs(problem, {make_spec(DataType::float32, {2, 3}, {0, 1})}); });
  EXPECT_EQ(problem.outputs[0], strided) << "a refused output changes nothing";
}

TEST(Problem, DiffersInEachOfItsParts) {
  const char* texts[] = {
      "matmul(f32[2,2], f32[2,2]) @cpu:0",
      "matmul(f32[2,2], f32[2,2]) @cpu:1",
      "matmul(f32[2,2], f32[2,2]) @cuda:0",
      "matmul(f16[2,2], f32[2,2]) @cpu:0",
      "matmul(f32[2,2], f16[2,2]) @cpu:0",
      "matmul(f32[2,2]{1,2}, f32[2,2]) @cpu:0",
      "matmul(f32[2,2], f32[2,2]{1,2}) @cpu:0",
      "matmul(f32[2,2]/8, f32[2,2]) @cpu:0",
      "matmul(f32[2,2], f32[2,2]) -> f16[2,2] @cpu:0",
      "matmul(f32[2,2], f32[2,2]) @cpu:0 deterministic",
      "matmul(f32[2,2], f32[2,2]) @cpu:0 workspace_limit=0",
      "matmul(f32[2,2], f32[2,2]) @cpu:0 workspace_limit=1",
      "matmul(f32[2,2], f32[2,2]; transpose_a=true) @cpu:0",
      "matmul(f32[2,2], f32[2,2]; transpose_b=true) @cpu:0",
      "matmul:backward(f32[2,2], f32[2,2], f32[2,2]) @cpu:0",
      "add(f32[2,2], f32[2,2]) @cpu:0",
      "sub(f32[2,2], f32[2,2]) @cpu:0",
  };
  std::set<std::uint64_t> hashes;
  for (const char* a : texts) {
    hashes.insert(hash_of(parse_problem(a)));
    for (const char* b : texts) EXPECT_EQ(parse_problem(a) == parse_problem(b), a == b) << a << "\n" << b;
  }
  EXPECT_EQ(hashes.size(), std::size(texts));
}

TEST(Limits, TwoAreObeyedTogether) {
  const Limits none;
  const Limits some{.workspace_bytes = 100, .deterministic = true, .threads = 2};
  const Limits other{.workspace_bytes = 50, .deterministic = false, .threads = 4};
  EXPECT_EQ(stricter(none, none), none);
  EXPECT_EQ(stricter(some, none), some);
  EXPECT_EQ(stricter(none, some), some);
  EXPECT_EQ(stricter(some, other), (Limits{.workspace_bytes = 50, .deterministic = true, .threads = 2}));
}

TEST(Problem, HashesEqualProblemsAlike) {
  const Problem a = parse_problem("matmul(f32[2,1]{1,2}, f32[1,2]; transpose_a=false) @cuda:0");
  const Problem b = parse_problem("gemm(float32[2,1], fp32[1,2]) @nvidia");
  EXPECT_EQ(a, b);
  EXPECT_EQ(hash_of(a), hash_of(b));
}

// Neighbouring sizes are what real programs ask for, and what weak hashes confuse.
TEST(Problem, HashesNeighbouringSizesApart) {
  std::unordered_map<std::uint64_t, int> seen;
  int index = 0;
  Problem problem = make_problem(OpId::matmul, {f32({1, 1}), f32({1, 1})}, {});
  for (std::int64_t m = 1; m <= 60; ++m) {
    for (std::int64_t n = 1; n <= 60; ++n) {
      for (std::int64_t k = 1; k <= 56; ++k) {
        problem.inputs = {f32({m, k}), f32({k, n})};
        problem.outputs = {f32({m, n})};
        EXPECT_TRUE(seen.emplace(hash_of(problem), index++).second) << m << " " << n << " " << k;
      }
    }
  }
  EXPECT_EQ(seen.size(), 60U * 60U * 56U);
}

TEST(Problem, SpreadsTheLowBitsOfItsHashEvenly) {
  // 4096 buckets, 16 problems each on average: a fair hash leaves no bucket over 48 (chance below one in a million).
  std::vector<int> buckets(4096, 0);
  Problem problem = make_problem(OpId::matmul, {f32({1, 1}), f32({1, 1})}, {});
  for (std::int64_t m = 1; m <= 256; ++m) {
    for (std::int64_t n = 1; n <= 256; ++n) {
      problem.inputs = {f32({m * 8, 64}), f32({64, n * 8})};
      ++buckets[hash_of(problem) % buckets.size()];
    }
  }
  EXPECT_LT(*std::max_element(buckets.begin(), buckets.end()), 48);
}

TEST(Problem, HashesRandomProblemsApart) {
  ProblemMaker maker(7);
  std::unordered_map<std::uint64_t, Problem> seen;
  for (int i = 0; i < 40000; ++i) {
    const Problem problem = maker.make();
    const auto [it, is_new] = seen.emplace(hash_of(problem), problem);
    ASSERT_TRUE(is_new || it->second == problem) << to_string(it->second) << "\n" << to_string(problem);
  }
  EXPECT_GT(seen.size(), 35000U);
}

TEST(Problem, ComputesInThePromotedType) {
  const auto promoted = [](const char* text) { return promoted_dtype(parse_problem(text)); };
  EXPECT_EQ(promoted("matmul(f16[2,2], bf16[2,2])"), DataType::float32);
  EXPECT_EQ(promoted("matmul(i8[2,2], i8[2,2])"), DataType::int8);
  EXPECT_EQ(promoted("embedding(i64[2], f16[4,4])"), DataType::float16);
  EXPECT_EQ(promoted("add(i32[2], i64[2])"), DataType::int64);
  EXPECT_EQ(promoted("copy(bool[2])"), DataType::boolean);
}

}  // namespace
}  // namespace xpuruntime
