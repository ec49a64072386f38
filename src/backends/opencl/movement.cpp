#include <algorithm>
#include <optional>
#include <string>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"
#include "core/views.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::int64_t tile_items = 256;   // TILE_ITEMS in movement.cl
constexpr std::int64_t least_turned = 16;  // extents below it are not worth a tile
constexpr std::int64_t unit_sizes[] = {16, 8, 4, 2, 1};

/// The same struct stands in kernels/movement.cl.
struct Tiles {
  Index outer = {};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t a_step = 0;
  std::int64_t c_step = 0;
};

/// The same struct stands in kernels/movement.cl.
struct Append {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t units = 0;
  std::int64_t from[4] = {};
  std::int64_t to[4] = {};
  std::int64_t blocks = 0;
  std::int64_t slots = 0;
  std::int64_t room = 0;
  std::int64_t paged = 0;
  std::int64_t length_stride = 0;
  std::int64_t page_strides[2] = {};
};

/// A copy in units of bytes: extents, strides and offsets count them.
struct Copy {
  std::int64_t unit = 1;
  Rows rows = {};
  std::int64_t from = 0;
  std::int64_t to = 0;
};

std::int64_t bytes_of(const TensorSpec& spec) { return static_cast<std::int64_t>(size_of(spec.dtype)); }

/// The largest unit that `fits`, from `least` bytes on.
template <class Fits>
std::int64_t widest_unit(std::int64_t least, const Fits& fits) {
  return *std::find_if(std::begin(unit_sizes), std::end(unit_sizes),
                       [&](std::int64_t unit) { return unit <= least || fits(unit); });
}

/// Counts in larger units where rows are runs of neighbours.
void widen(Copy& copy, std::int64_t alignment) {
  Rows& rows = copy.rows;
  if (rows.step[0] != 1 || rows.step[2] != 1) return;
  const std::int64_t size = copy.unit;
  copy.unit = widest_unit(size, [&](std::int64_t unit) {
    bool whole = alignment >= unit && rows.length * size % unit == 0 && copy.from * size % unit == 0 &&
                 copy.to * size % unit == 0;
    for (const auto& strides : rows.index.stride)
      for (const std::int64_t stride : strides) whole = whole && stride * size % unit == 0;
    return whole;
  });
  const auto count = [&](std::int64_t& units) { units = units * size / copy.unit; };
  count(rows.length);
  count(copy.from);
  count(copy.to);
  for (auto& strides : rows.index.stride)
    for (std::int64_t& stride : strides) count(stride);
}

Dims in_units(const Dims& dims, std::int64_t ratio, std::int64_t innermost, bool scaled) {
  Dims out = Dims::filled(dims.size() + 1, innermost);
  for (std::size_t d = 0; d < dims.size(); ++d) out[d] = scaled ? dims[d] * ratio : dims[d];
  return out;
}

/// In units below an element where one of the tensors is not aligned to its elements.
Copy copy_of(const View& from, const View& to) {
  const std::int64_t size = bytes_of(to.spec), alignment = std::min(from.spec.alignment, to.spec.alignment);
  Copy copy{std::min(size, alignment)};
  const std::int64_t ratio = size / copy.unit;
  copy.from = from.offset * ratio;
  copy.to = to.offset * ratio;
  Dims shape = to.spec.shape, a = from.spec.strides, c = to.spec.strides;
  if (ratio > 1) {
    shape = in_units(shape, ratio, ratio, false);
    a = in_units(a, ratio, 1, true);
    c = in_units(c, ratio, 1, true);
  }
  copy.rows = make_rows(shape, a, a, c);
  widen(copy, alignment);
  return copy;
}

/// The dim whose elements are neighbours in the input, where the rows' are in the output alone.
std::optional<std::size_t> turned_dim(const Copy& copy) {
  const Rows& rows = copy.rows;
  if (rows.step[2] != 1 || rows.step[0] <= 1 || rows.length < least_turned) return std::nullopt;
  for (std::size_t d = 0; d < static_cast<std::size_t>(rows.index.rank); ++d) {
    if (rows.index.stride[0][d] == 1 && rows.index.extent[d] >= least_turned) return d;
  }
  return std::nullopt;
}

