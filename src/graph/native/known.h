#pragma once

#include "core/elements.h"
#include "graph/native/lowering.h"

namespace xpuruntime::native {

/// An input whose elements are known before a run, one after the other.
struct Known {
  const void* data;
  std::int64_t count;
  DataType dtype;

  Known(const NodeCall& call, std::size_t input) {
    call.need_constant(input);
    constexpr std::int64_t most = 1 << 24;  // the time this takes is bounded
    if (element_count(call.builder.spec(call[input])) > most) call.refuse("more than 16 million elements before a run");
    const Tensor& tensor = call.builder.constant_of(call.builder.contiguous(call[input]));
    data = tensor.as<const void>();
    count = element_count(tensor.spec());
    dtype = tensor.dtype();
  }

  double real(std::int64_t i) const { return loader_of(dtype)(data, i); }
};

}  // namespace xpuruntime::native
