#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/indexing/lines.h"
#include "backends/cpu/indexing/places.h"
#include "backends/cpu/movement/strided.h"

// trilu, one_hot and reverse_sequence: by elements of any pair of dtypes, and by rows of one.

namespace xpuruntime::cpu {
namespace {

/// Stores the elements of one tensor in another of its shape.
using MoveElements = void(const TensorSpec& from, const void* in, const TensorSpec& to, void* out);

void copy_bytes(const TensorSpec&, const void* in, const TensorSpec& to, void* out) {
  std::memcpy(out, in, static_cast<std::size_t>(element_count(to)) * size_of(to.dtype));
}

template <class Byte>
Byte* at(Byte* base, const TensorSpec& spec, std::int64_t offset) {
  return base + offset * static_cast<std::int64_t>(size_of(spec.dtype));
}

/// The dims from number `from` on; in place of them, those before.
TensorSpec tail(const TensorSpec& spec, std::size_t from) {
  TensorSpec rest = spec;
  rest.shape = Dims(std::span(spec.shape.begin() + from, spec.shape.end()));
  rest.strides = Dims(std::span(spec.strides.begin() + from, spec.strides.end()));
  return rest;
}
TensorSpec head(const TensorSpec& spec, std::size_t count) {
  TensorSpec first = spec;
  first.shape = Dims(std::span(spec.shape.begin(), count));
  first.strides = Dims(std::span(spec.strides.begin(), count));
  return first;
}

/// `count` elements of a row.
TensorSpec part_of(const TensorSpec& row, std::int64_t count) {
  TensorSpec part = row;
  part.shape[0] = count;
  return part;
}

void fill_zero(const TensorSpec& row, void* out) {
  const Filler zero(row.dtype);
  if (row.strides[0] == 1) return zero.fill(out, row.shape[0]);
  for (std::int64_t i = 0; i < row.shape[0]; ++i)
    zero.fill(at(static_cast<std::byte*>(out), row, i * row.strides[0]), 1);
}

template <MoveElements move>
Status run_trilu(const Problem& problem, const RunArguments& arguments) {
  const TensorSpec &from = problem.inputs[0], &to = problem.outputs[0];
  const auto* in = arguments.inputs[0]->as<const std::byte>();
  auto* out = arguments.outputs[0]->as<std::byte>();
  const std::size_t last = to.shape.size() - 1;
  const std::int64_t columns = to.shape[last], rows = to.shape[last - 1];
  const std::int64_t diagonal = std::clamp(problem.attributes.integer("diagonal"), -rows - 1, columns + 1);
  const bool upper = problem.attributes.boolean("upper");
  const TensorSpec from_row = tail(from, last), to_row = tail(to, last);
  if (columns == 0) return {};
  Walk<2> walk(head(to, last).shape, head(from, last), head(to, last));
  for (std::int64_t row = 0; walk.more(); walk.next(), ++row) {
    // The kept columns are those from the edge on, or before it.
    const std::int64_t edge = std::clamp<std::int64_t>(row % rows + diagonal + (upper ? 0 : 1), 0, columns);
    const std::int64_t begin = upper ? edge : 0, count = upper ? columns - edge : edge;
    const auto place = [&](std::int64_t column) { return at(out, to, walk.offset(1) + column * to_row.strides[0]); };
    if (count > 0) {
      move(part_of(from_row, count), at(in, from, walk.offset(0) + begin * from_row.strides[0]), part_of(to_row, count),
           place(begin));
    }
    if (count < columns) fill_zero(part_of(to_row, columns - count), place(upper ? 0 : edge));
  }
  return {};
}

Status run_one_hot(const Problem& problem, const RunArguments& arguments) {
  const TensorSpec &from = problem.inputs[0], &to = problem.outputs[0];
  const bool has_values = problem.inputs.size() > 1;
  Filler off(to.dtype), on(to.dtype);
  if (has_values) {
    const auto* values = arguments.inputs[1]->as<const std::byte>();
    off = Filler(problem.inputs[1], values, to.dtype);
    on = Filler(problem.inputs[1], at(values, problem.inputs[1], problem.inputs[1].strides[0]), to.dtype);
  } else {
    storer_of(to.dtype)(on.bits.data(), 0, 1);
  }
  const std::int64_t depth = problem.attributes.integer("depth");
  const LinesOf lines(to, problem.attributes.integer("dim"));
  if (depth == 0) return {};
  auto* out = arguments.outputs[0]->as<std::byte>();
  const LoadInteger load = integer_loader_of(from.dtype);
  Walk<1> indices(from.shape, from);
  for (Walk<1> walk(lines.across.shape, lines.across); walk.more(); walk.next(), indices.next()) {
    const std::int64_t given = load(arguments.inputs[0]->as<void>(), indices.offset(0));
    const std::int64_t index = from_front(given, depth);
    for (std::int64_t i = 0; i < depth; ++i) {
      (i == index ? on : off).fill(at(out, to, walk.offset(0) + i * lines.stride), 1);
    }
  }
  return {};
}

std::size_t dim_of(const Problem& problem, std::string_view name) {
  const std::int64_t dim = problem.attributes.integer(name);
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(problem.inputs[0].shape.size()) : dim);
}

Status check_lengths(const TensorSpec& spec, const void* lengths, std::int64_t extent) {
  const LoadInteger load = integer_loader_of(spec.dtype);
  for (std::int64_t i = 0; i < spec.shape[0]; ++i) {
    const std::int64_t length = load(lengths, i * spec.strides[0]);
    if (length >= 0 && length <= extent) continue;
    return {ErrorCode::invalid_argument, "length " + std::to_string(length) + " of sequence " + std::to_string(i) +
                                             " is outside; give 0 to " + std::to_string(extent)};
  }
  return {};
}

template <MoveElements move>
Status run_reverse(const Problem& problem, const RunArguments& arguments) {
  const TensorSpec &from = problem.inputs[0], &to = problem.outputs[0], &lengths = problem.inputs[1];
  const std::size_t batch = dim_of(problem, "batch_dim"), time = dim_of(problem, "time_dim");
  Status status = check_lengths(lengths, arguments.inputs[1]->as<void>(), from.shape[time]);
  if (!status.ok()) return status;
  const auto* in = arguments.inputs[0]->as<const std::byte>();
  auto* out = arguments.outputs[0]->as<std::byte>();
  const std::size_t outer = std::max(batch, time) + 1;
  const TensorSpec from_slice = tail(from, outer), to_slice = tail(to, outer), positions = head(to, outer);
  if (element_count(to) == 0) return status;
  const LoadInteger load = integer_loader_of(lengths.dtype);
  const Dims counts = contiguous_strides(positions.shape);
  Walk<2> walk(positions.shape, head(from, outer), positions);
  for (std::int64_t position = 0; walk.more(); walk.next(), ++position) {
    const std::int64_t sequence = position / counts[batch] % positions.shape[batch];
    const std::int64_t step = position / counts[time] % positions.shape[time];
    const std::int64_t length = load(arguments.inputs[1]->as<void>(), sequence * lengths.strides[0]);
    const std::int64_t turned = step < length ? length - 1 - step : step;
    move(from_slice, at(in, from, walk.offset(0) + (turned - step) * from.strides[time]), to_slice,
         at(out, to, walk.offset(1)));
  }
  return status;
}

}  // namespace

std::unique_ptr<const Plan> prepare_trilu_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_trilu<copy_bytes>);
}

std::unique_ptr<const Plan> prepare_trilu_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_trilu<convert_elements>);
}

std::unique_ptr<const Plan> prepare_one_hot_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_one_hot);
}

std::unique_ptr<const Plan> prepare_reverse_sequence_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_reverse<copy_bytes>);
}

std::unique_ptr<const Plan> prepare_reverse_sequence_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_reverse<convert_elements>);
}

}  // namespace xpuruntime::cpu
