#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::onnx {

/// ONNX's name of the element type that files have as this number: "float", "int4"; "type 99" of one that is newer.
/// Empty for 0, which is "not said".
std::string element_type_name(std::int64_t number);
/// "type uint16"; "type 77" of one that has no name.
std::string element_type_text(const std::string& name);

/// Nothing where it is none of ours.
std::optional<DataType> element_dtype(std::int64_t number);

/// The number of either; -1: it has none.
std::int64_t element_type_number(DataType dtype);
std::int64_t element_type_number(const std::string& name);

}  // namespace xpuruntime::onnx
