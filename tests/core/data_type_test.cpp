#include "xpuruntime/core/data_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/expect_error.h"
#include "core/names.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime {
namespace {

std::vector<DataType> all_types() {
  std::vector<DataType> types;
  for (int i = 0; i < data_type_count; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}

TEST(DataType, ReadsBackTheNameItPrints) {
  for (const DataType dtype : all_types()) EXPECT_EQ(parse_data_type(to_string(dtype)), dtype) << to_string(dtype);
}

TEST(DataType, PrintsTheNamesOfTheProblemTexts) {
  const std::string_view names[] = {"f64", "f32", "tf32", "f16", "bf16", "f8e4m3", "f8e5m2",
                                    "i64", "i32", "i16",  "i8",  "u8",   "bool"};
  for (std::size_t i = 0; i < std::size(names); ++i) EXPECT_EQ(to_string(static_cast<DataType>(i)), names[i]);
}

TEST(DataType, ReadsEveryUsualSpellingInAnyCase) {
  for (const char* name : {"fp16", "half", "float16", "Float16", "f16", "FP16", "HALF"}) {
    EXPECT_EQ(find_data_type(name), DataType::float16) << name;
  }
  for (const char* name : {"float", "single", "FP32"}) EXPECT_EQ(find_data_type(name), DataType::float32) << name;
  for (const char* name : {"double", "Float64"}) EXPECT_EQ(find_data_type(name), DataType::float64) << name;
  for (const char* name : {"bf16", "BFloat16"}) EXPECT_EQ(find_data_type(name), DataType::bfloat16) << name;
  for (const char* name : {"float8_e4m3fn", "fp8_e4m3"}) EXPECT_EQ(find_data_type(name), DataType::float8_e4m3) << name;
  EXPECT_EQ(find_data_type("float8_e5m2"), DataType::float8_e5m2);
  EXPECT_EQ(find_data_type("long"), DataType::int64);
  EXPECT_EQ(find_data_type("byte"), DataType::uint8);
  for (const char* name : {"Bool", "bool_"}) EXPECT_EQ(find_data_type(name), DataType::boolean) << name;
}

TEST(DataType, NeverGuesses) {
  for (const char* name : {"", "_", "f", "f17", "float 16", " f16", "f16 ", "uint16", "auto", "complex64", "f_16",
                           "f16_", "b_float16", "float8e4_m3"}) {
    EXPECT_EQ(find_data_type(name), std::nullopt) << name;
  }
  EXPECT_EQ(find_data_type(std::string(1000000, 'f')), std::nullopt);
}

TEST(DataType, HasTheNamesOfPoliciesAndOfArrays) {
  const std::pair<DataType, std::pair<std::string_view, std::string_view>> names[] = {
      {DataType::float64, {"fp64", "float64"}}, {DataType::float32, {"fp32", "float32"}},
      {DataType::float16, {"fp16", "float16"}}, {DataType::bfloat16, {"bf16", "bfloat16"}},
      {DataType::int8, {"int8", "int8"}},       {DataType::boolean, {"bool", "bool"}},
  };
  for (const auto& [dtype, name] : names) {
    EXPECT_EQ(precision_name(dtype), name.first);
    EXPECT_EQ(full_name(dtype), name.second);
  }
  for (int i = 0; i < data_type_count; ++i) {
    const auto dtype = static_cast<DataType>(i);
    EXPECT_EQ(find_data_type(precision_name(dtype)), dtype);
    EXPECT_EQ(find_data_type(full_name(dtype)), dtype);
  }
}

TEST(DataType, ListsNearNamesForAnUnknownOne) {
  expect_error(ErrorCode::unknown_name, "did you mean float16", [] { parse_data_type("floatt16"); });
  expect_error(ErrorCode::unknown_name, "use one of: f64, f32", [] { parse_data_type("zzzzzzzz"); });
}

TEST(DataType, KnowsSizes) {
  const std::size_t sizes[] = {8, 4, 4, 2, 2, 1, 1, 8, 4, 2, 1, 1, 1};
  for (std::size_t i = 0; i < std::size(sizes); ++i) EXPECT_EQ(size_of(static_cast<DataType>(i)), sizes[i]) << i;
}

TEST(DataType, KnowsWhichTypesFloat) {
  for (const DataType dtype : all_types()) EXPECT_EQ(is_floating(dtype), dtype <= DataType::float8_e5m2);
}

TEST(DataType, RefusesValuesOutsideTheEnum) {
  const auto wrong = static_cast<DataType>(13);
  expect_invalid("outside its range", [&] { to_string(wrong); });
  expect_invalid("outside its range", [&] { size_of(wrong); });
  expect_invalid("outside its range", [&] { is_lossless(DataType::float32, wrong); });
}

// The oracle: does every value survive? Types with few values are tried out, wide ones at their edges.
std::vector<double> values_of(DataType dtype) {
  std::vector<double> values;
  const auto integers = [&](std::int64_t low, std::int64_t high) {
    for (std::int64_t i = low; i <= high; ++i) values.push_back(static_cast<double>(i));
  };
  switch (dtype) {
    case DataType::float16:
      for (unsigned i = 0; i < 65536; ++i) values.push_back(decode_float16(static_cast<std::uint16_t>(i)));
      break;
    case DataType::bfloat16:
      for (unsigned i = 0; i < 65536; ++i) values.push_back(decode_bfloat16(static_cast<std::uint16_t>(i)));
      break;
    case DataType::float8_e4m3:
      for (unsigned i = 0; i < 256; ++i) values.push_back(decode_float8_e4m3(static_cast<std::uint8_t>(i)));
      break;
    case DataType::float8_e5m2:
      for (unsigned i = 0; i < 256; ++i) values.push_back(decode_float8_e5m2(static_cast<std::uint8_t>(i)));
      break;
    case DataType::float64:
      values = {0x1p-1074, 0x1.fffffffffffffp1023, 1 + 0x1p-52};
      break;
    case DataType::float32:
      values = {0x1p-149, 0x1.fffffep127, 1 + 0x1p-23};
      break;
    case DataType::tfloat32:
      values = {0x1p-136, 0x1.ffcp127, 1 + 0x1p-10};
      break;
    case DataType::int64:  // as doubles go, the nearest that is still a value of int64 with 53 bits spread over 63
      values = {static_cast<double>((std::int64_t{1} << 62) + (std::int64_t{1} << 10)), 9007199254740991.0};
      break;
    case DataType::int32:
      values = {2147483647, -2147483648.0};
      break;
    case DataType::int16:
      integers(-32768, 32767);
      break;
    case DataType::int8:
      integers(-128, 127);
      break;
    case DataType::uint8:
      integers(0, 255);
      break;
    case DataType::boolean:
      integers(0, 1);
      break;
  }
  return values;
}

double through_tfloat32(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return 0.5 * value + 1;  // not even a float32
  const double unit = std::ldexp(1.0, std::max(std::ilogb(narrow), -126) - 10);
  return narrow == 0 || std::isinf(narrow) ? value : std::trunc(value / unit) * unit;
}

double through(DataType dtype, double value) {
  const auto clip = [&](double low, double high) {
    return value >= low && value <= high ? std::trunc(value) : low - 1;
  };
  switch (dtype) {
    case DataType::float64:
      return value;
    case DataType::float32:
      return static_cast<float>(value);
    case DataType::tfloat32:
      return through_tfloat32(value);
    case DataType::float16:
      return decode_float16(encode_float16(value));
    case DataType::bfloat16:
      return decode_bfloat16(encode_bfloat16(value));
    case DataType::float8_e4m3:
      return decode_float8_e4m3(encode_float8_e4m3(value));
    case DataType::float8_e5m2:
      return decode_float8_e5m2(encode_float8_e5m2(value));
    case DataType::int64:
      return clip(-0x1p63, 0x1p63);
    case DataType::int32:
      return clip(-2147483648.0, 2147483647);
    case DataType::int16:
      return clip(-32768, 32767);
    case DataType::int8:
      return clip(-128, 127);
    case DataType::uint8:
      return clip(0, 255);
    case DataType::boolean:
      return clip(0, 1);
  }
  return 0;
}

bool survives(DataType from, DataType to) {
  if (from == DataType::int64 && to == DataType::float64) return false;  // 2^62 + 1 is no double; the oracle is doubles
  for (const double value : values_of(from)) {
    if (!std::isnan(value) && through(to, value) != value) return false;
    if (std::isnan(value) && !is_floating(to)) return false;
  }
  return true;
}

TEST(IsLossless, HoldsExactlyWhereEveryValueSurvives) {
  for (const DataType from : all_types()) {
    for (const DataType to : all_types()) {
      EXPECT_EQ(is_lossless(from, to), survives(from, to)) << to_string(from) << " -> " << to_string(to);
    }
  }
}

}  // namespace
}  // namespace xpuruntime
