#include "xpuruntime/core/float_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace xpuruntime {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// One format, seen from outside: its two functions and what the standard says of it.
struct Format {
  std::string name;
  unsigned codes;
  unsigned (*encode)(double);
  double (*decode)(unsigned);
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;

  unsigned sign() const { return codes / 2; }
};

template <auto encode>
unsigned encode_with(double value) {
  return encode(value);
}
template <auto decode, class Code>
double decode_with(unsigned code) {
  return decode(static_cast<Code>(code));
}

const Format formats[] = {
    {"f16", 65536, encode_with<encode_float16>, decode_with<decode_float16, std::uint16_t>, 5, 10, true},
    {"bf16", 65536, encode_with<encode_bfloat16>, decode_with<decode_bfloat16, std::uint16_t>, 8, 7, true},
    {"f8e4m3", 256, encode_with<encode_float8_e4m3>, decode_with<decode_float8_e4m3, std::uint8_t>, 4, 3, false},
    {"f8e5m2", 256, encode_with<encode_float8_e5m2>, decode_with<decode_float8_e5m2, std::uint8_t>, 5, 2, true},
};

class FloatFormat : public ::testing::TestWithParam<Format> {};

/// What the bits mean by the book: plain arithmetic, no bit tricks.
double value_by_the_book(const Format& format, unsigned code) {
  const double sign = code >= format.sign() ? -1 : 1;
  const unsigned magnitude = code % format.sign();
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const double fraction =
      static_cast<double>(magnitude % (1u << format.mantissa_bits)) / static_cast<double>(1u << format.mantissa_bits);
  const int top = (1 << format.exponent_bits) - 1;
  const int bias = top / 2;
  if (format.has_infinity && exponent == top) return fraction == 0 ? sign * infinity : nan;
  if (!format.has_infinity && magnitude == format.sign() - 1) return nan;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

TEST_P(FloatFormat, DecodesEveryCodeByTheBook) {
  const Format& format = GetParam();
  for (unsigned code = 0; code < format.codes; ++code) {
    const double expected = value_by_the_book(format, code);
    const double decoded = format.decode(code);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(decoded)) << code;
    } else {
      ASSERT_EQ(decoded, expected) << code;
      ASSERT_EQ(std::signbit(decoded), code >= format.sign()) << code;
    }
  }
}

TEST_P(FloatFormat, GivesEveryCodeBackAndKeepsNanNan) {
  const Format& format = GetParam();
  for (unsigned code = 0; code < format.codes; ++code) {
    const double value = format.decode(code);
    const unsigned again = format.encode(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(format.decode(again))) << code;
      ASSERT_EQ(again / format.sign(), code / format.sign()) << "the sign of NaN " << code;
    } else {
      ASSERT_EQ(again, code);
    }
  }
}

/// The nearest code by search: all magnitudes sorted, a tie goes to the even code. It knows no format but its values.
class Nearest {
 public:
  explicit Nearest(const Format& format) : format_(format) {
    for (unsigned code = 0; code < format.sign(); ++code) {
      const double value = value_by_the_book(format, code);
      if (std::isfinite(value)) values_.push_back(value);
    }
    // What the next value would be if the exponent range went on: the yardstick for overflow.
    beyond_ = values_.back() + (values_.back() - values_[values_.size() - 2]);
  }

  /// The expected code of a number; for NaN there are several.
  unsigned operator()(double value) const {
    const unsigned sign = std::signbit(value) ? format_.sign() : 0;
    const double magnitude = std::fabs(value);
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    const auto index = static_cast<unsigned>(above - values_.begin());
    if (above != values_.end() && *above == magnitude) return sign + index;
    const double upper = above == values_.end() ? beyond_ : *above;
    if (magnitude >= beyond_) return sign + index;  // the first code past the numbers: infinity, or E4M3's NaN
    const unsigned below = index - 1;
    // The distances are exact: both neighbours are within a factor of two, or the lower one is 0.
    const double down = magnitude - values_[below];
    const double up = upper - magnitude;
    if (down != up) return sign + (down < up ? below : index);
    return sign + (below % 2 == 0 ? below : index);
  }

  const std::vector<double>& values() const { return values_; }
  double beyond() const { return beyond_; }

 private:
  const Format& format_;
  std::vector<double> values_;
  double beyond_ = 0;
};

void expect_nearest(const Format& format, const Nearest& nearest, double value) {
  ASSERT_EQ(format.encode(value), nearest(value)) << format.name << " of " << std::hexfloat << value;
  ASSERT_EQ(format.encode(-value), nearest(-value)) << format.name << " of " << std::hexfloat << -value;
}

void expect_nearest_around(const Format& format, const Nearest& nearest, double value) {
  expect_nearest(format, nearest, value);
  expect_nearest(format, nearest, std::nextafter(value, infinity));
  expect_nearest(format, nearest, std::nextafter(value, 0));
}

TEST_P(FloatFormat, RoundsEveryMidpointToTheEvenNeighbourAndItsSurroundingsToTheNearer) {
  const Format& format = GetParam();
  const Nearest nearest(format);
  const std::vector<double>& values = nearest.values();
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    expect_nearest_around(format, nearest, 0.5 * (values[i] + values[i + 1]));
    expect_nearest_around(format, nearest, values[i + 1]);
    if (HasFatalFailure()) return;
  }
}

