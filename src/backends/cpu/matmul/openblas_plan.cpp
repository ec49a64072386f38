#include <cblas.h>

#include <string>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/blas.h"
#include "backends/cpu/matmul/finish.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/product.h"
#include "backends/cpu/matmul/split.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

constexpr double multiplications_per_us = 5e4;

/// A matrix of one slice as BLAS takes it.
template <class T>
struct BlasMatrix {
  T* data = nullptr;
  MatrixLayout layout = {};

  CBLAS_TRANSPOSE transpose() const { return layout.transposed ? CblasTrans : CblasNoTrans; }
  int leading() const { return static_cast<int>(layout.leading); }
};

// With k = 0 the product is all zeros, which beta = 0 writes.
void multiply(int m, int n, int k, BlasMatrix<const float> a, BlasMatrix<const float> b, BlasMatrix<float> c) {
  cblas_sgemm(CblasRowMajor, a.transpose(), b.transpose(), m, n, k, 1, a.data, a.leading(), b.data, b.leading(), 0,
              c.data, c.leading());
}
void multiply(int m, int n, int k, BlasMatrix<const double> a, BlasMatrix<const double> b, BlasMatrix<double> c) {
  cblas_dgemm(CblasRowMajor, a.transpose(), b.transpose(), m, n, k, 1, a.data, a.leading(), b.data, b.leading(), 0,
              c.data, c.leading());
}

template <class T>
class OpenBlasPlan final : public Plan {
 public:
  OpenBlasPlan(const Product& product, bool fixed_split)
      : product_(product),
        a_(*layout_of(product.shape.m, product.shape.k, product.shape.a)),
        b_(*layout_of(product.shape.k, product.shape.n, product.shape.b)),
        c_(*layout_of(product.shape.m, product.shape.n, product.shape.c)),
        slices_(split_product(product.shape, product.threads, fixed_split, multiplications_per_us)),
        by_threads_(follows_threads(product.shape, fixed_split, multiplications_per_us)) {}

  Status run(const RunArguments& arguments) const override {
    parallel_tasks(static_cast<std::int64_t>(slices_.size()), product_.threads, [&](std::int64_t i) {
      const Slice& slice = slices_[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < slice.batches; ++j) run_slice(arguments, slice, slice.batch + j);
    });
    return {};
  }

  // Where the slices follow from the problem there was nothing to choose.
  std::string token() const override {
    return by_threads_ ? "slices=" + std::to_string(slices_.size()) + split_by_threads : "";
  }

 private:
  void run_slice(const RunArguments& arguments, const Slice& slice, std::int64_t batch) const {
    const MatmulShape& shape = product_.shape;
    const T* a = arguments.inputs[0]->as<const T>() + batch_offset(shape, shape.a, batch) + slice.row * a_.row();
    const T* b = arguments.inputs[1]->as<const T>() + batch_offset(shape, shape.b, batch) + slice.column * b_.column();
    T* c = arguments.outputs[0]->as<T>() + batch_offset(shape, shape.c, batch) + slice.row * c_.row() + slice.column;
    multiply(static_cast<int>(slice.rows), static_cast<int>(slice.columns), static_cast<int>(shape.k), {a, a_}, {b, b_},
             {c, c_});
    if constexpr (sizeof(T) == sizeof(float)) {
      if (!product_.has_bias && product_.activation == Activation::none) return;
      const float* bias = product_.has_bias ? arguments.inputs[2]->as<const float>() + slice.column : nullptr;
      finish_rows(c, c_.row(), slice.rows, slice.columns, bias, product_.activation);
    }
  }

  Product product_;
  MatrixLayout a_;
  MatrixLayout b_;
  MatrixLayout c_;
  std::vector<Slice> slices_;
  bool by_threads_;
};

}  // namespace

Verdict supports_product_openblas(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = has_one_dtype(problem); !verdict.supported) return verdict;
  const Product product = product_of(problem);
  if (problem.op == OpId::linear && product.a != DataType::float32) return refuse_dtype("input 0", product.a, "f32");
  return supports_library_layouts(problem, product.shape);
}

std::unique_ptr<const Plan> prepare_product_openblas(const Problem& problem, const PrepareContext&) {
  use_one_blas_thread();
  const Product product = product_of(problem);
  if (product.a == DataType::float32) {
    return std::make_unique<OpenBlasPlan<float>>(product, problem.limits.deterministic);
  }
  return std::make_unique<OpenBlasPlan<double>>(product, problem.limits.deterministic);
}

}  // namespace xpuruntime::cpu
