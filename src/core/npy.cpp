#include "core/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "core/elements.h"

namespace xpuruntime {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_header = 1 << 16;

struct NpyType {
  DataType dtype;
  std::string_view name;  // as files have it
};
constexpr NpyType types[] = {{DataType::float64, "<f8"}, {DataType::float32, "<f4"}, {DataType::float16, "<f2"},
                             {DataType::int64, "<i8"},   {DataType::int32, "<i4"},   {DataType::int16, "<i2"},
                             {DataType::int8, "|i1"},    {DataType::uint8, "|u1"},   {DataType::boolean, "|b1"}};

/// What the header of a file says.
struct NpyHeader {
  std::string type = {};
  bool fortran_order = false;
  std::vector<std::int64_t> shape = {};
};

/// Reads the header: a Python dict with three keys, each once.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const JsonSource& source) : left_(text), source_(source) {}

  NpyHeader read() {
    NpyHeader header;
    int keys = 0;
    expect('{');
    while (!take('}')) {
      read_entry(header, keys);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (keys != 7 || !left_.empty()) refuse();
    return header;
  }

 private:
  [[noreturn]] void refuse() const {
    source_.refuse(ErrorCode::corrupt_data, "is no array file: its header is damaged; save it again with numpy.save");
  }

  void skip_blanks() {
    while (!left_.empty() && (left_.front() == ' ' || left_.front() == '\n')) left_.remove_prefix(1);
  }
  bool take(char c) {
    skip_blanks();
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse();
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }

  std::string quoted() {
    skip_blanks();
    const char quote = left_.empty() ? '\0' : left_.front();
    if (quote != '\'' && quote != '"') refuse();
    const std::size_t end = left_.find(quote, 1);
    if (end == left_.npos) refuse();
    const std::string text(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return text;
  }

  std::int64_t number() {
    skip_blanks();
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error != std::errc{} || value < 0) refuse();
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return value;
  }

  /// "()", "(3,)" or "(3, 4)"
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!take(')')) {
      if (extents.size() == max_rank) {
        source_.refuse(ErrorCode::invalid_argument, "has more than 8 dimensions; reshape it and save it again");
      }
      extents.push_back(number());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return extents;
  }

  /// A structured type is a list where others are a word.
  std::string type() {
    skip_blanks();
    if (left_.starts_with('[')) source_.refuse(ErrorCode::invalid_argument, "has records; save plain numbers");
    return quoted();
  }

  void read_entry(NpyHeader& header, int& keys) {
    const std::string key = quoted();
    const int bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
    if (bit == 0 || (keys & bit) != 0) refuse();
    keys |= bit;
    expect(':');
    if (bit == 1) header.type = type();
    if (bit == 4) header.shape = shape();
    if (bit == 2 && !take_word("False")) {
      if (!take_word("True")) refuse();
      header.fortran_order = true;
    }
  }

  std::string_view left_;
  const JsonSource& source_;
};

/// The header's text, which is taken off the bytes.
std::string_view take_header(std::string_view& bytes, const JsonSource& source) {
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])); };
  const std::size_t start = magic.size() + 2;
  if (bytes.size() < start + 4 || !bytes.starts_with(magic)) {
    source.refuse(ErrorCode::corrupt_data, "is no array file (.npy); save one with numpy.save");
  }
  const std::size_t version = byte(magic.size());
  if (version < 1 || version > 3 || byte(magic.size() + 1) != 0) {
    source.refuse(ErrorCode::invalid_argument, "has a header of version " + std::to_string(version) + "." +
                                                   std::to_string(byte(magic.size() + 1)) +
                                                   "; versions 1 to 3 can be read: save it with numpy.save");
  }
  const std::size_t width = version == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = 0; i < width; ++i) length |= byte(start + i) << (8 * i);
  if (length > most_header || length > bytes.size() - start - width) {
    source.refuse(ErrorCode::corrupt_data, "is truncated or damaged: its header should have " + std::to_string(length) +
                                               " bytes; save it again with numpy.save");
  }
  const std::string_view header = bytes.substr(start + width, length);
  bytes.remove_prefix(start + width + length);
  return header;
}

DataType dtype_of(const std::string& name, const JsonSource& source) {
  for (const NpyType& type : types) {
    if (type.name == name || (type.name[0] == '|' && name.size() == 3 && name.substr(1) == type.name.substr(1))) {
      return type.dtype;
    }
  }
  const bool swapped = name.starts_with('>');
  source.refuse(ErrorCode::invalid_argument,
                "has the dtype '" + printable(name) +
                    "'; save float64, float32, float16, int64 to int8, uint8 or bool" +
                    (swapped ? ", little-endian: array.astype(array.dtype.newbyteorder('<'))" : ""));
}

