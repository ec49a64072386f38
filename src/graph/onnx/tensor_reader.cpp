#include "graph/onnx/tensor_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/printable.h"
#include "graph/onnx/element_type.h"
#include "graph/onnx/tensor_fields.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "files have the bytes of little-endian hosts");

/// A constant and how errors name it.
struct Constant {
  const TensorFields& fields;
  const WireField& message;
  std::string text;

  [[noreturn]] void refuse(const std::string& why) const { fail_at(message.offset, text + " " + why); }
  [[noreturn]] void refuse_unsupported(const std::string& why) const {
    fail(ErrorCode::not_supported, reader, "byte " + std::to_string(message.offset) + ": " + text + " " + why);
  }
};

DataType dtype_of(const Constant& constant) {
  const std::int64_t type = constant.fields.element_type;
  if (type == 0) constant.refuse("has no element type");
  if (const auto dtype = element_dtype(type)) return *dtype;
  constant.refuse_unsupported("is of " + element_type_name(type) +
                              ", which no op here reads; convert the model to another type");
}

Dims shape_of(const Constant& constant, DataType dtype) {
  const TensorFields& fields = constant.fields;
  if (fields.rank > max_rank) {
    constant.refuse_unsupported("has rank " + std::to_string(fields.rank) + ", over the limit of " +
                                std::to_string(max_rank) + "; merge dims");
  }
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (std::size_t i = 0; i < fields.rank; ++i) {
    const std::int64_t extent = fields.extents[i];
    if (extent < 0) constant.refuse("has the dim " + std::to_string(extent) + ", which is negative");
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      constant.refuse("has dims with more bytes than fit 63 bits");
    }
  }
  return Dims(std::span(fields.extents).first(fields.rank));
}

void check_bools(const Constant& constant, DataType dtype, std::span<const std::byte> bytes) {
  if (dtype != DataType::boolean) return;
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte <= std::byte{1}; })) return;
  constant.refuse("is of bool and has bytes other than 0 and 1");
}

bool is_aligned(std::span<const std::byte> bytes, DataType dtype) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % size_of(dtype) == 0;
}

/// Of bytes that fit the spec: where they lie if they last and are aligned, else copied.
Tensor tensor_over(const SharedBytes& data, const TensorSpec& spec) {
  if (!data.bytes.empty() && data.lasts && is_aligned(data.bytes, spec.dtype)) {
    return Tensor::on(const_cast<std::byte*>(data.bytes.data()), spec, {}, 0, data.owner);
  }
  Tensor copy = Tensor::empty(spec.dtype, spec.shape);
  if (data.bytes.empty()) return copy;
  std::memcpy(copy.data(), data.bytes.data(), data.bytes.size());
  forget_pages(data.bytes, data.owner);
  return copy;
}

/// The field that has the numbers of a dtype where they are not raw.
std::uint32_t list_of(DataType dtype) {
  switch (dtype) {
    case DataType::float32:
      return 4;
    case DataType::int64:
      return 7;
    case DataType::float64:
      return 10;
    default:
      return 5;  // int32_data has all that are smaller
  }
}

