#include "xpuruntime/registry/kernel_dtype.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

constexpr auto outside = static_cast<KernelDtype>(5);

TEST(KernelDtype, KeepsTheNumbersThatFilesMayHold) {
  EXPECT_EQ(static_cast<int>(KernelDtype::float32), 0);
  EXPECT_EQ(static_cast<int>(KernelDtype::float16), 1);
  EXPECT_EQ(static_cast<int>(KernelDtype::bfloat16), 2);
  EXPECT_EQ(static_cast<int>(KernelDtype::mixed), 3);
  EXPECT_EQ(static_cast<int>(KernelDtype::auto_select), 4);
}

TEST(KernelDtype, IsReadInEveryUsualSpelling) {
  const std::pair<KernelDtype, std::vector<std::string>> spellings[] = {
      {KernelDtype::float32, {"f32", "fp32", "FP32", "float32", "Float32", "float", "single"}},
      {KernelDtype::float16, {"f16", "fp16", "FP16", "float16", "Float16", "half", "Half"}},
      {KernelDtype::bfloat16, {"bf16", "BF16", "bfloat16", "BFloat16", "Bfloat16"}},
      {KernelDtype::mixed, {"mixed", "Mixed", "MIXED", "mixed_precision"}},
      {KernelDtype::auto_select, {"auto", "Auto", "AUTO", "automatic", "auto_select", "AutoSelect"}},
  };
  for (const auto& [dtype, names] : spellings) {
    for (const std::string& name : names) {
      EXPECT_EQ(find_kernel_dtype(name), dtype) << name;
      EXPECT_EQ(parse_kernel_dtype(name), dtype) << name;
    }
  }
}

TEST(KernelDtype, ReadsWhatItPrints) {
  std::vector<std::string> names;
  for (int i = 0; i < kernel_dtype_count; ++i) {
    const auto dtype = static_cast<KernelDtype>(i);
    names.emplace_back(to_string(dtype));
    EXPECT_EQ(parse_kernel_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"f32", "f16", "bf16", "mixed", "auto"}));
}

TEST(KernelDtype, DoesNotTakeADataTypeThatHasNoKernelDtypeForFloat32) {
  for (const char* name : {"f64", "double", "tf32", "f8e4m3", "i64", "int8", "u8", "bool"}) {
    EXPECT_EQ(find_kernel_dtype(name), std::nullopt) << name;
    expect_error(ErrorCode::unknown_name, "unknown kernel dtype '" + std::string(name) + "'",
                 [&] { parse_kernel_dtype(name); });
  }
}

TEST(KernelDtype, ListsTheNearOrAllNamesWhereOneIsUnknown) {
  expect_error(ErrorCode::unknown_name, "did you mean bfloat16", [] { parse_kernel_dtype("bfloat6"); });
  expect_error(ErrorCode::unknown_name, "did you mean mixed", [] { parse_kernel_dtype("mixd"); });
  expect_error(ErrorCode::unknown_name, "use one of: f32, f16, bf16, mixed, auto", [] { parse_kernel_dtype(""); });
  expect_error(ErrorCode::unknown_name, "use one of: f32, f16, bf16, mixed, auto",
               [] { parse_kernel_dtype(std::string(10000, 'f')); });
  for (const char* name : {"f16 ", "float_32", "m_ixed", "auto_"}) EXPECT_EQ(find_kernel_dtype(name), std::nullopt);
}

TEST(KernelDtype, NamesOnlyThe16BitFloatsAfterTheirDataTypes) {
  for (int i = 0; i < data_type_count; ++i) {
    const auto dtype = static_cast<DataType>(i);
    const KernelDtype expected = dtype == DataType::float16    ? KernelDtype::float16
                                 : dtype == DataType::bfloat16 ? KernelDtype::bfloat16
                                                               : KernelDtype::float32;
    EXPECT_EQ(to_kernel_dtype(dtype), expected) << to_string(dtype);
  }
}

TEST(KernelDtype, StandsForOneDataTypeOrNone) {
  EXPECT_EQ(to_data_type(KernelDtype::float32), DataType::float32);
  EXPECT_EQ(to_data_type(KernelDtype::float16), DataType::float16);
  EXPECT_EQ(to_data_type(KernelDtype::bfloat16), DataType::bfloat16);
  EXPECT_EQ(to_data_type(KernelDtype::mixed), std::nullopt);
  EXPECT_EQ(to_data_type(KernelDtype::auto_select), std::nullopt);
}

TEST(KernelDtype, RefusesValuesOutsideTheEnum) {
  expect_invalid("outside its range", [] { to_string(outside); });
  expect_invalid("outside its range", [] { to_data_type(outside); });
  expect_invalid("outside its range", [] { to_kernel_dtype(static_cast<DataType>(200)); });
}

}  // namespace
}  // namespace xpuruntime
