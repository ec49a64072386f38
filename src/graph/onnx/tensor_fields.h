#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "graph/onnx/external_data.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/dims.h"

namespace xpuruntime::onnx {

/// What a TensorProto has, before it is known to fit together.
struct TensorFields {
  std::string name = {};
  std::int64_t element_type = 0;
  std::array<std::int64_t, max_rank> extents = {};
  std::size_t rank = 0;  // may be over max_rank
  bool external = false;
  bool segmented = false;
  ExternalPlace place = {};
  std::optional<WireField> raw = {};
  std::array<std::size_t, 12> numbers = {};  // how many there are in the lists, by the list's field
};

TensorFields read_tensor_fields(const WireField& message);

/// How the numbers of one of a TensorProto's lists are written; nothing of a field that is none.
std::optional<WireType> list_type(std::uint32_t field);

}  // namespace xpuruntime::onnx