Tiles tiles_of(const Rows& rows, std::size_t turned) {
  Tiles tiles{rows.index, rows.index.extent[turned], rows.length, rows.step[0], rows.index.stride[2][turned]};
  tiles.outer.count /= tiles.rows;
  tiles.outer.extent[turned] = 1;
  for (auto& strides : tiles.outer.stride) strides[turned] = 0;
  return tiles;
}

/// How rows are cut for work-items. On a CPU each takes what fills a page; a GPU wants many.
std::int64_t chunk_for(std::int64_t unit, const DeviceProfile& profile) {
  if (is_cpu(profile)) return 4096 / unit;
  return unit == 16 ? 1 : 4;
}

std::string function_of(const char* name, std::int64_t unit) { return std::string(name) + "_" + std::to_string(unit); }

/// Named `input` and `output`, as numbers of the plan's tensors.
Launch& add_copy(LaunchPlan& plan, const PrepareContext& context, const Copy& copy, std::size_t input,
                 std::size_t output) {
  const auto unit = static_cast<std::size_t>(copy.unit);
  const bool cpu = is_cpu(context.profile);
  const std::optional<std::size_t> turned = turned_dim(copy);
  if (turned && (cpu || largest_group(context.profile) >= tile_items)) {
    const Tiles tiles = tiles_of(copy.rows, *turned);
    const std::int64_t side = cpu || copy.unit > 2 ? 32 : 64;  // of a tile, as in movement.cl
    const std::int64_t count = tiles.outer.count * divided_up(tiles.rows, side) * divided_up(tiles.columns, side);
    const std::string function = function_of("turn", copy.unit);
    return plan
        .add({.source = movement_cl,
              .function = function.c_str(),
              .options = cpu_option(context.profile),
              .items = cpu ? count : count * tile_items,
              .local = cpu ? std::size_t{0} : tile_items})
        .input(input, unit)
        .output(output, unit)
        .constant(tiles)
        .constant(copy.from)
        .constant(copy.to);
  }
  const std::int64_t chunk = chunk_for(copy.unit, context.profile), chunks = divided_up(copy.rows.length, chunk);
  const std::string function = function_of("copy", copy.unit);
  return plan
      .add({.source = movement_cl,
            .function = function.c_str(),
            .options = cpu_option(context.profile),
            .items = copy.rows.index.count * chunks})
      .input(input, unit)
      .output(output, unit)
      .constant(copy.rows)
      .constant(copy.from)
      .constant(copy.to)
      .constant(chunk)
      .constant(chunks);
}

Verdict one_dtype(const Problem& problem, const DeviceProfile&) {
  return has_one_dtype(problem, problem.op == OpId::embedding ? 1 : 0);
}

/// Units below an element take a dim more.
Verdict has_room_for_units(const Problem& problem, const DeviceProfile&) {
  return problem.outputs[0].shape.size() < max_rank ? Verdict::yes() : is_aligned(problem);
}

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

/// How the tokens of input 2 + `cache` go into output `cache`, and the bytes of a unit.
Append append_of(const Problem& problem, std::size_t cache, std::int64_t& unit) {
  const TensorSpec &added = problem.inputs[2 + cache], &out = problem.outputs[cache];
  const Dims &from = added.strides, &to = out.strides;
  const bool paged = problem.inputs.size() > 5;
  const std::int64_t size = bytes_of(added);
  Append append{added.shape[0],
                added.shape[2],
                added.shape[1],
                added.shape[3],
                {from[0], from[2], from[1], from[3]},
                {to[0], to[paged ? 1 : 2], to[paged ? 2 : 1], to[3]},
                out.shape[0],
                out.shape[paged ? 1 : 2],
                op_info(problem.op).inputs[4].bound(problem),
                paged,
                problem.inputs[4].strides[0]};
  if (paged) std::copy_n(problem.inputs[5].strides.begin(), 2, append.page_strides);
  unit = size;
  if (append.units > 1 && (from[3] != 1 || to[3] != 1)) return append;
  unit = widest_unit(size, [&](std::int64_t wide) {
    bool whole = std::min(added.alignment, out.alignment) >= wide && append.units * size % wide == 0;
    for (int d = 0; d < 3; ++d) whole = whole && append.from[d] * size % wide == 0 && append.to[d] * size % wide == 0;
    return whole;
  });
  append.units = append.units * size / unit;
  for (int d = 0; d < 3; ++d) {
    append.from[d] = append.from[d] * size / unit;
    append.to[d] = append.to[d] * size / unit;
  }
  append.from[3] = append.to[3] = 1;
  return append;
}

