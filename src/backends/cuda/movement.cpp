#include <algorithm>
#include <vector>

#include "backends/cuda/elementwise.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "core/views.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict one_dtype(const Problem& problem, const DeviceProfile&) {
  return has_one_dtype(problem, problem.op == OpId::embedding ? 1 : 0);
}

/// Whether a view's runs along the last dim begin on multiples of `unit`. `operand` is its place in the shape.
bool begins_on(int unit, const View& view, const ElementwiseShape& shape, int operand) {
  bool fits = view.spec.alignment >= unit && bytes_of(view.spec, view.offset) % unit == 0;
  for (int d = 0; d + 1 < shape.rank; ++d) fits &= bytes_of(view.spec, shape.strides[operand][d]) % unit == 0;
  return fits;
}

/// Counts in larger units where runs of neighbours allow it.
void widen(CopyLaunch& launch, const View& from, const View& to) {
  ElementwiseShape& shape = launch.shape;
  const int last = shape.rank - 1, size = launch.unit;
  if (last < 0 || shape.strides[0][last] != 1 || shape.strides[2][last] != 1) return;
  const std::int64_t run = shape.extent[last] * size;
  for (const int unit : unit_sizes) {
    if (unit < size || !begins_on(unit, from, shape, 0) || !begins_on(unit, to, shape, 2)) continue;
    if (last > 0 && run % unit != 0) continue;
    for (int d = 0; d < last; ++d) {
      for (const int operand : {0, 2}) shape.strides[operand][d] = shape.strides[operand][d] * size / unit;
    }
    shape.count = shape.count / shape.extent[last] * (run / unit);
    shape.extent[last] = run / unit;
    launch.unit = unit;
    launch.tail = run % unit;
    return;
  }
}

/// Puts the dim that is dense in the input before the last, which is dense in the output; false where there are no two
/// such dims, or too small ones.
bool order_for_tiles(ElementwiseShape& shape) {
  constexpr std::int64_t least = 16, most_blocks = (std::int64_t{1} << 31) - 1;
  const int last = shape.rank - 1;
  if (last < 1 || shape.strides[2][last] != 1 || shape.strides[0][last] <= 1 || shape.extent[last] < least)
    return false;
  int dense = last - 1;
  while (dense >= 0 && shape.strides[0][dense] != 1) --dense;
  if (dense < 0 || shape.extent[dense] < least) return false;
  if (shape.count / (least * least) > most_blocks) return false;
  std::rotate(shape.extent + dense, shape.extent + dense + 1, shape.extent + last);
  for (auto& strides : shape.strides) std::rotate(strides + dense, strides + dense + 1, strides + last);
  return true;
}

CopyLaunch copy_launch(const View& from, const View& to) {
  CopyLaunch launch;
  launch.shape = joint_shape({&from.spec}, to.spec);
  launch.unit = static_cast<int>(size_of(to.spec.dtype));
  launch.from = bytes_of(from.spec, from.offset);
  launch.to = bytes_of(to.spec, to.offset);
  launch.tiled = order_for_tiles(launch.shape);
  if (!launch.tiled) widen(launch, from, to);
  return launch;
}

/// The input from the back along the dims that flip names.
View flipped_view(const Problem& problem) {
  View view{problem.inputs[0]};
  const std::vector<std::int64_t> dims = problem.attributes.list("dims");
  const auto rank = static_cast<std::int64_t>(view.spec.shape.size());
  for (std::int64_t d = 0; d < rank; ++d) {
    const auto is_named = [&](std::int64_t dim) { return dim == d || dim + rank == d; };
    if (!dims.empty() && std::none_of(dims.begin(), dims.end(), is_named)) continue;
    std::int64_t& stride = view.spec.strides[static_cast<std::size_t>(d)];
    view.offset += (view.spec.shape[static_cast<std::size_t>(d)] - 1) * stride;
    stride = -stride;
  }
  return view;
}

/// A copy for each input.
class CopyPlan final : public Plan {
 public:
  CopyPlan(Device device, std::vector<CopyLaunch> parts) : device_(device.index), parts_(std::move(parts)) {}

  Status run(const RunArguments& arguments) const override {
    const ScopedDevice scope(device_);
    if (scope.error() != cudaSuccess) return to_status(scope.error(), "copy");
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Pointers pointers;
      pointers.inputs[0] = arguments.inputs[i]->as<const std::byte>();
      pointers.output = arguments.outputs[0]->as<std::byte>();
      const cudaError_t error = launch(parts_[i], pointers, native_stream(arguments.stream));
      if (error != cudaSuccess) return to_status(error, "copy");
    }
    return {};
  }

  bool outlives_its_work() const override { return false; }
  bool sets_device() const override { return true; }

 private:
  int device_;
  std::vector<CopyLaunch> parts_;
};

Verdict append_dtypes(const Problem& problem, const DeviceProfile&) {
  for (const std::size_t cache : {0, 1}) {
    const DataType dtype = problem.inputs[cache].dtype;
    const std::string added = "input " + std::to_string(2 + cache), out = "output " + std::to_string(cache);
    Verdict same = is_same_dtype(added, problem.inputs[2 + cache].dtype, "the cache's", dtype);
    if (same.supported) same = is_same_dtype(out, problem.outputs[cache].dtype, "the cache's", dtype);
    if (!same.supported) return same;
  }
  return Verdict::yes();
}

