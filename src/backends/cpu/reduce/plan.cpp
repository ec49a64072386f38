#include <algorithm>
#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/reduce/fold.h"
#include "backends/cpu/reduce/kernels.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

// A unit of rows is about this many elements: a few microseconds, and short enough for f32 sums.
constexpr std::int64_t unit_elements = 16384;
// Rows of one unit of columns: its eighth is the length of a column's chain of additions. Units of short rows have no
// more of them.
constexpr std::int64_t least_rows = 1024;
// What a thread must get to be worth waking.
constexpr std::int64_t elements_per_thread = 65536;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

FoldKind kind_of(OpId op) {
  if (op == OpId::reduce_max) return FoldKind::max;
  return op == OpId::reduce_min ? FoldKind::min : FoldKind::sum;
}

double folded(FoldKind kind, double a, double b) {
  if (kind == FoldKind::sum) return a + b;
  if (std::isnan(a)) return a;
  return std::isnan(b) || (kind == FoldKind::max ? b > a : b < a) ? b : a;
}

/// What both ways of running have in common. The partial results of several groups are combined in their order.
class ReducePlan : public Plan {
 public:
  explicit ReducePlan(const Problem& problem)
      : job_(make_fold_job(problem)),
        out_dtype_(problem.outputs[0].dtype),
        store_(storer_of(out_dtype_)),
        divisor_(problem.op == OpId::reduce_mean ? static_cast<double>(job_.layout.terms()) : 1),
        factor_(problem.op == OpId::reduce_sum ? static_cast<double>(job_.layout.repeats) : 1),
        threads_(threads_for(problem)) {}

 protected:
  double result_of(double fold) const { return fold * factor_ / divisor_; }
  void store_in_line(const float* folds, std::int64_t n, void* out) const {
    store_results(folds, n, static_cast<float>(factor_), static_cast<float>(divisor_), out_dtype_, out);
  }
  std::int64_t grain(std::int64_t unit) const { return std::max<std::int64_t>(1, elements_per_thread / unit); }

  FoldJob job_;
  DataType out_dtype_;
  StoreElement store_;
  double divisor_;
  double factor_;
  int threads_;
};

class RowsPlan final : public ReducePlan {
 public:
  using ReducePlan::ReducePlan;

  Status run(const RunArguments& arguments) const override {
    const void* x = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    const std::int64_t chunks = job_.groups * job_.pieces;
    const std::int64_t units = job_.layout.kept_count() * chunks;
    const std::int64_t unit = std::max<std::int64_t>(16, job_.rows_per_group * job_.piece);
    if (chunks == 1) {
      parallel_for(units, grain(unit), threads_,
                   [&](std::int64_t begin, std::int64_t end) { whole_outputs(x, begin, end, out); });
      return {};
    }
    auto* partial = static_cast<float*>(arguments.workspace);
    parallel_for(units, grain(unit), threads_,
                 [&](std::int64_t begin, std::int64_t end) { fold_rows(job_, x, begin, end, partial + begin); });
    for (std::int64_t o = 0; o < job_.layout.kept_count(); ++o) combine(partial + o * chunks, chunks, o, out);
    return {};
  }

 private:
  void whole_outputs(const void* x, std::int64_t begin, std::int64_t end, void* out) const {
    constexpr std::int64_t most = 256;
    alignas(64) float results[most];
    for (std::int64_t o = begin; o < end; o += most) {
      const std::int64_t count = std::min(most, end - o);
      fold_rows(job_, x, o, o + count, results);
      if (in_order()) {
        auto* to = static_cast<std::byte*>(out) + static_cast<std::size_t>(o) * size_of(out_dtype_);
        store_in_line(results, count, to);
        continue;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        store_(out, offsets_at(job_.layout.kept, o + i).out, result_of(static_cast<double>(results[i])));
      }
    }
  }

  /// Whether output o is element o.
  bool in_order() const {
    const std::vector<Axis>& kept = job_.layout.kept;
    return fast_floats.contains(out_dtype_) && (kept.empty() || (kept.size() == 1 && kept[0].out == 1));
  }

  void combine(const float* partial, std::int64_t chunks, std::int64_t o, void* out) const {
    double total = static_cast<double>(partial[0]);
    for (std::int64_t i = 1; i < chunks; ++i) total = folded(job_.kind, total, static_cast<double>(partial[i]));
    store_(out, offsets_at(job_.layout.kept, o).out, result_of(total));
  }
};

class ColumnsPlan final : public ReducePlan {
 public:
  explicit ColumnsPlan(const Problem& problem) : ReducePlan(problem) {
    // Columns are independent: how they are dealt out may follow the threads. Whole cache lines for each.
    const std::int64_t columns = job_.layout.inner.count;
    const std::int64_t share = ceil_div(columns, threads_);
    width_ = std::min({columns, most_columns, std::max<std::int64_t>(64, ceil_div(share, 64) * 64)});
    // A narrow tensor's rows are read as one piece.
    if (columns <= 64) width_ = columns;
    blocks_ = ceil_div(columns, width_);
  }

