#include <algorithm>
#include <string>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/packed_layout.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

// Up to here both operands and the output stay in the first cache.
constexpr std::int64_t most_extent = 64;
constexpr double multiplications_per_microsecond = 3e4;

/// One task of tiles for each batch index: nothing is cut, and lanes that lie side by side are read where they are.
class SmallPlan final : public Plan {
 public:
  explicit SmallPlan(const Product& product) {
    Product uncut = product;
    uncut.threads = 1;
    layout_ = packed_layout(uncut, 0);
    TileTask& task = layout_.task;
    task.pack_lanes = task.lanes.dtype != DataType::float32 || task.lanes.outer != 1;
    layout_.slot_floats = (tile_buffer_floats(task) + 15) / 16 * 16;
    layout_.slots = std::min<std::int64_t>(
        std::max<std::int64_t>(product.shape.batch_count, 1),
        useful_threads(product.threads, product.multiplications(), multiplications_per_microsecond));
  }

  std::optional<std::uint64_t> workspace_bytes() const override { return packed_workspace_bytes(layout_); }

  Status run(const RunArguments& arguments) const override {
    const MatmulShape& shape = layout_.product.shape;
    if (shape.m == 0 || shape.n == 0 || shape.batch_count == 0) return {};
    const float* bias = ready_bias(layout_, arguments);
    parallel_tasks(layout_.slots, static_cast<int>(layout_.slots), [&](std::int64_t slot) {
      const std::int64_t begin = shape.batch_count * slot / layout_.slots;
      run_batches(arguments, bias, begin, shape.batch_count * (slot + 1) / layout_.slots, slot);
    });
    return {};
  }

  std::string token() const override { return layout_.lanes_are_columns ? "lanes=columns" : "lanes=rows"; }

 private:
  void run_batches(const RunArguments& arguments, const float* bias, std::int64_t begin, std::int64_t end,
                   std::int64_t slot) const {
    const MatmulShape& shape = layout_.product.shape;
    const bool columns = layout_.lanes_are_columns;
    const auto at = [](const Tensor* tensor, std::int64_t offset) {
      return static_cast<std::byte*>(tensor->as<void>()) + offset * static_cast<std::int64_t>(size_of(tensor->dtype()));
    };
    TileTask task = layout_.task;
    task.buffer = static_cast<float*>(arguments.workspace) + layout_.bias_floats + slot * layout_.slot_floats;
    (columns ? task.lane_bias : task.row_bias) = bias;
    for (std::int64_t batch = begin; batch < end; ++batch) {
      (columns ? task.rows : task.lanes).data = at(arguments.inputs[0], batch_offset(shape, shape.a, batch));
      (columns ? task.lanes : task.rows).data = at(arguments.inputs[1], batch_offset(shape, shape.b, batch));
      task.out = at(arguments.outputs[0], batch_offset(shape, shape.c, batch));
      run_tiles(task);
    }
  }

  PackedLayout layout_;
};

}  // namespace

Verdict supports_product_small(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = product_of(problem).shape;
  return is_at_most("the largest extent", std::max({shape.m, shape.n, shape.k}), most_extent);
}

std::uint64_t workspace_product_small(const Problem& problem, const DeviceProfile&) {
  return *SmallPlan(product_of(problem)).workspace_bytes();
}

std::unique_ptr<const Plan> prepare_product_small(const Problem& problem, const PrepareContext&) {
  return std::make_unique<SmallPlan>(product_of(problem));
}

}  // namespace xpuruntime::cpu
