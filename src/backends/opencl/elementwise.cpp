#include <algorithm>
#include <cmath>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"
#include "backends/opencl/profile.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

/// WIDTH in elementwise.cl on GPUs: vectors of 16 bytes.
std::int64_t gpu_width(const Problem& problem) {
  const auto narrow = [](const TensorSpec& spec) { return is_floating(spec.dtype) && size_of(spec.dtype) == 2; };
  const bool all_narrow = std::all_of(problem.inputs.begin(), problem.inputs.end(), narrow) &&
                          std::all_of(problem.outputs.begin(), problem.outputs.end(), narrow);
  return all_narrow ? 8 : 4;
}
/// PART there.
std::int64_t part_of(const Problem& problem, const DeviceProfile& profile) {
  return is_cpu(profile) ? 256 : gpu_width(problem);
}

Rows rows_of(const TensorSpec& a, const TensorSpec& b, const TensorSpec& c, Order order = Order::by_output) {
  return make_rows(c.shape, broadcast_strides(c.shape, a.shape, a.strides),
                   broadcast_strides(c.shape, b.shape, b.strides), c.strides, order);
}

/// How far the second operand begins behind the first, where silu_mul has both in one tensor.
std::int64_t between_halves(const Problem& problem) {
  const bool halves = problem.op == OpId::silu_mul && problem.inputs.size() == 1;
  return halves ? problem.outputs[0].shape.back() * problem.inputs[0].strides.back() : 0;
}

/// Whether each whole part of a row begins on a multiple of its size, in every tensor.
bool is_aligned(const Rows& rows, const Problem& problem) {
  const std::int64_t width = gpu_width(problem);
  if (between_halves(problem) % width != 0) return false;
  const auto begins = [](const TensorSpec& spec) { return spec.alignment >= 16; };
  if (!std::all_of(problem.inputs.begin(), problem.inputs.end(), begins) || !begins(problem.outputs[0])) return false;
  for (const auto& strides : rows.index.stride)
    for (const std::int64_t stride : strides)
      if (stride % width != 0) return false;
  return true;
}

/// Whether all floats are of one type: TYPED in elementwise.cl.
bool has_one_type(const Problem& problem) {
  const DataType dtype = problem.outputs[0].dtype;
  const auto alike = [&](const TensorSpec& spec) { return !is_floating(spec.dtype) || spec.dtype == dtype; };
  return is_floating(dtype) && std::all_of(problem.inputs.begin(), problem.inputs.end(), alike);
}

/// DENSE there, where all is one row of whole vectors, and ROWS, where there are several in one dim.
std::string dense_option(const Rows& rows, const Problem& problem) {
  const std::int64_t width = gpu_width(problem), count = rows.index.count;
  const bool near =
      std::all_of(std::begin(rows.step), std::end(rows.step), [](std::int64_t step) { return step == 1; });
  if (!near || rows.length % width != 0 || rows.index.rank != 1) return {};
  if (count == 1) return " -D DENSE";
  const bool is_short = rows.length <= INT32_MAX && count <= INT32_MAX && rows.length / width * count <= INT32_MAX;
  return is_short ? " -D DENSE -D ROWS" : "";
}

/// Divisions and roots are rounded correctly where they are the op; elsewhere they may be off by a few units.
std::string rounding_option(const Problem& problem, const PrepareContext& context) {
  if (problem.op != OpId::div && problem.op != OpId::sqrt) return {};
  const auto floats = device_value<cl_device_fp_config>(context_of(context).device(), CL_DEVICE_SINGLE_FP_CONFIG);
  const bool exact = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  return exact ? " -cl-fp32-correctly-rounded-divide-sqrt" : "";
}

std::string options_of(const Rows& rows, const Problem& problem, const PrepareContext& context) {
  std::string options = cpu_option(context.profile) + rounding_option(problem, context);
  if (is_cpu(context.profile)) return options;
  if (gpu_width(problem) == 8) options += " -D WIDTH=8";
  options += narrow_option(problem, context.profile);
  if (!is_aligned(rows, problem)) return options;
  options += " -D ALIGNED";
  if (!has_one_type(problem)) return options;
  options += " -D TYPED=" + std::string(to_string(problem.outputs[0].dtype));
  return options + dense_option(rows, problem);
}

LaunchSpec spec_of(const Rows& rows, const Problem& problem, const PrepareContext& context, const char* function) {
  return {.source = elementwise_cl,
          .function = function,
          .options = options_of(rows, problem, context),
          .items = rows.index.count * divided_up(rows.length, part_of(problem, context.profile)),
          .local = is_cpu(context.profile) ? std::size_t{16} : 0};
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
  plan.add({.source = cast_cl, .function = "cast_any", .items = rows.index.count * chunks})
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
