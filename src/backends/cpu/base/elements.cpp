#include "backends/cpu/base/elements.h"

#include <cmath>
#include <limits>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::cpu {
namespace {

template <class T>
double load(const void* base, std::int64_t index) {
  return static_cast<double>(static_cast<const T*>(base)[index]);
}

template <class T, double (*decode)(T)>
double load_narrow(const void* base, std::int64_t index) {
  return decode(static_cast<const T*>(base)[index]);
}

template <class T>
void store_float(void* base, std::int64_t index, double value) {
  static_cast<T*>(base)[index] = static_cast<T>(value);
}

template <class T, T (*encode)(double)>
void store_narrow(void* base, std::int64_t index, double value) {
  static_cast<T*>(base)[index] = encode(value);
}

template <class T>
T clamped(double value) {
  if (std::isnan(value)) return 0;
  // The upper bound of 64-bit integers is no double: the comparison is with the next power of two.
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

template <class T>
void store_integer(void* base, std::int64_t index, double value) {
  static_cast<T*>(base)[index] = clamped<T>(value);
}

void store_boolean(void* base, std::int64_t index, double value) {
  static_cast<std::uint8_t*>(base)[index] = value != 0;
}

template <class T>
std::int64_t load_wide(const void* base, std::int64_t index) {
  return static_cast<std::int64_t>(static_cast<const T*>(base)[index]);
}

template <class T>
void store_wrapped(void* base, std::int64_t index, std::int64_t value) {
  static_cast<T*>(base)[index] = static_cast<T>(value);
}

[[noreturn]] void fail_dtype(DataType dtype) {
  fail(ErrorCode::internal, "elements", "no access to " + std::string(to_string(dtype)) + "; report this");
}

}  // namespace

LoadElement loader_of(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return load<double>;
    case DataType::float32:
    case DataType::tfloat32:
      return load<float>;
    case DataType::float16:
      return load_narrow<std::uint16_t, decode_float16>;
    case DataType::bfloat16:
      return load_narrow<std::uint16_t, decode_bfloat16>;
    case DataType::float8_e4m3:
      return load_narrow<std::uint8_t, decode_float8_e4m3>;
    case DataType::float8_e5m2:
      return load_narrow<std::uint8_t, decode_float8_e5m2>;
    case DataType::int64:
      return load<std::int64_t>;
    case DataType::int32:
      return load<std::int32_t>;
    case DataType::int16:
      return load<std::int16_t>;
    case DataType::int8:
      return load<std::int8_t>;
    case DataType::uint8:
    case DataType::boolean:
      return load<std::uint8_t>;
  }
  fail_dtype(dtype);
}

StoreElement storer_of(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return store_float<double>;
    case DataType::float32:
    case DataType::tfloat32:
      return store_float<float>;
    case DataType::float16:
      return store_narrow<std::uint16_t, encode_float16>;
    case DataType::bfloat16:
      return store_narrow<std::uint16_t, encode_bfloat16>;
    case DataType::float8_e4m3:
      return store_narrow<std::uint8_t, encode_float8_e4m3>;
    case DataType::float8_e5m2:
      return store_narrow<std::uint8_t, encode_float8_e5m2>;
    case DataType::int64:
      return store_integer<std::int64_t>;
    case DataType::int32:
      return store_integer<std::int32_t>;
    case DataType::int16:
      return store_integer<std::int16_t>;
    case DataType::int8:
      return store_integer<std::int8_t>;
    case DataType::uint8:
      return store_integer<std::uint8_t>;
    case DataType::boolean:
      return store_boolean;
  }
  fail_dtype(dtype);
}

LoadInteger integer_loader_of(DataType dtype) {
  switch (dtype) {
    case DataType::int64:
      return load_wide<std::int64_t>;
    case DataType::int32:
      return load_wide<std::int32_t>;
    case DataType::int16:
      return load_wide<std::int16_t>;
    case DataType::int8:
      return load_wide<std::int8_t>;
    case DataType::uint8:
    case DataType::boolean:
      return load_wide<std::uint8_t>;
    default:
      fail_dtype(dtype);
  }
}

StoreInteger integer_storer_of(DataType dtype) {
  switch (dtype) {
    case DataType::int64:
      return store_wrapped<std::int64_t>;
    case DataType::int32:
      return store_wrapped<std::int32_t>;
    case DataType::int16:
      return store_wrapped<std::int16_t>;
    case DataType::int8:
      return store_wrapped<std::int8_t>;
    case DataType::uint8:
      return store_wrapped<std::uint8_t>;
    default:
      fail_dtype(dtype);
  }
}

}  // namespace xpuruntime::cpu
