#include "graph/onnx/value_reader.h"

#include <utility>

#include "graph/onnx/element_type.h"

namespace xpuruntime::onnx {
namespace {

ModelExtent read_extent(const WireField& message) {
  ModelExtent extent;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) {  // dim_value; of it and dim_param the last one counts
      extent = {field->integer(), {}};
      if (extent.size == -1) continue;  // the same
      if (extent.size < 0) fail_at(field->offset, "a dim of " + std::to_string(extent.size) + ", which is negative");
    } else if (field->number == 2) {  // dim_param
      const std::string_view name = field->text();
      extent = {-1, name == "?" ? "" : std::string(name)};  // "?" is some exporters' word for unknown
    }
  }
  return extent;
}

void check_size(const std::vector<ModelExtent>& shape, std::size_t element_size, std::size_t offset) {
  auto bytes = static_cast<std::int64_t>(element_size);
  for (const ModelExtent& extent : shape) {
    if (extent.size > 0 && __builtin_mul_overflow(bytes, extent.size, &bytes)) {
      fail_at(offset, "a shape with more bytes than fit 63 bits");
    }
  }
}

std::vector<ModelExtent> read_shape(const WireField& message) {
  std::vector<ModelExtent> shape;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) shape.push_back(read_extent(*field));
  }
  return shape;
}

void read_tensor_type(const WireField& message, ModelValue& value) {
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) {  // elem_type
      value.type = element_type_name(field->integer());
      value.dtype = element_dtype(field->integer());
    } else if (field->number == 2) {  // shape
      value.shape = read_shape(*field);
    }
  }
  if (value.shape) check_size(*value.shape, value.dtype ? size_of(*value.dtype) : 1, message.offset);
}

void read_type(const WireField& message, ModelValue& value) {
  constexpr std::pair<std::uint32_t, std::string_view> other_types[] = {
      {4, "sequence"}, {5, "map"}, {7, "opaque"}, {8, "sparse tensor"}, {9, "optional"}};
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) read_tensor_type(*field, value);
    for (const auto& [number, name] : other_types) {
      if (field->number == number) value.type = name;
    }
  }
}

}  // namespace

ModelValue read_value(const WireField& message, std::string_view subject) {
  ModelValue value;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) value.name = field->text();
    if (field->number == 2) read_type(*field, value);
  }
  if (value.name.empty()) fail_at(message.offset, std::string(subject) + " without a name");
  return value;
}

}  // namespace xpuruntime::onnx
