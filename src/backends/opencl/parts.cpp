#include "backends/opencl/parts.h"

#include <algorithm>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/profile.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime::opencl {
namespace {

/// WIDTH in parts.cl on GPUs: vectors of 16 bytes.
std::int64_t gpu_width(const Problem& problem) {
  const auto narrow = [](const TensorSpec& spec) { return is_floating(spec.dtype) && size_of(spec.dtype) == 2; };
  const bool all_narrow = std::all_of(problem.inputs.begin(), problem.inputs.end(), narrow) &&
                          std::all_of(problem.outputs.begin(), problem.outputs.end(), narrow);
  return all_narrow ? 8 : 4;
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

/// Whether all floats are of one type: TYPED in parts.cl.
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
  const bool divides = problem.op == OpId::div || problem.op == OpId::sqrt || pointwise_ops.contains(problem.op);
  if (!divides) return {};
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

}  // namespace

std::int64_t part_of(const Problem& problem, const DeviceProfile& profile) {
  return is_cpu(profile) ? 256 : gpu_width(problem);
}

Rows rows_of(const TensorSpec& a, const TensorSpec& b, const TensorSpec& c, Order order) {
  return make_rows(c.shape, broadcast_strides(c.shape, a.shape, a.strides),
                   broadcast_strides(c.shape, b.shape, b.strides), c.strides, order);
}

std::int64_t between_halves(const Problem& problem) {
  const bool halves = problem.op == OpId::silu_mul && problem.inputs.size() == 1;
  return halves ? problem.outputs[0].shape.back() * problem.inputs[0].strides.back() : 0;
}

LaunchSpec part_launch(const Rows& rows, const Problem& problem, const PrepareContext& context, std::string_view source,
                       const char* function) {
  return {.source = source,
          .function = function,
          .options = options_of(rows, problem, context),
          .items = rows.index.count * divided_up(rows.length, part_of(problem, context.profile)),
          .local = is_cpu(context.profile) ? std::size_t{16} : 0};
}

}  // namespace xpuruntime::opencl
