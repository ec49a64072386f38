// The casts of the CPU backend, as the op `cast` runs them, against the same model as the conversions of the core:
// tests/core/float_rounding_test.cpp says how to try more of them.

#include <gtest/gtest.h>

#include <ios>
#include <limits>
#include <string>
#include <vector>

#include "core/float_model.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cpu_tests {
namespace {

using testing::NarrowModel;

const NarrowModel& model_of(DataType dtype) {
  return dtype == DataType::float16 ? testing::float16_model() : testing::bfloat16_model();
}

class CastRounding : public ::testing::TestWithParam<const char*> {
 protected:
  /// Casts by the kernel under test, through the dispatcher.
  void cast(void* from, DataType dtype, void* to, DataType wanted, std::size_t n) {
    Dispatcher& dispatcher = Runtime::global().dispatcher();
    KernelPolicy policy;
    policy.force("cast", GetParam());
    const ScopedPolicy scope(dispatcher, policy);
    const Dims shape = {static_cast<std::int64_t>(n)};
    const Tensor in = Tensor::view(from, dtype, shape), out = Tensor::view(to, wanted, shape);
    const Tensor* const inputs[] = {&in};
    const Tensor* const outputs[] = {&out};
    Attributes attributes(OpId::cast);
    attributes.set("dtype", static_cast<std::int64_t>(wanted));
    const Call call = {OpId::cast, inputs, outputs, &attributes};
    dispatcher.dispatch(call);
    ASSERT_EQ(dispatcher.decide(call).kernel, GetParam());
  }

  void expect_nearest(std::vector<float>& values) {
    for (const DataType dtype : {DataType::float16, DataType::bfloat16}) {
      std::vector<std::uint16_t> codes(values.size());
      cast(values.data(), DataType::float32, codes.data(), dtype, values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(model_of(dtype).agrees(values[i], codes[i]))
            << std::hexfloat << values[i] << " became " << model_of(dtype).value_of(codes[i]) << " of "
            << to_string(dtype) << ", not " << model_of(dtype).nearest(values[i]);
      }
    }
  }
};

constexpr std::size_t batch = 1 << 18;

TEST_P(CastRounding, EveryExponentIsRoundedToTheNearestAroundEveryTie) {
  std::vector<float> values;
  testing::for_each_edge([&](float x) {
    values.push_back(x);
    if (values.size() < batch || HasFatalFailure()) return;
    expect_nearest(values);
    values.clear();
  });
  expect_nearest(values);
}

TEST_P(CastRounding, RandomFloatsAreRoundedToTheNearest) {
  testing::RandomFloats random(7);
  std::vector<float> values(batch);
  for (std::int64_t left = testing::float_count(4'000'000); left > 0 && !HasFatalFailure(); left -= batch) {
    for (float& value : values) value = random.next();
    expect_nearest(values);
  }
}

TEST_P(CastRounding, LargeFloatsBecomeInfinityAndNanStaysNan) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values = {65519,       65520,    -65520,    1e30f, 0x1.fefffep127f,
                               0x1.ffp127f, infinity, -infinity, nan,   -nan};
  values.push_back(std::bit_cast<float>(0x7f800001u));  // a payload that would be cut off
  std::vector<std::uint16_t> halves(values.size()), brains(values.size());
  cast(values.data(), DataType::float32, halves.data(), DataType::float16, values.size());
  cast(values.data(), DataType::float32, brains.data(), DataType::bfloat16, values.size());
  const std::vector<std::uint16_t> expected_halves = {0x7bff, 0x7c00, 0xfc00, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0xfc00};
  const std::vector<std::uint16_t> expected_brains = {0x4780, 0x4780, 0xc780, 0x714a, 0x7f7f, 0x7f80, 0x7f80, 0xff80};
  for (std::size_t i = 0; i < expected_halves.size(); ++i) {
    EXPECT_EQ(halves[i], expected_halves[i]) << values[i];
    EXPECT_EQ(brains[i], expected_brains[i]) << values[i];
  }
  for (std::size_t i = expected_halves.size(); i < values.size(); ++i) {
    EXPECT_TRUE(std::isnan(model_of(DataType::float16).value_of(halves[i]))) << i;
    EXPECT_TRUE(std::isnan(model_of(DataType::bfloat16).value_of(brains[i]))) << i;
  }
}

