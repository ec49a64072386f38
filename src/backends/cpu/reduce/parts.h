#pragma once

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// A tensor's dims told apart: those an op works along, and the others. Both keep the tensor's rank, with extents of 1
/// where the other has the dim.
struct Parts {
  TensorSpec across = {};
  TensorSpec along = {};
};

/// Bit i of `along` stands for dim i.
Parts parts_of(const TensorSpec& spec, unsigned along);

/// The bits of one dim, counted from either end.
unsigned dim_bit(std::int64_t dim, std::size_t rank);
/// The bits of the last `count` dims.
unsigned last_dims(std::int64_t count, std::size_t rank);
/// The dims that a reduce op goes over: all where it names none.
unsigned reduced_dims(const Problem& problem);

/// The output of a reduce op in the input's rank, with extents of 1 where it was reduced.
TensorSpec kept_output(const Problem& problem);

}  // namespace xpuruntime::cpu
