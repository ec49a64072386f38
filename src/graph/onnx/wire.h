#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace xpuruntime::onnx {

/// The function that errors of this folder name.
inline constexpr std::string_view reader = "load_onnx";

/// Fails with `corrupt_data` and the place in the file.
[[noreturn]] void fail_at(std::size_t offset, std::string_view message);

/// How protobuf writes a field's value.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// One field of a protobuf message: a view of the file's bytes. Reading it as what it is not is an error.
struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::size_t offset = 0;                 // of the value, from the beginning of the file
  std::uint64_t word = 0;                 // of a number
  std::span<const std::byte> bytes = {};  // of a text, a message or packed numbers

  std::int64_t integer() const;
  float real() const;
  std::string_view text() const;
  void expect(WireType wanted) const;
};

/// Reads a protobuf message field by field, never past its end. Groups are refused: ONNX has none.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes, std::size_t offset = 0) : left_(bytes), offset_(offset) {}
  explicit WireReader(const WireField& message) : WireReader(message.bytes, message.offset) {
    message.expect(WireType::bytes);
  }

  bool done() const { return left_.empty(); }
  /// Nothing at the end of the message.
  std::optional<WireField> next();
  /// A number on its own, as packed fields have them. `type` is not `bytes`.
  std::uint64_t number(WireType type);

 private:
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t size);
  std::span<const std::byte> take(std::uint64_t size);

  std::span<const std::byte> left_;
  std::size_t offset_;
};

/// Calls `use` with each number of a repeated field, packed or not.
template <class Use>
void each_number(const WireField& field, WireType type, Use use) {
  if (field.type == type) return use(field.word);
  for (WireReader packed(field); !packed.done();) use(packed.number(type));
}

}  // namespace xpuruntime::onnx
