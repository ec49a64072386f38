#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

/// Which dtypes a kernel takes: `DataType::float32`, `{DataType::int8, DataType::uint8}` or one of the sets below.
class DataTypeSet {
 public:
  constexpr DataTypeSet() = default;                            // none
  constexpr DataTypeSet(DataType dtype) : bits_(bit(dtype)) {}  // NOLINT(google-explicit-constructor)
  constexpr DataTypeSet(std::initializer_list<DataType> dtypes) {
    for (const DataType dtype : dtypes) bits_ |= bit(dtype);
  }

  constexpr bool contains(DataType dtype) const { return (bits_ & bit(dtype)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend constexpr DataTypeSet operator|(DataTypeSet a, DataTypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(DataTypeSet, DataTypeSet) = default;

 private:
  static constexpr std::uint32_t bit(DataType dtype) { return std::uint32_t{1} << static_cast<unsigned>(dtype); }

  std::uint32_t bits_ = 0;
};

/// "f32, f16 and bf16", "floating types", "any dtype".
std::string to_string(DataTypeSet dtypes);

/// What vectors are loaded from and stored to quickly.
inline constexpr DataTypeSet fast_floats = {DataType::float32, DataType::float16, DataType::bfloat16};
inline constexpr DataTypeSet floats =
    fast_floats | DataTypeSet{DataType::float64, DataType::tfloat32, DataType::float8_e4m3, DataType::float8_e5m2};
inline constexpr DataTypeSet any_dtype = floats | DataTypeSet{DataType::int64, DataType::int32, DataType::int16,
                                                              DataType::int8,  DataType::uint8, DataType::boolean};

}  // namespace xpuruntime
