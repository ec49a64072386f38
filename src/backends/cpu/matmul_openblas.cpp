#include <cblas.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "backends/cpu/kernels.h"
#include "core/matmul_shape.h"

namespace xpuruntime::cpu {
namespace {

/// How BLAS is told about a matrix: it can skip over rows, or over columns of a transposed one, but not both.
struct BlasLayout {
  CBLAS_TRANSPOSE transpose = CblasNoTrans;
  int leading = 1;
};

std::optional<BlasLayout> layout_of(std::int64_t rows, std::int64_t columns, const MatrixStrides& strides) {
  const auto fits = [](std::int64_t leading, std::int64_t least) {
    return leading >= std::max<std::int64_t>(least, 1) && leading <= std::numeric_limits<int>::max();
  };
  // A stride over one row or column is never taken; BLAS still wants it to be large enough.
  const std::int64_t row = rows <= 1 ? std::max<std::int64_t>(columns, 1) : strides.row;
  const std::int64_t column = columns <= 1 ? std::max<std::int64_t>(rows, 1) : strides.column;
  if ((strides.column == 1 || columns <= 1) && fits(row, columns))
    return BlasLayout{CblasNoTrans, static_cast<int>(row)};
  if ((strides.row == 1 || rows <= 1) && fits(column, rows)) return BlasLayout{CblasTrans, static_cast<int>(column)};
  return std::nullopt;
}

std::string strides_text(const char* which, const MatrixStrides& strides) {
  return std::string(which) + " has strides " + std::to_string(strides.row) + " and " + std::to_string(strides.column) +
         ", and BLAS needs one of them to be 1";
}

template <class T>
class OpenBlasPlan final : public Plan {
 public:
  explicit OpenBlasPlan(const Problem& problem)
      : shape_(matmul_shape(problem)),
        a_(*layout_of(shape_.m, shape_.k, shape_.a)),
        b_(*layout_of(shape_.k, shape_.n, shape_.b)),
        out_(layout_of(shape_.m, shape_.n, shape_.c)->leading) {}

  Status run(const RunArguments& arguments) const override {
    const T* a = arguments.inputs[0]->as<const T>();
    const T* b = arguments.inputs[1]->as<const T>();
    T* out = arguments.outputs[0]->as<T>();
    for (std::int64_t batch = 0; batch < shape_.batch_count; ++batch) {
      gemm(a + batch_offset(shape_, shape_.a, batch), b + batch_offset(shape_, shape_.b, batch),
           out + batch_offset(shape_, shape_.c, batch));
    }
    return {};
  }

 private:
  // With k = 0 the product is all zeros, which beta = 0 writes.
  void gemm(const T* a, const T* b, T* out) const {
    const int m = static_cast<int>(shape_.m);
    const int n = static_cast<int>(shape_.n);
    const int k = static_cast<int>(shape_.k);
    if (m == 0 || n == 0) return;
    if constexpr (sizeof(T) == sizeof(float)) {
      cblas_sgemm(CblasRowMajor, a_.transpose, b_.transpose, m, n, k, 1, a, a_.leading, b, b_.leading, 0, out, out_);
    } else {
      cblas_dgemm(CblasRowMajor, a_.transpose, b_.transpose, m, n, k, 1, a, a_.leading, b, b_.leading, 0, out, out_);
    }
  }

  MatmulShape shape_;
  BlasLayout a_;
  BlasLayout b_;
  int out_;
};

}  // namespace

Verdict supports_matmul_openblas(const Problem& problem, const DeviceProfile&) {
  if (problem.direction != Direction::forward) return Verdict::no("it has no backward");
  const DataType dtype = problem.inputs[0].dtype;
  for (const TensorSpec& spec : {problem.inputs[1], problem.outputs[0]}) {
    if (spec.dtype != dtype) {
      return Verdict::no("dtypes differ: " + std::string(to_string(dtype)) + " and " +
                         std::string(to_string(spec.dtype)));
    }
  }
  if (dtype != DataType::float32 && dtype != DataType::float64) {
    return Verdict::no("OpenBLAS multiplies f32 and f64, not " + std::string(to_string(dtype)));
  }
  for (const TensorSpec* spec : {&problem.inputs[0], &problem.inputs[1], &problem.outputs[0]}) {
    if (spec->alignment < size_of(dtype)) return Verdict::no("a tensor is not aligned to its element size");
  }
  const MatmulShape shape = matmul_shape(problem);
  if (std::max({shape.m, shape.n, shape.k}) > std::numeric_limits<int>::max()) {
    return Verdict::no("an extent is past 31 bits");
  }
  if (!layout_of(shape.m, shape.k, shape.a)) return Verdict::no(strides_text("a", shape.a));
  if (!layout_of(shape.k, shape.n, shape.b)) return Verdict::no(strides_text("b", shape.b));
  const auto out = layout_of(shape.m, shape.n, shape.c);
  if (!out || out->transpose != CblasNoTrans) {
    return Verdict::no("the output's columns have stride " + std::to_string(shape.c.column) + ", BLAS needs 1");
  }
  return Verdict::yes();
}

std::unique_ptr<const Plan> prepare_matmul_openblas(const Problem& problem, const PrepareContext&) {
  if (problem.inputs[0].dtype == DataType::float32) return std::make_unique<OpenBlasPlan<float>>(problem);
  return std::make_unique<OpenBlasPlan<double>>(problem);
}

}  // namespace xpuruntime::cpu
