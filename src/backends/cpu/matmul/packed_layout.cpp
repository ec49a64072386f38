#include "backends/cpu/matmul/packed_layout.h"

#include <algorithm>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
namespace {

// Lanes are cut between panels, rows anywhere.
constexpr std::int64_t lane_unit = 32;
constexpr std::int64_t vector_unit = 16;
// f32 multiplications a thread does in a microsecond, roughly; only tells small work from large.
constexpr double multiplications_per_microsecond = 4e4;

/// Begin of part i of `parts`, on a multiple of `unit`.
std::int64_t cut(std::int64_t count, std::int64_t unit, std::int64_t parts, std::int64_t i) {
  return std::min(count, ceil_divide(count, unit) * i / parts * unit);
}

/// Cycles that a task takes, roughly; copies that transpose cost three times the others.
double cost(const TileTask& task) {
  const double rows = static_cast<double>(task.row_count), k = static_cast<double>(task.k);
  const double lanes = static_cast<double>(ceil_divide(task.lane_count, vector_unit) * vector_unit);
  const double lane_copy = lanes * k * (task.lanes.outer == 1 ? 0.1 : 0.3);
  const double row_copy = rows * k * (task.rows.inner == 1 ? 0.08 : 0.3);
  const double out = rows * lanes * (task.out_lane == 1 ? 0.1 : 1.5);
  return rows * lanes * k / 32 + lane_copy + row_copy + out;
}

/// The cut into at least `tasks` parts whose largest is cheapest.
void choose_cut(PackedLayout& layout, std::int64_t tasks) {
  const TileTask whole = layout.task;
  double best = 0;
  for (std::int64_t lane_tasks = 1; lane_tasks <= tasks; ++lane_tasks) {
    const std::int64_t row_tasks = ceil_divide(tasks, lane_tasks);
    TileTask part = whole;
    part.lane_count =
        std::min(whole.lane_count, ceil_divide(ceil_divide(whole.lane_count, lane_unit), lane_tasks) * lane_unit);
    part.row_count = ceil_divide(whole.row_count, row_tasks);
    const double now = cost(part);
    if (lane_tasks > 1 && now >= best) continue;
    best = now;
    layout.lane_tasks = lane_tasks;
    layout.row_tasks = row_tasks;
    layout.task = part;
  }
}

// One tile of rows uses each lane once: no copy then, unless the rows of lanes lie so far apart that fetching ahead
// does not see them coming.
bool worth_packing(const TileTask& task) {
  return task.lanes.dtype != DataType::float32 || task.lanes.outer != 1 || task.row_count > most_tile_rows ||
         task.lanes.inner > 1024;
}

class PackedRun {
 public:
  PackedRun(const PackedLayout& layout, const RunArguments& arguments)
      : layout_(layout),
        arguments_(arguments),
        buffers_(static_cast<float*>(arguments.workspace) + layout.bias_floats),
        bias_(ready_bias(layout, arguments)) {}

  void slot(std::int64_t slot) const {
    const std::int64_t each = layout_.row_tasks * layout_.lane_tasks;
    const std::int64_t tasks = each * layout_.product.shape.batch_count;
    for (std::int64_t i = tasks * slot / layout_.slots; i < tasks * (slot + 1) / layout_.slots; ++i) {
      layout_.run(task(i / each, i % each, buffers_ + slot * layout_.slot_floats));
    }
  }

 private:
  static const std::byte* at(const TileOperand& operand, std::int64_t offset) {
    return static_cast<const std::byte*>(operand.data) + offset * static_cast<std::int64_t>(size_of(operand.dtype));
  }

