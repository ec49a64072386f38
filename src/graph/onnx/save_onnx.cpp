#include <bit>

#include "core/json_text.h"
#include "core/printable.h"
#include "graph/onnx/element_type.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(const std::string& why) { fail(ErrorCode::not_supported, "save_onnx", why); }

/// A protobuf message, field by field.
class Message {
 public:
  void integer(std::uint32_t field, std::int64_t value) {
    varint(field << 3);
    varint(static_cast<std::uint64_t>(value));
  }
  void real(std::uint32_t field, float value) {
    varint(field << 3 | 5);
    word(value);
  }
  void text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const Message& value) { text(field, value.bytes_); }
  void integers(std::uint32_t field, std::span<const std::int64_t> values) {
    Message packed;
    for (const std::int64_t value : values) packed.varint(static_cast<std::uint64_t>(value));
    message(field, packed);
  }
  void reals(std::uint32_t field, std::span<const float> values) {
    Message packed;
    for (const float value : values) packed.word(value);
    message(field, packed);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value % 128 + 128);
    bytes_ += static_cast<char>(value);
  }
  void word(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(word >> shift);
  }

  std::string bytes_ = {};
};

Message tensor_message(const Tensor& tensor, std::string_view name) {
  if (!tensor.contiguous()) refuse("a constant is not contiguous; copy it first");
  Message message;
  message.integers(1, std::span(tensor.shape().begin(), tensor.shape().end()));
  message.integer(2, onnx::element_type_number(tensor.dtype()));
  if (!name.empty()) message.text(8, name);
  const std::size_t size = span_bytes(tensor.spec());
  message.text(9, size == 0 ? std::string_view() : std::string_view(tensor.as<const char>(), size));
  return message;
}

Message value_message(const ModelValue& value) {
  Message message;
  message.text(1, value.name);
  const std::int64_t type =
      value.dtype ? onnx::element_type_number(*value.dtype) : onnx::element_type_number(value.type);
  if (type < 0)
    refuse("'" + printable(value.name) + "' is of type " + printable(value.type) + ", which cannot be written");
  if (type == 0 && !value.shape) return message;
  Message tensor, of_type;
  if (type != 0) tensor.integer(1, type);
  if (value.shape) {
    Message shape;
    for (const ModelExtent& extent : *value.shape) {
      Message dim;
      if (extent.size >= 0) dim.integer(1, extent.size);
      if (extent.size < 0 && !extent.name.empty()) dim.text(2, extent.name);
      shape.message(1, dim);
    }
    tensor.message(2, shape);
  }
  of_type.message(1, tensor);
  message.message(2, of_type);
  return message;
}

Message graph_message(const ModelGraph& graph);

/// The field of its value and the number of its type.
struct AttributeWriter {
  Message& message;
  std::string name;

  void operator()(std::monostate) const {
    refuse("attribute '" + printable(name) + "' is of a kind that is not read; it cannot be written");
  }
  void operator()(float value) const { message.real(2, value), type(1); }
  void operator()(std::int64_t value) const { message.integer(3, value), type(2); }
  void operator()(const std::string& value) const { message.text(4, value), type(3); }
  void operator()(const Tensor& value) const { message.message(5, tensor_message(value, {})), type(4); }
  void operator()(const std::shared_ptr<const ModelGraph>& value) const {
    message.message(6, graph_message(*value)), type(5);
  }
  void operator()(const std::vector<float>& values) const { message.reals(7, values), type(6); }
  void operator()(const std::vector<std::int64_t>& values) const { message.integers(8, values), type(7); }
  void operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) message.text(9, value);
    type(8);
  }

 private:
  void type(std::int64_t number) const { message.integer(20, number); }
};

Message node_message(const ModelNode& node) {
  Message message;
  for (const std::string& input : node.inputs) message.text(1, input);
  for (const std::string& output : node.outputs) message.text(2, output);
  message.text(3, node.name);
  message.text(4, node.op);
  for (const auto& [name, value] : node.attributes) {
    Message attribute;
    attribute.text(1, name);
    std::visit(AttributeWriter{attribute, name}, value);
    message.message(5, attribute);
  }
  if (!node.domain.empty()) message.text(7, node.domain);
  return message;
}

Message graph_message(const ModelGraph& graph) {
  Message message;
  for (const ModelNode& node : graph.nodes) message.message(1, node_message(node));
  message.text(2, graph.name.empty() ? "graph" : graph.name);
  for (const auto& [name, constant] : graph.constants) message.message(5, tensor_message(constant, name));
  for (const ModelValue& input : graph.inputs) message.message(11, value_message(input));
  for (const ModelValue& output : graph.outputs) message.message(12, value_message(output));
  return message;
}

}  // namespace

void save_onnx(const Model& model, const std::string& path) {
  constexpr std::size_t most_bytes = (std::size_t{1} << 31) - 1;
  Message message;
  message.integer(1, model.ir_version);
  if (!model.producer.empty()) message.text(2, model.producer);
  message.message(7, graph_message(model.graph));
  for (const auto& [domain, version] : model.opsets) {
    Message opset;
    if (!domain.empty()) opset.text(1, domain);
    opset.integer(2, version);
    message.message(8, opset);
  }
  if (message.bytes().size() > most_bytes) {
    refuse("the model has " + std::to_string(message.bytes().size()) + " bytes, over the 2 GiB of one file");
  }
  write_file_atomically(path, message.bytes(),
                        {.function = "save_onnx", .prefix = "model '" + path + "': ", .kind = "model"});
}

}  // namespace xpuruntime
