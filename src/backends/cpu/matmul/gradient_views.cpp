#include "backends/cpu/matmul/gradient_views.h"

#include <utility>
#include <vector>

#include "core/backward.h"

namespace xpuruntime::cpu {
namespace {

using Extents = std::vector<std::int64_t>;

/// A spec whose dims are being changed.
struct Editable {
  explicit Editable(const TensorSpec& spec)
      : from(spec), shape(spec.shape.begin(), spec.shape.end()), strides(spec.strides.begin(), spec.strides.end()) {}

  void insert_one(std::size_t at) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), 1);
    strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(at), 1);
  }
  void swap_last() {
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  TensorSpec spec() const { return make_spec(from.dtype, Dims(shape), Dims(strides), from.alignment); }

  TensorSpec from;
  Extents shape, strides;
};

/// The first operand as [..., rows, summed]; of linear too.
TensorSpec first_matrix(const TensorSpec& spec, bool transpose) {
  Editable matrix(spec);
  const bool vector = spec.shape.size() == 1;
  if (vector) matrix.insert_one(0);
  if (transpose && !vector) matrix.swap_last();
  return matrix.spec();
}

/// The second as [..., summed, columns].
TensorSpec second_matrix(const TensorSpec& spec, bool transpose) {
  Editable matrix(spec);
  const bool vector = spec.shape.size() == 1;
  if (vector) matrix.insert_one(1);
  if (transpose && !vector) matrix.swap_last();
  return matrix.spec();
}

/// The gradient lacks the dims that vectors lack.
TensorSpec gradient_matrix(const TensorSpec& spec, bool first_is_vector, bool second_is_vector) {
  Editable matrix(spec);
  if (second_is_vector) matrix.insert_one(matrix.shape.size());
  if (first_is_vector) matrix.insert_one(matrix.shape.size() - 1);
  return matrix.spec();
}

}  // namespace

GradientViews gradient_views(const Problem& backward) {
  const bool linear = backward.op == OpId::linear;
  const bool transpose_a = !linear && backward.attributes.boolean("transpose_a");
  const bool transpose_b = linear || backward.attributes.boolean("transpose_b");
  const std::size_t last = backward.inputs.size() - 1;
  GradientViews views;
  views.a = input_of(backward, 0);
  views.b = input_of(backward, 1);
  views.gradient = input_of(backward, last);
  const bool a_is_vector = views.a.spec.shape.size() == 1, b_is_vector = views.b.spec.shape.size() == 1;
  views.gradient.spec = gradient_matrix(views.gradient.spec, a_is_vector, b_is_vector);
  views.a.spec = first_matrix(views.a.spec, transpose_a);
  views.b.spec = second_matrix(views.b.spec, transpose_b);
  if (const auto output = gradient_of(backward, 0)) {
    views.has_da = true;
    views.da = output_of(backward, *output);
    views.da.spec = first_matrix(views.da.spec, transpose_a);
  }
  if (const auto output = gradient_of(backward, 1)) {
    views.has_db = true;
    views.db = output_of(backward, *output);
    views.db.spec = second_matrix(views.db.spec, transpose_b);
  }
  return views;
}

StageTensor transposed(const StageTensor& matrix) {
  Editable other(matrix.spec);
  other.swap_last();
  return matrix.seen_as(other.spec());
}

StageTensor padded_to(const StageTensor& matrix, std::size_t rank) {
  Editable other(matrix.spec);
  while (other.shape.size() < rank) other.insert_one(0);
  return matrix.seen_as(other.spec());
}

bool join_summed(StageTensor& a, StageTensor& b, std::size_t dim) {
  Editable left(a.spec), right(b.spec);
  const std::size_t rank = left.shape.size();
  const std::int64_t extent = left.shape[dim], summed = left.shape[rank - 1];
  if (right.shape[dim] != extent) return false;
  const auto join = [&](Editable& matrix, std::size_t k) {
    const bool one_walk = summed == 1 || extent <= 1 || matrix.strides[dim] == summed * matrix.strides[k];
    if (extent != 1 && summed == 1) matrix.strides[k] = matrix.strides[dim];
    matrix.shape[k] = extent * summed;
    matrix.shape[dim] = 1;
    return one_walk;
  };
  if (!join(left, rank - 1) || !join(right, rank - 2)) return false;
  a.spec = left.spec();
  b.spec = right.spec();
  return true;
}

}  // namespace xpuruntime::cpu
