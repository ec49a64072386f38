#include "core/ops/schema.h"

// Ops that read or write where indices say.

namespace xpuruntime::op_rows {
namespace {

constexpr std::string_view index_advice = "; cast it to i64, or swap the inputs";

void need_integers(const ForwardCall& call, std::size_t input) {
  if (is_floating(call[input].dtype) || call[input].dtype == DataType::boolean) {
    call.refuse("input " + std::to_string(input) + " holds the indices and is not integer" + std::string(index_advice));
  }
}

Dims checked_rank(const ForwardCall& call, const Sizes& shape) {
  if (shape.size() > max_rank) {
    call.refuse("the result has " + std::to_string(shape.size()) + " dims; reshape the inputs for at most 8");
  }
  return Dims(std::span(shape));
}

std::size_t dim_of(const ForwardCall& call) {
  return call.axis(call.attributes().integer("dim"), call.shape(0).size());
}

Specs infer_gather(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_integers(call, 1);
  const auto dim = static_cast<std::ptrdiff_t>(dim_of(call));
  const Dims &data = call.shape(0), &indices = call.shape(1);
  if (data.empty()) call.refuse("input 0 has no dims; reshape it to [1]");
  Sizes shape(data.begin(), data.begin() + dim);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + dim + 1, data.end());
  return {make_spec(call[0].dtype, checked_rank(call, shape))};
}

// The indices lie inside the data but for the dim that they count along.
void check_elements(const ForwardCall& call) {
  need_integers(call, 1);
  const std::size_t dim = dim_of(call);
  const Dims &data = call.shape(0), &indices = call.shape(1);
  bool fits = data.size() == indices.size() && !data.empty();
  for (std::size_t d = 0; fits && d < data.size(); ++d) fits = d == dim || indices[d] <= data[d];
  if (!fits) {
    call.refuse("the indices " + to_string(indices) + " reach past " + to_string(data) +
                "; give as many dims, none longer but dim " + std::to_string(dim));
  }
}

Specs infer_gather_elements(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  check_elements(call);
  return {make_spec(call[0].dtype, call.shape(1))};
}

void check_updates(const ForwardCall& call, const Dims& shape) {
  if (call[2].dtype != call[0].dtype) call.refuse("the updates are of another dtype than input 0; cast one of them");
  if (call[0].dtype == DataType::boolean && call.attributes().choice("reduction") != "none") {
    call.refuse("booleans cannot be reduced; cast them to u8");
  }
  call.need_shape(2, shape, "tensor of updates");
}

Specs infer_scatter_elements(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  check_elements(call);
  check_updates(call, call.shape(1));
  return {make_spec(call[0].dtype, call.shape(0))};
}

// The shape of what indices [..., k] take from the data: those dims, then the data's after the k that are indexed.
Sizes taken_shape(const ForwardCall& call, std::size_t batch) {
  need_integers(call, 1);
  const Dims &data = call.shape(0), &indices = call.shape(1);
  const std::size_t rank = data.size();
  const bool is_list = batch < indices.size() && batch < rank;
  const std::int64_t depth = is_list ? indices.back() : 0;
  if (!is_list || depth < 1 || depth > static_cast<std::int64_t>(rank - batch)) {
    call.refuse("the last dim of the indices " + to_string(indices) + " must count from 1 to " +
                std::to_string(rank - std::min(batch, rank)) + " dims of " + to_string(data) +
                "; give indices [..., dims]");
  }
  for (std::size_t d = 0; d < batch; ++d) {
    if (indices[d] != data[d]) call.refuse("the batch dims of the inputs differ; make them equal");
  }
  Sizes shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + static_cast<std::size_t>(depth), data.end());
  return shape;
}

Specs infer_gather_nd(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const std::int64_t batch = attributes.integer("batch_dims");
  if (batch < 0) call.refuse("batch_dims is negative; give 0 or more");
  const Sizes shape = taken_shape(call, static_cast<std::size_t>(batch));
  return {make_spec(call[0].dtype, checked_rank(call, shape))};
}

