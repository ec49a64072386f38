#include "backends/opencl/reduce.h"

#include <algorithm>
#include <vector>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/lines.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t fold_x = 0, fold_y = 2;  // of the nests

/// How a fold is shared out.
struct FoldCut {
  std::int64_t parts = 1;
  std::int64_t part_length = 1;
  int width = 1;
  int lanes = 1;
  std::size_t group = 1;
  bool aligned = false;
};

bool folds_integers(const Fold& fold) { return !is_floating(fold.x.dtype); }
std::uint64_t folded_bytes(const Fold& fold) { return folds_integers(fold) ? sizeof(std::int64_t) : sizeof(float); }

std::int64_t fold_tasks(const Fold& fold, int width) {
  if (!fold.columns || fold.kept.count == 0) return fold.kept.count;
  const std::int64_t block = width == 1 ? 1 : 1024;  // BLOCK in reduce.cl
  return fold.kept.count / fold.kept.last_extent() * divided_up(fold.kept.last_extent(), block);
}

/// Whether every vector of a row starts at a multiple of 16 bytes, wherever a part begins.
bool has_aligned_rows(const Fold& fold, int width) {
  if (fold.columns || fold.x.where != FoldOperand::Where::input || fold.reduced.last_stride(fold_x) != 1) return false;
  const auto whole = [&](std::int64_t stride) { return stride % width == 0; };
  return whole(fold.reduced.last_extent()) &&
         std::all_of(fold.kept.stride[fold_x], fold.kept.stride[fold_x] + fold.kept.rank, whole) &&
         std::all_of(fold.reduced.stride[fold_x] + 1, fold.reduced.stride[fold_x] + fold.reduced.rank, whole);
}

FoldCut fold_cut(const Fold& fold, const DeviceProfile& profile) {
  constexpr std::int64_t unit = 64;  // parts begin on whole vectors
  const bool cpu = is_cpu(profile);
  const std::int64_t units = std::max(profile.compute_units, 1);
  FoldCut cut;
  if (cpu && !folds_integers(fold)) cut.width = 16;
  const auto wide = static_cast<int>(16 / size_of(fold.x.dtype));
  if (!cpu && !folds_integers(fold) && fold.aligned && has_aligned_rows(fold, wide)) {
    cut.aligned = true;
    cut.width = wide;
  }
  const std::int64_t length = fold.reduced.count;
  const std::int64_t tasks = std::max<std::int64_t>(fold_tasks(fold, cut.width), 1);
  // A CPU's items are as many as keep its cores busy; those of a GPU's rows are teams, those of its columns items.
  const std::int64_t wanted = cpu ? 4 * units : fold.columns ? 1024 * units : 8 * units;
  const std::int64_t least = cpu ? (fold.columns ? 64 : 16384) : fold.columns ? 64 : 4096;
  const std::int64_t busy = std::clamp<std::int64_t>(std::min(divided_up(wanted, tasks), length / least), 1, 4096);
  // A float that is added to thousands of times loses digits.
  const std::int64_t added_up = 4096, most = fold.columns ? added_up : added_up * (cpu ? 16 : 256);
  const std::int64_t parts = folds_integers(fold) ? busy : std::max(busy, divided_up(length, most));
  cut.part_length = parts == 1 ? std::max<std::int64_t>(length, 1) : divided_up(divided_up(length, parts), unit) * unit;
  cut.parts = std::max<std::int64_t>(divided_up(length, cut.part_length), 1);
  if (cpu) return cut;
  cut.group = static_cast<std::size_t>(allowed_items(fold.columns ? 256 : 128, profile));
  if (!fold.columns) {
    cut.lanes = std::min(2, static_cast<int>(cut.group));
    while (cut.lanes < static_cast<int>(cut.group) && cut.lanes * 16 * cut.width < cut.part_length) cut.lanes *= 2;
  }
  return cut;
}

void bind_fold(Launch& launch, const FoldOperand& operand, std::uint64_t bytes) {
  switch (operand.where) {
    case FoldOperand::Where::input:
      launch.input(operand.index);
      break;
    case FoldOperand::Where::output:
      launch.output(operand.index);
      break;
    case FoldOperand::Where::workspace:
      launch.workspace(operand.index, bytes);
  }
  launch.constant(type_number(operand.dtype));
}