void append_number(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

Tensor as_f32(const Tensor& tensor) {
  Tensor wide = Tensor::empty(DataType::float32, tensor.shape());
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) {
    wide.as<float>()[i] = static_cast<float>(loader_of(tensor.dtype())(tensor.as<const void>(), i));
  }
  return wide;
}

std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

}  // namespace

Tensor parse_npy(std::string_view bytes, const JsonSource& source) {
  const NpyHeader header = HeaderReader(take_header(bytes, source), source).read();
  const DataType dtype = dtype_of(header.type, source);
  if (header.fortran_order && header.shape.size() > 1) {
    source.refuse(ErrorCode::invalid_argument, "is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  std::uint64_t count = 1;
  for (const std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) count = UINT64_MAX / 8;
  }
  if (count > bytes.size() || count * size_of(dtype) != bytes.size()) {
    source.refuse(ErrorCode::corrupt_data, "has " + std::to_string(bytes.size()) +
                                               " bytes of numbers, and its shape and " +
                                               "dtype need another number; it is truncated or damaged: save it again");
  }
  const Tensor tensor = Tensor::empty(dtype, Dims(std::span(header.shape)));
  if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), bytes.size());
  return tensor;
}

Tensor load_npy(const std::string& path) {
  constexpr std::size_t most = std::size_t{1} << 32;
  const JsonSource source{"load_npy", "array file '" + printable(path) + "' ", "array"};
  return parse_npy(read_text_file(path, source, most), source);
}

std::string npy_bytes(const Tensor& tensor) {
  const auto* type =
      std::find_if(std::begin(types), std::end(types), [&](const NpyType& one) { return one.dtype == tensor.dtype(); });
  if (type == std::end(types)) return npy_bytes(as_f32(tensor));
  std::string shape;
  for (const std::int64_t extent : tensor.shape()) shape += (shape.empty() ? "" : " ") + std::to_string(extent) + ",";
  if (tensor.shape().size() > 1) shape.pop_back();
  std::string header =
      "{'descr': '" + std::string(type->name) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t start = magic.size() + 4;
  header.append(63 - (start + header.size()) % 64, ' ');  // so that the numbers begin on 64 bytes
  header += '\n';
  std::string bytes(magic);
  bytes += {1, 0};
  append_number(bytes, header.size(), 2);
  bytes += header;
  if (tensor.span() > 0) bytes.append(tensor.as<const char>(), tensor.span());
  return bytes;
}

std::string npz_bytes(const std::vector<std::pair<std::string, Tensor>>& arrays) {
  std::string files, directory;
  for (const auto& [array, tensor] : arrays) {
    const std::string name = array + ".npy", bytes = npy_bytes(tensor);
    std::string fields;                                     // which the file's own entry and the directory's have alike
    append_number(fields, 20, 2);                           // version 2.0 reads it
    append_number(fields, 0x0800, 2);                       // the name is UTF-8
    append_number(fields, 0, 2);                            // not compressed
    append_number(fields, (std::uint64_t{0x21} << 16), 4);  // 1980-01-01, so that equal arrays make equal files
    append_number(fields, crc32_of(bytes), 4);
    append_number(fields, bytes.size(), 4);
    append_number(fields, bytes.size(), 4);
    append_number(fields, name.size(), 2);
    append_number(fields, 0, 2);
    directory += std::string("PK\x01\x02") + std::string({20, 0}) + fields;
    directory.append(10, '\0');  // no comment, disk 0, no attributes
    append_number(directory, files.size(), 4);
    directory += name;
    files += "PK\x03\x04" + fields + name + bytes;
    if (files.size() + directory.size() > UINT32_MAX || name.size() > UINT16_MAX) {
      fail(ErrorCode::invalid_argument, "npz_bytes", "the arrays have over 4 GiB; write one .npy file for each");
    }
  }
  const std::size_t start = files.size(), size = directory.size();
  files += directory + "PK\x05\x06";
  append_number(files, 0, 4);
  append_number(files, arrays.size(), 2);
  append_number(files, arrays.size(), 2);
  append_number(files, size, 4);
  append_number(files, start, 4);
  append_number(files, 0, 2);
  return files;
}

}  // namespace xpuruntime
