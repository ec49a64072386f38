#include <algorithm>
#include <string>
#include <utility>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/registry/refusals.h"

// What takes elements by indices, arranges them, or finds their places.

namespace xpuruntime::opencl {
namespace {

std::size_t indexed_dim(const Problem& problem) {
  const std::int64_t dim = problem.attributes.integer("dim");
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(problem.inputs[0].shape.size()) : dim);
}

std::int64_t element_bytes(const TensorSpec& spec) { return static_cast<std::int64_t>(size_of(spec.dtype)); }

/// Elements of a row that a work-item moves.
std::int64_t moved_at_once(const TensorSpec& spec, const DeviceProfile& profile) {
  return is_cpu(profile) ? 4096 / element_bytes(spec) : 4;
}

/// The dims of the output, with the strides of data and indices in them, less the indexed one's in the data.
Rows taken_rows(const Problem& problem) {
  const TensorSpec &data = problem.inputs[0], &indices = problem.inputs[1], &out = problem.outputs[0];
  const std::size_t dim = indexed_dim(problem), rank = out.shape.size(), taken = indices.shape.size();
  Dims a = Dims::filled(rank, 0), b = Dims::filled(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    if (problem.op == OpId::gather_elements) {
      a[d] = d == dim ? 0 : data.strides[d];
      b[d] = indices.strides[d];
    } else if (d < dim) {
      a[d] = data.strides[d];
    } else if (d < dim + taken) {
      b[d] = indices.strides[d - dim];
    } else {
      a[d] = data.strides[d - taken + 1];
    }
  }
  return make_rows(out.shape, a, b, out.strides);
}

void fill_take(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const TensorSpec& data = problem.inputs[0];
  const Rows rows = taken_rows(problem);
  const std::size_t dim = indexed_dim(problem);
  const std::int64_t extent = data.shape[dim], chunk = moved_at_once(data, context.profile);
  const std::int64_t chunks = divided_up(rows.length, chunk);
  const std::string function = "take_" + std::to_string(element_bytes(data));
  const std::string range =
      extent == 0 ? "a tensor with elements there" : std::to_string(-extent) + " to " + std::to_string(extent - 1);
  const auto fault = plan.fault(context, std::string(to_string(problem.op)) + ": an index is outside a dim of " +
                                             std::to_string(extent) + "; give " + range);
  plan.add({.source = arrange_cl, .function = function.c_str(), .items = rows.index.count * chunks})
      .input(0)
      .input(1)
      .constant(type_number(problem.inputs[1].dtype))
      .output(0)
      .fault(fault)
      .constant(rows)
      .constant(extent)
      .constant(data.strides[dim])
      .constant(chunk)
      .constant(chunks);
}

/// The same struct is in kernels/arrange.cl.
struct Arrangement {
  std::int64_t rows = 1;
  std::int64_t rank = 1;
  std::int64_t extent[max_rank] = {1};
  std::int64_t first[max_rank] = {};
  std::int64_t step[max_rank] = {1};
  std::int64_t from[max_rank] = {1};
  std::int64_t a_stride[max_rank] = {};
  std::int64_t c_stride[max_rank] = {};
  std::int64_t mode = 0;
  std::int64_t triangle = 0;
  std::int64_t diagonal = 0;
};
constexpr std::int64_t mirrored = 1, at_edge = 2, repeated = 3;  // modes

bool is_flipped(const Problem& problem, std::size_t dim) {
  if (problem.op != OpId::flip) return false;
  const std::vector<std::int64_t> dims = problem.attributes.list("dims");
  const auto rank = static_cast<std::int64_t>(problem.inputs[0].shape.size());
  const auto is_it = [&](std::int64_t one) { return (one < 0 ? one + rank : one) == static_cast<std::int64_t>(dim); };
  return dims.empty() || std::any_of(dims.begin(), dims.end(), is_it);
}

void set_mode(Arrangement& to, const Problem& problem) {
  if (problem.op == OpId::tile) to.mode = repeated;
  if (problem.op == OpId::trilu) {
    to.triangle = problem.attributes.boolean("upper") ? 1 : 2;
    to.diagonal = problem.attributes.integer("diagonal");
  }
  if (problem.op != OpId::pad) return;
  const std::string_view mode = problem.attributes.choice("mode");
  to.mode = mode == "reflect" ? mirrored : mode == "replicate" ? at_edge : mode == "wrap" ? repeated : 0;
}

/// Joins the two innermost dims where the inner one is shown as it is, all of it in line.
bool join_dims(Arrangement& to) {
  const bool whole = to.first[0] == 0 && to.step[0] == 1 && to.from[0] == to.extent[0];
  const bool in_line = to.a_stride[1] == to.from[0] * to.a_stride[0] && to.c_stride[1] == to.extent[0] * to.c_stride[0];
  if (to.rank < 2 || to.triangle != 0 || to.mode == mirrored || to.mode == at_edge) return false;
  if (!whole || !in_line || to.step[1] != 1) return false;
  const std::int64_t inner = to.extent[0];
  to.extent[0] *= to.extent[1];
  to.first[0] = to.first[1] * inner;
  to.from[0] *= to.from[1];
  for (auto* values : {to.extent, to.first, to.step, to.from, to.a_stride, to.c_stride})
    std::move(values + 2, values + to.rank, values + 1);
  --to.rank;
  return true;
}

Arrangement arrangement_of(const Problem& problem) {
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  const std::size_t rank = out.shape.size(), missing = rank - in.shape.size();
  const std::vector<std::int64_t> pads =
      problem.op == OpId::pad ? problem.attributes.list("pads") : std::vector<std::int64_t>();
  Arrangement to;
  to.rank = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t inner = rank - 1 - d;
    const bool is_new = d < missing;  // put in front by tile
    to.extent[inner] = out.shape[d];
    to.from[inner] = is_new ? 1 : in.shape[d - missing];
    to.a_stride[inner] = is_new ? 0 : in.strides[d - missing];
    to.c_stride[inner] = out.strides[d];
    to.step[inner] = is_flipped(problem, d) ? -1 : 1;
    if (is_flipped(problem, d)) to.first[inner] = out.shape[d] - 1;
    if (2 * inner < pads.size()) to.first[inner] = -pads[2 * inner];
  }
  set_mode(to, problem);
  while (join_dims(to)) {
  }
  for (std::int64_t d = 1; d < to.rank; ++d) to.rows *= to.extent[d];
  return to;
}

