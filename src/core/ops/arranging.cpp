#include "core/ops/schema.h"

// Ops that arrange elements along their dims: around them, repeated, turned, in order, added up.

namespace xpuruntime::op_rows {
namespace {

std::size_t dim_of(const ForwardCall& call) {
  return call.axis(call.attributes().integer("dim"), call.shape(0).size());
}

// Mirroring reaches no further than the extent without its edge, wrapping no further than the extent.
void check_reach(const ForwardCall& call, std::int64_t extent, std::int64_t before, std::int64_t after) {
  const std::string_view mode = call.attributes().choice("mode");
  if (mode == "constant" || (before <= 0 && after <= 0)) return;
  if (extent == 0) call.refuse("mode " + std::string(mode) + " has no elements to pad with; use constant");
  if (before < 0 || after < 0) call.refuse("mode " + std::string(mode) + " cannot cut off; slice before padding");
}

Specs infer_pad(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  Dims shape = call.shape(0);
  const std::vector<std::int64_t> pads = attributes.list("pads");
  if (pads.size() % 2 != 0 || pads.size() / 2 > shape.size()) {
    call.refuse("pads has " + std::to_string(pads.size()) +
                " entries; give two per dim, before and after, from the last dim on");
  }
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    std::int64_t& extent = shape[shape.size() - 1 - i];
    check_reach(call, extent, pads[2 * i], pads[2 * i + 1]);
    const std::int64_t before = pads[2 * i], after = pads[2 * i + 1];
    // What is cut off is the input's own, whatever the other side adds.
    std::int64_t kept = extent, added = 0;
    if (__builtin_add_overflow(kept, std::min<std::int64_t>(before, 0), &kept) || kept < 0 ||
        __builtin_add_overflow(kept, std::min<std::int64_t>(after, 0), &kept) || kept < 0 ||
        __builtin_add_overflow(std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0), &added) ||
        __builtin_add_overflow(kept, added, &extent)) {
      call.refuse("pads leave no valid extent of dim " + std::to_string(shape.size() - 1 - i) + "; give smaller ones");
    }
  }
  if (call.size() > 1) {
    if (element_count(call[1]) != 1) call.refuse("the value is not one number; give a tensor of one element");
    if (is_floating(call[1].dtype) && !is_floating(call[0].dtype)) {
      call.refuse("the value is floating and the input is not; cast one of them");
    }
  }
  return {make_spec(call[0].dtype, shape)};
}

Specs infer_tile(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const std::vector<std::int64_t> repeats = attributes.list("repeats");
  const Dims& from = call.shape(0);
  const std::size_t rank = std::max(from.size(), repeats.size());
  Dims shape = Dims::filled(rank, 1);
  for (std::size_t i = 0; i < from.size(); ++i) shape[rank - from.size() + i] = from[i];
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    std::int64_t& extent = shape[rank - repeats.size() + i];
    if (repeats[i] < 0 || __builtin_mul_overflow(extent, repeats[i], &extent)) {
      call.refuse(std::to_string(repeats[i]) + " repeats are negative or too many; give 0 or more");
    }
  }
  return {make_spec(call[0].dtype, shape)};
}

Specs infer_flip(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  bool seen[max_rank] = {};
  for (const std::int64_t dim : attributes.list("dims")) {
    bool& named = seen[call.axis(dim, call.shape(0).size())];
    if (named) call.refuse("dims names " + std::to_string(dim) + " twice; name each dim once");
    named = true;
  }
  return {make_spec(call[0].dtype, call.shape(0))};
}

Specs infer_trilu(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  if (call.shape(0).size() < 2) call.refuse("input 0 is no matrix; give two dims or more");
  return {make_spec(call[0].dtype, call.shape(0))};
}

Specs infer_cumsum(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  dim_of(call);
  return {make_spec(call[0].dtype, call.shape(0))};
}

Specs infer_arg(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  const std::size_t dim = dim_of(call);
  const Dims& from = call.shape(0);
  if (!from.empty() && from[dim] == 0) {
    call.refuse("dim " + std::to_string(dim) + " has no elements to choose from; give a tensor that is not empty");
  }
  Sizes shape(from.begin(), from.end());
  if (!shape.empty()) shape[dim] = 1;
  if (!shape.empty() && !attributes.boolean("keepdim")) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return {make_spec(DataType::int64, Dims(std::span(shape)))};
}