std::vector<std::uint16_t> all_codes() {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  return codes;
}

TEST_P(CastRounding, EveryCodeBecomesItsFloat) {
  for (const DataType dtype : {DataType::float16, DataType::bfloat16}) {
    std::vector<std::uint16_t> codes = all_codes();
    std::vector<float> values(codes.size());
    cast(codes.data(), dtype, values.data(), DataType::float32, codes.size());
    for (unsigned code = 0; code < values.size(); ++code) {
      const double expected = model_of(dtype).value_of(code);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[code])) << to_string(dtype) << " " << code;
        continue;
      }
      ASSERT_EQ(values[code], expected) << to_string(dtype) << " " << code;
      ASSERT_EQ(std::signbit(values[code]), std::signbit(expected)) << to_string(dtype) << " " << code;
    }
  }
}

TEST_P(CastRounding, EveryCodeOfOneSixteenBitFloatBecomesTheNearestOfTheOther) {
  for (const DataType from : {DataType::float16, DataType::bfloat16}) {
    const DataType to = from == DataType::float16 ? DataType::bfloat16 : DataType::float16;
    std::vector<std::uint16_t> codes = all_codes(), results(codes.size());
    cast(codes.data(), from, results.data(), to, codes.size());
    for (unsigned code = 0; code < codes.size(); ++code) {
      // Every value of either is a float, so that the model of floats serves.
      const auto value = static_cast<float>(model_of(from).value_of(code));
      ASSERT_TRUE(model_of(to).agrees(value, results[code])) << to_string(from) << " " << code << ": " << value;
    }
  }
}

/// To so many bits, ties to even, by integers alone.
std::uint64_t rounded(std::uint64_t magnitude, int bits) {
  const int beyond = static_cast<int>(std::bit_width(magnitude)) - bits;
  if (beyond <= 0) return magnitude;
  const std::uint64_t half = std::uint64_t{1} << (beyond - 1), rest = magnitude & (2 * half - 1);
  const std::uint64_t kept = magnitude >> beyond;
  return (kept + (rest > half || (rest == half && kept % 2 == 1))) << beyond;
}

// Through a double, 2^53 + 2^29 + 1 would be a tie of f32.
TEST_P(CastRounding, SixtyFourBitIntegersAreRoundedOnce) {
  if (GetParam() == std::string("simd")) GTEST_SKIP() << "it takes no i64";
  std::vector<std::int64_t> values = {0, 1, 65519, 65520, std::numeric_limits<std::int64_t>::max()};
  for (int power = 20; power < 63; ++power) {
    for (const int bits : {24, 11, 8}) {
      for (const std::int64_t odd : {1, 3}) {  // a tie that goes down, and one that goes up
        const std::int64_t tie = (std::int64_t{1} << power) + (odd << std::max(0, power - bits));
        for (const std::int64_t near : {-1, 0, 1}) values.push_back(tie + near);
      }
    }
  }
  for (std::size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<std::int64_t>::min());
  std::vector<float> floats(values.size());
  std::vector<std::uint16_t> halves(values.size()), brains(values.size());
  cast(values.data(), DataType::int64, floats.data(), DataType::float32, values.size());
  cast(values.data(), DataType::int64, halves.data(), DataType::float16, values.size());
  cast(values.data(), DataType::int64, brains.data(), DataType::bfloat16, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<std::uint64_t>(values[i]);
    const auto expect_rounded = [&](double result, int to) {
      const auto expected = static_cast<double>(rounded(values[i] < 0 ? -bits : bits, to));  // has no more bits
      const bool too_large = to == 11 && expected >= 65536;
      EXPECT_EQ(std::abs(result), too_large ? INFINITY : expected) << values[i] << " to " << to << " bits";
      EXPECT_EQ(result < 0, values[i] < 0);
    };
    expect_rounded(floats[i], 24);
    expect_rounded(model_of(DataType::float16).value_of(halves[i]), 11);
    expect_rounded(model_of(DataType::bfloat16).value_of(brains[i]), 8);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryKernel, CastRounding, ::testing::Values("simd", "reference"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace xpuruntime::cpu_tests
