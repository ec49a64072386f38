#include <algorithm>
#include <string_view>
#include <vector>

#include "backends/cuda/elementwise.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

std::size_t dim_of(const Problem& problem) {
  const std::int64_t dim = problem.attributes.integer("dim");
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(problem.inputs[0].shape.size()) : dim);
}

/// A tensor walked along the output's dims, by these strides.
TensorSpec along_output(const TensorSpec& spec, const TensorSpec& output, const Dims& strides) {
  TensorSpec out = spec;
  out.shape = output.shape;
  out.strides = strides;
  return out;
}

/// How positions of the output lead to the first input, without what indices add, and to their first index.
struct GatherStrides {
  Dims from = {};
  Dims index = {};
};

GatherStrides gather_strides(const Problem& problem, GatherLaunch& launch) {
  const TensorSpec &from = problem.inputs[0], &indices = problem.inputs[1];
  const std::size_t rank = problem.outputs[0].shape.size(), taken = indices.shape.size();
  GatherStrides out{Dims::filled(rank, 0), Dims::filled(rank, 0)};
  const auto add_column = [&](std::int64_t next, std::size_t dim) {
    launch.next[launch.columns] = next;
    launch.steps[launch.columns] = from.strides[dim];
    launch.extents[launch.columns++] = from.shape[dim];
  };
  launch.columns = 0;
  if (problem.op == OpId::gather_nd) {
    const auto batch = static_cast<std::size_t>(problem.attributes.integer("batch_dims"));
    const std::size_t last = taken - 1, depth = static_cast<std::size_t>(indices.shape[last]);
    for (std::size_t d = 0; d < last; ++d) {
      out.from[d] = d < batch ? from.strides[d] : 0;
      out.index[d] = indices.strides[d];
    }
    for (std::size_t d = last; d < rank; ++d) out.from[d] = from.strides[batch + depth + d - last];
    for (std::size_t i = 0; i < depth; ++i) {
      add_column(static_cast<std::int64_t>(i) * indices.strides[last], batch + i);
    }
    return out;
  }
  const std::size_t dim = dim_of(problem);
  const bool elements = problem.op == OpId::gather_elements;
  for (std::size_t d = 0; d < rank; ++d) {
    if (elements) {
      out.from[d] = d == dim ? 0 : from.strides[d];
      out.index[d] = indices.strides[d];
    } else if (d < dim) {
      out.from[d] = from.strides[d];
    } else if (d < dim + taken) {
      out.index[d] = indices.strides[d - dim];
    } else {
      out.from[d] = from.strides[d + 1 - taken];
    }
  }
  add_column(0, dim);
  return out;
}

/// Counts in larger units where neighbours of one slice allow it.
void widen(GatherLaunch& launch, const Problem& problem) {
  ElementwiseShape& shape = launch.shape;
  const int last = shape.rank - 1;
  if (last < 0 || shape.strides[0][last] != 1 || shape.strides[1][last] != 0 || shape.strides[2][last] != 1) return;
  const int size = launch.unit;
  const auto fits = [&](int unit) {
    const auto is_whole = [&](std::int64_t elements) { return elements * size % unit == 0; };
    return std::min(problem.inputs[0].alignment, problem.outputs[0].alignment) >= unit &&
           is_whole(shape.extent[last]) && std::all_of(shape.strides[0], shape.strides[0] + last, is_whole) &&
           std::all_of(shape.strides[2], shape.strides[2] + last, is_whole) &&
           std::all_of(launch.steps, launch.steps + launch.columns, is_whole);
  };
  for (const int unit : unit_sizes) {
    if (unit <= size) return;
    if (!fits(unit)) continue;
    for (int d = 0; d < last; ++d) {
      for (const int operand : {0, 2}) shape.strides[operand][d] = shape.strides[operand][d] * size / unit;
    }
    for (std::int64_t& step : launch.steps) step = step * size / unit;
    shape.count = shape.count * size / unit;
    shape.extent[last] = shape.extent[last] * size / unit;
    launch.unit = unit;
    return;
  }
}

std::string range_of(std::int64_t extent) {
  return extent == 0 ? "a tensor with elements there" : std::to_string(-extent) + " to " + std::to_string(extent - 1);
}

/// Numbers of all triangles are from -rows to columns: further away is as far as just beyond.
std::int64_t diagonal_of(const Problem& problem) {
  const Dims& shape = problem.outputs[0].shape;
  return std::clamp(problem.attributes.integer("diagonal"), -shape[shape.size() - 2] - 1, shape.back() + 1);
}