std::string range_text(std::int64_t count) { return "0 to " + std::to_string(count - 1); }

void fill_copy(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  if (problem.op != OpId::concat) add_copy(plan, context, copy_of(source_view(problem), {problem.outputs[0]}), 0, 0);
  for (std::size_t i = 0; problem.op == OpId::concat && i < problem.inputs.size(); ++i)
    add_copy(plan, context, copy_of({problem.inputs[i]}, concat_target(problem, i)), i, 0);
}

void fill_embedding(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const TensorSpec &indices = problem.inputs[0], &table = problem.inputs[1], &out = problem.outputs[0];
  const Dims lines(std::span(out.strides.begin(), indices.shape.size()));
  const std::int64_t table_rows = table.shape[0], step = table.strides[1], size = bytes_of(table);
  std::int64_t table_stride = table.strides[0], unit = size;
  Rows rows{make_index(indices.shape, indices.strides, indices.strides, lines).index,
            table.shape[1],
            {0, step, out.strides.back()}};
  if (step == 1 && rows.step[2] == 1) {
    auto& strides = rows.index.stride[2];
    unit = widest_unit(size, [&](std::int64_t wide) {
      bool whole = std::min(table.alignment, out.alignment) >= wide && rows.length * size % wide == 0 &&
                   table_stride * size % wide == 0;
      for (const std::int64_t stride : strides) whole = whole && stride * size % wide == 0;
      return whole;
    });
    rows.length = rows.length * size / unit;
    table_stride = table_stride * size / unit;
    for (std::int64_t& stride : strides) stride = stride * size / unit;
  }
  const std::int64_t chunk = chunk_for(unit, context.profile), chunks = divided_up(rows.length, chunk);
  const std::string function = function_of("look_up", unit);
  const auto fault = plan.fault(context, "embedding: an index is outside the table; give " +
                                             (table_rows == 0 ? "a table with rows" : range_text(table_rows)));
  plan.add({.source = movement_cl,
            .function = function.c_str(),
            .options = cpu_option(context.profile),
            .items = rows.index.count * chunks})
      .input(0)
      .constant(type_number(indices.dtype))
      .input(1, static_cast<std::size_t>(unit))
      .output(0, static_cast<std::size_t>(unit))
      .fault(fault)
      .constant(rows)
      .constant(table_rows)
      .constant(table_stride)
      .constant(chunk)
      .constant(chunks);
}

}  // namespace

Verdict supports_copy(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({one_dtype, has_room_for_units}, problem, profile);
}

std::unique_ptr<const Plan> prepare_copy(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_copy);
}

Verdict supports_embedding(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({one_dtype}, problem, profile);
}

std::unique_ptr<const Plan> prepare_embedding(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_embedding);
}

Verdict supports_kv_append(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({append_dtypes}, problem, profile);
}

std::unique_ptr<const Plan> prepare_kv_append(const Problem& problem, const PrepareContext& context) {
  const bool paged = problem.inputs.size() > 5;
  const std::size_t pages = paged ? 5 : 4;
  auto plan = std::make_unique<LaunchPlan>(context_of(context));
  for (const std::size_t cache : {0, 1}) {
    add_copy(*plan, context, copy_of({problem.inputs[cache]}, {problem.outputs[cache]}), cache, cache)
        .unless_in_place(cache);
    std::int64_t unit = 1;
    const Append append = append_of(problem, cache, unit);
    const std::int64_t chunk = chunk_for(unit, context.profile), chunks = divided_up(append.units, chunk);
    std::string message =
        to_string(problem) + ": the caches have no place for a token; give lengths from " + range_text(append.room);
    if (paged) message += " and pages from " + range_text(append.blocks);
    const std::string function = function_of("append", unit);
    const auto fault = plan->fault(context, message);
    plan->add({.source = movement_cl,
               .function = function.c_str(),
               .options = cpu_option(context.profile),
               .items = append.sequences * append.tokens * append.heads * chunks})
        .input(2 + cache, static_cast<std::size_t>(unit))
        .output(cache, static_cast<std::size_t>(unit))
        .input(4)
        .constant(type_number(problem.inputs[4].dtype))
        .input(pages)
        .constant(type_number(problem.inputs[pages].dtype))
        .fault(fault)
        .constant(append)
        .constant(chunk)
        .constant(chunks);
  }
  return plan;
}

}  // namespace xpuruntime::opencl
