#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/columns.h"
#include "backends/cpu/conv/im2col_backward.h"
#include "backends/cpu/matmul/gemm.h"

// The gradient of the weight: the output's gradient times the transposed columns, image after image, tile after tile.

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t column_slack = 16;
// Tiles that are added up in f32 before their sum goes to one in f64.
constexpr std::int64_t tiles_at_once = 64;

class Im2colWeightPlan final : public Plan {
 public:
  explicit Im2colWeightPlan(const Problem& backward)
      : parts_(backward), in_(backward.inputs[0].dtype), out_(backward.outputs[1].dtype) {
    const ConvShape& shape = parts_.shape;
    // Few input channels: threads share the output's too, and each makes the columns anew.
    const std::int64_t tasks = std::max<std::int64_t>(shape.groups * parts_.parts(), 1);
    rows_ = divide_up(shape.out_channels, divide_up(parts_.threads, tasks));
    rows_ = std::clamp<std::int64_t>(round_up(rows_, 16), 1, std::max<std::int64_t>(shape.out_channels, 1));
    std::size_t bytes = 0;
    for (const std::int64_t m : {rows_, shape.out_channels % rows_}) {
      for (const std::int64_t c : {parts_.channels, shape.in_channels % parts_.channels}) {
        for (const std::int64_t k : {parts_.tile, parts_.positions % parts_.tile}) {
          if (m * c * k > 0) bytes = std::max(bytes, gemm_scratch_bytes(m, c * shape.taps(), k));
        }
      }
    }
    columns_ = round_up(parts_.channels * shape.taps() * parts_.tile + column_slack, 16);
    const std::int64_t room = round_up(rows_ * parts_.channels * shape.taps(), 16);
    totals_ = shape.batch * parts_.tiles() > tiles_at_once ? 2 * room : 0;
    sums_ = out_ == DataType::float32 && totals_ == 0 ? 0 : room;
    scratch_ = round_up(static_cast<std::int64_t>(bytes), 64) / std::int64_t{sizeof(float)};
  }

  std::optional<std::uint64_t> workspace_bytes() const override {
    return static_cast<std::uint64_t>(parts_.threads * slot_floats()) * sizeof(float);
  }

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = parts_.shape;
    const std::int64_t row_parts = divide_up(shape.out_channels, rows_), each = parts_.parts() * row_parts;
    auto* slots = static_cast<float*>(arguments.workspace);
    run_in_slots(shape.groups * each, 1, parts_.threads, [&](std::int64_t slot, std::int64_t i) {
      write_part(arguments, {i / each, i % each / row_parts, i % row_parts * rows_}, slots + slot * slot_floats());
    });
    return {};
  }

 private:
  /// Some output channels, from `row` on, and a part of the input's, of one group.
  struct Task {
    std::int64_t group = 0, part = 0, row = 0;
  };

  std::int64_t slot_floats() const { return columns_ + sums_ + totals_ + scratch_; }

  void write_part(const RunArguments& arguments, const Task& task, float* slot) const {
    const ConvShape& shape = parts_.shape;
    const std::int64_t rows = std::min(rows_, shape.out_channels - task.row);
    const std::int64_t width = parts_.part_channels(task.part) * shape.taps();
    const std::int64_t at =
        (task.group * shape.out_channels + task.row) * shape.depth() + task.part * parts_.channels * shape.taps();
    const bool direct = sums_ == 0;
    float* sums = direct ? arguments.outputs[1]->as<float>() + at : slot + columns_;
    const std::int64_t step = direct ? shape.depth() : width;
    const std::int64_t tiles = shape.batch * parts_.tiles();
    for (std::int64_t t = 0; t < tiles; ++t) {
      add_tile(arguments, task, rows, t / parts_.tiles(), t % parts_.tiles(), sums, step, t % tiles_at_once > 0, slot);
      const bool last = t + 1 == tiles;
      if (totals_ != 0 && (last || (t + 1) % tiles_at_once == 0)) {
        add_to_totals(sums, rows * width, t < tiles_at_once, last, slot);
      }
    }
    if (tiles == 0) {
      for (std::int64_t r = 0; r < rows; ++r) std::fill_n(sums + r * step, width, 0.0f);
    }
    if (direct) return;
    const std::int64_t size = static_cast<std::int64_t>(size_of(out_));
    std::byte* out = arguments.outputs[1]->as<std::byte>() + at * size;
    for (std::int64_t r = 0; r < rows; ++r)
      put_sums(sums + r * step, width, 0.0f, out_, out + r * shape.depth() * size);
  }

  /// The last time the totals go back to where the sums are.
  void add_to_totals(float* sums, std::int64_t count, bool first, bool last, float* slot) const {
    auto* totals = reinterpret_cast<double*>(slot + columns_ + sums_);
    for (std::int64_t i = 0; i < count; ++i) {
      totals[i] = static_cast<double>(sums[i]) + (first ? 0 : totals[i]);
      if (last) sums[i] = static_cast<float>(totals[i]);
    }
  }

  void add_tile(const RunArguments& arguments, const Task& task, std::int64_t rows, std::int64_t n, std::int64_t t,
                float* sums, std::int64_t step, bool accumulate, float* slot) const {
    const ConvShape& shape = parts_.shape;
    const std::int64_t begin = t * parts_.tile, count = parts_.tile_positions(t), image = n * shape.groups + task.group;
    fill(arguments, image, task.part, begin, count, slot);
    const std::byte* gradient = arguments.inputs.back()->as<const std::byte>();
    const std::int64_t from = (image * shape.out_channels + task.row) * parts_.positions + begin;
    const TypedMatrixView a = {gradient + from * static_cast<std::int64_t>(size_of(parts_.gradient)), parts_.gradient,
                               parts_.positions, 1};
    const TypedMatrixView b = {slot, DataType::float32, 1, count};
    gemm(rows, parts_.part_channels(task.part) * shape.taps(), count, a, b, sums, step, accumulate,
         slot + columns_ + sums_ + totals_);
  }

  void fill(const RunArguments& arguments, std::int64_t image, std::int64_t part, std::int64_t begin,
            std::int64_t count, float* to) const {
    ConvShape shape = parts_.shape;
    const std::int64_t plane = volume(shape.in) * static_cast<std::int64_t>(size_of(in_));
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    const std::byte* end = in + shape.batch * shape.groups * shape.in_channels * plane;
    const std::int64_t first = image * shape.in_channels + part * parts_.channels;
    shape.in_channels = parts_.part_channels(part);
    fill_columns(shape, {in_, in + first * plane, end, begin, count, to});
  }

  Im2colParts parts_;
  DataType in_, out_;
  std::int64_t rows_ = 1, columns_ = 0, sums_ = 0, totals_ = 0, scratch_ = 0;
};

}  // namespace

std::uint64_t workspace_conv_weight_im2col(const Problem& backward, const DeviceProfile&) {
  return *Im2colWeightPlan(backward).workspace_bytes();
}

std::unique_ptr<const Plan> prepare_conv_weight_im2col(const Problem& backward, const PrepareContext&) {
  return std::make_unique<Im2colWeightPlan>(backward);
}

}  // namespace xpuruntime::cpu
