#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpuruntime::testing {

/// Writes protobuf messages, right ones and wrong ones. Numbers of fields are those of ONNX's onnx.proto.
class Proto {
 public:
  Proto& number(std::uint64_t field, std::int64_t value) {
    varint(field << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Proto& text(std::uint64_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Proto& message(std::uint64_t field, const Proto& value) { return text(field, value.bytes_); }
  Proto& real(std::uint64_t field, float value) {
    varint(field << 3 | 5);
    fixed(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  Proto& real64(std::uint64_t field, double value) {
    varint(field << 3 | 1);
    fixed(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Proto& packed(std::uint64_t field, std::initializer_list<std::int64_t> values) {
    Proto list;
    for (const std::int64_t value : values) list.varint(static_cast<std::uint64_t>(value));
    return message(field, list);
  }
  Proto& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void fixed(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> 8 * i);
  }

  const std::string& text() const { return bytes_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_ = {};
};

// TensorProto, AttributeProto, NodeProto and so on, as the tests need them.

inline Proto tensor(std::string_view name, std::int64_t type, std::initializer_list<std::int64_t> dims) {
  Proto out;
  for (const std::int64_t dim : dims) out.number(1, dim);
  return out.number(2, type).text(8, name);
}

inline Proto floats(std::string_view name, std::initializer_list<float> values) {
  Proto out = tensor(name, 1, {static_cast<std::int64_t>(values.size())});
  for (const float value : values) out.real(4, value);
  return out;
}

inline Proto external(std::string_view name, std::string_view location, std::string_view offset = "",
                      std::string_view length = "", std::int64_t dim = 2, std::int64_t type = 1) {
  const auto entry = [](std::string_view key, std::string_view value) { return Proto().text(1, key).text(2, value); };
  Proto out = tensor(name, type, {dim}).number(14, 1).message(13, entry("location", location));
  if (!offset.empty()) out.message(13, entry("offset", offset));
  if (!length.empty()) out.message(13, entry("length", length));
  return out;
}

inline Proto value(std::string_view name, std::int64_t type = 1, std::initializer_list<std::int64_t> dims = {2}) {
  Proto shape;
  for (const std::int64_t dim : dims) shape.message(1, Proto().number(1, dim));
  return Proto().text(1, name).message(2, Proto().message(1, Proto().number(1, type).message(2, shape)));
}

using Names = std::initializer_list<std::string_view>;

inline Proto node(std::string_view op, Names inputs, Names outputs, const std::vector<Proto>& attributes = {},
                  std::string_view name = "") {
  Proto out;
  for (const auto input : inputs) out.text(1, input);
  for (const auto output : outputs) out.text(2, output);
  if (!name.empty()) out.text(3, name);
  out.text(4, op);
  for (const Proto& attribute : attributes) out.message(5, attribute);
  return out;
}

inline Proto attribute(std::string_view name, std::int64_t type) { return Proto().text(1, name).number(20, type); }
inline Proto body(std::string_view name, const Proto& graph) { return attribute(name, 5).message(6, graph); }

struct GraphParts {
  std::vector<Proto> nodes = {};
  std::vector<Proto> constants = {};
  std::vector<Proto> inputs = {};
  std::vector<Proto> outputs = {};
  std::vector<Proto> values = {};
};

inline Proto graph(const GraphParts& parts) {
  Proto out;
  for (const Proto& part : parts.nodes) out.message(1, part);
  out.text(2, "main");
  for (const Proto& part : parts.constants) out.message(5, part);
  for (const Proto& part : parts.inputs) out.message(11, part);
  for (const Proto& part : parts.outputs) out.message(12, part);
  for (const Proto& part : parts.values) out.message(13, part);
  return out;
}

inline Proto opset(std::string_view domain, std::int64_t version) { return Proto().text(1, domain).number(2, version); }

inline Proto model(const Proto& graph, std::int64_t version = 17) {
  return Proto().number(1, 8).text(2, "tests").text(3, "1.0").message(7, graph).message(8, opset("", version));
}
inline Proto model(const GraphParts& parts) { return model(graph(parts)); }

}  // namespace xpuruntime::testing
