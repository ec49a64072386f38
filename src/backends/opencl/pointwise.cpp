#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/nest.h"
#include "backends/opencl/parts.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

/// The ops as the sources know them: op_abs and so on, by the numbers of OpId.
std::string op_numbers() {
  std::string text = "enum {";
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(OpId::builtin_count); ++i)
    text += " op_" + std::string(to_string(static_cast<OpId>(i))) + ",";
  return text + " };\n";
}

/// The attributes of an op; 0 where it has none.
struct Given {
  double p = 0;
  double q = 0;
};
Given given_of(const Problem& problem) {
  const Attributes& attributes = problem.attributes;
  switch (problem.op) {
    case OpId::clip:
      return {attributes.real("min"), attributes.real("max")};
    case OpId::leaky_relu:
      return {attributes.real("negative_slope")};
    case OpId::elu:
      return {attributes.real("alpha")};
    case OpId::hard_sigmoid:
      return {attributes.real("alpha"), attributes.real("beta")};
    default:
      return {};
  }
}

/// Of integers: cut off at the ends of 64 bits.
std::int64_t whole(double bound) {
  if (bound >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (bound <= -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(bound);
}

void fill_pointwise(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  static const std::string source = op_numbers() + parts_cl + pointwise_cl;
  const bool pair = problem.inputs.size() > 1;
  const TensorSpec &a = problem.inputs[0], &b = problem.inputs.back(), &c = problem.outputs[0];
  const Rows rows = rows_of(a, b, c);
  const bool is_long = long_functions.contains(problem.op) || long_pairs.contains(problem.op);
  const bool cpu = is_cpu(context.profile);
  const std::string name = "op_" + std::string(to_string(problem.op));
  const std::string own = "run_" + (cpu ? name : pair ? "two" : "one");
  const bool test = c.dtype == DataType::boolean;
  LaunchSpec spec = part_launch(rows, problem, context, source, pair ? "of_two" : "of_one");
  if (test) spec.function = pair ? "test_two" : "test_one";
  if (is_long) {
    spec.function = own.c_str();
    spec.options += " -D LONG_KERNELS" + (cpu ? "" : " -D OP=" + name);
  }
  Launch& launch = plan.add(spec);
  launch.input(0).constant(type_number(a.dtype));
  if (pair) launch.input(1).constant(type_number(b.dtype));
  launch.output(0).constant(type_number(c.dtype)).constant(rows);
  const Given given = given_of(problem);
  launch.constant(static_cast<std::int32_t>(problem.op))
      .constant(static_cast<float>(given.p))
      .constant(static_cast<float>(given.q));
}

bool has_floats(const Problem& problem) {
  return std::any_of(problem.inputs.begin(), problem.inputs.end(),
                     [](const TensorSpec& spec) { return is_floating(spec.dtype); });
}

void fill_pointwise_any(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  static const std::string source = op_numbers() + reals_cl + pointwise_cl;
  const TensorSpec &a = problem.inputs[0], &b = problem.inputs.back(), &c = problem.outputs[0];
  const bool reals = has_floats(problem);
  const Rows rows = rows_of(a, b, c);
  const std::int64_t chunk = part_of(problem, context.profile), chunks = divided_up(rows.length, chunk);
  const Given given = given_of(problem);
  Launch& launch = plan.add({.source = source,
                             .function = reals ? "of_reals" : "of_integers",
                             .options = " -D REALS",
                             .items = rows.index.count * chunks});
  launch.input(0).constant(type_number(a.dtype));
  launch.input(problem.inputs.size() - 1).constant(type_number(b.dtype));
  launch.output(0).constant(type_number(c.dtype)).constant(rows).constant(static_cast<std::int32_t>(problem.op));
  if (!reals)
    launch.constant(whole(given.p)).constant(whole(given.q));
  else if (context.profile.fp64)
    launch.constant(given.p).constant(given.q);
  else
    launch.constant(static_cast<float>(given.p)).constant(static_cast<float>(given.q));
  launch.constant(chunk).constant(chunks);
}

/// The same struct is in kernels/where.cl.
struct Choice {
  Nest rows = {};
  std::int64_t length = 1;
  std::int64_t step[4] = {};
};

/// The dims go by the output's strides, so that its neighbours are in one row.
Choice choice_of(const Problem& problem) {
  const TensorSpec& out = problem.outputs[0];
  std::vector<std::size_t> order(out.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return out.strides[x] > out.strides[y]; });
  const auto sorted = [&](const Dims& dims) {
    Dims result = dims;
    for (std::size_t d = 0; d < order.size(); ++d) result[d] = dims[order[d]];
    return result;
  };
  NestStrides strides;
  for (std::size_t t = 0; t < 3; ++t)
    strides[t] = sorted(broadcast_strides(out.shape, problem.inputs[t].shape, problem.inputs[t].strides));
  strides[3] = sorted(out.strides);
  Choice choice{make_nest(sorted(out.shape), strides)};
  Nest& rows = choice.rows;
  choice.length = rows.last_extent();
  for (std::size_t t = 0; t < 4; ++t) choice.step[t] = std::exchange(rows.stride[t][0], 0);
  rows.extent[0] = 1;
  if (rows.count > 0) rows.count /= choice.length;
  return choice;
}

void fill_where(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  static const std::string source = std::string(vectors_cl) + where_cl;
  const Choice choice = choice_of(problem);
  const auto size = static_cast<std::int64_t>(size_of(problem.outputs[0].dtype));
  const std::int64_t chunk = is_cpu(context.profile) ? 4096 / size : 4, chunks = divided_up(choice.length, chunk);
  const std::string function = "where_" + std::to_string(size);
  plan.add({.source = source,
            .function = function.c_str(),
            .options = cpu_option(context.profile) + " -D WIDTH=1" + dims_option({&choice.rows}),
            .items = choice.rows.count * chunks})
      .input(0)
      .input(1)
      .input(2)
      .output(0)
      .constant(choice)
      .constant(chunk)
      .constant(chunks);
}

}  // namespace

// Comparisons are not asked about their integers before.
Verdict supports_pointwise(const Problem& problem, const DeviceProfile&) {
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const DataType dtype = problem.inputs[i].dtype;
    if (!fast_floats.contains(dtype))
      return refuse_dtype("input " + std::to_string(i), dtype, to_string(DataTypeSet(fast_floats)));
  }
  return Verdict::yes();
}

/// A float holds what has up to 24 bits.
Verdict supports_pointwise_any(const Problem& problem, const DeviceProfile& profile) {
  const auto needs_double = [&](const TensorSpec& spec) {
    const bool long_integer = spec.dtype == DataType::int64 || spec.dtype == DataType::int32;
    return spec.dtype == DataType::float64 || (long_integer && has_floats(problem));
  };
  const bool doubles =
      std::any_of(problem.inputs.begin(), problem.inputs.end(), needs_double) || needs_double(problem.outputs[0]);
  return doubles && !profile.fp64 ? Verdict::no("the device has no fp64") : Verdict::yes();
}

Verdict supports_where(const Problem& problem, const DeviceProfile&) { return has_one_dtype(problem, 1); }

std::unique_ptr<const Plan> prepare_pointwise(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_pointwise);
}

std::unique_ptr<const Plan> prepare_pointwise_any(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_pointwise_any);
}

std::unique_ptr<const Plan> prepare_where(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_where);
}

}  // namespace xpuruntime::opencl
