#include <algorithm>
#include <string>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/int8_task.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/product.h"

namespace xpuruntime::cpu {
namespace {

constexpr double multiplications_per_microsecond = 1e5;
// Up to here no sum of products leaves 31 bits, so its sign is known.
constexpr std::int64_t most_signed_k = 32768;

class Int8Plan final : public Plan {
 public:
  Int8Plan(const Product& product, bool quads) : product_(product), quads_(quads) {
    const MatmulShape& shape = product.shape;
    // A lane's values along k are gathered anew in each call: the smaller operand is spread over lanes, unless the
    // larger one lies ready for it.
    columns_ = shape.n <= shape.m || shape.b.column == 1;
    const int threads = useful_threads(product.threads, product.multiplications(), multiplications_per_microsecond);
    const std::int64_t batch = std::max<std::int64_t>(shape.batch_count, 1), wanted = ceil_divide(threads, batch);
    // Cut across the lanes where there are panels enough: each is packed once then.
    const std::int64_t panels = ceil_divide(lanes(), panel);
    lane_parts_ = panels >= wanted ? wanted : 1;
    row_parts_ = lane_parts_ == wanted ? 1 : std::min(wanted, std::max<std::int64_t>(rows(), 1));
    slots_ = std::min<std::int64_t>(threads, batch * lane_parts_ * row_parts_);
    slot_words_ = int8_buffer_words(ceil_divide(rows(), row_parts_), ceil_divide(panels, lane_parts_) * panel);
    const bool ready = product.bias == DataType::int32 && (product.bias_stride == 1 || shape.n == 1);
    bias_words_ = product.has_bias && !ready ? ceil_divide(shape.n, 16) * 16 : 0;
  }

  std::optional<std::uint64_t> workspace_bytes() const override {
    return static_cast<std::uint64_t>(bias_words_ + slots_ * slot_words_) * sizeof(std::int32_t);
  }

  Status run(const RunArguments& arguments) const override {
    const MatmulShape& shape = product_.shape;
    if (shape.m == 0 || shape.n == 0 || shape.batch_count == 0) return {};
    const std::int32_t* bias = ready_bias(arguments);
    const std::int64_t each = lane_parts_ * row_parts_, tasks = each * shape.batch_count;
    parallel_tasks(slots_, static_cast<int>(slots_), [&](std::int64_t slot) {
      for (std::int64_t i = tasks * slot / slots_; i < tasks * (slot + 1) / slots_; ++i) {
        Int8Task part = task(arguments, bias, i / each, i % each);
        part.buffer = static_cast<std::int32_t*>(arguments.workspace) + bias_words_ + slot * slot_words_;
        run_int8(part);
      }
    });
    return {};
  }

  std::string token() const override {
    return std::string(columns_ ? "lanes=columns" : "lanes=rows") + (quads_ ? " dot=4" : " dot=2");
  }

 private:
  static constexpr std::int64_t panel = 32;

  std::int64_t rows() const { return columns_ ? product_.shape.m : product_.shape.n; }
  std::int64_t lanes() const { return columns_ ? product_.shape.n : product_.shape.m; }

  const std::int32_t* ready_bias(const RunArguments& arguments) const {
    if (!product_.has_bias) return nullptr;
    if (bias_words_ == 0) return arguments.inputs[2]->as<const std::int32_t>();
    std::int32_t* ready = static_cast<std::int32_t*>(arguments.workspace);
    const LoadInteger load = integer_loader_of(product_.bias);
    for (std::int64_t j = 0; j < product_.shape.n; ++j) {
      ready[j] = static_cast<std::int32_t>(load(arguments.inputs[2]->as<const std::byte>(), j * product_.bias_stride));
    }
    return ready;
  }

  Int8Task task(const RunArguments& arguments, const std::int32_t* bias, std::int64_t batch, std::int64_t part) const {
    const MatmulShape& shape = product_.shape;
    const Int8Operand a{arguments.inputs[0]->as<const std::uint8_t>() + batch_offset(shape, shape.a, batch),
                        product_.a == DataType::int8, shape.a.row, shape.a.column};
    const Int8Operand b{arguments.inputs[1]->as<const std::uint8_t>() + batch_offset(shape, shape.b, batch),
                        product_.b == DataType::int8, shape.b.column, shape.b.row};
    const std::int64_t i = part % row_parts_, j = part / row_parts_, panels = ceil_divide(lanes(), panel);
    const std::int64_t row = rows() * i / row_parts_, lane = std::min(lanes(), panels * j / lane_parts_ * panel);
    Int8Task task;
    task.row_count = rows() * (i + 1) / row_parts_ - row;
    task.lane_count = std::min(lanes(), panels * (j + 1) / lane_parts_ * panel) - lane;
    task.k = shape.k;
    task.rows = columns_ ? a : b;
    task.lanes = columns_ ? b : a;
    task.rows.data += row * task.rows.outer;
    task.lanes.data += lane * task.lanes.outer;
    task.out_row = columns_ ? shape.c.row : shape.c.column;
    task.out_lane = columns_ ? shape.c.column : shape.c.row;
    task.out = arguments.outputs[0]->as<std::int32_t>() + batch_offset(shape, shape.c, batch) + row * task.out_row +
               lane * task.out_lane;
    if (bias != nullptr) (columns_ ? task.lane_bias : task.row_bias) = bias + (columns_ ? lane : row);
    task.relu = product_.activation == Activation::relu;
    task.quads = quads_;
    return task;
  }

  Product product_;
  bool quads_;
  bool columns_ = true;
  std::int64_t row_parts_ = 1;
  std::int64_t lane_parts_ = 1;
  std::int64_t slots_ = 1;
  std::int64_t slot_words_ = 0;
  std::int64_t bias_words_ = 0;
};

}  // namespace

bool has_int8_quads(const DeviceProfile& profile) {
  return (profile.has_cpu_feature("avx512_vnni") && profile.has_cpu_feature("avx512bw")) ||
         profile.has_cpu_feature("asimddp");
}

Verdict supports_product_int8(const Problem& problem, const DeviceProfile&) {
  const Product product = product_of(problem);
  if (product.activation == Activation::relu && product.shape.k > most_signed_k) {
    return Verdict::no("k = " + std::to_string(product.shape.k) + " may carry sums over 31 bits before relu sees them");
  }
  return Verdict::yes();
}

std::uint64_t workspace_product_int8(const Problem& problem, const DeviceProfile& profile) {
  return *Int8Plan(product_of(problem), has_int8_quads(profile)).workspace_bytes();
}

std::unique_ptr<const Plan> prepare_product_int8(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<Int8Plan>(product_of(problem), has_int8_quads(context.profile));
}

}  // namespace xpuruntime::cpu
