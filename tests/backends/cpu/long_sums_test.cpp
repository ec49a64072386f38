// Sums of very many terms of one sign, as the gradient of a mean has them: rounding errors do not cancel there, so an
// f32 that takes one term after the other loses digits in step with their number.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backends/cpu/forced_call.h"
#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

Tensor filled(const Dims& shape, float value) {
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  std::fill_n(tensor.as<float>(), element_count(tensor.spec()), value);
  return tensor;
}

/// A call with constant inputs: every element of an output is the sum of `terms` times the same value.
struct Sums {
  std::int64_t terms = 0;
  double value = 0;

  /// How many times the bound the worst error is; CONTRIBUTING.md has the bound.
  double error(const std::vector<float>& values) const {
    const double want = static_cast<double>(terms) * value;
    const double slack = (0.5 + 8 * std::sqrt(static_cast<double>(terms))) * 0x1p-24 * want;
    double worst = 0;
    for (const float got : values) worst = std::max(worst, std::fabs(static_cast<double>(got) - want) / slack);
    return worst;
  }
};

// A library adds up its terms in an order of its own, on aarch64 one after the other in longer runs. Of convolutions it
// is asked for short sums alone, at most 65536.
#if defined(__aarch64__)
constexpr double most_of_onednn = 12;
#else
constexpr double most_of_onednn = 5;
#endif

/// Tries every fast kernel that takes the call; `outputs` says which are sums. All of `least` must be among them.
void expect_within_bounds(const Attributes& attributes, const std::vector<Tensor>& inputs, Direction direction,
                          const std::map<std::size_t, Sums>& outputs, const std::vector<std::string>& least) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : inputs) specs.push_back(tensor.spec());
  const Problem problem = make_problem(attributes.op(), specs, attributes, {}, direction);
  std::vector<std::string> tried;
  for (const auto& kernel : cpu_kernels(attributes.op())) {
    if (kernel->name() == "reference" || !kernel->supports(problem, cpu_profile()).supported) continue;
    tried.emplace_back(kernel->name());
    const auto values = forced_call(tried.back(), attributes, inputs, direction);
    const double most = tried.back() == "onednn" ? most_of_onednn : 1;
    for (const auto& [output, sums] : outputs) {
      EXPECT_LE(sums.error(values[output]), most) << text_of(*kernel, problem) << ", output " << output;
    }
  }
  for (const std::string& name : least) {
    EXPECT_NE(std::find(tried.begin(), tried.end(), name), tried.end())
        << name << " did not take " << to_string(problem);
  }
}

constexpr float parts[] = {0.1f, 0.3f, 1.0f / 3};

double product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

TEST(LongSums, ProductsOfLongRows) {
  for (const float part : parts) {
    for (const std::int64_t k : {4096, 65536, 300000}) {
      const Sums sums = {k, product(part, part)};
      expect_within_bounds(Attributes(OpId::matmul), {filled({2, k}, part), filled({k, 2}, part)}, Direction::forward,
                           {{0, sums}}, {"skinny", "packed", "openblas"});
    }
    // More rows and columns than `skinny` takes, and a large operand that lies along k.
    const Sums sums = {65536, product(part, 1)};
    expect_within_bounds(Attributes(OpId::matmul), {filled({17, 65536}, part), filled({65536, 33}, 1)},
                         Direction::forward, {{0, sums}}, {"packed", "openblas"});
    expect_within_bounds(Attributes(OpId::linear), {filled({3, 65536}, part), filled({19, 65536}, 1)},
                         Direction::forward, {{0, sums}}, {"skinny", "packed", "openblas"});
  }
}

TEST(LongSums, TheWeightsGradientOfManyRows) {
  constexpr std::int64_t rows = 300000;
  for (const float part : parts) {
    const Sums weight = {rows, static_cast<double>(part)}, bias = weight;
    expect_within_bounds(Attributes(OpId::linear),
                         {filled({rows, 3}, 1), filled({2, 3}, 1), filled({2}, 0), filled({rows, 2}, part)},
                         Direction::backward, {{1, weight}, {2, bias}}, {"packed"});
  }
}

TEST(LongSums, GradientsOfConvolutionsOfLargeImages) {
  for (const float part : parts) {
    const Sums point = {700 * 700, static_cast<double>(part)};
    expect_within_bounds(
        Attributes(OpId::conv2d),
        {filled({1, 1, 700, 700}, 1), filled({2, 1, 1, 1}, 1), filled({2}, 0), filled({1, 2, 700, 700}, part)},
        Direction::backward, {{1, point}, {2, point}}, {"im2col"});
    // Windows that do not hang over the edge: all taps have as many terms. Many small images, and a large one.
    for (const auto& [images, side] : {std::pair<std::int64_t, std::int64_t>{16, 62}, {1, 254}}) {
      const Sums square = {images * side * side, static_cast<double>(part)};
      expect_within_bounds(Attributes(OpId::conv2d),
                           {filled({images, 2, side + 2, side + 2}, 1), filled({3, 2, 3, 3}, 1), filled({3}, 0),
                            filled({images, 3, side, side}, part)},
                           Direction::backward, {{1, square}, {2, square}}, {"im2col"});
    }
    const Sums pixels = {20000, static_cast<double>(part)};
    expect_within_bounds(Attributes(OpId::conv2d),
                         {filled({20000, 2, 1, 1}, 1), filled({2, 2, 1, 1}, 1), filled({20000, 2, 1, 1}, part)},
                         Direction::backward, {{1, pixels}}, {"im2col"});
  }
}

