#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

// What a 16-bit float is and how a float is rounded to it, by arithmetic in double: no shifts of mantissas, no carries.

namespace xpuruntime::testing {

class NarrowModel {
 public:
  NarrowModel(int exponent_bits, int mantissa_bits)
      : exponent_bits_(exponent_bits), mantissa_bits_(mantissa_bits), bias_((1 << (exponent_bits - 1)) - 1) {
    for (unsigned code = 0; code < 65536; ++code) values_.push_back(by_the_book(code));
    // The spacing of values between 2^e and 2^(e+1), down to the smallest float; subnormals are spaced evenly.
    for (int e = least_exponent; e <= 128; ++e) {
      const int spacing = std::max(e, 1 - bias_) - mantissa_bits_;
      spacings_.push_back({std::ldexp(1.0, spacing), std::ldexp(1.0, -spacing)});
    }
    limit_ = std::ldexp(1.0, bias_ + 1);
  }

  /// Sign, exponent and fraction, as the format defines them.
  double value_of(unsigned code) const { return values_[code]; }

  /// Of the two neighbouring values the nearer one, and of two as near the one of even units. What would be 2^(bias+1)
  /// is infinity.
  double nearest(float x) const {
    const double magnitude = std::fabs(static_cast<double>(x));
    double result = magnitude;
    if (magnitude >= limit_) {
      result = std::numeric_limits<double>::infinity();
    } else if (magnitude > 0) {
      const auto exponent = static_cast<int>(std::bit_cast<std::uint64_t>(magnitude) >> 52) - 1023;
      const Spacing& spacing = spacings_[static_cast<std::size_t>(exponent - least_exponent)];
      const auto units = static_cast<std::int64_t>(magnitude * spacing.inverse);
      const double lower = static_cast<double>(units) * spacing.value, upper = lower + spacing.value;
      const double down = magnitude - lower, up = upper - magnitude;
      result = down < up || (down == up && units % 2 == 0) ? lower : upper;
      if (result >= limit_) result = std::numeric_limits<double>::infinity();
    }
    return std::signbit(x) ? -result : result;
  }

  /// Whether `code` is what `x` must become. A NaN may become any NaN.
  bool agrees(float x, unsigned code) const {
    const double value = values_[code];
    if (x != x) return value != value;
    return value == nearest(x) && (code >= 32768) == std::signbit(x);
  }

 private:
  static constexpr int least_exponent = -149;
  struct Spacing {
    double value;
    double inverse;
  };

  double by_the_book(unsigned code) const {
    const double sign = code >= 32768 ? -1 : 1;
    const auto exponent = static_cast<int>(code % 32768) / (1 << mantissa_bits_);
    const double fraction = std::ldexp(static_cast<double>(code % (1u << mantissa_bits_)), -mantissa_bits_);
    if (exponent == (1 << exponent_bits_) - 1) {
      return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias_);
    return sign * std::ldexp(1 + fraction, exponent - bias_);
  }

  int exponent_bits_;
  int mantissa_bits_;
  int bias_;
  double limit_ = 0;
  std::vector<double> values_;
  std::vector<Spacing> spacings_;
};

inline const NarrowModel& float16_model() {
  static const NarrowModel model(5, 10);
  return model;
}
inline const NarrowModel& bfloat16_model() {
  static const NarrowModel model(8, 7);
  return model;
}

/// Calls use(float) for every sign and exponent and, wherever a 16-bit float may cut a mantissa, for every value of
/// what is kept with what is cut off at, just past and just short of zero, a half and a whole.
template <class Use>
void for_each_edge(const Use& use) {
  for (std::uint32_t upper = 0; upper < 512; ++upper) {
    for (std::uint32_t cut = 13; cut <= 23; ++cut) {
      const std::uint32_t half = 1u << (cut - 1);
      for (std::uint32_t kept = 0; kept < 1u << (23 - cut); ++kept) {
        for (const std::uint32_t low : {0u, 1u, half - 1, half, half + 1, 2 * half - 1}) {
          use(std::bit_cast<float>(upper << 23 | kept << cut | low));
        }
      }
    }
  }
}

/// Any float at all, by turns with one whose exponent is a finite f16's or a little beyond.
class RandomFloats {
 public:
  explicit RandomFloats(std::uint64_t seed) : state_(seed) {}

  float next() {
    // SplitMix64.
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    auto bits = static_cast<std::uint32_t>(z);
    if (!(any_ = !any_)) bits = (bits & 0x807fffff) | static_cast<std::uint32_t>(100 + (z >> 32) % 45) << 23;
    return std::bit_cast<float>(bits);
  }

 private:
  std::uint64_t state_;
  bool any_ = false;
};

/// How many random floats to try: XRT_TEST_FLOATS, else `usual`, or a fiftieth of it where XRT_TEST_REDUCED asks for
/// less.
inline std::int64_t float_count(std::int64_t usual) {
  const char* const count = std::getenv("XRT_TEST_FLOATS");
  if (count != nullptr) return std::strtoll(count, nullptr, 10);
  const char* const reduced = std::getenv("XRT_TEST_REDUCED");
  return reduced != nullptr && std::strtol(reduced, nullptr, 10) > 1 ? usual / 50 : usual;
}

}  // namespace xpuruntime::testing
