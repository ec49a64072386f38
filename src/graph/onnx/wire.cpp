#include "graph/onnx/wire.h"

#include <bit>
#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

constexpr std::uint64_t largest_field = (std::uint64_t{1} << 29) - 1;

std::string_view wire_type_name(WireType type) {
  switch (type) {
    case WireType::varint:
      return "a varint";
    case WireType::fixed64:
      return "8 bytes";
    case WireType::bytes:
      return "a text, message or packed list";
    case WireType::fixed32:
      return "4 bytes";
  }
  return "?";
}

WireType wire_type(std::uint64_t bits, std::size_t offset) {
  switch (bits) {
    case 0:
    case 1:
    case 2:
    case 5:
      return static_cast<WireType>(bits);
    case 3:
    case 4:
      fail_at(offset, "a protobuf group, which ONNX does not have");
    default:
      fail_at(offset, "wire type " + std::to_string(bits) + ", which protobuf does not have");
  }
}

}  // namespace

void fail_at(std::size_t offset, std::string_view message) {
  fail(ErrorCode::corrupt_data, reader,
       "byte " + std::to_string(offset) + ": " + std::string(message) +
           "; check that this is a whole ONNX file, or export it again");
}

void WireField::expect(WireType wanted) const {
  if (type == wanted) return;
  fail_at(offset, "field " + std::to_string(number) + " is " + std::string(wire_type_name(type)) + " instead of " +
                      std::string(wire_type_name(wanted)));
}

std::int64_t WireField::integer() const {
  expect(WireType::varint);
  return static_cast<std::int64_t>(word);
}

float WireField::real() const {
  expect(WireType::fixed32);
  return std::bit_cast<float>(static_cast<std::uint32_t>(word));
}

std::string_view WireField::text() const {
  expect(WireType::bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> WireReader::take(std::uint64_t size) {
  if (size > left_.size()) {
    fail_at(offset_, "a value of " + std::to_string(size) + " bytes where its message has " +
                         std::to_string(left_.size()) + " left");
  }
  const auto taken = left_.first(static_cast<std::size_t>(size));
  left_ = left_.subspan(taken.size());
  offset_ += taken.size();
  return taken;
}

std::uint64_t WireReader::varint() {
  const std::size_t start = offset_;
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(take(1)[0]);
    if (shift == 63 && byte > 1) break;  // the 64th bit is the last
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_at(start, "a varint over 64 bits");
}

std::uint64_t WireReader::fixed(std::size_t size) {
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const std::byte byte : take(size)) {
    value |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return value;
}

std::uint64_t WireReader::number(WireType type) {
  if (type == WireType::varint) return varint();
  return fixed(type == WireType::fixed64 ? 8 : 4);
}

std::optional<WireField> WireReader::next() {
  if (done()) return {};
  const std::size_t start = offset_;
  const std::uint64_t tag = varint();
  WireField field;
  field.type = wire_type(tag & 7, start);
  if (tag >> 3 == 0 || tag >> 3 > largest_field) fail_at(start, "a field number that protobuf does not have");
  field.number = static_cast<std::uint32_t>(tag >> 3);
  if (field.type == WireType::bytes) {
    const std::uint64_t size = varint();
    field.offset = offset_;
    field.bytes = take(size);
  } else {
    field.offset = offset_;
    field.word = number(field.type);
  }
  return field;
}

}  // namespace xpuruntime::onnx
