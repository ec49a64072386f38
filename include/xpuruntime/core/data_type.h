#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace xpuruntime {

/// Every element type there is. `tfloat32` is a way to compute on float32 storage.
enum class DataType : std::uint8_t {
  float64,
  float32,
  tfloat32,
  float16,
  bfloat16,
  float8_e4m3,
  float8_e5m2,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean,
};
inline constexpr int data_type_count = 13;

/// The short name used in problem texts: f64 f32 tf32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool.
std::string_view to_string(DataType dtype);

/// Reads any usual spelling, in any case (`fp16`, `half`, `float16`, `Float16`, `f16`); nothing if there is no such
/// type.
std::optional<DataType> find_data_type(std::string_view name);

/// Like find_data_type, but an unknown name is an error that lists the near ones.
DataType parse_data_type(std::string_view name);

std::size_t size_of(DataType dtype);
bool is_floating(DataType dtype);

/// True when every value of `from` is a value of `to`.
bool is_lossless(DataType from, DataType to);

}  // namespace xpuruntime
