#include "xpuruntime/runtime/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "core/expect_error.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

using Doubles = std::vector<double>;

Tensor tensor_of(const std::vector<float>& values, const Dims& shape) {
  const Tensor tensor = Tensor::empty(DataType::float32, shape);
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

Tensor random_tensor(const Dims& shape, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> numbers(low, high);
  const Tensor tensor = Tensor::empty(DataType::float32, shape);
  std::generate_n(tensor.as<float>(), element_count(tensor.spec()), [&] { return numbers(generator); });
  return tensor;
}

Doubles doubles_of(const Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), DataType::float32);
  return Doubles(tensor.as<float>(), tensor.as<float>() + element_count(tensor.spec()));
}

void expect_near(const Tensor& tensor, const Dims& shape, const Doubles& expected) {
  ASSERT_EQ(tensor.shape(), shape);
  const Doubles found = doubles_of(tensor);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

Doubles mapped(const Tensor& tensor, const std::function<double(double)>& function) {
  Doubles values = doubles_of(tensor);
  std::transform(values.begin(), values.end(), values.begin(), function);
  return values;
}

/// A product of matrices with strides for rows and columns of both.
Doubles product(const Tensor& a, const Tensor& b, bool b_transposed = false) {
  const Doubles x = doubles_of(a), y = doubles_of(b);
  const auto m = static_cast<std::size_t>(a.shape()[0]), k = static_cast<std::size_t>(a.shape()[1]);
  const std::size_t n = y.size() / k;
  Doubles out(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t l = 0; l < k; ++l) out[i * n + j] += x[i * k + l] * y[b_transposed ? j * k + l : l * n + j];
    }
  }
  return out;
}

/// Of one image and square windows: [channels, height, width] with [out, channels, kernel, kernel].
Doubles convolution(const Tensor& image, const Tensor& weight, const Tensor& bias, std::int64_t stride,
                    std::int64_t padding) {
  const Doubles x = doubles_of(image), w = doubles_of(weight), b = doubles_of(bias);
  const std::int64_t channels = image.shape()[1], height = image.shape()[2], width = image.shape()[3];
  const std::int64_t kernel = weight.shape()[2];
  const std::int64_t rows = (height + 2 * padding - kernel) / stride + 1;
  const std::int64_t columns = (width + 2 * padding - kernel) / stride + 1;
  Doubles out;
  for (std::int64_t o = 0; o < weight.shape()[0]; ++o) {
    for (std::int64_t place = 0; place < rows * columns; ++place) {
      double sum = b[static_cast<std::size_t>(o)];
      for (std::int64_t tap = 0; tap < channels * kernel * kernel; ++tap) {
        const std::int64_t c = tap / (kernel * kernel);
        const std::int64_t i = place / columns * stride + tap / kernel % kernel - padding;
        const std::int64_t j = place % columns * stride + tap % kernel - padding;
        if (i < 0 || j < 0 || i >= height || j >= width) continue;
        sum += x[static_cast<std::size_t>((c * height + i) * width + j)] *
               w[static_cast<std::size_t>(o * channels * kernel * kernel + tap)];
      }
      out.push_back(sum);
    }
  }
  return out;
}

TEST(Ops, ReturnWhatTheyCompute) {
  const Tensor a = random_tensor({5, 7}, 1), b = random_tensor({7, 3}, 2), w = random_tensor({4, 7}, 3);
  expect_near(ops::matmul(a, b), {5, 3}, product(a, b));
  expect_near(ops::matmul(a, w, {.transpose_b = true}), {5, 4}, product(a, w, true));
  expect_near(ops::relu(a), {5, 7}, mapped(a, [](double x) { return std::max(x, 0.0); }));
  expect_near(ops::silu(a), {5, 7}, mapped(a, [](double x) { return x / (1 + std::exp(-x)); }));
  const Tensor c = random_tensor({5, 7}, 4);
  Doubles sums = doubles_of(a);
  const Doubles other = doubles_of(c);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other[i];
  expect_near(ops::add(a, c), {5, 7}, sums);
}

TEST(Ops, TakeOptionalInputsByName) {
  const Tensor x = random_tensor({5, 7}, 1), w = random_tensor({4, 7}, 2), bias = random_tensor({4}, 3);
  Doubles expected = product(x, w, true);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::max(0.0, expected[i] + doubles_of(bias)[i % 4]);
  }
  expect_near(ops::linear(x, w, {.bias = &bias, .activation = "relu"}), {5, 4}, expected);
}

