#include "backends/oracle_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::oracle {
namespace {

template <class T>
void put(T bits, std::byte* to) {
  std::memcpy(to, &bits, sizeof bits);
}

template <class T>
void put_integer(double value, std::byte* to) {
  constexpr auto low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto high = static_cast<double>(std::numeric_limits<T>::max());
  if (std::isnan(value)) return put(T{0}, to);
  if (value <= low) return put(std::numeric_limits<T>::min(), to);
  if (value >= high) return put(std::numeric_limits<T>::max(), to);
  put(static_cast<T>(value), to);
}

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::byte* at(std::byte* bytes, const TensorSpec& spec, const Position& position) {
  return bytes + static_cast<std::size_t>(dot(position, spec.strides)) * size_of(spec.dtype);
}

}  // namespace

// By the conversions that tests/core proves against a brute-force search.
void encode(DataType dtype, double value, std::byte* to) {
  switch (dtype) {
    case DataType::float64:
      return put(value, to);
    case DataType::float32:
    case DataType::tfloat32:
      return put(static_cast<float>(value), to);
    case DataType::float16:
      return put(encode_float16(value), to);
    case DataType::bfloat16:
      return put(encode_bfloat16(value), to);
    case DataType::float8_e4m3:
      return put(encode_float8_e4m3(value), to);
    case DataType::float8_e5m2:
      return put(encode_float8_e5m2(value), to);
    case DataType::int64:
      return put_integer<std::int64_t>(value, to);
    case DataType::int32:
      return put_integer<std::int32_t>(value, to);
    case DataType::int16:
      return put_integer<std::int16_t>(value, to);
    case DataType::int8:
      return put_integer<std::int8_t>(value, to);
    case DataType::uint8:
      return put_integer<std::uint8_t>(value, to);
    case DataType::boolean:
      return put(static_cast<std::uint8_t>(value != 0), to);
  }
}

double decode(DataType dtype, const std::byte* from) {
  switch (dtype) {
    case DataType::float64:
      return get<double>(from);
    case DataType::float32:
    case DataType::tfloat32:
      return static_cast<double>(get<float>(from));
    case DataType::float16:
      return decode_float16(get<std::uint16_t>(from));
    case DataType::bfloat16:
      return decode_bfloat16(get<std::uint16_t>(from));
    case DataType::float8_e4m3:
      return decode_float8_e4m3(get<std::uint8_t>(from));
    case DataType::float8_e5m2:
      return decode_float8_e5m2(get<std::uint8_t>(from));
    case DataType::int64:
      return static_cast<double>(get<std::int64_t>(from));
    case DataType::int32:
      return get<std::int32_t>(from);
    case DataType::int16:
      return get<std::int16_t>(from);
    case DataType::int8:
      return get<std::int8_t>(from);
    case DataType::uint8:
    case DataType::boolean:
      return get<std::uint8_t>(from);
  }
  throw std::logic_error("the oracle knows no such dtype");
}

double rounded(DataType dtype, double value) {
  std::byte bytes[8];
  encode(dtype, value, bytes);
  return decode(dtype, bytes);
}

double half_unit(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return 0x1p-53;
    case DataType::float32:
    case DataType::tfloat32:
      return 0x1p-24;
    case DataType::float16:
      return 0x1p-11;
    case DataType::bfloat16:
      return 0x1p-8;
    case DataType::float8_e4m3:
      return 0x1p-4;
    case DataType::float8_e5m2:
      return 0x1p-3;
    default:
      return 0;
  }
}

double smallest(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return 0x1p-1022;
    case DataType::float32:
    case DataType::tfloat32:
    case DataType::bfloat16:
      return 0x1p-126;
    case DataType::float16:
      return 0x1p-25;
    case DataType::float8_e4m3:
      return 0x1p-10;
    case DataType::float8_e5m2:
      return 0x1p-17;
    default:
      return 0;
  }
}

std::vector<std::byte> layout(const TensorSpec& spec, const Values& values) {
  std::vector<std::byte> bytes(span_bytes(spec), input_filler);
  std::size_t i = 0;
  for_each_position(
      spec.shape, [&](const Position& position) { encode(spec.dtype, values[i++], at(bytes.data(), spec, position)); });
  return bytes;
}

Values elements(const TensorSpec& spec, const std::byte* bytes) {
  Values values;
  values.reserve(static_cast<std::size_t>(element_count(spec)));
  for_each_position(spec.shape, [&](const Position& position) {
    const auto offset = static_cast<std::size_t>(dot(position, spec.strides)) * size_of(spec.dtype);
    values.push_back(decode(spec.dtype, bytes + offset));
  });
  return values;
}

bool gaps_untouched(const TensorSpec& spec, const std::byte* bytes) {
  if (spec.contiguous) return true;
  std::vector<std::byte> gaps(bytes, bytes + span_bytes(spec));
  for_each_position(spec.shape, [&](const Position& position) {
    std::memset(at(gaps.data(), spec, position), static_cast<int>(output_poison), size_of(spec.dtype));
  });
  return std::all_of(gaps.begin(), gaps.end(), [](std::byte b) { return b == output_poison; });
}

Broadcast::Broadcast(const Values& values, const Dims& shape, const Dims& to)
    : values_(values), strides_(Dims::filled(to.size(), 0)) {
  std::int64_t stride = 1;
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    const std::int64_t extent = shape[shape.size() - i];
    if (extent != 1) strides_[to.size() - i] = stride;
    stride *= extent;
  }
}

Lines::Lines(const Dims& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (axis < 0) axis += rank;
  for (std::int64_t i = 0; i < rank; ++i) {
    (i < axis ? outer : i == axis ? length : inner) *= shape[static_cast<std::size_t>(i)];
  }
}

}  // namespace xpuruntime::oracle
