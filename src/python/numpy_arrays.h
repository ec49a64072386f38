#pragma once

#include "python/arrays.h"

namespace xpuruntime::python {

/// NumPy, if the program has imported it: this package works without it and never imports it by itself.
class Numpy {
 public:
  /// Null until NumPy is there, and with a version whose arrays are laid out in a way that we do not know.
  static const Numpy* loaded();
  /// Imports it; an error that says so where it is not installed.
  static const Numpy& needed(const char* function);

  PyTypeObject* array_type() const { return array_type_; }

  /// A tensor on an array's memory, without an owner; an empty object where its layout is one that no tensor has.
  Tensor view(PyObject* array, Access access, const Where& where) const;
  /// A new array, not filled.
  nb::object empty(const TensorSpec& spec) const;
  /// A row-major copy of an array, and an array's contents from another.
  nb::object contiguous_copy(nb::handle array) const;
  void copy_into(nb::handle destination, nb::handle source) const;
  /// NumPy's dtype object for ours.
  nb::object dtype_object(DataType dtype) const;

 private:
  explicit Numpy(nb::module_ module);
  bool layout_is_known() const;
  DataType dtype_of(PyObject* array, const Where& where) const;
  int type_number(DataType dtype) const;

  nb::module_ module_;
  void** functions_ = nullptr;
  PyTypeObject* array_type_ = nullptr;
};

}  // namespace xpuruntime::python
