#include "graph/native/constant_casts.h"

#include <cmath>
#include <cstring>

#include "core/elements.h"
#include "graph/onnx/mapped_file.h"

namespace xpuruntime::native {
namespace {

bool overflows(const Tensor& from, const Tensor& to) {
  const LoadElement load = loader_of(from.dtype()), load_cast = loader_of(to.dtype());
  for (std::int64_t i = 0; i < element_count(to.spec()); ++i) {
    if (!std::isfinite(load_cast(to.as<const void>(), i)) && std::isfinite(load(from.as<const void>(), i))) return true;
  }
  return false;
}

}  // namespace

ConstantCasts::ConstantCasts(const Model& model, Dispatcher& dispatcher) : dispatcher_(dispatcher) {
  for (const auto& [name, constant] : model.graph.constants) sizes_[constant.as<const void>()] = constant.span();
}

ConstantCasts::Known ConstantCasts::make(const Tensor& constant, DataType dtype) const {
  const auto elements = static_cast<std::int64_t>(constant.span() / size_of(constant.dtype()));
  const Tensor flat = Tensor::view(constant.as<const void>(), constant.dtype(), {elements});
  Known made{Tensor::empty(dtype, {elements})};
  made.elements.set_version(Tensor::new_version());
  if (dtype == constant.dtype()) {
    std::memcpy(made.elements.data(), constant.as<const void>(), constant.span());
    onnx::forget_pages({constant.as<const std::byte>(), constant.span()}, constant.owner());
    return made;
  }
  const Tensor *input = &flat, *output = &made.elements;
  Attributes attributes(OpId::cast);
  attributes.set("dtype", static_cast<std::int64_t>(dtype));
  dispatcher_.dispatch({.op = OpId::cast, .inputs = {&input, 1}, .outputs = {&output, 1}, .attributes = &attributes});
  made.overflows = overflows(flat, made.elements);
  return made;
}

std::optional<Tensor> ConstantCasts::cast(const Tensor& constant, DataType dtype) {
  const std::lock_guard lock(mutex_);
  const auto size = sizes_.find(constant.as<const void>());
  Known made;
  if (size != sizes_.end() && size->second == constant.span()) {
    const std::pair key{constant.as<const void>(), dtype};
    if (!known_.contains(key)) known_[key] = make(constant, dtype);
    made = known_[key];
  } else {
    made = make(constant, dtype);
  }
  if (made.overflows) return std::nullopt;
  const TensorSpec spec = make_spec(dtype, constant.shape(), constant.strides());
  Tensor result = Tensor(made.elements.data(), spec, {}, made.elements.byte_offset(), made.elements.owner());
  result.set_version(made.elements.version());
  return result.as_read_only();
}

}  // namespace xpuruntime::native