/// One dim of pad's output: `dim` has the input's and the output's extent.
void set_padded(const Problem& problem, std::size_t index, ArrangedDim& dim) {
  const std::vector<std::int64_t> pads = problem.attributes.list("pads");
  const std::size_t pair = problem.outputs[0].shape.size() - 1 - index;
  const std::int64_t before = 2 * pair < pads.size() ? pads[2 * pair] : 0;
  if (before == 0 && dim.size == dim.extent) return;
  const std::string_view mode = problem.attributes.choice("mode");
  dim.first = -before;
  dim.source = mode == "constant" ? Source::cut : Source::edge;
  if (mode == "wrap" || mode == "reflect") {
    const bool mirrors = mode == "reflect" && dim.size > 1;
    dim.source = mirrors ? Source::mirror : Source::wrap;
    if (mirrors) dim.size = 2 * (dim.size - 1);
    dim.first = (dim.first % dim.size + dim.size) % dim.size;
  }
}

/// The output's dim with its source.
ArrangedDim arranged_dim(const Problem& problem, std::size_t index) {
  const TensorSpec &input = problem.inputs[0], &output = problem.outputs[0];
  const std::size_t rank = output.shape.size(), missing = rank - input.shape.size();
  ArrangedDim dim;
  dim.extent = output.shape[index];
  dim.to = output.strides[index];
  if (index >= missing) {
    dim.size = input.shape[index - missing];
    dim.from = input.strides[index - missing];
  }
  if (problem.op == OpId::pad) {
    set_padded(problem, index, dim);
  } else if (problem.op == OpId::tile && dim.size == 1) {
    dim.from = 0;
  } else if (problem.op == OpId::tile && dim.size != dim.extent) {
    dim.source = Source::wrap;
  } else if (problem.op == OpId::trilu && index + 2 >= rank) {
    dim.diagonal = index + 1 == rank ? 1 : -1;
  }
  return dim;
}

/// The output's smallest stride last. Dims that stay as they are have become one where both tensors walk them with one
/// stride.
void add_dims(ArrangeLaunch& launch, const Problem& problem) {
  std::vector<ArrangedDim> dims;
  for (std::size_t d = 0; d < problem.outputs[0].shape.size(); ++d) {
    const ArrangedDim dim = arranged_dim(problem, d);
    if (dim.extent != 1 || dim.source != Source::same) dims.push_back(dim);
  }
  std::stable_sort(dims.begin(), dims.end(), [](const ArrangedDim& a, const ArrangedDim& b) { return a.to > b.to; });
  const auto stays = [](const ArrangedDim& dim) { return dim.source == Source::same && dim.diagonal == 0; };
  for (const ArrangedDim& dim : dims) {
    ArrangedDim* const last = launch.rank == 0 ? nullptr : &launch.dims[launch.rank - 1];
    if (last == nullptr || !stays(*last) || !stays(dim) || last->from != dim.from * dim.extent ||
        last->to != dim.to * dim.extent) {
      launch.dims[launch.rank++] = dim;
      continue;
    }
    last->extent *= dim.extent;
    last->from = dim.from;
    last->to = dim.to;
  }
}

/// Counts in larger units where the last dim's neighbours stay together.
void widen(ArrangeLaunch& launch, const Problem& problem) {
  if (launch.rank == 0) return;
  ArrangedDim& last = launch.dims[launch.rank - 1];
  const bool moves_runs = last.source == Source::same || last.source == Source::cut || last.source == Source::wrap;
  if (!moves_runs || last.from != 1 || last.to != 1) return;
  const int size = launch.size;
  const auto fits = [&](int unit) {
    const auto is_whole = [&](std::int64_t elements) { return elements * size % unit == 0; };
    bool whole = std::min(problem.inputs[0].alignment, problem.outputs[0].alignment) >= unit && is_whole(last.extent);
    if (last.source != Source::same) whole = whole && is_whole(last.first) && is_whole(last.size);
    return whole && std::all_of(launch.dims, launch.dims + launch.rank - 1,
                                [&](const ArrangedDim& dim) { return is_whole(dim.from) && is_whole(dim.to); });
  };
  for (const int unit : unit_sizes) {
    if (unit <= size) return;
    if (!fits(unit)) continue;
    for (int d = 0; d + 1 < launch.rank; ++d) {
      launch.dims[d].from = launch.dims[d].from * size / unit;
      launch.dims[d].to = launch.dims[d].to * size / unit;
    }
    launch.neighbours = last.diagonal;
    last.diagonal = last.diagonal * unit / size;
    for (std::int64_t* const elements : {&last.extent, &last.first, &last.size, &launch.count}) {
      *elements = *elements * size / unit;
    }
    launch.unit = unit;
    return;
  }
}

