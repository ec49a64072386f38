#pragma once

#include "python/bound_array.h"

namespace xpuruntime::python {

/// An array of the caller's package for a result.
class Result {
 public:
  Result() {}  // not defaulted, as BoundArray's
  /// A new one like `like`, which is an argument of the call.
  void make(const BoundArray& like, const TensorSpec& spec, Device device);
  /// One that the caller passed.
  void use(PyObject* out, const Where& where);

  const Tensor& tensor() const { return bound_.tensor(); }
  const BoundArray& bound() const { return bound_; }
  /// Invalid where there is no array before the kernel has run.
  const nb::object& array() const { return array_; }
  /// After the kernel ran: the array to hand out.
  nb::object finish();

 private:
  BoundArray bound_;
  nb::object array_ = {};        // empty for packages that take the finished memory only
  nb::object from_dlpack_ = {};  // the function that does
};

}  // namespace xpuruntime::python
