#include "backends/cpu/indexing/places.h"

#include <cstring>
#include <string>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/movement/strided.h"

namespace xpuruntime::cpu {
namespace {

bool is_scatter(OpId op) { return op == OpId::scatter_elements || op == OpId::scatter_nd; }

/// The dims from number `from` on.
TensorSpec tail(const TensorSpec& spec, std::size_t from) {
  TensorSpec rest = spec;
  rest.shape = Dims(std::span(spec.shape.begin() + from, spec.shape.end()));
  rest.strides = Dims(std::span(spec.strides.begin() + from, spec.strides.end()));
  return rest;
}

std::size_t dim_of(const Problem& problem) {
  const std::int64_t dim = problem.attributes.integer("dim");
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(problem.inputs[0].shape.size()) : dim);
}

Status outside(std::int64_t position, std::int64_t index, std::int64_t extent) {
  const std::string range = std::to_string(-extent) + " to " + std::to_string(extent - 1);
  return {ErrorCode::invalid_argument, "index " + std::to_string(index) + " at position " + std::to_string(position) +
                                           " of the indices is outside a dim of " + std::to_string(extent) + "; give " +
                                           (extent == 0 ? "a tensor with elements there" : range)};
}

// Shifted, so that what is outside is large as an unsigned number. No early way out, so that it runs in vectors.
template <class T>
bool all_inside(const T* indices, std::int64_t count, std::int64_t extent) {
  bool inside = true;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto shifted = static_cast<std::uint64_t>(std::int64_t{indices[i]}) + static_cast<std::uint64_t>(extent);
    inside &= shifted < 2 * static_cast<std::uint64_t>(extent);
  }
  return inside;
}

bool all_inside(const TensorSpec& spec, const void* indices, std::int64_t extent) {
  if (!spec.contiguous) return false;
  const std::int64_t count = element_count(spec);
  if (spec.dtype == DataType::int64) return all_inside(static_cast<const std::int64_t*>(indices), count, extent);
  return spec.dtype == DataType::int32 && all_inside(static_cast<const std::int32_t*>(indices), count, extent);
}

}  // namespace

Places::Places(const Problem& problem) : all_indices(problem.inputs[1]) {
  const bool scatters = is_scatter(problem.op);
  const TensorSpec& whole = scatters ? problem.outputs[0] : problem.inputs[0];
  whole_list_ = scatters ? problem.inputs[2] : problem.outputs[0];
  indices.dtype = all_indices.dtype;
  table.dtype = whole.dtype;
  list.dtype = whole_list_.dtype;
  switch (problem.op) {
    case OpId::gather:
      along_dim(problem, whole);
      break;
    case OpId::gather_nd:
      by_rows(whole, static_cast<std::size_t>(problem.attributes.integer("batch_dims")));
      break;
    case OpId::scatter_nd:
      by_rows(whole, 0);
      break;
    default:
      by_elements(problem, whole);
  }
}

void Places::add_position(std::int64_t extent, std::int64_t of_table, std::int64_t of_indices, std::int64_t of_list) {
  const auto add = [&](TensorSpec& spec, std::int64_t stride) {
    Dims shape = Dims::filled(spec.shape.size() + 1, extent), strides = Dims::filled(spec.shape.size() + 1, stride);
    std::copy(spec.shape.begin(), spec.shape.end(), &shape[0]);
    std::copy(spec.strides.begin(), spec.strides.end(), &strides[0]);
    spec.shape = shape;
    spec.strides = strides;
  };
  add(table, of_table);
  add(indices, of_indices);
  add(list, of_list);
}

void Places::set_slice(const TensorSpec& whole, std::size_t from, std::size_t list_from) {
  table_slice = tail(whole, from);
  list_slice = tail(whole_list_, list_from);
}

/// The dims before the indexed one, those of the indices, and the rest as a slice.
void Places::along_dim(const Problem& problem, const TensorSpec& whole) {
  const std::size_t dim = dim_of(problem), taken = all_indices.shape.size();
  for (std::size_t d = 0; d < dim; ++d) add_position(whole.shape[d], whole.strides[d], 0, whole_list_.strides[d]);
  for (std::size_t d = 0; d < taken; ++d) {
    add_position(all_indices.shape[d], 0, all_indices.strides[d], whole_list_.strides[dim + d]);
  }
  set_slice(whole, dim + 1, dim + taken);
  columns[column_count++] = {0, whole.strides[dim], whole.shape[dim]};
}

void Places::by_elements(const Problem& problem, const TensorSpec& whole) {
  const std::size_t dim = dim_of(problem), rank = whole.shape.size();
  for (std::size_t d = 0; d < rank; ++d) {
    add_position(all_indices.shape[d], d == dim ? 0 : whole.strides[d], all_indices.strides[d], whole_list_.strides[d]);
  }
  set_slice(whole, rank, rank);
  columns[column_count++] = {0, whole.strides[dim], whole.shape[dim]};
}

/// The last dim of the indices lists a position in the dims after the batch.
void Places::by_rows(const TensorSpec& whole, std::size_t batch) {
  const std::size_t last = all_indices.shape.size() - 1;
  for (std::size_t d = 0; d < last; ++d) {
    add_position(all_indices.shape[d], d < batch ? whole.strides[d] : 0, all_indices.strides[d],
                 whole_list_.strides[d]);
  }
  const auto depth = static_cast<std::size_t>(all_indices.shape[last]);
  set_slice(whole, batch + depth, last);
  for (std::size_t i = 0; i < depth; ++i) {
    columns[column_count++] = {static_cast<std::int64_t>(i) * all_indices.strides[last], whole.strides[batch + i],
                               whole.shape[batch + i]};
  }
}

Status Places::check(const void* given) const {
  if (column_count == 1 && all_inside(all_indices, given, columns[0].extent)) return {};
  const LoadInteger load = integer_loader_of(all_indices.dtype);
  Walk<1> walk(all_indices.shape, all_indices);
  for (std::int64_t position = 0; walk.more(); walk.next(), ++position) {
    const std::int64_t index = load(given, walk.offset(0));
    const std::int64_t extent = columns[static_cast<std::size_t>(position) % column_count].extent;
    if (index < -extent || index >= extent) return outside(position, index, extent);
  }
  return {};
}

Filler::Filler(const TensorSpec& spec, const void* value, DataType dtype) : dtype(dtype) {
  TensorSpec from = spec, to = spec;
  from.shape = to.shape = from.strides = to.strides = {};
  to.dtype = dtype;
  convert_elements(from, value, to, bits.data());
}

void Filler::fill(void* out, std::int64_t count) const {
  with_size(static_cast<std::int64_t>(size_of(dtype)), [&](auto element) {
    std::memcpy(&element, bits.data(), sizeof element);
    auto* to = static_cast<std::byte*>(out);
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * std::int64_t{sizeof element}, &element, sizeof element);
  });
}

}  // namespace xpuruntime::cpu