bool has_small_places(const ArrangeLaunch& launch) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  return launch.count < 2 * most && std::all_of(launch.dims, launch.dims + launch.rank, [](const ArrangedDim& dim) {
           return dim.extent < most && dim.size < most && dim.first < most && dim.first > -most;
         });
}

/// How many threads share a line: side by side along it where its elements are neighbours, else beside those of other
/// lines.
void set_threads(ArgLaunch& launch) {
  constexpr std::int64_t busy = 1 << 16;  // threads that keep a device busy
  const int last = launch.lines.rank - 1;
  const std::int64_t beside = last < 0 ? 0 : launch.lines.strides[0][last];
  launch.along_first = beside == 0 || launch.step < beside;
  const int side = launch.along_first               ? 1
                   : launch.lines.extent[last] > 16 ? 32
                                                    : 8,
            least = launch.along_first ? 32 : 1;
  launch.along = 1;
  while (launch.along * side < ArgLaunch::most_threads && launch.along * 4 < launch.length &&
         (launch.along < least || launch.lines.count * launch.along < busy)) {
    launch.along *= 2;
  }
  launch.across = std::max(256, launch.along * side) / launch.along;
}

}  // namespace

Verdict supports_moved(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict able = supports_any(problem, profile); !able.supported) return able;
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", problem.inputs[0].dtype);
}

std::unique_ptr<const Plan> prepare_gather(const Problem& problem, const PrepareContext& context) {
  const TensorSpec& output = problem.outputs[0];
  GatherLaunch launch;
  const GatherStrides strides = gather_strides(problem, launch);
  const TensorSpec from = along_output(problem.inputs[0], output, strides.from);
  const TensorSpec index = along_output(problem.inputs[1], output, strides.index);
  launch.shape = joint_shape({&from, &index}, output);
  launch.index = problem.inputs[1].dtype;
  launch.unit = static_cast<int>(size_of(output.dtype));
  std::string ranges;
  for (int i = 0; i < launch.columns; ++i) ranges += (i == 0 ? "" : ", ") + range_of(launch.extents[i]);
  widen(launch, problem);
  return std::make_unique<LaunchPlan<GatherLaunch>>(
      "gather rows", context.device, launch, std::string(),
      context.driver.make_value_fault(context.device.index,
                                      to_string(problem) + ": an index is outside its dim; give " + ranges));
}

std::unique_ptr<const Plan> prepare_arranged(const Problem& problem, const PrepareContext& context) {
  ArrangeLaunch launch;
  launch.dtype = problem.outputs[0].dtype;
  launch.size = launch.unit = static_cast<int>(size_of(launch.dtype));
  launch.count = element_count(problem.outputs[0]);
  launch.has_value = problem.inputs.size() > 1;
  if (launch.has_value) launch.value = problem.inputs[1].dtype;
  if (problem.op == OpId::trilu) {
    launch.triangle = problem.attributes.boolean("upper") ? 1 : -1;
    launch.diagonal = diagonal_of(problem);
  }
  if (launch.count > 0) {
    add_dims(launch, problem);
    widen(launch, problem);
    launch.small = has_small_places(launch);
  }
  return std::make_unique<LaunchPlan<ArrangeLaunch>>("copy", context.device, launch);
}

std::unique_ptr<const Plan> prepare_arg(const Problem& problem, const PrepareContext& context) {
  const TensorSpec& input = problem.inputs[0];
  TensorSpec lines = input, output = problem.outputs[0];
  ArgLaunch launch;
  if (!input.shape.empty()) {
    const std::size_t dim = dim_of(problem);
    launch.length = input.shape[dim];
    launch.step = input.strides[dim];
    std::vector<std::int64_t> shape, from, to;
    for (std::size_t d = 0; d < input.shape.size(); ++d) {
      if (d == dim) continue;
      const std::size_t kept = d < dim || problem.attributes.boolean("keepdim") ? d : d - 1;
      shape.push_back(input.shape[d]);
      from.push_back(input.strides[d]);
      to.push_back(output.strides[kept]);
    }
    lines.shape = output.shape = Dims(std::span(shape));
    lines.strides = Dims(std::span(from));
    output.strides = Dims(std::span(to));
  }
  launch.lines = joint_shape({&lines}, output);
  launch.dtype = input.dtype;
  launch.output = output.dtype;
  launch.largest = problem.op == OpId::arg_max;
  launch.last = problem.attributes.boolean("select_last_index");
  set_threads(launch);
  return std::make_unique<LaunchPlan<ArgLaunch>>("reduce", context.device, launch);
}

}  // namespace xpuruntime::cuda
