#include "core/elements.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime {
namespace {

template <class T>
T read(const void* base, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index * std::int64_t{sizeof value}, sizeof value);
  return value;
}

template <class T>
void write(void* base, std::int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(base) + index * std::int64_t{sizeof value}, &value, sizeof value);
}

template <class T>
T clamped(double value) {
  if (std::isnan(value)) return 0;
  // The upper bound of 64-bit integers is not a double: the comparison is with the next power of two.
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

struct Access {
  LoadElement load = nullptr;
  StoreElement store = nullptr;
  LoadInteger load_integer = nullptr;  // null for floats
  StoreInteger store_integer = nullptr;
};

template <class T>
double load(const void* base, std::int64_t index) {
  return static_cast<double>(read<T>(base, index));
}

template <class T>
std::int64_t load_integer(const void* base, std::int64_t index) {
  return read<T>(base, index);
}

template <class T>
constexpr Access floats = {
    load<T>, [](void* base, std::int64_t index, double value) { write(base, index, static_cast<T>(value)); }};

template <class T, double (*decode)(T), T (*encode)(double)>
constexpr Access narrow_floats = {
    [](const void* base, std::int64_t index) { return decode(read<T>(base, index)); },
    [](void* base, std::int64_t index, double value) { write(base, index, encode(value)); }};

template <class T>
constexpr Access integers = {
    load<T>, [](void* base, std::int64_t index, double value) { write(base, index, clamped<T>(value)); },
    load_integer<T>,
    [](void* base, std::int64_t index, std::int64_t value) { write(base, index, static_cast<T>(value)); }};

constexpr Access booleans = {
    load<std::uint8_t>,
    [](void* base, std::int64_t index, double value) { write<std::uint8_t>(base, index, value != 0); },
    load_integer<std::uint8_t>,
    [](void* base, std::int64_t index, std::int64_t value) { write<std::uint8_t>(base, index, value != 0); }};

// In the order of the enum.
constexpr Access accesses[data_type_count] = {
    floats<double>,
    floats<float>,
    floats<float>,
    narrow_floats<std::uint16_t, decode_float16, encode_float16>,
    narrow_floats<std::uint16_t, decode_bfloat16, encode_bfloat16>,
    narrow_floats<std::uint8_t, decode_float8_e4m3, encode_float8_e4m3>,
    narrow_floats<std::uint8_t, decode_float8_e5m2, encode_float8_e5m2>,
    integers<std::int64_t>,
    integers<std::int32_t>,
    integers<std::int16_t>,
    integers<std::int8_t>,
    integers<std::uint8_t>,
    booleans,
};

template <class Function>
Function access(DataType dtype, Function Access::*function) {
  const auto index = static_cast<std::size_t>(dtype);
  const Function found = index < data_type_count ? accesses[index].*function : nullptr;
  if (found != nullptr) return found;
  fail(ErrorCode::internal, "elements", "no access to " + std::string(to_string(dtype)) + "; report this");
}

double cut_to_tfloat32(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>(bits & ~std::uint32_t{0x1fff}));
}

}  // namespace

LoadElement loader_of(DataType dtype) { return access(dtype, &Access::load); }
StoreElement storer_of(DataType dtype) { return access(dtype, &Access::store); }
LoadInteger integer_loader_of(DataType dtype) { return access(dtype, &Access::load_integer); }
StoreInteger integer_storer_of(DataType dtype) { return access(dtype, &Access::store_integer); }

double load_element(DataType dtype, const std::byte* from) { return loader_of(dtype)(from, 0); }

void store_element(DataType dtype, std::byte* to, double value) {
  storer_of(dtype)(to, 0, dtype == DataType::tfloat32 ? cut_to_tfloat32(value) : value);
}

bool store_number(DataType dtype, std::byte* to, double number) {
  store_element(dtype, to, number);
  if (size_of(dtype) >= 4) return true;
  const double stored = load_element(dtype, to);
  if (!std::isfinite(number)) return stored == number || std::isnan(number);
  return std::abs(stored - number) <= epsilon_of(dtype) / 2 * std::abs(number);
}

bool store_number(DataType dtype, std::byte* to, std::int64_t number) {
  if (is_floating(dtype)) return store_number(dtype, to, static_cast<double>(number));
  integer_storer_of(dtype)(to, 0, number);
  return integer_loader_of(dtype)(to, 0) == number;
}

}  // namespace xpuruntime
