#include "python/tensor_views.h"

#include <algorithm>
#include <vector>

#include "python/arguments.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::python {
namespace {

using Integers = std::vector<std::int64_t>;

/// Of f(2, 3) and of f((2, 3)).
Integers listed(const nb::args& given, const char* function, const char* name) {
  return integers_from(given.size() == 1 ? nb::handle(given[0]) : nb::handle(given), function, name);
}

/// A view keeps the memory, so somebody must.
const Tensor& viewable(const TensorObject& self, const char* function) {
  const Tensor& tensor = self.usable(function);
  if (tensor.owner() != nullptr || tensor.data() == nullptr) return tensor;
  fail(ErrorCode::not_supported, function, "the tensor is lent for this call; view its memory with NumPy or copy it");
}

nb::object view(const Tensor& tensor, const TensorSpec& spec) {
  const Tensor same(tensor.data(), spec, tensor.device(), tensor.byte_offset(), tensor.owner());
  return make_tensor_object(tensor.read_only() ? same.as_read_only() : same);
}

/// What -1 stands for; 0 where nothing fits.
std::int64_t missing_extent(const Integers& shape, std::int64_t count) {
  std::int64_t others = 1;
  for (const std::int64_t extent : shape) {
    if (extent != -1 && (extent <= 0 || others > count / extent)) return 0;
    if (extent != -1) others *= extent;
  }
  return count % others == 0 ? count / others : 0;
}

}  // namespace

nb::object reshaped(const TensorObject& self, const nb::args& shape) {
  const Tensor& tensor = viewable(self, "reshape");
  Integers extents = listed(shape, "reshape", "shape");
  if (!tensor.contiguous())
    fail(ErrorCode::not_supported, "reshape", "the tensor is not contiguous; copy it first: xpuruntime.ops.copy");
  const std::int64_t count = element_count(tensor.spec());
  const auto refuse = [&] {
    std::string text;
    for (const std::int64_t extent : listed(shape, "reshape", "shape"))
      text += (text.empty() ? "" : ",") + std::to_string(extent);
    fail(ErrorCode::invalid_argument, "reshape",
         to_string(tensor.spec()) + " has " + std::to_string(count) + " elements, which [" + text + "] does not hold");
  };
  const auto open = std::find(extents.begin(), extents.end(), -1);
  if (open != extents.end()) {
    *open = missing_extent(extents, count);
    if (*open == 0) refuse();
  }
  const TensorSpec spec = make_spec(tensor.dtype(), Dims(extents));
  if (element_count(spec) != count) refuse();
  return view(tensor, spec);
}

nb::object permuted(const TensorObject& self, const nb::args& dims) {
  const Tensor& tensor = viewable(self, "permute");
  const Integers order = listed(dims, "permute", "dims");
  const std::size_t rank = tensor.shape().size();
  Integers shape, strides, seen;
  for (const std::int64_t dim : order) {
    const std::int64_t at = dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim;
    const bool is_new = std::find(seen.begin(), seen.end(), at) == seen.end();
    if (at < 0 || at >= static_cast<std::int64_t>(rank) || !is_new) {
      fail(ErrorCode::invalid_argument, "permute",
           "dim " + std::to_string(dim) + (is_new ? " is none of a tensor with " : " comes twice; name each of the ") +
               std::to_string(rank) + " dims");
    }
    seen.push_back(at);
    shape.push_back(tensor.shape()[static_cast<std::size_t>(at)]);
    strides.push_back(tensor.strides()[static_cast<std::size_t>(at)]);
  }
  if (order.size() != rank) {
    fail(ErrorCode::invalid_argument, "permute",
         std::to_string(order.size()) + " dims for a tensor with " + std::to_string(rank) + "; name each once");
  }
  return view(tensor, make_spec(tensor.dtype(), Dims(shape), Dims(strides)));
}

}  // namespace xpuruntime::python
