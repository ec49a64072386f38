#include "xpuruntime/core/data_type.h"

#include <cmath>
#include <string>
#include <vector>

#include "core/elements.h"
#include "core/names.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

struct DataTypeInfo {
  DataType dtype;
  std::string_view name;
  std::string_view precision;
  std::string_view full;
  std::size_t size;
  bool floating;
  int exponent_bits;  // for integers: 0
  int mantissa_bits;  // for integers: value bits, without the sign
};

constexpr DataTypeInfo infos[data_type_count] = {
    {DataType::float64, "f64", "fp64", "float64", 8, true, 11, 52},
    {DataType::float32, "f32", "fp32", "float32", 4, true, 8, 23},
    {DataType::tfloat32, "tf32", "tf32", "tfloat32", 4, true, 8, 10},
    {DataType::float16, "f16", "fp16", "float16", 2, true, 5, 10},
    {DataType::bfloat16, "bf16", "bf16", "bfloat16", 2, true, 8, 7},
    {DataType::float8_e4m3, "f8e4m3", "fp8_e4m3", "float8_e4m3", 1, true, 4, 3},
    {DataType::float8_e5m2, "f8e5m2", "fp8_e5m2", "float8_e5m2", 1, true, 5, 2},
    {DataType::int64, "i64", "int64", "int64", 8, false, 0, 63},
    {DataType::int32, "i32", "int32", "int32", 4, false, 0, 31},
    {DataType::int16, "i16", "int16", "int16", 2, false, 0, 15},
    {DataType::int8, "i8", "int8", "int8", 1, false, 0, 7},
    {DataType::uint8, "u8", "uint8", "uint8", 1, false, 0, 8},
    {DataType::boolean, "bool", "bool", "bool", 1, false, 0, 1},
};

struct Spelling {
  std::string_view text;
  DataType dtype;
};

// Beside the three names of each.
constexpr Spelling spellings[] = {
    {"double", DataType::float64},      {"float", DataType::float32},
    {"single", DataType::float32},      {"half", DataType::float16},
    {"f8_e4m3", DataType::float8_e4m3}, {"float8_e4m3fn", DataType::float8_e4m3},
    {"f8_e5m2", DataType::float8_e5m2}, {"long", DataType::int64},
    {"int", DataType::int32},           {"short", DataType::int16},
    {"byte", DataType::uint8},          {"bool_", DataType::boolean},  // so NumPy before 2.0 calls it
    {"boolean", DataType::boolean},
};

const DataTypeInfo& info_of(DataType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  if (index >= data_type_count) {
    fail(ErrorCode::invalid_argument, "data_type", "a DataType outside its range; pass one of the enum's values");
  }
  return infos[index];
}

}  // namespace

std::string_view to_string(DataType dtype) { return info_of(dtype).name; }
std::string_view precision_name(DataType dtype) { return info_of(dtype).precision; }
std::string_view full_name(DataType dtype) { return info_of(dtype).full; }
std::size_t size_of(DataType dtype) { return info_of(dtype).size; }
bool is_floating(DataType dtype) { return info_of(dtype).floating; }
double epsilon_of(DataType dtype) { return is_floating(dtype) ? std::ldexp(1, -info_of(dtype).mantissa_bits) : 0; }

std::optional<DataType> find_data_type(std::string_view name) {
  for (const DataTypeInfo& info : infos) {
    for (const std::string_view own : {info.name, info.precision, info.full}) {
      if (is_spelling_of(name, own)) return info.dtype;
    }
  }
  for (const Spelling& spelling : spellings) {
    if (is_spelling_of(name, spelling.text)) return spelling.dtype;
  }
  return std::nullopt;
}

std::vector<std::string_view> data_type_spellings() {
  std::vector<std::string_view> all;
  for (const DataTypeInfo& info : infos) all.push_back(info.name);
  for (const DataTypeInfo& info : infos) all.insert(all.end(), {info.precision, info.full});
  for (const Spelling& spelling : spellings) all.push_back(spelling.text);
  return all;
}

DataType parse_data_type(std::string_view name) {
  if (const auto dtype = find_data_type(name)) return *dtype;
  std::vector<std::string_view> known = data_type_spellings();
  // Long spellings help the near-name search and stay out of the list that is shown when nothing is near.
  if (near_names(name, known).empty()) known.resize(data_type_count);
  fail_unknown("parse_data_type", "dtype", name, known);
}

bool is_lossless(DataType from, DataType to) {
  const DataTypeInfo& a = info_of(from);
  const DataTypeInfo& b = info_of(to);
  if (from == to) return true;
  if (a.floating && !b.floating) return false;
  if (a.floating) return a.exponent_bits <= b.exponent_bits && a.mantissa_bits <= b.mantissa_bits;
  // Integers in floats: the significand holds one bit more than it stores.
  if (b.floating) return a.mantissa_bits <= b.mantissa_bits + 1 && a.mantissa_bits < (1 << (b.exponent_bits - 1));
  const bool from_signed = from != DataType::uint8 && from != DataType::boolean;
  const bool to_signed = to != DataType::uint8 && to != DataType::boolean;
  return a.mantissa_bits <= b.mantissa_bits && (to_signed || !from_signed);
}

}  // namespace xpuruntime