struct Limits {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

/// What int32_data may hold for a dtype: its values, or the bits of a float.
Limits limits_of(DataType dtype) {
  switch (dtype) {
    case DataType::int32:
      return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
    case DataType::int16:
      return {-32768, 32767};
    case DataType::int8:
      return {-128, 127};
    case DataType::boolean:
      return {0, 1};
    default:
      return {0, size_of(dtype) == 1 ? 255 : 65535};
  }
}

Tensor tensor_of_list(const Constant& constant, const TensorSpec& spec) {
  const std::uint32_t list = list_of(spec.dtype);
  const Limits limits = limits_of(spec.dtype);
  Tensor out = Tensor::empty(spec.dtype, spec.shape);
  auto* to = out.as<std::byte>();
  const auto store = [&](std::uint64_t word) {
    const std::int64_t value = static_cast<std::int32_t>(word);
    if (list == 5 && (value < limits.least || value > limits.most)) {
      constant.refuse("has the number " + std::to_string(value) + ", which " +
                      element_type_name(constant.fields.element_type) + " does not have");
    }
    std::memcpy(to, &word, size_of(spec.dtype));  // the low bytes
    to += size_of(spec.dtype);
  };
  WireReader fields(constant.message);
  while (const auto field = fields.next()) {
    if (field->number == list) each_number(*field, *list_type(list), store);
  }
  return out;
}

/// Where the elements are written: raw, or as a list whose field is given.
void check_one_source(const Constant& constant, DataType dtype, std::size_t count) {
  const TensorFields& fields = constant.fields;
  const bool raw = fields.external || (fields.raw && !fields.raw->bytes.empty());
  for (std::uint32_t list = 0; list < fields.numbers.size(); ++list) {
    if (fields.numbers[list] == 0) continue;
    if (raw) constant.refuse("has its elements twice: as bytes and as numbers");
    if (list != list_of(dtype)) constant.refuse("has its elements in a list of another type");
  }
  if (fields.external && fields.raw && !fields.raw->bytes.empty()) {
    constant.refuse("has its elements twice: in the model and as external data");
  }
  const std::size_t listed = fields.numbers[list_of(dtype)];
  if (raw || listed == count) return;
  constant.refuse("has " + std::to_string(listed) + " elements where its dims need " + std::to_string(count));
}

SharedBytes raw_bytes(const Constant& constant, std::size_t size, const SharedBytes& file) {
  const auto bytes = constant.fields.raw->bytes;
  if (bytes.size() == size) return {bytes, file.owner, file.lasts};
  constant.refuse("has " + std::to_string(bytes.size()) + " bytes where its dims need " + std::to_string(size));
}

SharedBytes external_bytes(const Constant& constant, DataType dtype, std::size_t size, ExternalData& external) {
  try {
    const ExternalPlace& place = constant.fields.place;
    SharedBytes data = external.find(place, size);
    if (dtype == DataType::boolean || !is_aligned(data.bytes, dtype)) external.count_work(place, size);
    return data;
  } catch (const Error& error) {
    fail(
        error.code(), reader,
        "byte " + std::to_string(constant.message.offset) + ": " + constant.text + ": " + std::string(error.message()));
  }
}

}  // namespace

std::optional<TensorReader::Unread> TensorReader::unread(const WireField& message) {
  std::int64_t type = 0;
  std::string name;
  WireReader fields(message);
  while (const auto field = fields.next()) {
    if (field->number == 2) type = field->integer();
    if (field->number == 8) name = field->text();
  }
  if (type == 0 || element_dtype(type)) return {};
  return Unread{std::move(name), element_type_name(type)};
}

void TensorReader::pass_over(const WireField& message) {
  const TensorFields fields = read_tensor_fields(message);
  if (fields.external) external_.note(fields.place.location);
}

NamedTensor TensorReader::read(const WireField& message, const std::string& subject) {
  const TensorFields fields = read_tensor_fields(message);
  const Constant constant{fields, message, fields.name.empty() ? subject : subject + " '" + shown(fields.name) + "'"};
  if (fields.segmented) constant.refuse_unsupported("is stored in segments; export the model again");
  const DataType dtype = dtype_of(constant);
  const TensorSpec spec = make_spec(dtype, shape_of(constant, dtype));
  const std::size_t size = span_bytes(spec);
  check_one_source(constant, dtype, size / size_of(dtype));
  SharedBytes data;
  if (fields.external && size > 0) {
    data = external_bytes(constant, dtype, size, external_);
  } else if (fields.raw && !fields.raw->bytes.empty()) {
    data = raw_bytes(constant, size, file_);
  }
  check_bools(constant, dtype, data.bytes);
  Tensor tensor = data.owner ? tensor_over(data, spec) : tensor_of_list(constant, spec);
  tensor.set_version(Tensor::new_version());  // it never changes: what is made from it may be kept
  return {fields.name, tensor.as_read_only()};
}

}  // namespace xpuruntime::onnx
