#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "backends/cpu/forced_call.h"

namespace xpuruntime::cpu_tests {
namespace {

Attributes along(OpId op, std::vector<std::int64_t> dims) { return Attributes(op).set_list("dim", dims); }

// Small integers: every partial sum is exact, so a term lost or taken twice shows.
std::vector<float> small_integers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  return values;
}

double exact_sum(const std::vector<float>& values, std::size_t first, std::size_t count, std::size_t step) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(values[first + i * step]);
  return sum;
}

TEST(ReduceSimd, SumsAcrossUnitsExactly) {
  // One less, as much, and one more than a unit and than several.
  for (const std::int64_t n : {16383, 16384, 16385, 65537, 300007}) {
    const std::vector<float> values = small_integers(static_cast<std::size_t>(n));
    const auto sum = forced_call("simd", Attributes(OpId::reduce_sum), {tensor_of({n}, values)});
    EXPECT_EQ(sum[0][0], exact_sum(values, 0, values.size(), 1)) << n;
  }
}

TEST(ReduceSimd, SumsColumnsOfEveryWidthExactly) {
  for (const std::int64_t width : {1, 2, 3, 15, 16, 17, 63, 64, 65, 130, 1025}) {
    for (const std::int64_t rows : {1, 7, 9, 1023, 2050}) {
      const std::vector<float> values = small_integers(static_cast<std::size_t>(rows * width));
      const auto sums = forced_call("simd", along(OpId::reduce_sum, {0}), {tensor_of({rows, width}, values)});
      for (std::int64_t c = 0; c < width; ++c) {
        const auto column = static_cast<std::size_t>(c);
        ASSERT_EQ(sums[0][column],
                  exact_sum(values, column, static_cast<std::size_t>(rows), static_cast<std::size_t>(width)))
            << rows << " rows, column " << c << " of " << width;
      }
    }
  }
}

TEST(ReduceSimd, SumsRowsOfEveryLengthExactly) {
  for (std::int64_t n = 1; n < 150; ++n) {
    const std::int64_t rows = 37;
    const std::vector<float> values = small_integers(static_cast<std::size_t>(rows * n));
    const auto sums = forced_call("simd", along(OpId::reduce_sum, {1}), {tensor_of({rows, n}, values)});
    for (std::int64_t r = 0; r < rows; ++r) {
      ASSERT_EQ(sums[0][static_cast<std::size_t>(r)],
                exact_sum(values, static_cast<std::size_t>(r * n), static_cast<std::size_t>(n), 1))
          << "row " << r << " of " << n;
    }
  }
}

TEST(ReduceSimd, FindsNanWhereverItStands) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const OpId op : {OpId::reduce_max, OpId::reduce_min}) {
    for (const std::int64_t n : {5, 16, 37, 150}) {
      for (std::int64_t at = 0; at < n; ++at) {
        std::vector<float> values = small_integers(static_cast<std::size_t>(n));
        values[static_cast<std::size_t>(at)] = nan;
        const Tensor x = tensor_of({n, 1}, values);
        EXPECT_TRUE(std::isnan(forced_call("simd", along(op, {0}), {x})[0][0])) << at << " of " << n << " in a row";
        const Tensor both = tensor_of({n, 2}, [&] {
          std::vector<float> pairs;
          for (const float value : values) pairs.insert(pairs.end(), {1, value});
          return pairs;
        }());
        const auto columns = forced_call("simd", along(op, {0}), {both})[0];
        EXPECT_EQ(columns[0], 1);
        EXPECT_TRUE(std::isnan(columns[1])) << at << " of " << n << " in a column";
      }
    }
  }
}

TEST(ReduceSimd, PlusZeroIsAboveMinusZeroWhereverItStands) {
  for (const char* kernel : {"simd", "reference"}) {
    for (const OpId op : {OpId::reduce_max, OpId::reduce_min}) {
      const float usual = op == OpId::reduce_max ? -0.0f : 0.0f;
      for (const std::int64_t n : {5, 16, 37, 150}) {
        for (std::int64_t at = 0; at < n; ++at) {
          std::vector<float> values(static_cast<std::size_t>(n), usual);
          values[static_cast<std::size_t>(at)] = -usual;
          for (const Dims& shape : {Dims{1, n}, Dims{n, 1}}) {
            const float got = forced_call(kernel, along(op, {shape[0] == 1 ? 1 : 0}), {tensor_of(shape, values)})[0][0];
            ASSERT_EQ(std::signbit(got), std::signbit(-usual)) << kernel << ": " << at << " of " << n;
          }
        }
      }
    }
  }
}

TEST(ReduceSimd, ReadsPermutedTensorsAsTheyLie) {
  std::vector<float> values(60);
  std::iota(values.begin(), values.end(), 0.0f);
  const Tensor dense = tensor_of({60}, values);
  // [3,4,5] seen as [5,3,4].
  const Tensor x(dense.data(), make_spec(DataType::float32, {5, 3, 4}, {1, 20, 5}));
  const auto sums = forced_call("simd", along(OpId::reduce_sum, {0}), {x})[0];
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(sums[i], exact_sum(values, i * 5, 5, 1));
  const auto other = forced_call("simd", along(OpId::reduce_sum, {1}), {x})[0];
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(other[i * 4 + j], exact_sum(values, i + j * 5, 3, 20));
  }
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
