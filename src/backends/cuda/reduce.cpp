#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "backends/cuda/rows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

constexpr std::int64_t most_length = std::int64_t{1} << 29;  // of a part

struct Run {
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  bool reduced = false;
};

/// The input's dims, those joined that lie one after the other and are both reduced or both kept.
std::vector<Run> runs_of(const Problem& problem) {
  const TensorSpec& input = problem.inputs[0];
  const std::vector<std::int64_t> dims = problem.attributes.list("dim");
  const auto rank = static_cast<std::int64_t>(input.shape.size());
  std::vector<Run> runs;
  for (std::int64_t d = 0; d < rank; ++d) {
    const bool reduced = dims.empty() || std::any_of(dims.begin(), dims.end(),
                                                     [&](std::int64_t dim) { return dim == d || dim + rank == d; });
    const Run next{input.shape[static_cast<std::size_t>(d)], input.strides[static_cast<std::size_t>(d)], reduced};
    if (next.extent == 1) continue;
    if (!runs.empty() && runs.back().reduced == reduced && runs.back().stride == next.stride * next.extent) {
      runs.back() = {runs.back().extent * next.extent, next.stride, reduced};
    } else {
      runs.push_back(next);
    }
  }
  return runs;
}

/// The input as [outer, length, inner]; nothing where it is none.
std::optional<ReduceLaunch> layout_of(const Problem& problem) {
  ReduceLaunch launch;
  std::vector<Run> runs = runs_of(problem);
  if (!runs.empty() && !runs.back().reduced) {
    launch.inner = runs.back().extent;
    if (runs.back().stride != 1) return std::nullopt;
    runs.pop_back();
  }
  if (!runs.empty() && runs.back().reduced) {
    launch.length = runs.back().extent;
    launch.step = runs.back().stride;
    if (launch.inner == 1 && launch.step != 1) return std::nullopt;
    runs.pop_back();
  }
  if (!runs.empty() && !runs.back().reduced) {
    launch.outer = runs.back().extent;
    launch.input_stride = runs.back().stride;
    runs.pop_back();
  }
  return runs.empty() ? std::optional(launch) : std::nullopt;
}

Verdict reduce_layout(const Problem& problem, const DeviceProfile&) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  if (element_count(problem.inputs[0]) == 0 && element_count(problem.outputs[0]) == 0) return Verdict::yes();
  const std::optional<ReduceLaunch> layout = layout_of(problem);
  if (!layout) return Verdict::no("the reduced dims are not next to each other and contiguous");
  if (const Verdict out = is_contiguous("output 0", problem.outputs[0]); !out.supported) return out;
  // A block for each part of an output at most.
  return is_at_most("outputs", layout->outer * layout->inner, most / (layout->length / most_length + 1));
}

Fold fold_of(OpId op) {
  switch (op) {
    case OpId::reduce_mean:
      return Fold::mean;
    case OpId::reduce_max:
      return Fold::max;
    case OpId::reduce_min:
      return Fold::min;
    default:
      return Fold::sum;
  }
}

/// Parts of at least `least` where there would be too few blocks for the device.
void cut(ReduceLaunch& launch, std::int64_t blocks, std::int64_t least, int units) {
  constexpr std::int64_t most_parts = 4096;
  const std::int64_t wanted = std::max((4 * units + blocks - 1) / blocks, launch.length / most_length + 1);
  const std::int64_t parts = std::clamp<std::int64_t>(std::min(wanted, launch.length / least), 1, most_parts);
  // Parts begin on whole vectors.
  launch.part_length = std::max<std::int64_t>(((launch.length + parts - 1) / parts + 63) / 64 * 64, 64);
  launch.parts =
      static_cast<int>(std::max<std::int64_t>((launch.length + launch.part_length - 1) / launch.part_length, 1));
}

/// With `whole`, all rows begin and end on multiples of 16 bytes.
RowTeam reduce_team(DataType dtype, std::int64_t rows, std::int64_t columns, bool whole, const DeviceProfile& profile) {
  TensorSpec spec = make_spec(dtype, {rows, columns});
  if (!whole) spec.alignment = 1;
  return team_for(rows_of(spec, 1), profile, RowUse::reduce);
}

ReduceLaunch launch_of(const Problem& problem, const DeviceProfile& profile) {
  ReduceLaunch launch;
  launch.outer = 0;
  launch = layout_of(problem).value_or(launch);
  const TensorSpec& input = problem.inputs[0];
  const int units = std::max(profile.compute_units, 1);
  const auto wide = static_cast<std::int64_t>(16 / size_of(input.dtype));
  launch.fold = fold_of(problem.op);
  launch.dtype = input.dtype;
  launch.output = problem.outputs[0].dtype;
  launch.divisor = launch.length;
  launch.part_length = launch.length;
  if (launch.outer * launch.inner == 0) return launch;
  if (launch.inner == 1) {
    cut(launch, launch.outer, 16384, units);
    const bool whole = input.alignment >= 16 && launch.length % wide == 0 && launch.input_stride % wide == 0;
    launch.team = reduce_team(input.dtype, launch.outer * launch.parts, std::min(launch.part_length, launch.length),
                              whole, profile);
    launch.last_team = reduce_team(DataType::float32, launch.outer, launch.parts, launch.parts % 4 == 0, profile);
  } else {
    launch.vector =
        input.alignment >= 16 && launch.inner % wide == 0 && launch.step % wide == 0 && launch.input_stride % wide == 0;
    const auto strips = [&](std::int64_t strip) { return (launch.inner + strip - 1) / strip * launch.outer; };
    launch.many_rows = launch.vector && launch.length >= 512 && 2 * strips(many_rows_lanes * wide) >= 3 * units;
    if (!launch.many_rows) cut(launch, strips(32 * (launch.vector ? wide : 1)), 128, units);
  }
  return launch;
}

}  // namespace

Verdict supports_reduce(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, reduce_layout}, problem, profile);
}

std::uint64_t reduce_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const ReduceLaunch launch = launch_of(problem, profile);
  if (launch.parts == 1) return 0;
  return sizeof(float) * static_cast<std::uint64_t>(launch.outer * launch.parts * launch.inner);
}

std::unique_ptr<const Plan> prepare_reduce(const Problem& problem, const PrepareContext& context) {
  const ReduceLaunch launch = launch_of(problem, context.profile);
  return std::make_unique<LaunchPlan<ReduceLaunch>>("reduce", context.device, launch,
                                                    "parts=" + std::to_string(launch.parts));
}

}  // namespace xpuruntime::cuda
