#include "python/buffer_arrays.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string_view>

#include "python/gil.h"
#include "python/types.h"

namespace xpuruntime::python {
namespace {

struct Held {
  Py_buffer buffer = {};

  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { PyBuffer_Release(&buffer); }
};

// Python's buffers name no 16-bit brain floats and no 8-bit floats. The first of a dtype is what we write: "l" is what
// NumPy calls int64 on Linux, and some packages know no other.
struct Format {
  DataType dtype;
  const char* letter;
};
constexpr Format formats[] = {
    {DataType::float64, "d"}, {DataType::float32, "f"}, {DataType::float16, "e"}, {DataType::int64, "l"},
    {DataType::int32, "i"},   {DataType::int16, "h"},   {DataType::int8, "b"},    {DataType::uint8, "B"},
    {DataType::boolean, "?"}, {DataType::int64, "q"},   {DataType::uint8, "c"},
};

DataType dtype_of(const Py_buffer& buffer, const Where& where) {
  std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  if (format.starts_with('>') || format.starts_with('!')) {
    where.fail(ErrorCode::invalid_argument, "it is big-endian; convert it to this machine's byte order");
  }
  if (format.starts_with('<') || format.starts_with('=') || format.starts_with('@')) format.remove_prefix(1);
  for (const Format& row : formats) {
    if (format == row.letter && static_cast<std::size_t>(buffer.itemsize) == size_of(row.dtype)) return row.dtype;
  }
  where.fail(ErrorCode::not_supported,
             "its elements have the format '" + std::string(format) + "', which has no counterpart here; convert them");
}

std::optional<Tensor> described(const Py_buffer& buffer, DataType dtype, std::shared_ptr<void> owner) {
  const auto rank = static_cast<std::size_t>(buffer.ndim);
  const Dims shape(std::span(reinterpret_cast<const std::int64_t*>(buffer.shape), rank));
  // Some packages, ctypes for one, leave the strides of contiguous memory out even where they are asked for.
  Dims strides = buffer.strides == nullptr ? make_spec(dtype, shape).strides : Dims::filled(rank, 0);
  for (std::size_t i = 0; i < rank && buffer.strides != nullptr; ++i) {
    if (shape[i] == 1) continue;  // its stride addresses nothing
    if (buffer.strides[i] < 0 || buffer.strides[i] % buffer.itemsize != 0) return {};
    strides[i] = buffer.strides[i] / buffer.itemsize;
  }
  if (reinterpret_cast<std::uintptr_t>(buffer.buf) % static_cast<std::uintptr_t>(buffer.itemsize) != 0) return {};
  return Tensor(buffer.buf, make_spec(dtype, shape, strides), {}, 0, std::move(owner));
}

Tensor copied(Py_buffer& buffer, DataType dtype) {
  const auto rank = static_cast<std::size_t>(buffer.ndim);
  const Tensor copy = Tensor::empty(dtype, Dims(std::span(reinterpret_cast<const std::int64_t*>(buffer.shape), rank)));
  if (PyBuffer_ToContiguous(copy.data(), &buffer, buffer.len, 'C') != 0) throw nb::python_error();
  return copy;
}

/// A memoryview that was released, for one.
[[noreturn]] void refuse_as_it_does(const Where& where) {
  const nb::python_error error;
  where.fail(ErrorCode::invalid_argument, "it gives no memory (" + python_str(error.value()) + "); pass one that does");
}

}  // namespace

Tensor from_buffer_of(nb::handle object, Access access, const Where& where, bool& is_copy) {
  std::shared_ptr<Held> held(new Held, [](Held* buffer) {
    if (!Py_IsInitialized()) return;
    const WithGil gil;
    delete buffer;
  });
  const bool write = access == Access::write;
  if (PyObject_GetBuffer(object.ptr(), &held->buffer, write ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0) {
    if (PyErr_ExceptionMatches(PyExc_ValueError)) refuse_as_it_does(where);
    if (!write || !PyErr_ExceptionMatches(PyExc_BufferError)) throw nb::python_error();
    PyErr_Clear();
    where.fail(ErrorCode::invalid_argument,
               "this " + python_type(object) + " is read-only; pass one that can be written");
  }
  Py_buffer& buffer = held->buffer;
  const DataType dtype = dtype_of(buffer, where);
  if (std::optional<Tensor> tensor = described(buffer, dtype, held)) return *tensor;
  if (write) {
    where.fail(ErrorCode::invalid_argument,
               "its strides are negative or not a multiple of its elements; pass one in row-major order");
  }
  is_copy = true;
  return copied(buffer, dtype);
}

const char* buffer_format(DataType dtype) {
  for (const Format& row : formats) {
    if (row.dtype == dtype) return row.letter;
  }
  return nullptr;
}

}  // namespace xpuruntime::python
