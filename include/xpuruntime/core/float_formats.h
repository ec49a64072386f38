#pragma once

#include <cstdint>

namespace xpuruntime {

// Exact conversions between the narrow float formats and double. Encoding rounds to nearest, ties to even, once, from
// the full double, so there is no double rounding. Every float is a double: the same functions serve both.

/// IEEE binary16. Too large becomes infinity.
std::uint16_t encode_float16(double value);
double decode_float16(std::uint16_t bits);

/// The upper half of a binary32. Too large becomes infinity.
std::uint16_t encode_bfloat16(double value);
double decode_bfloat16(std::uint16_t bits);

/// OCP E4M3: no infinities; infinity and anything past 448 (after rounding) become NaN.
std::uint8_t encode_float8_e4m3(double value);
double decode_float8_e4m3(std::uint8_t bits);

/// OCP E5M2: a short binary16 with infinities.
std::uint8_t encode_float8_e5m2(double value);
double decode_float8_e5m2(std::uint8_t bits);

}  // namespace xpuruntime