void fill_arrange(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const TensorSpec& out = problem.outputs[0];
  const Arrangement to = arrangement_of(problem);
  const std::int64_t chunk = moved_at_once(out, context.profile), chunks = divided_up(to.extent[0], chunk);
  const bool has_value = problem.inputs.size() > 1;
  const std::string function = "arrange_" + std::to_string(element_bytes(out));
  plan.add({.source = arrange_cl, .function = function.c_str(), .items = to.rows * chunks})
      .input(0)
      .input(has_value ? 1 : 0)
      .constant(std::int32_t{has_value})
      .output(0)
      .constant(to)
      .constant(chunk)
      .constant(chunks);
}

/// Of an extreme's line: the input's dims but one, and the output's without that one.
Index arg_lines(const Problem& problem) {
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  Dims shape = in.shape, from = in.strides, to = Dims::filled(shape.size(), 0);
  const bool kept = out.shape.size() == shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d == indexed_dim(problem))
      shape[d] = 1;
    else
      to[d] = out.strides[!kept && d > indexed_dim(problem) ? d - 1 : d];
  }
  return make_index(shape, from, from, to).index;
}

void fill_arg(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  constexpr std::int64_t items = 256, long_line = 256, many_lines = 1 << 14;
  const TensorSpec& in = problem.inputs[0];
  const Index lines = arg_lines(problem);
  const std::int64_t length = in.shape.empty() ? 1 : in.shape[indexed_dim(problem)];
  const std::int64_t step = in.shape.empty() ? 1 : in.strides[indexed_dim(problem)];
  // On a GPU neighbours in memory are read together: along a line, or by lines that are side by side.
  const bool together = !is_cpu(context.profile) && largest_group(context.profile) >= items && length >= long_line &&
                        (step == 1 || lines.count < many_lines);
  plan.add({.source = arg_cl,
            .function = together ? "arg_together" : "arg_alone",
            .options = " -D ITEMS=" + std::to_string(items),
            .items = together ? lines.count * items : lines.count,
            .local = together ? static_cast<std::size_t>(items) : 0})
      .input(0)
      .constant(type_number(in.dtype))
      .output(0)
      .constant(type_number(problem.outputs[0].dtype))
      .constant(lines)
      .constant(length)
      .constant(step)
      .constant(std::int32_t{problem.op == OpId::arg_max})
      .constant(std::int32_t{problem.attributes.boolean("select_last_index")});
}

}  // namespace

Verdict supports_take(const Problem& problem, const DeviceProfile&) {
  return is_same_dtype("input 0", problem.inputs[0].dtype, "the output's", problem.outputs[0].dtype);
}

Verdict supports_arrange(const Problem& problem, const DeviceProfile&) { return has_one_dtype(problem); }

Verdict supports_arg(const Problem& problem, const DeviceProfile&) {
  const DataType to = problem.outputs[0].dtype;
  return is_floating(to) ? refuse_dtype("output 0", to, "integers") : Verdict::yes();
}

std::unique_ptr<const Plan> prepare_take(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_take);
}

std::unique_ptr<const Plan> prepare_arrange(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_arrange);
}

std::unique_ptr<const Plan> prepare_arg(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_arg);
}

}  // namespace xpuruntime::opencl
