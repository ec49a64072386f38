#include "backends/cuda/rows.h"

#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

constexpr std::int64_t most_columns = std::int64_t{1} << 30;  // the kernels count columns in 32 bits
constexpr std::int64_t most_rows = (std::int64_t{1} << 31) - 1;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

int power_of_two(std::int64_t least) {
  int power = 1;
  while (power < least) power *= 2;
  return power;
}

std::size_t row_dims(const Problem& problem) {
  return problem.op == OpId::layer_norm ? static_cast<std::size_t>(problem.attributes.integer("normalized_rank")) : 1;
}

/// The weight, after what is computed with: add_rms_norm has as many outputs as such inputs.
std::size_t first_parameter(const Problem& problem) { return problem.outputs.size(); }

Verdict sum_dtypes(const Problem& problem, const DeviceProfile&) {
  if (problem.op != OpId::add_rms_norm) return Verdict::yes();
  const DataType dtype = problem.inputs[0].dtype;
  const Verdict residual = is_same_dtype("input 1", problem.inputs[1].dtype, "the input's", dtype);
  return residual.supported ? is_same_dtype("output 1", problem.outputs[1].dtype, "the input's", dtype) : residual;
}

Verdict last_dim(const Problem& problem, const DeviceProfile&) {
  const auto rank = static_cast<std::int64_t>(problem.inputs[0].shape.size());
  const bool has_dim = problem.op == OpId::softmax || problem.op == OpId::log_softmax || problem.op == OpId::normalize;
  const std::int64_t dim = has_dim ? problem.attributes.integer("dim") : -1;
  return dim == -1 || dim == rank - 1 ? Verdict::yes() : Verdict::no("the dim is not the last one");
}

Verdict square_norm(const Problem& problem, const DeviceProfile&) {
  if (problem.op != OpId::normalize || problem.attributes.real("p") == 2) return Verdict::yes();
  return Verdict::no("p is not 2");
}

Verdict dense_rows(const Problem& problem, const DeviceProfile&) {
  const std::size_t first = first_parameter(problem);
  for (std::size_t i = 0; i < first; ++i) {
    for (const TensorSpec* spec : {&problem.inputs[i], &problem.outputs[i]}) {
      if (Verdict verdict = takes_rows(rows_of(*spec, row_dims(problem))); !verdict.supported) return verdict;
    }
  }
  return is_contiguous(problem, first);
}

bool is_norm(OpId op) { return !softmax_ops.contains(op); }

}  // namespace

Rows rows_of(const TensorSpec& spec, std::size_t row_dims) {
  Rows out;
  for (std::size_t d = spec.shape.size(); d-- > 0;) {
    const std::int64_t extent = spec.shape[d];
    if (spec.shape.size() - d <= row_dims) {
      out.dense &= extent == 1 || spec.strides[d] == out.columns;
      out.columns *= extent;
    } else if (extent != 1) {
      if (out.rows == 1) out.stride = spec.strides[d];
      out.even &= spec.strides[d] == out.stride * out.rows;
      out.rows *= extent;
    }
  }
  // Nothing is read or written, whatever the strides.
  if (out.rows * out.columns == 0) out.dense = out.even = true;
  const auto width = static_cast<std::int64_t>(16 / size_of(spec.dtype));
  const bool whole = spec.alignment >= 16 && out.columns % width == 0 && (out.rows <= 1 || out.stride % width == 0);
  out.vectors = std::max<std::int64_t>(out.columns / width, 1);
  if (!whole) out.least_lanes = static_cast<int>(2 * width);
  return out;
}

Verdict takes_rows(const Rows& rows) {
  if (!rows.dense) return Verdict::no("the elements of a row are not contiguous");
  if (!rows.even) return Verdict::no("the rows are not evenly spaced");
  const Verdict columns = is_at_most("columns", rows.columns, most_columns);
  return columns.supported ? is_at_most("rows", rows.rows, most_rows) : columns;
}

