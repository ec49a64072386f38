#include "graph/onnx/element_type.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace xpuruntime::onnx {
namespace {

struct ElementType {
  std::string_view name = {};
  std::optional<DataType> dtype = {};
};

// In the order of ONNX's numbers.
constexpr ElementType element_types[] = {
    {""},
    {"float", DataType::float32},
    {"uint8", DataType::uint8},
    {"int8", DataType::int8},
    {"uint16"},
    {"int16", DataType::int16},
    {"int32", DataType::int32},
    {"int64", DataType::int64},
    {"string"},
    {"bool", DataType::boolean},
    {"float16", DataType::float16},
    {"double", DataType::float64},
    {"uint32"},
    {"uint64"},
    {"complex64"},
    {"complex128"},
    {"bfloat16", DataType::bfloat16},
    {"float8e4m3fn", DataType::float8_e4m3},
    {"float8e4m3fnuz"},
    {"float8e5m2", DataType::float8_e5m2},
    {"float8e5m2fnuz"},
    {"uint4"},
    {"int4"},
    {"float4e2m1"},
    {"float8e8m0"},
    {"uint2"},
    {"int2"},
};

bool is_listed(std::int64_t number) { return number >= 0 && number < std::ssize(element_types); }

}  // namespace

std::string element_type_name(std::int64_t number) {
  return is_listed(number) ? std::string(element_types[number].name) : "type " + std::to_string(number);
}

std::string element_type_text(const std::string& name) { return name.starts_with("type ") ? name : "type " + name; }

std::optional<DataType> element_dtype(std::int64_t number) {
  return is_listed(number) ? element_types[number].dtype : std::nullopt;
}

std::int64_t element_type_number(DataType dtype) {
  const auto found = std::find_if(std::begin(element_types), std::end(element_types),
                                  [=](const ElementType& type) { return type.dtype == dtype; });
  return found == std::end(element_types) ? -1 : found - std::begin(element_types);
}

std::int64_t element_type_number(const std::string& name) {
  const auto found = std::find_if(std::begin(element_types), std::end(element_types),
                                  [&](const ElementType& type) { return type.name == name; });
  return found == std::end(element_types) ? -1 : found - std::begin(element_types);
}

}  // namespace xpuruntime::onnx
