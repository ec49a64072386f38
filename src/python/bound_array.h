#pragma once

#include "dispatch/aliasing.h"
#include "python/dlpack_arrays.h"

namespace xpuruntime::python {

enum class ArrayKind { none, ours, numpy, numpy_scalar, exchange, dlpack, buffer };

/// How arrays of one Python type are read and made.
struct ArrayType {
  PyTypeObject* type = nullptr;
  ArrayKind kind = ArrayKind::none;
  const ExchangeApi* api = nullptr;   // of `exchange`
  PyObject* requires_grad = nullptr;  // the property; null where it has none: what we compute is not in its graph
  PyObject* is_neg = nullptr;         // PyTorch's method of it
  bool immutable = false;             // its package takes for granted that it never changes
};

/// Looked up once for each type; the reference is good until the next look-up of a type that was not seen before.
const ArrayType& array_type_of(PyObject* object);

/// An array argument for the length of a call: the tensor on its memory, or on that of a stand-in where the array's
/// own layout is none that a tensor can have. The caller keeps the array.
class BoundArray {
 public:
  BoundArray() {}  // a defaulted one would zero all of it first, with every call
  /// What is no array is an ArgumentTypeError.
  void bind(PyObject* array, Access access, const Where& where);
  /// Not an array of the caller's: a number, or a constant that an op needs.
  void set(const Tensor& tensor) { tensor_ = tensor; }

  const Tensor& tensor() const { return tensor_; }
  PyObject* array() const { return array_; }
  const ArrayType& type() const { return type_; }
  const nb::object& stand_in() const { return stand_in_; }
  /// The tensor is not on the array's own memory.
  bool is_copy() const { return stand_in_.is_valid() || buffer_copied_; }

  /// The array's own memory.
  Region region() const;
  /// Puts what was computed into the array, where a stand-in was written.
  void write_back() const;
  /// Tells the array's package that it was written, where that wants to know.
  void note_write() const;

 private:
  void bind_numpy(Access access, const Where& where);

  Tensor tensor_;
  PyObject* array_ = nullptr;
  ArrayType type_ = {};
  nb::object stand_in_ = {};
  bool buffer_copied_ = false;
};

}  // namespace xpuruntime::python
