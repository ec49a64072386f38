#include <algorithm>
#include <string>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/product.h"
#include "backends/cpu/matmul/skinny_task.h"

namespace xpuruntime::cpu {
namespace {

// Columns are cut between cache lines of any dtype.
constexpr std::int64_t cut_unit = 64;
// Bytes that one thread reads in a microsecond, roughly; only tells small work from large.
constexpr double bytes_per_microsecond = 2e4;

/// Whether the rows of a are the few, rather than the columns of b.
bool few_are_rows(const MatmulShape& shape) {
  const bool b_walks = shape.b.row == 1 || shape.b.column == 1, a_walks = shape.a.row == 1 || shape.a.column == 1;
  const bool rows = shape.m <= most_few && b_walks, columns = shape.n <= most_few && a_walks;
  return rows && (!columns || shape.m <= shape.n);
}

class SkinnyPlan final : public Plan {
 public:
  explicit SkinnyPlan(const Product& product) : product_(product), rows_(few_are_rows(product.shape)) {
    const MatmulShape& shape = product.shape;
    const double bytes = static_cast<double>(shape.k) * static_cast<double>(many()) *
                         static_cast<double>(shape.batch_count) *
                         static_cast<double>(size_of(rows_ ? product.b : product.a));
    threads_ = useful_threads(product.threads, bytes, bytes_per_microsecond);
    const std::int64_t batch = std::max<std::int64_t>(shape.batch_count, 1);
    parts_ = std::min(ceil_divide(many(), cut_unit), ceil_divide(threads_, batch));
    slots_ = std::min<std::int64_t>(threads_, batch * parts_);
    const bool ready = product.bias == DataType::float32 && (product.bias_stride == 1 || shape.n == 1);
    bias_floats_ = product.has_bias && !ready ? ceil_divide(shape.n, 16) * 16 : 0;
    slot_floats_ = skinny_buffer_floats(few(), shape.k);
  }

  std::optional<std::uint64_t> workspace_bytes() const override {
    return static_cast<std::uint64_t>(bias_floats_ + slots_ * slot_floats_) * sizeof(float);
  }

  Status run(const RunArguments& arguments) const override {
    const MatmulShape& shape = product_.shape;
    if (shape.m == 0 || shape.n == 0 || shape.batch_count == 0) return {};
    const float* bias = nullptr;
    if (product_.has_bias) {
      bias = arguments.inputs[2]->as<const float>();
      if (bias_floats_ != 0) {
        float* widened = static_cast<float*>(arguments.workspace);
        widen(bias, product_.bias, product_.bias_stride, shape.n, widened);
        bias = widened;
      }
    }
    const std::int64_t tasks = shape.batch_count * parts_;
    parallel_tasks(slots_, static_cast<int>(slots_), [&](std::int64_t slot) {
      for (std::int64_t i = tasks * slot / slots_; i < tasks * (slot + 1) / slots_; ++i) {
        run_skinny(task(arguments, bias, i / parts_, i % parts_, slot));
      }
    });
    return {};
  }

  std::string token() const override {
    const MatrixStrides& many = rows_ ? product_.shape.b : product_.shape.a;
    const bool dots = (rows_ ? many.row : many.column) == 1;
    return std::string(rows_ ? "few=rows" : "few=columns") + (dots ? " walk=k" : " walk=columns") +
           " parts=" + std::to_string(parts_);
  }

 private:
  std::int64_t few() const { return rows_ ? product_.shape.m : product_.shape.n; }
  std::int64_t many() const { return rows_ ? product_.shape.n : product_.shape.m; }

  SkinnyTask task(const RunArguments& arguments, const float* bias, std::int64_t batch, std::int64_t part,
                  std::int64_t slot) const {
    const MatmulShape& shape = product_.shape;
    const auto at = [](const Tensor* tensor, std::int64_t offset) {
      return static_cast<std::byte*>(tensor->as<void>()) + offset * static_cast<std::int64_t>(size_of(tensor->dtype()));
    };
    const TileOperand a{at(arguments.inputs[0], batch_offset(shape, shape.a, batch)), product_.a, shape.a.row,
                        shape.a.column};
    const TileOperand b{at(arguments.inputs[1], batch_offset(shape, shape.b, batch)), product_.b, shape.b.column,
                        shape.b.row};
    const std::int64_t units = ceil_divide(many(), cut_unit);
    SkinnyTask task;
    task.few_count = few();
    task.k = shape.k;
    task.begin = units * part / parts_ * cut_unit;
    task.end = std::min(many(), units * (part + 1) / parts_ * cut_unit);
    task.few = rows_ ? a : b;
    task.many = rows_ ? b : a;
    task.out = at(arguments.outputs[0], batch_offset(shape, shape.c, batch));
    task.out_dtype = product_.out;
    task.out_few = rows_ ? shape.c.row : shape.c.column;
    task.out_many = rows_ ? shape.c.column : shape.c.row;
    (rows_ ? task.many_bias : task.few_bias) = bias;
    task.activation = product_.activation;
    task.buffer = static_cast<float*>(arguments.workspace) + bias_floats_ + slot * slot_floats_;
    return task;
  }

  Product product_;
  bool rows_;
  int threads_ = 1;
  std::int64_t parts_ = 1;
  std::int64_t slots_ = 1;
  std::int64_t bias_floats_ = 0;
  std::int64_t slot_floats_ = 0;
};

}  // namespace

Verdict supports_product_skinny(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = product_of(problem).shape;
  if (std::min(shape.m, shape.n) > most_few) {
    return Verdict::no("m = " + std::to_string(shape.m) + " and n = " + std::to_string(shape.n) + " are both over " +
                       std::to_string(most_few));
  }
  const bool b_walks = shape.b.row == 1 || shape.b.column == 1, a_walks = shape.a.row == 1 || shape.a.column == 1;
  if ((shape.m <= most_few && b_walks) || (shape.n <= most_few && a_walks)) return Verdict::yes();
  return Verdict::no("the large operand has no stride of 1, and it is read in vectors");
}

std::uint64_t workspace_product_skinny(const Problem& problem, const DeviceProfile&) {
  return *SkinnyPlan(product_of(problem)).workspace_bytes();
}

std::unique_ptr<const Plan> prepare_product_skinny(const Problem& problem, const PrepareContext&) {
  return std::make_unique<SkinnyPlan>(product_of(problem));
}

}  // namespace xpuruntime::cpu