/// Strides of what is left of the parts: [kept, parts], with columns the last kept dim after them.
void lay_out_parts(const Fold& fold, const FoldCut& cut, std::int64_t (&strides)[max_rank]) {
  std::int64_t stride = fold.columns ? 1 : cut.parts;
  for (std::int64_t d = 0; d < fold.kept.rank; ++d) {
    strides[d] = stride;
    stride *= fold.kept.extent[d];
    if (fold.columns && d == 0) stride *= cut.parts;
  }
}

std::int64_t fold_part_step(const Fold& fold) { return fold.columns ? fold.kept.last_extent() : 1; }

FoldOperand fold_parts_at(const Fold& fold, std::uint64_t offset) {
  return {FoldOperand::Where::workspace, offset, folds_integers(fold) ? DataType::int64 : DataType::float32};
}

void add_fold_launch(LaunchPlan& plan, const Fold& fold, const FoldCut& cut) {
  static const std::string source = std::string(vectors_cl) + reduce_cl;
  std::string options = width_option(cut.width, cut.aligned) + dims_option({&fold.kept, &fold.reduced});
  options += folds_integers(fold) ? " -D INTEGER" : type_option('A', fold.x.dtype);
  if (fold.highest) options += " -D HIGHEST";
  if (cut.lanes == 1) options += " -D ALONE";
  Launch& launch = plan.add({.source = source,
                             .function = fold.columns ? "fold_columns" : "fold_rows",
                             .options = options,
                             .items = fold_tasks(fold, cut.width) * cut.parts * cut.lanes,
                             .local = cut.group});
  bind_fold(launch, fold.x, folded_bytes(fold));
  bind_fold(launch, fold.y, folded_bytes(fold));
  if (fold.centre)
    launch.workspace(*fold.centre);
  else
    launch.output(0);  // not looked at
  const int flip = fold.highest ? (fold.negated ? (folds_integers(fold) ? -1 : INT32_MIN) : 0) : int{fold.squares};
  launch.constant(int{fold.centre.has_value()})
      .constant(flip)
      .constant(fold.repeats)
      .constant(static_cast<float>(fold.divisor))
      .constant(fold.kept)
      .constant(fold.reduced)
      .constant(cut.parts)
      .constant(cut.part_length)
      .constant(cut.parts == 1 ? std::int64_t{0} : fold_part_step(fold));
  if (cut.lanes > 1) launch.constant(cut.lanes).local(2 * folded_bytes(fold) * cut.group);
}

/// What the second launch reduces.
Fold fold_of_parts(const Fold& fold, const FoldCut& cut, std::uint64_t offset) {
  Fold second = fold;
  second.x = fold_parts_at(fold, offset);
  second.aligned = false;
  second.squares = false;
  second.centre = {};
  lay_out_parts(fold, cut, second.kept.stride[fold_x]);
  second.reduced = {.count = cut.parts, .extent = {cut.parts}};
  second.reduced.stride[fold_x][0] = fold_part_step(fold);
  return second;
}

struct SortedDim {
  std::int64_t extent, x, centre, y;
};

Nest sorted_nest(const std::vector<SortedDim>& dims) {
  Dims extents = Dims::filled(dims.size(), 1), x = extents, centre = extents, y = extents;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    extents[d] = dims[d].extent;
    x[d] = dims[d].x;
    centre[d] = dims[d].centre;
    y[d] = dims[d].y;
  }
  return make_nest(extents, {x, centre, y});
}

unsigned reduced_dims(const Problem& problem) {
  const std::size_t rank = problem.inputs[0].shape.size();
  const std::vector<std::int64_t> dims = problem.attributes.list("dim");
  unsigned reduced = dims.empty() ? (1U << rank) - 1 : 0;
  for (const std::int64_t dim : dims) reduced |= dim_bit(dim, rank);
  return reduced;
}

/// The output's strides, with a 0 for each dim that is reduced.
Dims kept_strides(const Problem& problem) {
  const std::size_t rank = problem.inputs[0].shape.size();
  const unsigned reduced = reduced_dims(problem);
  const bool keep = problem.attributes.boolean("keepdim");
  Dims strides = Dims::filled(rank, 0);
  for (std::size_t d = 0, o = 0; d < rank; ++d) {
    const bool gone = (reduced >> d & 1) != 0;
    if (!gone) strides[d] = problem.outputs[0].strides[o];
    if (!gone || keep) ++o;
  }
  return strides;
}