TEST(Ops, TakeOneIntegerForAList) {
  const Tensor x = random_tensor({1, 3, 9, 8}, 1), w = random_tensor({4, 3, 3, 3}, 2), bias = random_tensor({4}, 3);
  expect_near(ops::conv2d(x, w, {.bias = &bias, .stride = 2, .padding = 1}), {1, 4, 5, 4},
              convolution(x, w, bias, 2, 1));
  expect_near(ops::conv2d(x, w, {.bias = &bias, .stride = {2, 2}, .padding = {1, 1}}), {1, 4, 5, 4},
              convolution(x, w, bias, 2, 1));
  const Tensor pooled = ops::max_pool2d(tensor_of({1, 5, 2, 3, 4, 0, 7, 6}, {1, 1, 2, 4}), 2);
  expect_near(pooled, {1, 1, 1, 2}, {5, 7});
}

TEST(Ops, ReduceAlongOneDimOrAll) {
  const Tensor x = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_near(ops::reduce_sum(x), {}, {21});
  expect_near(ops::reduce_sum(x, {.dim = -1}), {2}, {6, 15});
  expect_near(ops::reduce_mean(x, {.dim = 0, .keepdim = true}), {1, 3}, {2.5, 3.5, 4.5});
  expect_near(ops::reduce_max(x, {.dim = {0, 1}}), {}, {6});
  Doubles expected;
  for (const double row : {0.0, 3.0}) {
    const double sum = std::exp(row + 1) + std::exp(row + 2) + std::exp(row + 3);
    for (const double i : {1.0, 2.0, 3.0}) expected.push_back(std::exp(row + i) / sum);
  }
  expect_near(ops::softmax(x), {2, 3}, expected);
}

TEST(Ops, MakeUpWeightsThatAreLeftOutBeforeABias) {
  const Tensor x = tensor_of({1, 2, 3, 2, 4, 9}, {2, 3}), bias = tensor_of({10, 20, 30}, {3});
  Doubles expected;
  for (const Doubles& row : {Doubles{1, 2, 3}, Doubles{2, 4, 9}}) {
    const double mean = (row[0] + row[1] + row[2]) / 3;
    double variance = 0;
    for (const double value : row) variance += (value - mean) * (value - mean) / 3;
    for (std::size_t i = 0; i < 3; ++i) {
      expected.push_back((row[i] - mean) / std::sqrt(variance + 1e-5) + doubles_of(bias)[i]);
    }
  }
  expect_near(ops::layer_norm(x, {.bias = &bias}), {2, 3}, expected);
}

TEST(Ops, LeaveOutInputsBeforeOthers) {
  const Tensor a = random_tensor({3, 4}, 1), b = random_tensor({4, 5}, 2), scale = tensor_of({2.5F}, {1});
  Doubles expected = product(a, b);
  for (double& value : expected) value *= 2.5;
  expect_near(ops::matmul(a, b, {.scale_b = &scale}), {3, 5}, expected);
}

TEST(Ops, TakeANumberInThePlaceOfATensor) {
  const Tensor x = tensor_of({1, 2, 3}, {3});
  expect_near(ops::mul(x, 0.5), {3}, {0.5, 1, 1.5});
  expect_near(ops::add(x, 2), {3}, {3, 4, 5});
  std::int32_t integers[] = {1, 2, 3};
  const Tensor whole = ops::mul(Tensor::view(integers, {3}), 3);
  EXPECT_EQ(whole.dtype(), DataType::int32);
  EXPECT_EQ(whole.as<std::int32_t>()[2], 9);
  expect_near(ops::mul(Tensor::view(integers, {3}), 0.5), {3}, {0.5, 1, 1.5});
}

TEST(Ops, TakeIntegersExactly) {
  std::int64_t values[] = {1};
  const Tensor one = Tensor::view(values, {1});
  for (const std::int64_t number : {9007199254740993, -9007199254740993, INT64_MAX - 1, INT64_MIN}) {
    EXPECT_EQ(*ops::mul(one, number).as<std::int64_t>(), number);
  }
  EXPECT_EQ(*ops::add(one, 9007199254740993).as<std::int64_t>(), 9007199254740994);
  EXPECT_EQ(*ops::mul(one, true).as<std::int64_t>(), 1);
  expect_invalid("does not fit i64", [&] { ops::add(one, UINT64_MAX); });
  expect_near(ops::mul(tensor_of({1}, {1}), UINT64_MAX), {1}, {0x1p64});
  std::int8_t small[] = {1};
  expect_invalid("does not fit i8", [&] { ops::add(Tensor::view(small, {1}), 300); });
}