  TileTask task(std::int64_t batch, std::int64_t part, float* buffer) const {
    const bool columns = layout_.lanes_are_columns;
    const MatmulShape& shape = layout_.product.shape;
    const std::int64_t rows = columns ? shape.m : shape.n, lanes = columns ? shape.n : shape.m;
    const std::int64_t i = part % layout_.row_tasks, j = part / layout_.row_tasks;
    const std::int64_t row = cut(rows, 1, layout_.row_tasks, i), lane = cut(lanes, lane_unit, layout_.lane_tasks, j);
    TileTask task = layout_.task;
    task.row_count = cut(rows, 1, layout_.row_tasks, i + 1) - row;
    task.lane_count = cut(lanes, lane_unit, layout_.lane_tasks, j + 1) - lane;
    task.rows.data = arguments_.inputs[columns ? 0 : 1]->as<const std::byte>();
    task.lanes.data = arguments_.inputs[columns ? 1 : 0]->as<const std::byte>();
    task.rows.data = at(task.rows, batch_offset(shape, columns ? shape.a : shape.b, batch) + row * task.rows.outer);
    task.lanes.data = at(task.lanes, batch_offset(shape, columns ? shape.b : shape.a, batch) + lane * task.lanes.outer);
    task.out = arguments_.outputs[0]->as<std::byte>() +
               (batch_offset(shape, shape.c, batch) + row * task.out_row + lane * task.out_lane) *
                   static_cast<std::int64_t>(size_of(task.out_dtype));
    if (bias_ != nullptr) (columns ? task.lane_bias : task.row_bias) = bias_ + (columns ? lane : row);
    task.buffer = buffer;
    return task;
  }

  const PackedLayout& layout_;
  const RunArguments& arguments_;
  float* buffers_;
  const float* bias_;
};

}  // namespace

TileTask oriented_task(const Product& product, bool lanes_are_columns) {
  const MatmulShape& shape = product.shape;
  const TileOperand a{nullptr, product.a, shape.a.row, shape.a.column};
  const TileOperand b{nullptr, product.b, shape.b.column, shape.b.row};
  TileTask task;
  task.k = shape.k;
  task.row_count = lanes_are_columns ? shape.m : shape.n;
  task.lane_count = lanes_are_columns ? shape.n : shape.m;
  task.rows = lanes_are_columns ? a : b;
  task.lanes = lanes_are_columns ? b : a;
  task.out_dtype = product.out;
  task.out_row = lanes_are_columns ? shape.c.row : shape.c.column;
  task.out_lane = lanes_are_columns ? shape.c.column : shape.c.row;
  task.activation = product.activation;
  return task;
}

PackedLayout cut_layout(const Product& product, bool lanes_are_columns, double per_microsecond) {
  PackedLayout layout;
  layout.product = product;
  layout.lanes_are_columns = lanes_are_columns;
  layout.task = oriented_task(product, lanes_are_columns);
  const int threads = useful_threads(product.threads, product.multiplications(), per_microsecond);
  const std::int64_t batch = std::max<std::int64_t>(product.shape.batch_count, 1);
  choose_cut(layout, ceil_divide(threads, batch));
  layout.slots = std::min<std::int64_t>(threads, batch * layout.row_tasks * layout.lane_tasks);
  const bool ready = product.bias == DataType::float32 && (product.bias_stride == 1 || product.shape.n == 1);
  layout.bias_floats = product.has_bias && !ready ? ceil_divide(product.shape.n, 16) * 16 : 0;
  return layout;
}

PackedLayout packed_layout(const Product& product, std::uint64_t l2_bytes) {
  const bool columns = cost(oriented_task(product, true)) <= cost(oriented_task(product, false));
  PackedLayout layout = cut_layout(product, columns, multiplications_per_microsecond);
  layout.task.pack_lanes = worth_packing(layout.task);
  choose_blocks(layout.task, l2_bytes);
  layout.slot_floats = ceil_divide(tile_buffer_floats(layout.task), 16) * 16;
  return layout;
}

std::uint64_t packed_workspace_bytes(const PackedLayout& layout) {
  return static_cast<std::uint64_t>(layout.bias_floats + layout.slots * layout.slot_floats) * sizeof(float);
}

const float* ready_bias(const PackedLayout& layout, const RunArguments& arguments) {
  const Product& product = layout.product;
  if (!product.has_bias) return nullptr;
  if (layout.bias_floats == 0) return arguments.inputs[2]->as<const float>();
  float* ready = static_cast<float*>(arguments.workspace);
  widen(arguments.inputs[2]->as<const std::byte>(), product.bias, product.bias_stride, product.shape.n, ready);
  return ready;
}

void run_packed(const PackedLayout& layout, const RunArguments& arguments) {
  const MatmulShape& shape = layout.product.shape;
  if (shape.m == 0 || shape.n == 0 || shape.batch_count == 0) return;
  const PackedRun run(layout, arguments);
  parallel_tasks(layout.slots, static_cast<int>(layout.slots), [&](std::int64_t slot) { run.slot(slot); });
}

}  // namespace xpuruntime::cpu
