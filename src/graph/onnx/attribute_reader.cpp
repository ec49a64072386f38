#include "graph/onnx/attribute_reader.h"

#include <bit>

#include "core/printable.h"

namespace xpuruntime::onnx {
namespace {

/// The numbers that files have for an attribute's type, each with the field of its value.
enum class Kind : std::uint8_t {
  none,
  real,
  integer,
  text,
  tensor,
  graph,
  reals,
  integers,
  texts,
  tensors,
  graphs,
  sparse_tensor,
  sparse_tensors,
  type,
  types,
};
constexpr std::uint32_t field_of_kind[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 22, 23, 14, 15};

Kind kind_of_field(std::uint32_t number) {
  for (std::size_t kind = 1; kind < std::size(field_of_kind); ++kind) {
    if (field_of_kind[kind] == number) return static_cast<Kind>(kind);
  }
  return Kind::none;
}

/// An attribute's values of all types; it must turn out to have one.
struct AttributeFields {
  std::string name = {};
  std::int64_t type = 0;
  bool refers = false;
  Kind found = Kind::none;
  bool mixed = false;
  std::optional<WireField> last = {};  // of what has one value
  std::vector<float> reals = {};
  std::vector<std::int64_t> integers = {};
  std::vector<std::string> texts = {};
};

void read_value_field(AttributeFields& attribute, const WireField& field, Kind kind) {
  attribute.mixed |= attribute.found != Kind::none && attribute.found != kind;
  attribute.found = kind;
  attribute.last = field;
  if (kind == Kind::reals) {
    each_number(field, WireType::fixed32, [&](std::uint64_t word) {
      attribute.reals.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(word)));
    });
  } else if (kind == Kind::integers) {
    each_number(field, WireType::varint,
                [&](std::uint64_t word) { attribute.integers.push_back(static_cast<std::int64_t>(word)); });
  } else if (kind == Kind::texts) {
    attribute.texts.emplace_back(field.text());
  }
}

AttributeFields read_attribute_fields(const WireField& message) {
  AttributeFields attribute;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    const Kind kind = kind_of_field(field->number);
    if (field->number == 1) attribute.name = field->text();
    if (field->number == 20) attribute.type = field->integer();
    if (field->number == 21) attribute.refers = !field->text().empty();
    if (kind != Kind::none) read_value_field(attribute, *field, kind);
  }
  return attribute;
}

/// Files of IR version 1 do not say the type, and some writers leave out values that are 0 or empty.
Kind kind_of(const AttributeFields& attribute, const WireField& message, const std::string& subject) {
  const auto known = static_cast<std::int64_t>(std::size(field_of_kind));
  if (attribute.type < 0 || attribute.type >= known) {
    fail_at(message.offset, subject + " has type " + std::to_string(attribute.type) + ", which ONNX does not have");
  }
  const Kind kind = attribute.type == 0 ? attribute.found : static_cast<Kind>(attribute.type);
  if (kind == Kind::none) fail_at(message.offset, subject + " has no value");
  if (attribute.mixed || (attribute.found != Kind::none && attribute.found != kind)) {
    fail_at(message.offset, subject + " has a value of another type than it says");
  }
  return kind;
}

/// Of a kind that no op reads: lists of tensors, and sparse ones, which are values and indices.
void pass_over_tensors(const WireField& message, TensorReader& tensors) {
  WireReader fields(message);
  while (const auto field = fields.next()) {
    const Kind kind = kind_of_field(field->number);
    if (kind == Kind::tensors) tensors.pass_over(*field);
    if (kind != Kind::sparse_tensor && kind != Kind::sparse_tensors) continue;
    WireReader parts(*field);
    while (const auto part = parts.next()) {
      if (part->number == 1 || part->number == 2) tensors.pass_over(*part);
    }
  }
}

}  // namespace

std::string_view referred_attribute(const WireField& message) {
  std::string_view name;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 21) name = field->text();
  }
  return name;
}

NamedAttribute read_attribute(const WireField& message, const std::string& node, TensorReader& tensors,
                              const ReadSubgraph& read_subgraph) {
  AttributeFields fields = read_attribute_fields(message);
  if (fields.name.empty()) fail_at(message.offset, "attribute without a name, of " + node);
  const std::string subject = "attribute '" + shown(fields.name) + "' of " + node;
  if (fields.refers) fail_at(message.offset, subject + " refers to one of a function, and is in none");
  const Kind kind = kind_of(fields, message, subject);
  const bool has_value = fields.found != Kind::none;
  if (!has_value && (kind == Kind::tensor || kind == Kind::graph)) fail_at(message.offset, subject + " has no value");
  const auto value = [&]() -> ModelAttribute {
    switch (kind) {
      case Kind::real:
        return has_value ? fields.last->real() : 0.0f;
      case Kind::integer:
        return has_value ? fields.last->integer() : 0;
      case Kind::text:
        return has_value ? std::string(fields.last->text()) : std::string();
      case Kind::tensor:
        if (TensorReader::unread(*fields.last)) {
          tensors.pass_over(*fields.last);
          return {};
        }
        return tensors.read(*fields.last, subject + ": constant").tensor;
      case Kind::graph:
        return read_subgraph(*fields.last);
      case Kind::reals:
        return std::move(fields.reals);
      case Kind::integers:
        return std::move(fields.integers);
      case Kind::texts:
        return std::move(fields.texts);
      default:
        pass_over_tensors(message, tensors);
        return {};
    }
  };
  return {fields.name, value()};
}

}  // namespace xpuruntime::onnx