TEST(LongSums, ConvolutionsOfManyChannels) {
  for (const float part : parts) {
    const Sums deep = {4096 * 9, product(part, part)};
    expect_within_bounds(Attributes(OpId::conv2d), {filled({1, 4096, 5, 5}, part), filled({4, 4096, 3, 3}, part)},
                         Direction::forward, {{0, deep}}, {"im2col", "direct"});
    const Sums wide = {128 * 128, product(part, part)};
    expect_within_bounds(Attributes(OpId::conv2d).set("groups", 4),
                         {filled({1, 4, 160, 160}, part), filled({4, 1, 128, 128}, part)}, Direction::forward,
                         {{0, wide}}, {"depthwise"});
  }
}

TEST(LongSums, TheBiasGradientOfManyNormalisedRows) {
  for (const float part : parts) {
    // As many short rows as make one task, and more of longer ones.
    for (const auto& [rows, length] : {std::pair<std::int64_t, std::int64_t>{16384, 1}, {300000, 4}}) {
      const Sums bias = {rows, static_cast<double>(part)};
      expect_within_bounds(
          Attributes(OpId::layer_norm),
          {filled({rows, length}, 1), filled({length}, 1), filled({length}, 0), filled({rows, length}, part)},
          Direction::backward, {{2, bias}}, {"simd"});
    }
  }
}

TEST(LongSums, ReductionsOfShortRows) {
  for (const float part : parts) {
    const Sums sums = {2 * 8192, static_cast<double>(part)};
    expect_within_bounds(Attributes(OpId::reduce_sum).set_list("dim", std::vector<std::int64_t>{0, 2}),
                         {filled({8192, 3, 2}, part)}, Direction::forward, {{0, sums}}, {"simd"});
  }
}

// A weighted mean of equal values is that value, whatever rounding does to the weights.
TEST(LongSums, AttentionToManyKeys) {
  constexpr std::int64_t keys = 65536;
  for (const float part : parts) {
    const Sums mean = {keys, static_cast<double>(part) / keys};
    expect_within_bounds(Attributes(OpId::attention),
                         {filled({1, 1, 5, 8}, 0), filled({1, 1, keys, 8}, 1), filled({1, 1, keys, 8}, part)},
                         Direction::forward, {{0, mean}}, {"tiled", "composed"});
  }
}

// The gradient of log_softmax is g - y (sum of g) with y = 1 / n: zero where all g are alike, but for rounding.
TEST(LongSums, GradientsOfSoftmaxAlongManyRows) {
  constexpr std::int64_t rows = 65536;
  const auto gradient = forced_call("simd", Attributes(OpId::log_softmax).set("dim", 0),
                                    {filled({rows, 3}, 1), filled({rows, 3}, 0.1f)}, Direction::backward);
  const double slack = 2 * (8 * std::sqrt(static_cast<double>(rows)) + 16) * 0x1p-24 * static_cast<double>(0.1f);
  for (const float value : gradient[0]) ASSERT_LE(std::fabs(static_cast<double>(value)), slack);
}

TEST(LongSums, AveragesOfLargeWindows) {
  for (const float part : parts) {
    const Sums mean = {1000 * 1000, static_cast<double>(part) / 1e6};
    const Attributes whole =
        Attributes(OpId::avg_pool2d).set_list("kernel_size", std::vector<std::int64_t>{1000, 1000});
    expect_within_bounds(whole, {filled({1, 1, 1000, 1000}, part)}, Direction::forward, {{0, mean}}, {"simd"});
  }
}

// 10^10 taps, 16 of them in the image: to visit those of the padding would take minutes.
TEST(LongSums, WindowsThatAreMostlyPadding) {
  const Tensor image =
      tensor_of({1, 1, 4, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  const auto pooled = [&](Attributes attributes) {
    attributes.set_list("kernel_size", std::vector<std::int64_t>{100'000, 100'000});
    attributes.set_list("padding", std::vector<std::int64_t>{50'000, 50'000});
    return forced_call("reference", attributes, {image}).at(0);
  };
  EXPECT_EQ(pooled(Attributes(OpId::avg_pool2d)), std::vector<float>{136 / 1e10f});
  EXPECT_EQ(pooled(Attributes(OpId::avg_pool2d).set("count_include_pad", false)), std::vector<float>{136 / 16.0f});
  EXPECT_EQ(pooled(Attributes(OpId::max_pool2d)), std::vector<float>{16});
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