Specs infer_scatter_nd(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  check_updates(call, checked_rank(call, taken_shape(call, 0)));
  return {make_spec(call[0].dtype, call.shape(0))};
}

Specs infer_one_hot(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_integers(call, 0);
  const std::int64_t depth = attributes.integer("depth");
  if (depth < 0) call.refuse("depth is negative; give the number of classes");
  if (call.size() > 1) call.need_shape(1, {2}, "pair of values");
  const Dims& indices = call.shape(0);
  Sizes shape(indices.begin(), indices.end());
  const std::size_t dim = call.axis(attributes.integer("dim"), indices.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), depth);
  return {make_spec(call.size() > 1 ? call[1].dtype : DataType::int64, checked_rank(call, shape))};
}

Specs infer_reverse_sequence(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const std::size_t rank = call.shape(0).size();
  const std::size_t batch = call.axis(attributes.integer("batch_dim"), rank);
  if (batch == call.axis(attributes.integer("time_dim"), rank)) {
    call.refuse("batch_dim and time_dim are the same; give two dims");
  }
  need_integers(call, 1);
  call.need_shape(1, {call.shape(0)[batch]}, "list of lengths");
  return {make_spec(call[0].dtype, call.shape(0))};
}

std::int64_t extent_of(const Problem& forward, std::string_view attribute) {
  const Dims& shape = forward.inputs[0].shape;
  const std::int64_t dim = forward.attributes.integer(attribute);
  return shape[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim)];
}
std::int64_t extent_of_dim(const Problem& forward) { return extent_of(forward, "dim"); }
std::int64_t extent_of_time(const Problem& forward) { return extent_of(forward, "time_dim") + 1; }
std::int64_t depth_of(const Problem& forward) { return forward.attributes.integer("depth"); }

// What every column of the indices may hold.
std::int64_t smallest_indexed(const Problem& forward) {
  const Dims &data = forward.inputs[0].shape, &indices = forward.inputs[1].shape;
  const auto batch =
      forward.op == OpId::gather_nd ? static_cast<std::size_t>(forward.attributes.integer("batch_dims")) : 0;
  std::int64_t smallest = data[batch];
  for (std::size_t i = 1; i < static_cast<std::size_t>(indices.back()); ++i) {
    smallest = std::min(smallest, data[batch + i]);
  }
  return smallest;
}

constexpr InputSpec moved(std::string_view name) {
  return {.name = name, .gradient = false, .follows_precision = false};
}
constexpr InputSpec index(std::string_view name, std::int64_t (*bound)(const Problem&)) {
  return {.name = name, .values = InputValues::index, .gradient = false, .follows_precision = false, .bound = bound};
}
constexpr InputSpec written = {
    .name = "input", .gradient = false, .follows_precision = false, .in_place = 0b1, .partly = true};

constexpr InputSpec gather_inputs[] = {moved("input"), index("indices", extent_of_dim)};
constexpr InputSpec gather_nd_inputs[] = {moved("input"), index("indices", smallest_indexed)};
constexpr InputSpec scatter_inputs[] = {written, index("indices", extent_of_dim), moved("updates")};
constexpr InputSpec scatter_nd_inputs[] = {written, index("indices", smallest_indexed), moved("updates")};
constexpr InputSpec one_hot_inputs[] = {
    index("input", depth_of), {.name = "values", .optional = true, .gradient = false, .follows_precision = false}};
constexpr InputSpec reverse_inputs[] = {moved("input"), index("lengths", extent_of_time)};

