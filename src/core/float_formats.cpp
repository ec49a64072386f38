#include "xpuruntime/core/float_formats.h"

#include <bit>
#include <cmath>

namespace xpuruntime {
namespace {

/// A narrow binary float format: sign, exponent, mantissa, and what its top exponent means.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // false: the top exponent holds numbers too, and only all-ones is NaN (OCP E4M3)

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr std::uint32_t exponent_mask() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  constexpr std::uint32_t magnitude_mask() const { return sign_bit() - 1; }
  constexpr std::uint32_t quiet_nan() const {
    return has_infinity ? exponent_mask() | 1u << (mantissa_bits - 1) : magnitude_mask();
  }
};

constexpr Format binary16{5, 10, true};
constexpr Format brain16{8, 7, true};
constexpr Format e4m3{4, 3, false};
constexpr Format e5m2{5, 2, true};

constexpr int double_mantissa_bits = 52;
constexpr int double_bias = 1023;
constexpr std::uint64_t double_infinity = 0x7ff0000000000000ULL;

// Rounds once, from the full significand: what is shifted out is compared with half a unit in the last place.
std::uint32_t encode(const Format& format, double value) {
  const std::uint64_t source = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = source >> 63 ? format.sign_bit() : 0;
  const std::uint64_t magnitude = source & ~(1ULL << 63);
  if (magnitude > double_infinity) return sign | format.quiet_nan();
  const std::uint32_t overflow = format.has_infinity ? format.exponent_mask() : format.quiet_nan();
  if (magnitude == double_infinity) return sign | overflow;

  const int min_exponent = 1 - format.bias();
  const int exponent = static_cast<int>(magnitude >> double_mantissa_bits) - double_bias;
  const int below = exponent < min_exponent ? min_exponent - exponent : 0;
  const int shift = double_mantissa_bits - format.mantissa_bits + below;
  if (shift > double_mantissa_bits + 1) return sign;  // less than half the smallest subnormal; double's own are too

  const std::uint64_t significand = (magnitude & ((1ULL << double_mantissa_bits) - 1)) | 1ULL << double_mantissa_bits;
  const std::uint64_t half = 1ULL << (shift - 1);
  const std::uint64_t rest = significand & (2 * half - 1);
  std::uint64_t units = significand >> shift;
  if (rest > half || (rest == half && (units & 1u))) ++units;

  // `units` counts from 0 in the subnormal range and from 2^mantissa_bits above it; a carry moves up one exponent.
  const auto steps = static_cast<std::uint64_t>(below > 0 ? 0 : exponent - min_exponent) << format.mantissa_bits;
  const std::uint64_t bits = steps + units;
  if (bits >= (format.has_infinity ? format.exponent_mask() : format.magnitude_mask())) return sign | overflow;
  return sign | static_cast<std::uint32_t>(bits);
}

double decode(const Format& format, std::uint32_t bits) {
  const std::uint64_t sign = (bits & format.sign_bit()) ? 1ULL << 63 : 0;
  const std::uint32_t magnitude = bits & format.magnitude_mask();
  const std::uint32_t top = format.exponent_mask();
  if (format.has_infinity ? magnitude > top : magnitude == format.magnitude_mask()) {
    return std::bit_cast<double>(sign | double_infinity | 1ULL << (double_mantissa_bits - 1));
  }
  if (format.has_infinity && magnitude == top) return std::bit_cast<double>(sign | double_infinity);
  const std::uint64_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  const std::uint64_t exponent = magnitude >> format.mantissa_bits;
  if (exponent == 0) {
    const double unit = std::ldexp(1.0, 1 - format.bias() - format.mantissa_bits);
    return std::bit_cast<double>(sign | std::bit_cast<std::uint64_t>(static_cast<double>(mantissa) * unit));
  }
  const std::uint64_t rebiased = exponent + static_cast<std::uint64_t>(double_bias - format.bias());
  return std::bit_cast<double>(sign | rebiased << double_mantissa_bits |
                               mantissa << (double_mantissa_bits - format.mantissa_bits));
}

}  // namespace

std::uint16_t encode_float16(double value) { return static_cast<std::uint16_t>(encode(binary16, value)); }
double decode_float16(std::uint16_t bits) { return decode(binary16, bits); }

std::uint16_t encode_bfloat16(double value) { return static_cast<std::uint16_t>(encode(brain16, value)); }
double decode_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint8_t encode_float8_e4m3(double value) { return static_cast<std::uint8_t>(encode(e4m3, value)); }
double decode_float8_e4m3(std::uint8_t bits) { return decode(e4m3, bits); }

std::uint8_t encode_float8_e5m2(double value) { return static_cast<std::uint8_t>(encode(e5m2, value)); }
double decode_float8_e5m2(std::uint8_t bits) { return decode(e5m2, bits); }

}  // namespace xpuruntime
