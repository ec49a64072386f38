#include "graph/onnx/tensor_fields.h"

namespace xpuruntime::onnx {
namespace {

void read_place(const WireField& message, ExternalPlace& place) {
  std::string_view key;
  std::string_view value;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 1) key = field->text();
    if (field->number == 2) value = field->text();
  }
  place.set(key, value);
}

void add_extent(TensorFields& tensor, std::uint64_t extent) {
  if (tensor.rank < max_rank) tensor.extents[tensor.rank] = static_cast<std::int64_t>(extent);
  ++tensor.rank;
}

void read_field(TensorFields& tensor, const WireField& field) {
  switch (field.number) {
    case 1:
      return each_number(field, WireType::varint, [&](std::uint64_t extent) { add_extent(tensor, extent); });
    case 2:
      tensor.element_type = field.integer();
      return;
    case 3:
      tensor.segmented = true;
      return;
    case 8:
      tensor.name = field.text();
      return;
    case 9:
      field.expect(WireType::bytes);
      tensor.raw = field;
      return;
    case 13:
      return read_place(field, tensor.place);
    case 14:
      tensor.external = field.integer() == 1;
      return;
    default:
      break;
  }
  if (const auto type = list_type(field.number)) {
    each_number(field, *type, [&](std::uint64_t) { ++tensor.numbers[field.number]; });
  }
}

}  // namespace

std::optional<WireType> list_type(std::uint32_t field) {
  switch (field) {
    case 4:  // float_data
      return WireType::fixed32;
    case 5:   // int32_data
    case 7:   // int64_data
    case 11:  // uint64_data
      return WireType::varint;
    case 10:  // double_data
      return WireType::fixed64;
    default:
      return {};
  }
}

TensorFields read_tensor_fields(const WireField& message) {
  TensorFields tensor;
  WireReader fields(message);
  while (const auto field = fields.next()) read_field(tensor, *field);
  return tensor;
}

}  // namespace xpuruntime::onnx
