#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {

Parts parts_of(const TensorSpec& spec, unsigned along) {
  Parts parts{spec, spec};
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    TensorSpec& other = (along >> i & 1) != 0 ? parts.across : parts.along;
    other.shape[i] = 1;
  }
  return parts;
}

unsigned dim_bit(std::int64_t dim, std::size_t rank) {
  return 1U << (dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim);
}

unsigned last_dims(std::int64_t count, std::size_t rank) {
  const unsigned all = (1U << rank) - 1;
  const unsigned first = (1U << (static_cast<std::int64_t>(rank) - count)) - 1;
  return all & ~first;
}

unsigned reduced_dims(const Problem& problem) {
  const std::size_t rank = problem.inputs[0].shape.size();
  const std::vector<std::int64_t> dims = problem.attributes.list("dim");
  if (dims.empty()) return (1U << rank) - 1;
  unsigned bits = 0;
  for (const std::int64_t dim : dims) bits |= dim_bit(dim, rank);
  return bits;
}

TensorSpec kept_output(const Problem& problem) {
  const unsigned reduced = reduced_dims(problem);
  const TensorSpec& in = problem.inputs[0];
  const TensorSpec& out = problem.outputs[0];
  if (out.shape.size() == in.shape.size()) return out;
  TensorSpec full = out;
  full.shape = full.strides = Dims::filled(in.shape.size(), 1);
  for (std::size_t i = 0, j = 0; i < in.shape.size(); ++i) {
    if ((reduced >> i & 1) != 0) continue;
    full.shape[i] = out.shape[j];
    full.strides[i] = out.strides[j++];
  }
  return full;
}

}  // namespace xpuruntime::cpu
