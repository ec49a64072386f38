// Between f32 and the 16-bit floats: every code, every exponent's edges, and random floats by the million, against a
// model in double. For a billion of them:
//
//   XRT_TEST_FLOATS=1000000000 core_tests --gtest_filter='*FloatRounding*'

#include <gtest/gtest.h>

#include <ios>
#include <string>

#include "core/float_model.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime {
namespace {

using testing::NarrowModel;

struct Format {
  std::string name;
  const NarrowModel& model;
  std::uint16_t (*encode)(double);
  double (*decode)(std::uint16_t);
};

void PrintTo(const Format& format, std::ostream* out) { *out << format.name; }

class FloatRounding : public ::testing::TestWithParam<Format> {
 protected:
  /// The first few differences are shown, all are counted.
  void expect_nearest(float x) {
    const std::uint16_t code = encode_(x);
    if (model_.agrees(x, code)) [[likely]]
      return;
    if (++wrong_ > 5) return;
    ADD_FAILURE() << std::hexfloat << x << " became " << model_.value_of(code) << ", not " << model_.nearest(x);
  }

  const NarrowModel& model_ = GetParam().model;
  std::uint16_t (*const encode_)(double) = GetParam().encode;
  std::int64_t wrong_ = 0;
};

TEST_P(FloatRounding, EveryCodeIsAFloatAndComesBackFromIt) {
  for (unsigned code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const double value = GetParam().decode(bits), expected = model_.value_of(code);
    const auto narrow = static_cast<float>(value);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_TRUE(std::isnan(model_.value_of(encode_(narrow)))) << code;
      continue;
    }
    ASSERT_EQ(value, expected) << code;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << code;
    ASSERT_EQ(static_cast<double>(narrow), value) << code;
    ASSERT_EQ(encode_(narrow), code);
  }
}

TEST_P(FloatRounding, EveryExponentIsRoundedToTheNearestAroundEveryTie) {
  testing::for_each_edge([&](float x) { expect_nearest(x); });
  EXPECT_EQ(wrong_, 0);
}

TEST_P(FloatRounding, RandomFloatsAreRoundedToTheNearest) {
  testing::RandomFloats random(20240607);
  for (std::int64_t left = testing::float_count(50'000'000); left > 0; --left) expect_nearest(random.next());
  EXPECT_EQ(wrong_, 0);
}

INSTANTIATE_TEST_SUITE_P(All, FloatRounding,
                         ::testing::Values(Format{"f16", testing::float16_model(), encode_float16, decode_float16},
                                           Format{"bf16", testing::bfloat16_model(), encode_bfloat16, decode_bfloat16}),
                         [](const auto& info) { return info.param.name; });

// The model is held to numbers that anybody can check by hand.
TEST(NarrowModel, RoundsAsTheStandardSays) {
  const NarrowModel& f16 = testing::float16_model();
  EXPECT_EQ(f16.nearest(65504), 65504);
  EXPECT_EQ(f16.nearest(65519), 65504);
  EXPECT_TRUE(std::isinf(f16.nearest(65520)));
  EXPECT_EQ(f16.nearest(2049), 2048);  // between 2048 and 2050, which is odd in units
  EXPECT_EQ(f16.nearest(2051), 2052);
  EXPECT_EQ(f16.nearest(0x1p-24f), 0x1p-24);
  EXPECT_EQ(f16.nearest(0x1p-25f), 0);
  EXPECT_EQ(f16.nearest(0x1.8p-24f), 0x1p-23);
  EXPECT_TRUE(std::signbit(f16.nearest(-0x1p-30f)));
  const NarrowModel& bf16 = testing::bfloat16_model();
  EXPECT_EQ(bf16.nearest(257), 256);
  EXPECT_EQ(bf16.nearest(259), 260);
  EXPECT_TRUE(std::isinf(bf16.nearest(0x1.fffffep127f)));
  EXPECT_EQ(bf16.nearest(0x1p-149f), 0);
  EXPECT_EQ(bf16.nearest(0x1p-133f), 0x1p-133);
  EXPECT_FALSE(f16.agrees(1, 0x3c01));
  EXPECT_FALSE(f16.agrees(0, 0x8000));
}

}  // namespace
}  // namespace xpuruntime