namespace {

int lanes_for(const Rows& rows, std::int64_t held) {
  return static_cast<int>(rounded_up((rows.vectors + held - 1) / held, 32));
}

/// Rows that are too long for the registers of one block: the rest is staged, and clusters share what is still too
/// long. A few rows have as many blocks as there are.
RowTeam long_softmax_team(const Rows& rows, const DeviceProfile& profile) {
  constexpr int lanes = 512, held = 8;
  if (rows.rows * RowTeam::most_blocks <= profile.compute_units) {
    for (const int few : {4, held}) {
      const int each = lanes_for(rows, few * RowTeam::most_blocks);
      if (each <= 1024) return {each, few, RowTeam::most_blocks};
    }
  }
  for (const int blocks : {1, 2, 4, RowTeam::most_blocks}) {
    if (blocks < RowTeam::most_blocks && rows.rows * blocks < profile.compute_units) continue;
    const std::int64_t staged = (rows.vectors + lanes * blocks - 1) / (lanes * blocks) - held;
    if (staged <= 0) return {lanes_for(rows, held * blocks), held, blocks};
    if (staged <= RowTeam::most_staged) return {lanes, held, blocks, static_cast<int>(staged)};
  }
  return {512, 0};
}

}  // namespace

RowTeam team_for(const Rows& rows, const DeviceProfile& profile, RowUse use) {
  const std::int64_t vectors = rows.vectors;
  const bool few_rows = rows.rows < 2 * std::max(profile.compute_units, 1);
  const bool holds = use == RowUse::norm || use == RowUse::softmax;
  if (vectors <= 32) {
    return {std::max(power_of_two(vectors), rows.least_lanes), use == RowUse::reduce ? 0 : 1};
  }
  if (use == RowUse::loss && vectors <= 128) return {16, vectors <= 64 ? 4 : 8};
  if (use == RowUse::loss && !few_rows) return {vectors <= 512 ? 32 : vectors <= 1024 ? 64 : 128, 0};
  if (few_rows && holds && vectors <= 1024) return {lanes_for(rows, 1), 1};
  const int most_held = use == RowUse::norm ? 4 : 8;
  if (vectors <= 32 * most_held && !few_rows) return {32, holds ? power_of_two((vectors + 31) / 32) : 0};
  const int held = (few_rows && vectors <= 4 * 1024 * RowTeam::most_blocks) || vectors <= 1024 ? 4 : most_held;
  if (lanes_for(rows, held) <= 512) return {std::max(lanes_for(rows, held), 64), holds ? held : 0};
  if (use == RowUse::softmax && profile.compute_capability_major >= 9) return long_softmax_team(rows, profile);
  return {512, 0};
}

int busy_blocks(const RowTeam& team, const DeviceProfile& profile) {
  const int threads = team.held > 1 ? 512 : 1024;  // that a multiprocessor has registers for
  return std::max(profile.compute_units, 1) * std::max(threads / team.threads(), 1);
}

std::string token_of(const RowTeam& team) {
  std::string token = "lanes=" + std::to_string(team.lanes) + " held=" + std::to_string(team.held);
  if (team.staged > 0) token += " staged=" + std::to_string(team.staged);
  if (team.blocks > 1) token += " blocks=" + std::to_string(team.blocks);
  return token;
}

Verdict supports_rows(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, has_one_dtype, sum_dtypes, last_dim, square_norm, dense_rows}, problem, profile);
}

std::unique_ptr<const Plan> prepare_rows(const Problem& problem, const PrepareContext& context) {
  const Rows input = rows_of(problem.inputs[0], row_dims(problem));
  RowLaunch launch;
  launch.shape = {input.rows, static_cast<int>(input.columns), input.stride,
                  rows_of(problem.outputs[0], row_dims(problem)).stride};
  launch.op = problem.op;
  launch.dtype = problem.inputs[0].dtype;
  const std::size_t first = first_parameter(problem);
  for (std::size_t i = first; i < problem.inputs.size(); ++i) launch.parameters[i - first] = problem.inputs[i].dtype;
  if (launch.op == OpId::add_rms_norm) {
    launch.residual_stride = rows_of(problem.inputs[1], 1).stride;
    launch.sum_stride = rows_of(problem.outputs[1], 1).stride;
  }
  if (is_norm(launch.op)) launch.eps = static_cast<float>(problem.attributes.real("eps"));
  launch.team = team_for(input, context.profile, is_norm(launch.op) ? RowUse::norm : RowUse::softmax);
  launch.most_blocks = busy_blocks(launch.team, context.profile);
  return std::make_unique<LaunchPlan<RowLaunch>>("rows", context.device, launch, token_of(launch.team));
}

cudaError_t launch(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.rows == 0 || launch.shape.columns == 0) return cudaSuccess;
  return is_norm(launch.op) ? launch_norm(launch, pointers, stream) : launch_softmax(launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