TEST_P(FloatFormat, OverflowsFromHalfWayPastTheLargestNumber) {
  const Format& format = GetParam();
  const Nearest nearest(format);
  const double largest = nearest.values().back();
  const double threshold = 0.5 * (largest + nearest.beyond());
  expect_nearest_around(format, nearest, threshold);
  expect_nearest_around(format, nearest, nearest.beyond());
  const double below = format.decode(format.encode(std::nextafter(threshold, 0)));
  EXPECT_EQ(below, largest);
  const double above = format.decode(format.encode(std::nextafter(threshold, infinity)));
  EXPECT_TRUE(format.has_infinity ? above == infinity : std::isnan(above));
}

TEST_P(FloatFormat, IsRightAtTheEdgesOfEveryExponentOfDouble) {
  const Format& format = GetParam();
  const Nearest nearest(format);
  for (int exponent = -1074; exponent <= 1023; ++exponent) {
    expect_nearest_around(format, nearest, std::ldexp(1.0, exponent));
    expect_nearest_around(format, nearest, std::ldexp(1.5, exponent));
    if (HasFatalFailure()) return;
  }
  expect_nearest(format, nearest, std::numeric_limits<double>::max());
  expect_nearest(format, nearest, 0.0);
}

TEST_P(FloatFormat, RoundsRandomNumbersToTheNearest) {
  const Format& format = GetParam();
  const Nearest nearest(format);
  std::mt19937_64 random(20240607);
  std::uniform_real_distribution<double> exponent(std::log2(nearest.values()[1]) - 3, std::log2(nearest.beyond()) + 2);
  for (int i = 0; i < 250000; ++i) {
    const double wide = std::bit_cast<double>(random() >> 1);  // any double at all
    if (!std::isnan(wide)) expect_nearest(format, nearest, wide);
    const double inside = std::exp2(exponent(random));
    expect_nearest(format, nearest, inside);
    expect_nearest(format, nearest, static_cast<float>(inside));
    if (HasFatalFailure()) return;
  }
}

TEST_P(FloatFormat, TurnsInfinityIntoInfinityOrNanAndKeepsZerosSigns) {
  const Format& format = GetParam();
  const double decoded = format.decode(format.encode(-infinity));
  EXPECT_TRUE(format.has_infinity ? decoded == -infinity : std::isnan(decoded));
  EXPECT_EQ(format.encode(0.0), 0u);
  EXPECT_EQ(format.encode(-0.0), format.sign());
  EXPECT_TRUE(std::isnan(format.decode(format.encode(nan))));
  EXPECT_TRUE(std::isnan(format.decode(format.encode(std::numeric_limits<double>::signaling_NaN()))));
}

INSTANTIATE_TEST_SUITE_P(All, FloatFormat, ::testing::ValuesIn(formats),
                         [](const auto& info) { return info.param.name; });

TEST(Float8E4m3, HasNoInfinityAnywhere) {
  for (unsigned code = 0; code < 256; ++code) {
    EXPECT_FALSE(std::isinf(decode_float8_e4m3(static_cast<std::uint8_t>(code)))) << code;
  }
  EXPECT_EQ(encode_float8_e4m3(448), 0x7e);
  EXPECT_EQ(encode_float8_e4m3(464), 0x7e);
  EXPECT_EQ(encode_float8_e4m3(464.0000001), 0x7f);
  EXPECT_EQ(encode_float8_e4m3(-1e300), 0xff);
  EXPECT_EQ(encode_float8_e4m3(infinity), 0x7f);
}

TEST(Float16, IsRoundedOnceFromTheFullDouble) {
  // Just over the midpoint, but on it once it was rounded to a float: going through float would round down to 1.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(encode_float16(value), 0x3c01);
  EXPECT_EQ(encode_float16(static_cast<double>(static_cast<float>(value))), 0x3c00);
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) std::uint16_t hardware_encode(float value) {
  return static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
__attribute__((target("f16c"))) float hardware_decode(std::uint16_t bits) { return _cvtsh_ss(bits); }
// Whoever has AVX2 has F16C, for which not every compiler can ask.
bool has_hardware() { return __builtin_cpu_supports("avx2"); }
#elif defined(__aarch64__)
std::uint16_t hardware_encode(float value) { return std::bit_cast<std::uint16_t>(static_cast<__fp16>(value)); }
float hardware_decode(std::uint16_t bits) { return static_cast<float>(std::bit_cast<__fp16>(bits)); }
bool has_hardware() { return true; }
#else
std::uint16_t hardware_encode(float) { return 0; }
float hardware_decode(std::uint16_t) { return 0; }
bool has_hardware() { return false; }
#endif

TEST(Float16, AgreesWithTheProcessor) {
  if (!has_hardware()) GTEST_SKIP() << "this processor has no float16 conversions";
  for (unsigned code = 0; code < 65536; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const float expected = hardware_decode(bits);
    ASSERT_EQ(std::isnan(decode_float16(bits)), std::isnan(expected)) << code;
    if (std::isnan(expected)) continue;
    ASSERT_EQ(decode_float16(bits), expected) << code;
  }
  std::mt19937 random(7);
  for (int i = 0; i < 2000000; ++i) {
    // Half of them with float16's exponents, where the rounding is.
    std::uint32_t bits = static_cast<std::uint32_t>(random());
    if (i % 2) bits = (bits & 0x807fffff) | ((100 + (bits >> 23) % 46) << 23);
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(encode_float16(value), hardware_encode(value)) << std::hexfloat << value;
  }
}

TEST(Bfloat16, IsTheUpperHalfOfAFloat) {
  std::mt19937 random(11);
  for (int i = 0; i < 500000; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random());
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    // Adding just under half, and one more where the kept part is odd, carries exactly where it must.
    const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    ASSERT_EQ(encode_bfloat16(value), rounded) << std::hexfloat << value;
  }
}

}  // namespace
}  // namespace xpuruntime