  Status run(const RunArguments& arguments) const override {
    const auto* x = arguments.inputs[0]->as<const std::byte>();
    auto* out = arguments.outputs[0]->as<std::byte>();
    auto* partial = static_cast<float*>(arguments.workspace);
    const std::int64_t units = job_.layout.kept_count() * job_.groups * blocks_;
    const std::int64_t unit = job_.rows_per_group * width_;
    parallel_for(units, grain(unit), threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = begin; u < end; ++u) run_unit(x, u, partial, out);
    });
    if (job_.groups > 1) {
      const std::int64_t columns = job_.layout.outputs();
      parallel_for(columns, grain(job_.groups), threads_,
                   [&](std::int64_t begin, std::int64_t end) { combine(partial, begin, end, out); });
    }
    return {};
  }

 private:
  void run_unit(const std::byte* x, std::int64_t unit, float* partial, std::byte* out) const {
    const std::int64_t start = unit % blocks_ * width_;
    const std::int64_t group = unit / blocks_ % job_.groups;
    const std::int64_t kept = unit / blocks_ / job_.groups;
    const std::int64_t columns = job_.layout.inner.count;
    const std::int64_t width = std::min(width_, columns - start);
    const Offsets offsets = offsets_at(job_.layout.kept, kept);
    x += static_cast<std::size_t>(offsets.in + start) * size_of(job_.dtype);
    if (job_.groups > 1) {
      return fold_columns(job_, x, group, width, partial + (group * job_.layout.kept_count() + kept) * columns + start);
    }
    alignas(64) float results[most_columns];
    fold_columns(job_, x, group, width, results);
    finish(results, width, offsets.out + start * job_.layout.inner.out, out);
  }

  void finish(const float* results, std::int64_t width, std::int64_t offset, std::byte* out) const {
    if (job_.layout.inner.out == 1 && fast_floats.contains(out_dtype_)) {
      out += static_cast<std::size_t>(offset) * size_of(out_dtype_);
      return store_in_line(results, width, out);
    }
    for (std::int64_t i = 0; i < width; ++i) {
      store_(out, offset + i * job_.layout.inner.out, result_of(static_cast<double>(results[i])));
    }
  }

  void combine(const float* partial, std::int64_t begin, std::int64_t end, void* out) const {
    const std::int64_t columns = job_.layout.inner.count, outputs = job_.layout.outputs();
    for (std::int64_t o = begin; o < end; ++o) {
      double total = static_cast<double>(partial[o]);
      for (std::int64_t g = 1; g < job_.groups; ++g) {
        total = folded(job_.kind, total, static_cast<double>(partial[g * outputs + o]));
      }
      const std::int64_t offset = offsets_at(job_.layout.kept, o / columns).out + o % columns * job_.layout.inner.out;
      store_(out, offset, result_of(total));
    }
  }

  std::int64_t width_ = 1;
  std::int64_t blocks_ = 1;
};

}  // namespace

FoldJob make_fold_job(const Problem& problem) {
  FoldJob job;
  job.kind = kind_of(problem.op);
  job.dtype = problem.inputs[0].dtype;
  job.layout = reduce_layout(problem);
  const std::int64_t inner = std::max<std::int64_t>(1, job.layout.inner.count);
  const std::int64_t rows = job.layout.reduced_count();
  job.piece = inner;
  if (job.layout.inner_reduced) {
    job.piece = std::min(inner, unit_elements);
    job.pieces = ceil_div(inner, job.piece);
    const std::int64_t most = std::min(unit_elements / job.piece, least_rows);
    job.rows_per_group = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(1, rows));
  } else {
    const std::int64_t most = std::max(least_rows, 2 * unit_elements / inner);
    job.rows_per_group = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(1, rows));
  }
  job.groups = ceil_div(rows, job.rows_per_group);
  return job;
}

Verdict supports_reduce_simd(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = is_not_empty(problem); !verdict.supported) return verdict;
  const ReduceLayout layout = reduce_layout(problem);
  if (layout.inner_reduced || layout.inner.in == 1) return Verdict::yes();
  return Verdict::no("the stride of the innermost dim, which is kept, is " + std::to_string(layout.inner.in) +
                     ", not 1");
}

std::uint64_t workspace_reduce_simd(const Problem& problem, const DeviceProfile&) {
  const FoldJob job = make_fold_job(problem);
  const std::int64_t chunks = job.groups * job.pieces;
  if (chunks == 1) return 0;
  return static_cast<std::uint64_t>(job.layout.outputs() * chunks) * sizeof(float);
}

std::unique_ptr<const Plan> prepare_reduce_simd(const Problem& problem, const PrepareContext&) {
  if (reduce_layout(problem).inner_reduced) return std::make_unique<RowsPlan>(problem);
  return std::make_unique<ColumnsPlan>(problem);
}

}  // namespace xpuruntime::cpu
