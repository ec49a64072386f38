#include <cmath>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/parts.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

LaunchSpec spec_of(const Rows& rows, const Problem& problem, const PrepareContext& context, const char* function) {
  static const std::string source = std::string(parts_cl) + elementwise_cl;
  return part_launch(rows, problem, context, source, function);
}

bool has_integers(const Problem& problem) { return !is_floating(problem.inputs[0].dtype); }

std::string function_of(const Problem& problem) {
  std::string name = "op_" + std::string(to_string(problem.op));
  if (problem.op == OpId::gelu && problem.attributes.choice("approximate") == "tanh") name += "_tanh";
  if (problem.direction == Direction::backward) name += "_backward";
  return has_integers(problem) ? name + "_integers" : name;
}

Verdict all_alike(const Problem& problem, const DeviceProfile&) {
  const bool integers = has_integers(problem);
  const auto fits = [&](const std::string& which, const TensorSpec& spec) {
    if (is_floating(spec.dtype) != integers) return Verdict::yes();
    return refuse_dtype(which, spec.dtype, integers ? "integers beside integers" : "floats beside floats");
  };
  if (problem.inputs.size() > 1) {
    if (Verdict verdict = fits("input 1", problem.inputs[1]); !verdict.supported) return verdict;
  }
  return fits("output 0", problem.outputs[0]);
}

Verdict has_doubles(const Problem& problem, const DeviceProfile& profile) {
  const bool doubles = problem.inputs[0].dtype == DataType::float64 || problem.outputs[0].dtype == DataType::float64;
  return doubles && !profile.fp64 ? Verdict::no("the device has no fp64") : Verdict::yes();
}

bool is_fast(DataType dtype) { return fast_floats.contains(dtype); }

void fill_elementwise(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const bool halves = problem.op == OpId::silu_mul && problem.inputs.size() == 1;
  const bool unary = problem.inputs.size() == 1 && !halves;
  const TensorSpec& c = problem.outputs[0];
  TensorSpec a = problem.inputs[0], b = problem.inputs.back();
  if (halves) a.shape = b.shape = c.shape;
  const Rows rows = rows_of(a, b, c);
  LaunchSpec spec = spec_of(rows, problem, context, nullptr);
  const std::string function = function_of(problem);
  spec.function = function.c_str();
  Launch& launch = plan.add(spec);
  launch.input(0).constant(type_number(a.dtype));
  if (!unary) launch.input(halves ? 0 : 1).constant(type_number(b.dtype));
  launch.output(0).constant(type_number(c.dtype)).constant(rows);
  if (!unary) launch.constant(between_halves(problem));
}

void fill_cast(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const TensorSpec &a = problem.inputs[0], &c = problem.outputs[0];
  if (is_fast(a.dtype) && is_fast(c.dtype)) return fill_elementwise(plan, problem, context);
  const Rows rows = rows_of(a, a, c);
  const std::int64_t chunk = part_of(problem, context.profile), chunks = divided_up(rows.length, chunk);
  static const std::string source = std::string(reals_cl) + cast_cl;
  plan.add({.source = source, .function = "cast_any", .items = rows.index.count * chunks})
      .input(0)
      .constant(type_number(a.dtype))
      .output(0)
      .constant(type_number(c.dtype))
      .constant(rows)
      .constant(chunk)
      .constant(chunks);
}

void fill_dropout(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const TensorSpec &a = problem.inputs[0], &c = problem.outputs[0];
  const Rows rows = rows_of(a, a, c, Order::row_major);
  const bool seeded = problem.inputs.size() > 1;
  double p = 0;
  if (problem.attributes.boolean("training")) p = problem.attributes.real("p");
  plan.add(spec_of(rows, problem, context, "op_dropout"))
      .input(0)
      .constant(type_number(a.dtype))
      .input(seeded ? 1 : 0)
      .output(0)
      .constant(type_number(c.dtype))
      .constant(rows)
      .constant(problem.attributes.integer("seed"))
      .constant(seeded ? problem.inputs[1].strides[0] : 0)
      .constant(static_cast<std::uint64_t>(std::floor(p * 0x1p32)))
      .constant(static_cast<float>(1 / (1 - p)));
}

}  // namespace

Verdict supports_elementwise(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({all_alike}, problem, profile);
}

std::unique_ptr<const Plan> prepare_elementwise(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_elementwise);
}

Verdict supports_cast(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({has_doubles}, problem, profile);
}

std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_cast);
}

std::unique_ptr<const Plan> prepare_dropout(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_dropout);
}

Verdict supports_unscale(const Problem& problem, const DeviceProfile&) {
  const DataType inverse = problem.inputs[1].dtype;
  return inverse == DataType::float32 ? Verdict::yes() : refuse_dtype("input 1", inverse, "f32");
}

std::unique_ptr<const Plan> prepare_unscale(const Problem& problem, const PrepareContext& context) {
  const TensorSpec &a = problem.inputs[0], &c = problem.outputs[0];
  const Rows rows = rows_of(a, a, c);
  auto plan = std::make_unique<LaunchPlan>(context_of(context));
  LaunchSpec clear = spec_of(rows, problem, context, "clear_found");
  clear.items = 1;
  plan->add(clear).output(1);
  plan->add(spec_of(rows, problem, context, "op_unscale"))
      .input(0)
      .constant(type_number(a.dtype))
      .input(1)
      .output(0)
      .constant(type_number(c.dtype))
      .output(1)
      .constant(rows);
  return plan;
}

}  // namespace xpuruntime::opencl
