#include "tune/elements.h"

#include <cstdint>
#include <cstring>

#include "xpuruntime/core/float_formats.h"

namespace xpuruntime {
namespace {

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// tf32 is stored as f32 of which arithmetic sees ten bits of mantissa: inputs have no more than those.
float cut_to_tfloat32(double value) {
  const auto single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  bits &= ~std::uint32_t{0x1fff};
  return read<float>(reinterpret_cast<const std::byte*>(&bits));
}

}  // namespace

double load_element(DataType dtype, const std::byte* from) {
  switch (dtype) {
    case DataType::float64:
      return read<double>(from);
    case DataType::float32:
    case DataType::tfloat32:
      return read<float>(from);
    case DataType::float16:
      return decode_float16(read<std::uint16_t>(from));
    case DataType::bfloat16:
      return decode_bfloat16(read<std::uint16_t>(from));
    case DataType::float8_e4m3:
      return decode_float8_e4m3(read<std::uint8_t>(from));
    case DataType::float8_e5m2:
      return decode_float8_e5m2(read<std::uint8_t>(from));
    case DataType::int64:
      return static_cast<double>(read<std::int64_t>(from));
    case DataType::int32:
      return read<std::int32_t>(from);
    case DataType::int16:
      return read<std::int16_t>(from);
    case DataType::int8:
      return read<std::int8_t>(from);
    case DataType::uint8:
    case DataType::boolean:
      return read<std::uint8_t>(from);
  }
  return 0;
}

void store_element(DataType dtype, std::byte* to, double value) {
  switch (dtype) {
    case DataType::float64:
      return write(to, value);
    case DataType::float32:
      return write(to, static_cast<float>(value));
    case DataType::tfloat32:
      return write(to, cut_to_tfloat32(value));
    case DataType::float16:
      return write(to, encode_float16(value));
    case DataType::bfloat16:
      return write(to, encode_bfloat16(value));
    case DataType::float8_e4m3:
      return write(to, encode_float8_e4m3(value));
    case DataType::float8_e5m2:
      return write(to, encode_float8_e5m2(value));
    case DataType::int64:
      return write(to, static_cast<std::int64_t>(value));
    case DataType::int32:
      return write(to, static_cast<std::int32_t>(value));
    case DataType::int16:
      return write(to, static_cast<std::int16_t>(value));
    case DataType::int8:
      return write(to, static_cast<std::int8_t>(value));
    case DataType::uint8:
    case DataType::boolean:
      return write(to, static_cast<std::uint8_t>(value));
  }
}

}  // namespace xpuruntime
