#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

// A bit for each dim that is reduced.
unsigned reduced_dims(const ForwardCall& call) {
  const std::size_t rank = call.shape(0).size();
  const std::vector<std::int64_t> dims = call.attributes().list("dim");
  if (dims.empty()) return (1U << rank) - 1;
  unsigned reduced = 0;
  for (const std::int64_t dim : dims) {
    const unsigned bit = 1U << call.axis(dim, rank);
    if ((reduced & bit) != 0) call.refuse("dim " + std::to_string(dim) + " is reduced twice; name it once");
    reduced |= bit;
  }
  return reduced;
}

// Sums and products of integers are 64 bits wide, as they grow past their parts.
DataType reduced_dtype(const ForwardCall& call) {
  const OpId op = call.attributes().op();
  call.need_numeric(0);
  if (op == OpId::reduce_mean) call.need_floating(0);
  const bool widens = (op == OpId::reduce_sum || op == OpId::reduce_prod) && !is_floating(call[0].dtype);
  return widens ? DataType::int64 : call[0].dtype;
}

Specs infer_reduce(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const DataType dtype = reduced_dtype(call);
  const unsigned reduced = reduced_dims(call);
  const bool keep = attributes.boolean("keepdim");
  const bool needs_elements = attributes.op() == OpId::reduce_max || attributes.op() == OpId::reduce_min;
  std::int64_t extents[max_rank] = {};
  std::size_t size = 0;
  for (std::size_t i = 0; i < call.shape(0).size(); ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    if (gone && needs_elements && call.shape(0)[i] == 0) {
      call.refuse("dim " + std::to_string(i) + " has no elements to choose from; reduce a tensor that is not empty");
    }
    if (!gone || keep) extents[size++] = gone ? 1 : call.shape(0)[i];
  }
  return {make_spec(dtype, Dims(std::span<const std::int64_t>(extents, size)))};
}

Specs infer_softmax(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  call.axis(attributes.integer("dim"), call.shape(0).size());
  return {make_spec(call[0].dtype, call.shape(0))};
}

Sizes columns(const Problem& problem) {
  const Dims& shape = problem.inputs[0].shape;
  const std::int64_t dim = problem.attributes.integer("dim");
  return {shape[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim)]};
}

Sizes rows_of(const Problem& problem) {
  const std::int64_t width = columns(problem)[0];
  return {width == 0 ? 0 : element_count(problem.inputs[0]) / width};
}

constexpr InputSpec one_input[] = {{.name = "input"}};
constexpr InputSpec multiplied[] = {{.name = "input", .gradient = false}};
constexpr AttributeSpec softmax_attributes[] = {integer("dim", -1)};
constexpr SizeSpec softmax_sizes[] = {size("rows", rows_of, "rows that are normalised", varies),
                                      size("columns", columns, "elements of a row: the extent of dim")};
constexpr AttributeSpec reduce_attributes[] = {free_list("dim", "empty: all"), boolean("keepdim")};

constexpr OpInfo softmax_row(Id id, std::string_view name, std::string_view summary) {
  return {.id = id,
          .name = name,
          .category = Kind::reduction,
          .summary = summary,
          .inputs = one_input,
          .attributes = softmax_attributes,
          .infer = infer_softmax,
          .sizes = softmax_sizes,
          .rounding = Rounding::softmax,
          .autocast = higher};
}

constexpr OpInfo reduce_row(Id id, std::string_view name, std::string_view aliases, std::string_view function,
                            Rounding rounding, std::string_view summary) {
  return {.id = id,
          .name = name,
          .aliases = aliases,
          .category = Kind::reduction,
          .summary = summary,
          .inputs = one_input,
          .attributes = reduce_attributes,
          .infer = infer_reduce,
          .rounding = rounding,
          .autocast = higher,
          .parameters = "input, dim=None, keepdim",
          .functions = function};
}

constexpr OpInfo rows[] = {
    softmax_row(Id::softmax, "softmax", "Exponentials along a dim, divided by their sum."),
    softmax_row(Id::log_softmax, "log_softmax", "The logarithm of the softmax along a dim."),
    reduce_row(Id::reduce_sum, "reduce_sum", "sum", "sum", Rounding::sum, "Adds up the elements along dims, or all."),
    reduce_row(Id::reduce_mean, "reduce_mean", "mean", "mean", Rounding::mean,
               "Takes the mean of the elements along dims, or of all."),
    reduce_row(Id::reduce_max, "reduce_max", "max|amax", "amax", Rounding::exact,
               "Takes the largest element along dims, or of all."),
    reduce_row(Id::reduce_min, "reduce_min", "min|amin", "amin", Rounding::exact,
               "Takes the smallest element along dims, or of all."),
    {.id = Id::reduce_prod,
     .name = "reduce_prod",
     .aliases = "prod",
     .category = Kind::reduction,
     .summary = "Multiplies the elements along dims, or all.",
     .inputs = multiplied,
     .attributes = reduce_attributes,
     .infer = infer_reduce,
     .rounding = Rounding::few_operations,
     .autocast = higher,
     .parameters = "input, dim=None, keepdim",
     .functions = "prod"},
};

}  // namespace

std::span<const OpInfo> reduce() { return rows; }

}  // namespace xpuruntime::op_rows