/// How the tokens of input 2 + `index` go into a cache. In larger units than elements where heads are contiguous.
AppendShape::Cache append_to(const Problem& problem, std::size_t index, bool paged) {
  const TensorSpec &added = problem.inputs[2 + index], &cache = problem.outputs[index];
  const Dims &from = added.strides, &to = cache.strides;
  const std::int64_t size = added.shape[3], element = bytes_of(added, 1);
  AppendShape::Cache out{static_cast<int>(element),
                         size,
                         {from[0], from[2], from[1], from[3]},
                         {to[0], to[paged ? 1 : 2], to[paged ? 2 : 1], to[3]}};
  if (size > 1 && (from[3] != 1 || to[3] != 1)) return out;
  const auto fits = [&](int unit) {
    bool whole = std::min(added.alignment, cache.alignment) >= unit && size * element % unit == 0;
    for (int d = 0; d < 3; ++d) whole &= out.from[d] * element % unit == 0 && out.to[d] * element % unit == 0;
    return whole;
  };
  out.unit = *std::find_if(std::begin(unit_sizes), std::end(unit_sizes), fits);
  out.units = size * element / out.unit;
  for (int d = 0; d < 3; ++d) {
    out.from[d] = out.from[d] * element / out.unit;
    out.to[d] = out.to[d] * element / out.unit;
  }
  out.from[3] = out.to[3] = 1;
  return out;
}

Verdict dense_table(const Problem& problem, const DeviceProfile&) {
  if (const Verdict indices = is_contiguous("input 0", problem.inputs[0]); !indices.supported) return indices;
  if (const Verdict out = is_contiguous("output 0", problem.outputs[0]); !out.supported) return out;
  return has_contiguous_rows("input 1", problem.inputs[1]);
}

}  // namespace

Verdict supports_copy(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, one_dtype}, problem, profile);
}

std::unique_ptr<const Plan> prepare_copy(const Problem& problem, const PrepareContext& context) {
  std::vector<CopyLaunch> parts;
  if (problem.op != OpId::concat) {
    const View from = problem.op == OpId::flip ? flipped_view(problem) : source_view(problem);
    parts.push_back(copy_launch(from, {problem.outputs[0]}));
  }
  for (std::size_t i = 0; problem.op == OpId::concat && i < problem.inputs.size(); ++i) {
    parts.push_back(copy_launch({problem.inputs[i]}, concat_target(problem, i)));
  }
  return std::make_unique<CopyPlan>(context.device, std::move(parts));
}

Verdict supports_embedding(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, one_dtype, dense_table}, problem, profile);
}

std::unique_ptr<const Plan> prepare_embedding(const Problem& problem, const PrepareContext& context) {
  const TensorSpec& table = problem.inputs[1];
  const std::int64_t row = bytes_of(table, table.shape[1]);
  const std::int64_t stride = bytes_of(table, table.strides[0]);
  const auto fits = [&](int unit) {
    return row % unit == 0 && stride % unit == 0 && std::min(table.alignment, problem.outputs[0].alignment) >= unit;
  };
  EmbeddingLaunch launch;
  launch.unit = *std::find_if(std::begin(unit_sizes), std::end(unit_sizes), fits);
  launch.count = element_count(problem.inputs[0]);
  launch.rows = table.shape[0];
  launch.units = row / launch.unit;
  launch.stride = stride / launch.unit;
  launch.index = problem.inputs[0].dtype;
  std::unique_ptr<ValueFault> fault = context.driver.make_value_fault(
      context.device.index, to_string(problem) + ": an index is outside the table; give " +
                                (launch.rows == 0 ? "a table with rows" : "0 to " + std::to_string(launch.rows - 1)));
  return std::make_unique<LaunchPlan<EmbeddingLaunch>>("embedding rows", context.device, launch, std::string(),
                                                       std::move(fault));
}

Verdict supports_kv_append(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, append_dtypes}, problem, profile);
}

std::unique_ptr<const Plan> prepare_kv_append(const Problem& problem, const PrepareContext& context) {
  const TensorSpec &key = problem.inputs[2], &lengths = problem.inputs[4];
  const bool paged = problem.inputs.size() > 5;
  AppendLaunch launch;
  AppendShape& shape = launch.shape;
  for (const std::size_t cache : {0, 1}) {
    shape.caches[cache] = append_to(problem, cache, paged);
    launch.copies[cache] = copy_launch({problem.inputs[cache]}, {problem.outputs[cache]});
  }
  shape.sequences = key.shape[0];
  shape.heads = key.shape[1];
  shape.tokens = key.shape[2];
  shape.blocks = problem.inputs[0].shape[0];
  shape.slots = problem.inputs[0].shape[paged ? 1 : 2];
  shape.room = op_info(problem.op).inputs[4].bound(problem);
  shape.paged = paged;
  shape.length = lengths.dtype;
  shape.length_stride = lengths.strides[0];
  std::string message = to_string(problem) + ": the caches have no place for a token; give lengths from 0 to " +
                        std::to_string(shape.room - 1);
  if (paged) {
    const TensorSpec& table = problem.inputs[5];
    shape.page = table.dtype;
    shape.page_strides[0] = table.strides[0];
    shape.page_strides[1] = table.strides[1];
    message += " and pages from 0 to " + std::to_string(shape.blocks - 1);
  }
  return std::make_unique<LaunchPlan<AppendLaunch>>(
      "kv_append copy", context.device, launch, std::string(),
      context.driver.make_value_fault(context.device.index, std::move(message)));
}

}  // namespace xpuruntime::cuda
