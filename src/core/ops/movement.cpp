#include <algorithm>
#include <limits>

#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

// Python's rule for one end of a slice: from the back where negative, then held inside.
std::int64_t clamped(std::int64_t position, std::int64_t extent) {
  if (position < 0) position = position < -extent ? 0 : position + extent;
  return std::min(position, extent);
}

// The shapes agree everywhere but along `axis`.
void check_concat_input(const ForwardCall& call, std::size_t input, std::size_t axis) {
  if ((call[input].dtype == DataType::boolean) != (call[0].dtype == DataType::boolean)) {
    call.refuse("booleans are joined with numbers; cast them to one type");
  }
  Dims expected = call.shape(0);
  if (call.shape(input).size() == expected.size()) expected[axis] = call.shape(input)[axis];
  if (call.shape(input) != expected) {
    call.refuse("shapes " + to_string(call.shape(0)) + " and " + to_string(call.shape(input)) + " differ outside dim " +
                std::to_string(axis) + "; make them equal there");
  }
}

Specs infer_embedding(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  if (is_floating(call[0].dtype) || call[0].dtype == DataType::boolean) {
    call.refuse("input 0 holds the indices and is not integer; cast it to i64, or swap the inputs");
  }
  call.need_numeric(1);
  call.need_rank(1, 2, "[rows, features]");
  if (call.shape(0).size() == max_rank) call.refuse("the result has 9 dims; reshape the indices to 7 dims or fewer");
  Dims shape = Dims::filled(call.shape(0).size() + 1, call.shape(1)[1]);
  std::copy(call.shape(0).begin(), call.shape(0).end(), &shape[0]);
  return {make_spec(call[1].dtype, shape)};
}

Specs infer_cast(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  return {like_inputs(inputs, attributes.data_type("dtype"), call.shape(0))};
}

Specs infer_copy(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  return {make_spec(call[0].dtype, call.shape(0))};
}

Specs infer_transpose(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  Dims shape = call.shape(0);
  const std::vector<std::int64_t> dims = attributes.list("dims");
  if (dims.empty()) {
    std::reverse(&shape[0], &shape[0] + shape.size());
    return {make_spec(call[0].dtype, shape)};
  }
  const std::string advice = "; give each dim from 0 to " + std::to_string(shape.size()) + " (exclusive) once";
  if (dims.size() != shape.size()) call.refuse("dims has " + std::to_string(dims.size()) + " entries" + advice);
  bool seen[max_rank] = {};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t from = call.axis(dims[i], shape.size());
    if (seen[from]) call.refuse("dims names " + std::to_string(from) + " twice" + advice);
    seen[from] = true;
    shape[i] = call.shape(0)[from];
  }
  return {make_spec(call[0].dtype, shape)};
}

Specs infer_concat(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const std::size_t axis = call.axis(attributes.integer("dim"), call.shape(0).size());
  Dims shape = call.shape(0);
  for (std::size_t i = 1; i < call.size(); ++i) {
    check_concat_input(call, i, axis);
    if (__builtin_add_overflow(shape[axis], call.shape(i)[axis], &shape[axis])) {
      call.refuse("the joined extent does not fit 63 bits; join fewer tensors");
    }
  }
  return {like_images(inputs, promote(inputs), shape)};
}

Specs infer_slice(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const std::size_t axis = call.axis(attributes.integer("dim"), call.shape(0).size());
  const std::int64_t step = attributes.integer("step");
  if (step < 1) call.refuse("step " + std::to_string(step) + " is not positive; give 1 or more");
  Dims shape = call.shape(0);
  const std::int64_t start = clamped(attributes.integer("start"), shape[axis]);
  const std::int64_t end = clamped(attributes.integer("end"), shape[axis]);
  shape[axis] = end <= start ? 0 : (end - start - 1) / step + 1;
  return {make_spec(call[0].dtype, shape)};
}

constexpr InputSpec one_input[] = {{.name = "input", .follows_precision = false}};
constexpr InputSpec embedding_inputs[] = {{.name = "input", .values = InputValues::index, .follows_precision = false},
                                          {.name = "weight", .follows_precision = false, .partly = true}};
constexpr InputSpec concat_inputs[] = {{.name = "tensors", .repeated = true, .follows_precision = false}};
constexpr AttributeSpec cast_attributes[] = {dtype("dtype", DataType::float32)};
constexpr AttributeSpec transpose_attributes[] = {free_list("dims", "empty: reversed")};
constexpr AttributeSpec concat_attributes[] = {integer("dim", 0)};
constexpr AttributeSpec slice_attributes[] = {integer("dim", 0), integer("start", 0),
                                              integer("end", std::numeric_limits<std::int64_t>::max(), "the end"),
                                              integer("step", 1)};

constexpr OpInfo rows[] = {
    {.id = Id::embedding,
     .name = "embedding",
     .category = Kind::lookup,
     .summary = "Looks up rows of the weight by their indices.",
     .inputs = embedding_inputs,
     .infer = infer_embedding,
     .sample = "i64[64], T[64,64]",
     .rounding = Rounding::exact,
     .autocast = higher},
    {.id = Id::cast,
     .name = "cast",
     .aliases = "to|convert",
     .category = Kind::movement,
     .summary = "Converts the elements to another dtype.",
     .inputs = one_input,
     .attributes = cast_attributes,
     .infer = infer_cast,
     .rounding = Rounding::exact,
     .parameters = "input, dtype=..."},
    {.id = Id::copy,
     .name = "copy",
     .aliases = "clone|contiguous",
     .category = Kind::movement,
     .summary = "Copies the elements, into a contiguous result unless `out` says otherwise.",
     .inputs = one_input,
     .infer = infer_copy,
     .rounding = Rounding::exact,
     .functions = "clone"},
    {.id = Id::transpose,
     .name = "transpose",
     .aliases = "permute",
     .category = Kind::movement,
     .summary = "Reorders the dims, and moves the elements accordingly.",
     .inputs = one_input,
     .attributes = transpose_attributes,
     .infer = infer_transpose,
     .rounding = Rounding::exact,
     .parameters = "input, dim0: int, dim1: int",
     .functions = "permute(input, dims: Sequence[int] = ())"},
    {.id = Id::concat,
     .name = "concat",
     .aliases = "cat|concatenate",
     .category = Kind::movement,
     .summary = "Joins arrays along a dim.",
     .inputs = concat_inputs,
     .attributes = concat_attributes,
     .infer = infer_concat,
     .rounding = Rounding::exact,
     .functions = "cat"},
    {.id = Id::slice,
     .name = "slice",
     .category = Kind::movement,
     .summary = "Takes every step-th element from start to end along a dim.",
     .inputs = one_input,
     .attributes = slice_attributes,
     .infer = infer_slice,
     .sample = "T[64,64]; end=32",
     .rounding = Rounding::exact,
     .parameters = "input, dim, start=None, end=None, step"},
};

}  // namespace

std::span<const OpInfo> movement() { return rows; }

}  // namespace xpuruntime::op_rows