Fold problem_fold(const Problem& problem) {
  const TensorSpec& x = problem.inputs[0];
  Fold fold = fold_of(x, reduced_dims(problem), {}, kept_strides(problem));
  fold.x = {FoldOperand::Where::input, 0, x.dtype};
  fold.y = {FoldOperand::Where::output, 0, problem.outputs[0].dtype};
  fold.aligned = x.alignment >= 16;
  fold.negated = problem.op == OpId::reduce_min;
  fold.highest = fold.negated || problem.op == OpId::reduce_max;
  if (fold.highest) fold.repeats = 1;
  if (problem.op == OpId::reduce_mean) fold.divisor = static_cast<double>(fold.reduced.count * fold.repeats);
  return fold;
}

}  // namespace

Fold fold_of(const TensorSpec& x, unsigned reduced, const Dims& centre, const Dims& y) {
  Fold fold;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    const bool repeated = (reduced >> d & 1) != 0 && x.strides[d] == 0;
    if (repeated && x.shape[d] != 0)
      fold.repeats *= x.shape[d];
    else if (x.shape[d] != 1)
      order.push_back(d);
  }
  // The order of a sum's terms is ours to choose. What is read again and again comes first.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return x.strides[b] != 0 && (x.strides[a] == 0 || x.strides[a] > x.strides[b]);
  });
  std::vector<SortedDim> kept, gone;
  for (const std::size_t d : order) {
    ((reduced >> d & 1) != 0 ? gone : kept)
        .push_back({x.shape[d], x.strides[d], centre.empty() ? 0 : centre[d], y.empty() ? 0 : y[d]});
  }
  fold.kept = sorted_nest(kept);
  fold.reduced = sorted_nest(gone);
  fold.columns = !order.empty() && (reduced >> order.back() & 1) == 0;
  return fold;
}

std::uint64_t fold_bytes(const Fold& fold, const DeviceProfile& profile) {
  const FoldCut cut = fold_cut(fold, profile);
  return cut.parts == 1 ? 0 : static_cast<std::uint64_t>(fold.kept.count * cut.parts) * folded_bytes(fold);
}

void add_fold(LaunchPlan& plan, const Fold& fold, const DeviceProfile& profile, std::uint64_t offset) {
  const FoldCut cut = fold_cut(fold, profile);
  if (cut.parts == 1) return add_fold_launch(plan, fold, cut);
  Fold first = fold;
  first.y = fold_parts_at(fold, offset);
  first.repeats = 1;
  first.divisor = 1;
  lay_out_parts(fold, cut, first.kept.stride[fold_y]);
  add_fold_launch(plan, first, cut);
  const Fold second = fold_of_parts(fold, cut, offset);
  FoldCut whole = fold_cut(second, profile);
  whole.parts = 1;
  whole.part_length = std::max<std::int64_t>(second.reduced.count, 1);
  add_fold_launch(plan, second, whole);
}

void add_column_sum(LaunchPlan& plan, const DeviceProfile& profile, std::uint64_t offset, std::int64_t rows,
                    std::int64_t columns, const Problem& problem, std::size_t output) {
  const TensorSpec& y = problem.outputs[output];
  // The output's dims are the columns; x has them one after the other.
  Fold fold;
  fold.x = {FoldOperand::Where::workspace, offset, DataType::float32};
  fold.y = {FoldOperand::Where::output, output, y.dtype};
  fold.kept = make_nest(y.shape, {contiguous_strides(y.shape), {}, y.strides});
  fold.reduced = {.count = rows, .extent = {rows}};
  fold.reduced.stride[fold_x][0] = columns;
  fold.columns = true;
  FoldCut cut = fold_cut(fold, profile);
  cut.parts = 1;
  cut.part_length = std::max<std::int64_t>(rows, 1);
  add_fold_launch(plan, fold, cut);
}

Verdict supports_reduce(const Problem& problem, const DeviceProfile&) {
  const DataType x = problem.inputs[0].dtype, y = problem.outputs[0].dtype;
  if (is_floating(x) == is_floating(y)) return Verdict::yes();
  return refuse_dtype("output 0", y, is_floating(x) ? to_string(fast_floats) : "integers");
}

std::uint64_t reduce_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return fold_bytes(problem_fold(problem), profile);
}

std::unique_ptr<const Plan> prepare_reduce(const Problem& problem, const PrepareContext& context) {
  const Fold fold = problem_fold(problem);
  const FoldCut cut = fold_cut(fold, context.profile);
  auto plan = std::make_unique<LaunchPlan>(
      context_of(context), (fold.columns ? "columns parts=" : "rows parts=") + std::to_string(cut.parts),
      fold_bytes(fold, context.profile));
  add_fold(*plan, fold, context.profile, 0);
  return plan;
}

}  // namespace xpuruntime::opencl