Specs infer_top_k(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  const std::size_t dim = dim_of(call);
  Dims shape = call.shape(0);
  if (shape.empty()) call.refuse("input 0 has no dims; reshape it to [1]");
  const std::int64_t k = attributes.integer("k");
  if (k < 0 || k > shape[dim]) {
    call.refuse("k is " + std::to_string(k) + "; give 0 to " + std::to_string(shape[dim]) + ", the extent of dim " +
                std::to_string(dim));
  }
  shape[dim] = k;
  return {make_spec(call[0].dtype, shape), make_spec(DataType::int64, shape)};
}

constexpr InputSpec moved[] = {{.name = "input", .gradient = false, .follows_precision = false}};
constexpr InputSpec summed[] = {{.name = "input", .gradient = false}};
constexpr InputSpec pad_inputs[] = {{.name = "input", .gradient = false, .follows_precision = false},
                                    {.name = "value", .optional = true, .gradient = false, .follows_precision = false}};
constexpr AttributeSpec pad_attributes[] = {free_list("pads", "before and after, from the last dim on"),
                                            choice("mode", "constant|reflect|replicate|wrap")};
constexpr AttributeSpec tile_attributes[] = {free_list("repeats", "of the last dims")};
constexpr AttributeSpec flip_attributes[] = {free_list("dims", "empty: all")};
constexpr AttributeSpec trilu_attributes[] = {integer("diagonal", 0), boolean("upper", true)};
constexpr AttributeSpec cumsum_attributes[] = {integer("dim", 0), boolean("exclusive"), boolean("reverse")};
constexpr AttributeSpec arg_attributes[] = {integer("dim", -1), boolean("keepdim"), boolean("select_last_index")};
constexpr AttributeSpec top_k_attributes[] = {integer("k", 1), integer("dim", -1), boolean("largest", true),
                                              boolean("sorted", true)};

constexpr OpInfo arg_row(Id id, std::string_view name, std::string_view summary) {
  return {.id = id,
          .name = name,
          .category = Kind::reduction,
          .summary = summary,
          .inputs = moved,
          .attributes = arg_attributes,
          .infer = infer_arg,
          .rounding = Rounding::exact};
}

constexpr OpInfo rows[] = {
    {.id = Id::pad,
     .name = "pad",
     .category = Kind::movement,
     .summary = "Adds elements before and after each dim, or cuts them off where negative: a value, 0 without one, or "
                "the input's own: mirrored, its edge again, or from its other end.",
     .inputs = pad_inputs,
     .attributes = pad_attributes,
     .infer = infer_pad,
     .sample = "T[64,64]; pads=1,1",
     .rounding = Rounding::exact,
     .parameters = "input, pads, mode, value"},
    {.id = Id::tile,
     .name = "tile",
     .category = Kind::movement,
     .summary = "Repeats the input along its dims.",
     .inputs = moved,
     .attributes = tile_attributes,
     .infer = infer_tile,
     .sample = "T[64,64]; repeats=2",
     .rounding = Rounding::exact},
    {.id = Id::flip,
     .name = "flip",
     .category = Kind::movement,
     .summary = "Reverses the order of the elements along dims, or all.",
     .inputs = moved,
     .attributes = flip_attributes,
     .infer = infer_flip,
     .rounding = Rounding::exact},
    {.id = Id::trilu,
     .name = "trilu",
     .category = Kind::movement,
     .summary = "Keeps the upper or the lower triangle of each matrix, from the given diagonal, and makes the rest 0.",
     .inputs = moved,
     .attributes = trilu_attributes,
     .infer = infer_trilu,
     .rounding = Rounding::exact},
    {.id = Id::cumsum,
     .name = "cumsum",
     .aliases = "cumulative_sum",
     .category = Kind::reduction,
     .summary =
         "Adds up the elements along a dim up to each one, that one left out where exclusive, from the end where "
         "reverse.",
     .inputs = summed,
     .attributes = cumsum_attributes,
     .infer = infer_cumsum,
     .rounding = Rounding::sum,
     .autocast = higher},
    arg_row(Id::arg_max, "arg_max",
            "Gives the place of the largest element along a dim, of equal ones the first or the last; NaN counts as "
            "the largest."),
    arg_row(Id::arg_min, "arg_min",
            "Gives the place of the smallest element along a dim, of equal ones the first or the last; NaN counts as "
            "the smallest."),
    {.id = Id::top_k,
     .name = "top_k",
     .category = Kind::movement,
     .summary = "Takes the k largest or smallest elements along a dim and their places, in order; of equal ones those "
                "in front. NaN counts as the largest.",
     .inputs = moved,
     .attributes = top_k_attributes,
     .infer = infer_top_k,
     .outputs = 2,
     .sample = "T[64,64]; k=8",
     .rounding = Rounding::exact},
};

}  // namespace

std::span<const OpInfo> arranging() { return rows; }

}  // namespace xpuruntime::op_rows