constexpr AttributeSpec gather_attributes[] = {integer("dim", 0)};
constexpr AttributeSpec gather_nd_attributes[] = {integer("batch_dims", 0)};
constexpr std::string_view reductions = "none|add|mul|max|min";
constexpr AttributeSpec scatter_attributes[] = {integer("dim", 0), choice("reduction", reductions)};
constexpr AttributeSpec scatter_nd_attributes[] = {choice("reduction", reductions)};
constexpr AttributeSpec one_hot_attributes[] = {integer("depth", 1), integer("dim", -1)};
constexpr AttributeSpec reverse_attributes[] = {integer("batch_dim", 0), integer("time_dim", 1)};

constexpr OpInfo rows[] = {
    {.id = Id::gather,
     .name = "gather",
     .aliases = "take|index_select",
     .category = Kind::lookup,
     .summary = "Takes the slices of a dim that the indices name, which may have any number of dims. Negative indices "
                "count from the back.",
     .inputs = gather_inputs,
     .attributes = gather_attributes,
     .infer = infer_gather,
     .sample = "T[64,64], i64[64]",
     .rounding = Rounding::exact},
    {.id = Id::gather_elements,
     .name = "gather_elements",
     .aliases = "take_along_axis|take_along_dim",
     .category = Kind::lookup,
     .summary = "Takes for each index the element at that place of the dim and at its own place of the others.",
     .inputs = gather_inputs,
     .attributes = gather_attributes,
     .infer = infer_gather_elements,
     .sample = "T[64,64], i64[64,64]",
     .rounding = Rounding::exact},
    {.id = Id::gather_nd,
     .name = "gather_nd",
     .category = Kind::lookup,
     .summary =
         "Takes the slices at the positions that the last dim of the indices lists, after `batch_dims` dims that "
         "both inputs have.",
     .inputs = gather_nd_inputs,
     .attributes = gather_nd_attributes,
     .infer = infer_gather_nd,
     .sample = "T[64,64], i64[64,1]",
     .rounding = Rounding::exact},
    {.id = Id::scatter_elements,
     .name = "scatter_elements",
     .aliases = "scatter",
     .category = Kind::movement,
     .summary =
         "Writes each update to the place of the dim that its index names, or reduces what is there with it: into "
         "the input where that is `out`, else into a copy. Of several for one place the last stays.",
     .inputs = scatter_inputs,
     .attributes = scatter_attributes,
     .infer = infer_scatter_elements,
     .sample = "T[64,64], i64[64,64], T[64,64]; dim=1",
     .rounding = Rounding::few_operations},
    {.id = Id::scatter_nd,
     .name = "scatter_nd",
     .category = Kind::movement,
     .summary = "Writes each slice of the updates to the position that the last dim of the indices lists, or reduces "
                "what is there with it: into the input where that is `out`, else into a copy. Of several for one place "
                "the last stays.",
     .inputs = scatter_nd_inputs,
     .attributes = scatter_nd_attributes,
     .infer = infer_scatter_nd,
     .sample = "T[64,64], i64[64,1], T[64,64]",
     .rounding = Rounding::few_operations},
    {.id = Id::one_hot,
     .name = "one_hot",
     .category = Kind::lookup,
     .summary =
         "Puts a dim of `depth` elements at `dim`: the second of the values where the index says, else the first; "
         "1 and 0 without values. An index outside of it, counted from either end, leaves the first everywhere.",
     .inputs = one_hot_inputs,
     .attributes = one_hot_attributes,
     .infer = infer_one_hot,
     .sample = "i64[64], T[2]; depth=64",
     .rounding = Rounding::exact},
    {.id = Id::reverse_sequence,
     .name = "reverse_sequence",
     .category = Kind::movement,
     .summary = "Reverses the first elements of each sequence along `time_dim`, as many as its length says.",
     .inputs = reverse_inputs,
     .attributes = reverse_attributes,
     .infer = infer_reverse_sequence,
     .sample = "T[64,64], i64[64]",
     .rounding = Rounding::exact},
};

}  // namespace

std::span<const OpInfo> indexing() { return rows; }

}  // namespace xpuruntime::op_rows
