#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/forced_call.h"

namespace xpuruntime::cpu_tests {
namespace {

const float infinity = std::numeric_limits<float>::infinity();

TEST(SoftmaxSimd, TakesALongRowWhoseChunksAreFarApart) {
  // The first chunk is all -inf, the second far below the third, and the row ends inside a vector.
  const std::int64_t n = 12293;
  std::vector<float> values(static_cast<std::size_t>(n), -infinity);
  for (std::size_t i = 4096; i < 8192; ++i) values[i] = -50;
  for (std::size_t i = 8192; i < values.size(); ++i) values[i] = static_cast<float>(i % 3);
  double sum = 0;
  for (const float x : values) sum += std::exp(static_cast<double>(x));
  const auto softmax = forced_call("simd", Attributes(OpId::softmax), {tensor_of({n}, values)})[0];
  const auto log_softmax = forced_call("simd", Attributes(OpId::log_softmax), {tensor_of({n}, values)})[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = std::exp(static_cast<double>(values[i])) / sum;
    ASSERT_NEAR(softmax[i], p, 3e-5 * p) << i;
    if (i < 4096) {
      ASSERT_EQ(log_softmax[i], -infinity) << i;
    } else {
      ASSERT_NEAR(log_softmax[i], std::log(p), 5e-5) << i;
    }
  }
}

TEST(SoftmaxSimd, GivesNanForALongRowThatIsAllMinusInfinity) {
  const Tensor x = tensor_of({9000}, std::vector<float>(9000, -infinity));
  for (const OpId op : {OpId::softmax, OpId::log_softmax}) {
    const auto values = forced_call("simd", Attributes(op), {x})[0];
    for (const float value : values) ASSERT_TRUE(std::isnan(value));
  }
}

TEST(LayerNormSimd, KeepsItsDigitsFarFromZero) {
  // Mean 4096, deviation 1/16: the difference of mean squares would have none left. Short and long rows.
  for (const std::int64_t n : {1000, 20001}) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 4096 + (i % 2 == 0 ? 0.0625f : -0.0625f);
    const auto y = forced_call("simd", Attributes(OpId::layer_norm).set_real("eps", 0), {tensor_of({1, n}, values)})[0];
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(y[i], i % 2 == 0 ? 1 : -1, 0.01) << i << " of " << n;
  }
}

std::vector<float> waves(std::size_t count, double step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(step * static_cast<double>(i)) + 0.3);
  return values;
}

TEST(BatchNormSimd, ReadsChannelsLastAsTheyLie) {
  // The same values as planes and with channels last: [2,5,3,7].
  const std::vector<float> values = waves(210, 0.7);
  std::vector<float> last(210);
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t c = 0; c < 5; ++c) {
      for (std::size_t i = 0; i < 21; ++i) last[(n * 21 + i) * 5 + c] = values[(n * 5 + c) * 21 + i];
    }
  }
  const Tensor dense = tensor_of({210}, last);
  const TensorSpec strided = make_spec(DataType::float32, {2, 5, 3, 7}, {105, 1, 35, 5});
  const Tensor x(dense.data(), strided);
  Attributes attributes(OpId::batch_norm2d);
  attributes.set("training", 1);
  const auto planes = forced_call("simd", attributes, {tensor_of({2, 5, 3, 7}, values)})[0];

  const Tensor memory = Tensor::empty(DataType::float32, {210});
  const Tensor y(memory.data(), strided);
  const Tensor* const in[] = {&x};
  const Tensor* const to[] = {&y};
  KernelPolicy policy;
  policy.force("batch_norm2d", "simd");
  Runtime& runtime = Runtime::global();
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  runtime.dispatcher().dispatch({OpId::batch_norm2d, in, to, &attributes});
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t c = 0; c < 5; ++c) {
      for (std::size_t i = 0; i < 21; ++i) {
        ASSERT_NEAR(memory.as<float>()[(n * 21 + i) * 5 + c], planes[(n * 5 + c) * 21 + i], 1e-6);
      }
    }
  }
}

TEST(BatchNorm, ASingleValueMovesTheVarianceByTheBiasedOne) {
  Attributes attributes(OpId::batch_norm1d);
  attributes.set("training", 1).set_real("momentum", 0.5);
  const std::vector<Tensor> inputs = {tensor_of({1, 2}, std::vector<float>{3, -1}),
                                      tensor_of({2}, std::vector<float>{1, 1}),
                                      tensor_of({2}, std::vector<float>{4, 2})};
  for (const char* kernel : {"simd", "reference"}) {
    const auto outputs = forced_call(kernel, attributes, inputs);
    EXPECT_EQ(outputs[1], (std::vector<float>{2, 0})) << kernel;
    EXPECT_EQ(outputs[2], (std::vector<float>{2, 1})) << kernel;
  }
}

TEST(BatchNorm, AnEmptyBatchLeavesTheRunningStatisticsAsTheyAre) {
  Attributes attributes(OpId::batch_norm2d);
  attributes.set("training", 1);
  const std::vector<Tensor> inputs = {Tensor::empty(DataType::float32, {0, 2, 3, 3}),
                                      tensor_of({2}, std::vector<float>{1, 5}),
                                      tensor_of({2}, std::vector<float>{4, 2})};
  for (const char* kernel : {"simd", "reference"}) {
    const auto outputs = forced_call(kernel, attributes, inputs);
    EXPECT_EQ(outputs[1], (std::vector<float>{1, 5})) << kernel;
    EXPECT_EQ(outputs[2], (std::vector<float>{4, 2})) << kernel;
  }
}

TEST(NormalizeSimd, DividesByNormsThatHaveNoReciprocal) {
  // 1 / 2^-139 is no float, nor is 1 / 2^127 a normal one.
  for (const float size : {0x1p-140f, 0x1p126f}) {
    Attributes attributes(OpId::normalize);
    attributes.set_real("p", 1).set_real("eps", 0);
    const Tensor row = tensor_of({1, 2}, std::vector<float>{size, -size});
    EXPECT_EQ(forced_call("simd", attributes, {row})[0], (std::vector<float>{0.5f, -0.5f})) << size;
    attributes.set("dim", 0);
    const Tensor columns = tensor_of({2, 2}, std::vector<float>{size, 1, -size, 3});
    EXPECT_EQ(forced_call("simd", attributes, {columns})[0], (std::vector<float>{0.5f, 0.25f, -0.5f, 0.75f})) << size;
  }
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