// As in Python.
TEST(Ops, RefuseNumbersThatANarrowFloatWouldDistort) {
  const Tensor x = tensor_of({2}, {1});
  const Tensor half = ops::cast(x, DataType::float16), eighth = ops::cast(x, DataType::float8_e5m2);
  for (const double number : {1e-8, 1e5, -1e5}) {
    expect_invalid("does not fit f16", [&] { ops::mul(half, number); });
  }
  expect_invalid("does not fit f16", [&] { ops::add(half, 100000); });
  expect_invalid("does not fit f8e5m2", [&] { ops::mul(eighth, 1e-8); });
  const auto as_floats = [](const Tensor& tensor) { return ops::cast(tensor, DataType::float32); };
  expect_near(as_floats(ops::mul(half, 0.1)), {1}, {0.199951171875});
  expect_near(as_floats(ops::mul(eighth, 1.1)), {1}, {2});
  EXPECT_EQ(*as_floats(ops::add(half, INFINITY)).as<float>(), INFINITY);
  EXPECT_EQ(*ops::mul(x, 1e300).as<float>(), INFINITY);
}

TEST(Ops, MoveElements) {
  const Tensor x = tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}), y = tensor_of({7, 8}, {2, 1});
  expect_near(ops::concat({x, y}, {.dim = 1}), {2, 4}, {1, 2, 3, 7, 4, 5, 6, 8});
  expect_near(ops::transpose(x), {3, 2}, {1, 4, 2, 5, 3, 6});
  expect_near(ops::slice(x, {.dim = 1, .start = 1}), {2, 2}, {2, 3, 5, 6});
  const std::int64_t rows[] = {1, 0, 1};
  expect_near(ops::embedding(Tensor::view(rows, {3}), x), {3, 3}, {4, 5, 6, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ(ops::cast(x, DataType::float64).as<double>()[5], 6.0);
}

TEST(Ops, NameChoices) {
  const Tensor scores = tensor_of({1, 2, 0.5F, 3}, {2, 2});
  const std::int64_t classes[] = {0, 1};
  const Tensor target = Tensor::view(classes, {2});
  const double first = std::log(std::exp(1.0) + std::exp(2.0)) - 1,
               second = std::log(std::exp(0.5) + std::exp(3.0)) - 3;
  expect_near(ops::cross_entropy(scores, target), {}, {(first + second) / 2});
  expect_near(ops::cross_entropy(scores, target, {.reduction = "none"}), {2}, {first, second});
  expect_error(ErrorCode::unknown_name, "did you mean sum",
               [&] { ops::cross_entropy(scores, target, {.reduction = "sun"}); });
}

TEST(Ops, GiveSeveralResults) {
  const Tensor gradients = tensor_of({2, 4}, {2});
  const auto [unscaled, found_inf] = ops::unscale(gradients, 0.5);
  expect_near(unscaled, {2}, {1, 2});
  expect_near(found_inf, {1}, {0});
  const std::array<Tensor, 2> out = {Tensor::empty(DataType::float32, {2}), Tensor::empty(DataType::float32, {1})};
  ops::unscale_out(out, gradients, 0.25);
  expect_near(out[0], {2}, {0.5, 1});
}

TEST(Ops, GiveTheLogarithmsOfAttentionsSums) {
  const Tensor query = tensor_of({1, 2}, {1, 1, 1, 2}), key = tensor_of({3, 4, 1, 0}, {1, 1, 2, 2});
  const Tensor value = tensor_of({1, 0}, {1, 1, 2, 1});
  const double sum = std::exp(11.0) + std::exp(1.0);
  const auto [output, lse] = ops::attention_with_lse(query, key, value, {.scale = 1});
  expect_near(output, {1, 1, 1, 1}, {std::exp(11.0) / sum});
  expect_near(lse, {1, 1, 1}, {std::log(sum)});
  expect_near(ops::attention(query, key, value, {.scale = 1}), {1, 1, 1, 1}, {std::exp(11.0) / sum});
  const std::array<Tensor, 2> out = {Tensor::empty(DataType::float32, {1, 1, 1, 1}),
                                     Tensor::empty(DataType::float32, {1, 1, 1})};
  ops::attention_with_lse_out(out, query, key, value, {.scale = 1});
  expect_near(out[1], {1, 1, 1}, {std::log(sum)});
}

TEST(Ops, UpdateRunningStatisticsInPlace) {
  const Tensor x = tensor_of({1, 3, 5, 7}, {4, 1});  // mean 4, variance 5, or 20/3 without bias
  const Tensor mean = tensor_of({0}, {1}), variance = tensor_of({1}, {1});
  const ops::BatchNorm1dOptions options{
      .running_mean = &mean, .running_var = &variance, .training = true, .momentum = 0.5};
  const double spread = std::sqrt(5 + 1e-5);
  const Doubles expected = {-3 / spread, -1 / spread, 1 / spread, 3 / spread};
  expect_near(ops::batch_norm1d(x, options), {4, 1}, expected);
  expect_near(mean, {1}, {2});
  expect_near(variance, {1}, {0.5 + 20.0 / 6});
  const Tensor out = Tensor::empty(DataType::float32, {4, 1});
  ops::batch_norm1d_out(out, x, options);
  expect_near(out, {4, 1}, expected);
  expect_near(mean, {1}, {3});
  const Tensor constant = mean.as_read_only();
  expect_invalid("is read-only", [&] {
    ops::batch_norm1d(x, {.running_mean = &constant, .running_var = &variance, .training = true});
  });
  expect_invalid("running_var is left out", [&] { ops::batch_norm1d(x, {.running_mean = &mean, .weight = &mean}); });
}

TEST(Ops, WriteToMemoryThatIsGiven) {
  const Tensor a = random_tensor({5, 7}, 1), b = random_tensor({7, 3}, 2);
  const Tensor out = Tensor::empty(DataType::float32, {5, 3});
  const void* memory = out.data();
  ops::matmul_out(out, a, b);
  EXPECT_EQ(out.data(), memory);
  expect_near(out, {5, 3}, product(a, b));
  expect_invalid("give the shape of f32[5,3]", [&] { ops::matmul_out(b, a, b); });
}

TEST(Ops, ReadConstMemoryAndNeverWriteIt) {
  const std::vector<float> values = {1, -2, 3};
  const Tensor x = Tensor::view(values.data(), {3});
  EXPECT_TRUE(x.read_only());
  expect_near(ops::relu(x), {3}, {1, 0, 3});
  std::vector<float> memory(3);
  ops::relu_out(Tensor::view(memory.data(), {3}), x);  // warm from here on
  expect_invalid("relu: the output f32[3] is read-only; write to memory that is not const",
                 [&] { ops::relu_out(Tensor::view(values.data(), {3}), Tensor::view(memory.data(), {3})); });
  EXPECT_EQ(values, (std::vector<float>{1, -2, 3}));
}

TEST(Ops, RefuseWhatDoesNotFit) {
  const Tensor a = random_tensor({2, 3}, 1);
  expect_invalid("inner extents 3 and 2 differ", [&] { ops::matmul(a, a); });
  expect_invalid("1 or 2", [&] {
    ops::conv2d(random_tensor({1, 1, 4, 4}, 1), random_tensor({1, 1, 1, 1}, 2), {.stride = {1, 2, 3}});
  });
  expect_invalid("empty Tensor object", [] { ops::relu(Tensor()); });
  expect_invalid("no input", [] { ops::concat({}); });
  expect_invalid("more than 64 inputs", [&] { ops::concat(std::vector<Tensor>(65, a)); });
  expect_invalid("the first input is a number", [] { ops::call(OpId::add, {1, 2}); });
  expect_invalid("1 attributes, and it has 0", [&] { ops::call(OpId::relu, {a}, {true}); });
  expect_invalid("has 2 results with these options, and 1 are taken; take all with call_all<2>", [&] {
    ops::call(OpId::unscale, {a, 0.5});
  });
  expect_invalid("kernel_size is 0", [] { ops::max_pool2d(random_tensor({1, 1, 4, 4}, 1), 0); });
}

TEST(Ops, FollowThePolicyInForce) {
  Dispatcher& dispatcher = Runtime::global().dispatcher();
  const Tensor a = random_tensor({4, 4}, 1);
  dispatcher.enable_logging();
  {
    const ScopedPolicy scope(dispatcher, KernelPolicy().force("matmul", "reference"));
    ops::matmul(a, a);
  }
  const std::vector<LogEntry> logs = dispatcher.logs();
  dispatcher.disable_logging();
  dispatcher.clear_logs();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs[0].decision->kernel, "reference");
}

}  // namespace
}  // namespace xpuruntime
