#include <algorithm>
#include <limits>
#include <optional>

#include "backends/cuda/checks.h"
#include "backends/cuda/cublaslt_api.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"

// cuBLASLt counts columns first, we count rows first: a row-major matrix is its own transpose there. So the product is
// handed over as c^T = b^T a^T, or, where the output itself runs down its columns, as c = a b.

namespace xpuruntime::cuda {
namespace {

constexpr std::uint64_t most_workspace = std::uint64_t{32} << 20;

struct Types {
  cudaDataType_t data = CUDA_R_32F;
  cudaDataType_t output = CUDA_R_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

std::optional<cudaDataType_t> native_type(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return CUDA_R_64F;
    case DataType::float32:
    case DataType::tfloat32:
      return CUDA_R_32F;
    case DataType::float16:
      return CUDA_R_16F;
    case DataType::bfloat16:
      return CUDA_R_16BF;
    default:
      return {};
  }
}

/// Nothing where the library does not take the types together. float32 is never rounded to tf32 unless it says so.
std::optional<Types> types_of(const Problem& problem) {
  const DataType dtype = problem.inputs[0].dtype;
  const auto data = native_type(dtype);
  const auto output = native_type(problem.outputs[0].dtype);
  if (!data || !output || problem.inputs[1].dtype != dtype) return {};
  if (*output != *data && (*output != CUDA_R_32F || *data == CUDA_R_64F)) return {};
  if (dtype == DataType::float64) return Types{*data, *output, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  const auto compute = dtype == DataType::tfloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  return Types{*data, *output, CUDA_R_32F, compute};
}

/// A matrix as the library sees it.
struct Layout {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  bool transposed = false;  // it is stored the other way round
};

/// A leading dimension by which columns of `rows` neighbours follow each other; nothing if there is none.
std::optional<std::int64_t> leading_dimension(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                              std::int64_t column_stride) {
  if (rows > 1 && row_stride != 1) return {};
  if (columns <= 1) return std::max<std::int64_t>(rows, 1);
  if (column_stride < std::max<std::int64_t>(rows, 1)) return {};
  return column_stride;
}

/// `strides` as rows and columns of the matrix that the library multiplies by.
std::optional<Layout> layout_of(std::int64_t rows, std::int64_t columns, const MatrixStrides& strides) {
  if (const auto leading = leading_dimension(rows, columns, strides.row, strides.column)) {
    return Layout{rows, columns, *leading, strides.batch[0], false};
  }
  if (const auto leading = leading_dimension(columns, rows, strides.column, strides.row)) {
    return Layout{columns, rows, *leading, strides.batch[0], true};
  }
  return {};
}

/// The three matrices in the library's own order: d[m,n] = op(a)[m,k] op(b)[k,n].
struct Product {
  Layout a = {};
  Layout b = {};
  Layout d = {};
  bool swapped = false;  // a is the problem's second input
};

MatrixStrides transpose(const MatrixStrides& strides) {
  MatrixStrides result = strides;
  std::swap(result.row, result.column);
  return result;
}

std::optional<Product> product_of(const MatmulShape& shape) {
  if (shape.batch_dims == 1 && shape.c.batch[0] == 0) return {};
  const auto rows_first = layout_of(shape.n, shape.m, transpose(shape.c));
  if (rows_first && !rows_first->transposed) {
    const auto a = layout_of(shape.n, shape.k, transpose(shape.b));
    const auto b = layout_of(shape.k, shape.m, transpose(shape.a));
    if (!a || !b) return {};
    return Product{*a, *b, *rows_first, true};
  }
  const auto columns_first = layout_of(shape.m, shape.n, shape.c);
  const auto a = layout_of(shape.m, shape.k, shape.a);
  const auto b = layout_of(shape.k, shape.n, shape.b);
  if (!columns_first || columns_first->transposed || !a || !b) return {};
  return Product{*a, *b, *columns_first, false};
}

Verdict has_library(const Problem&, const DeviceProfile& profile) {
  return profile.library_versions.contains("cublasLt") ? Verdict::yes() : Verdict::no("libcublasLt is not installed");
}

Verdict cublaslt_dtype(const Problem& problem, const DeviceProfile&) {
  if (types_of(problem)) return Verdict::yes();
  return Verdict::no("dtypes " + std::string(to_string(problem.inputs[0].dtype)) + ", " +
                     std::string(to_string(problem.inputs[1].dtype)) + " -> " +
                     std::string(to_string(problem.outputs[0].dtype)) + " are not taken together");
}

Verdict extents_fit(const Problem& problem, const DeviceProfile&) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const MatmulShape shape = matmul_shape(problem);
  if (std::min({shape.m, shape.n, shape.k, shape.batch_count}) == 0) return Verdict::no("an extent is 0");
  if (shape.m > most) return refuse_over("m", shape.m, most);
  if (shape.n > most) return refuse_over("n", shape.n, most);
  if (shape.k > most) return refuse_over("k", shape.k, most);
  return shape.batch_count <= most ? Verdict::yes() : refuse_over("batch", shape.batch_count, most);
}

Verdict layout_fits(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = matmul_shape(problem);
  if (shape.batch_dims > 1) return Verdict::no("one stride does not walk the batch");
  return product_of(shape) ? Verdict::yes() : Verdict::no("a matrix has no leading dimension: neither stride is 1");
}

[[noreturn]] void fail_status(const CublasLt& api, const char* what, cublasStatus_t status) {
  fail(ErrorCode::device_error, "cublasLt",
       std::string(what) + ": " + api.status_string(status) + "; choose another kernel");
}

void check(const CublasLt& api, const char* what, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) fail_status(api, what, status);
}

template <class Opaque>
using Owned = std::unique_ptr<Opaque, cublasStatus_t (*)(Opaque*)>;
using OwnedLayout = Owned<cublasLtMatrixLayoutOpaque_t>;
using OwnedDescription = Owned<cublasLtMatmulDescOpaque_t>;
using OwnedPreference = Owned<cublasLtMatmulPreferenceOpaque_t>;

OwnedLayout make_layout(const CublasLt& api, cudaDataType_t type, const Layout& layout, std::int64_t batch_count) {
  cublasLtMatrixLayout_t handle = nullptr;
  check(api, "matrix layout",
        api.layout_create(&handle, type, static_cast<std::uint64_t>(layout.rows),
                          static_cast<std::uint64_t>(layout.columns), layout.leading));
  OwnedLayout owned(handle, api.layout_destroy);
  const auto count = static_cast<std::int32_t>(batch_count);
  check(api, "batch count", api.layout_set(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
  check(api, "batch stride",
        api.layout_set(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &layout.batch_stride,
                       sizeof(layout.batch_stride)));
  return owned;
}

OwnedDescription make_description(const CublasLt& api, const Types& types, const Product& product) {
  cublasLtMatmulDesc_t handle = nullptr;
  check(api, "description", api.desc_create(&handle, types.compute, types.scale));
  OwnedDescription owned(handle, api.desc_destroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(api, "transpose", api.desc_set(handle, attribute, &operation, sizeof(operation)));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.a.transposed);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.b.transposed);
  return owned;
}

OwnedPreference make_preference(const CublasLt& api, const Problem& problem, const Product& product,
                                std::uint64_t workspace) {
  cublasLtMatmulPreference_t handle = nullptr;
  check(api, "preference", api.preference_create(&handle));
  OwnedPreference owned(handle, api.preference_destroy);
  check(api, "workspace limit",
        api.preference_set(handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
  // Parts of a sum are added up in the precision that is computed in: not rounded to the output's 16 bits one by one.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  check(api, "reduction scheme",
        api.preference_set(handle, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions)));
  // Without these the library counts on 256 bytes.
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const TensorSpec& spec) {
    const std::uint32_t bytes = spec.alignment;
    check(api, "alignment", api.preference_set(handle, attribute, &bytes, sizeof(bytes)));
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.inputs[product.swapped ? 1 : 0]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.inputs[product.swapped ? 0 : 1]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.outputs[0]);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.outputs[0]);
  return owned;
}

// How many of the library's proposals are looked at; it puts the likely ones first.
constexpr int most_algorithms = 32;

class CublasLtPlan final : public Plan {
 public:
  CublasLtPlan(const CublasLt& api, const Problem& problem, const PrepareContext& context)
      : api_(api),
        device_(context.device.index),
        types_(*types_of(problem)),
        product_(*product_of(matmul_shape(problem))),
        handle_(cublaslt_handle(device_)),
        description_(make_description(api, types_, product_)),
        a_(make_layout(api, types_.data, product_.a, matmul_shape(problem).batch_count)),
        b_(make_layout(api, types_.data, product_.b, matmul_shape(problem).batch_count)),
        d_(make_layout(api, types_.output, product_.d, matmul_shape(problem).batch_count)) {
    const std::uint64_t workspace = cublaslt_workspace_bytes(problem, context.profile);
    preference_ = make_preference(api, problem, product_, workspace);
  }

  /// What the library proposes, best first by its own estimate.
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(int most) const {
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
    int found = 0;
    const cublasStatus_t status = api_.heuristic(handle_, description_.get(), a_.get(), b_.get(), d_.get(), d_.get(),
                                                 preference_.get(), most, results.data(), &found);
    results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
    std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    if (results.empty()) fail(ErrorCode::not_supported, "cublasLt", "the library has no algorithm for this problem");
    return results;
  }

  /// Takes the first proposal, or the one with this token.
  void choose(std::string_view token) {
    for (const auto& proposal : proposals(token.empty() ? 1 : most_algorithms)) {
      if (!token.empty() && describe(api_, proposal.algo) != token) continue;
      algorithm_ = proposal.algo;
      workspace_ = proposal.workspaceSize;
      return;
    }
    fail(ErrorCode::not_supported, "cublasLt",
         "the library does not propose the algorithm '" + std::string(token) + "' for this problem here");
  }

  Status run(const RunArguments& arguments) const override {
    if (workspace_ > 0 && arguments.workspace == nullptr) {
      return Status(ErrorCode::invalid_argument, "[cublasLt] no workspace; pass the bytes that the kernel declares");
    }
    const ScopedDevice scope(device_);
    if (scope.error() != cudaSuccess) return to_status(scope.error(), "matmul cublasLt");
    const void* a = arguments.inputs[product_.swapped ? 1 : 0]->as<std::byte>();
    const void* b = arguments.inputs[product_.swapped ? 0 : 1]->as<std::byte>();
    void* d = arguments.outputs[0]->as<std::byte>();
    const cublasStatus_t status =
        api_.matmul(handle_, description_.get(), one(), a, a_.get(), b, b_.get(), zero(), d, d_.get(), d, d_.get(),
                    &algorithm_, arguments.workspace, workspace_, native_stream(arguments.stream));
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    if (const cudaError_t error = cudaGetLastError(); is_lost(error)) return to_status(error, "matmul cublasLt");
    return Status(ErrorCode::device_error, std::string("[cublasLt] launch failed: ") + api_.status_string(status) +
                                               "; choose another kernel for this problem");
  }

  std::string token() const override { return describe(api_, algorithm_); }
  std::optional<std::uint64_t> workspace_bytes() const override { return workspace_; }
  // Descriptors are host memory that a launch only reads.
  bool outlives_its_work() const override { return false; }

 private:
  const void* one() const { return types_.scale == CUDA_R_64F ? static_cast<const void*>(&one_64) : &one_32; }
  const void* zero() const { return types_.scale == CUDA_R_64F ? static_cast<const void*>(&zero_64) : &zero_32; }

  static constexpr double one_64 = 1;
  static constexpr double zero_64 = 0;
  static constexpr float one_32 = 1;
  static constexpr float zero_32 = 0;

  const CublasLt& api_;
  int device_;
  Types types_;
  Product product_;
  cublasLtHandle_t handle_;
  OwnedDescription description_;
  OwnedLayout a_;
  OwnedLayout b_;
  OwnedLayout d_;
  OwnedPreference preference_{nullptr, nullptr};
  cublasLtMatmulAlgo_t algorithm_ = {};
  std::size_t workspace_ = 0;
};

}  // namespace

Verdict supports_cublaslt(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({has_code, is_aligned, has_library, cublaslt_dtype, extents_fit, layout_fits}, problem, profile);
}

bool prefers_cublaslt(const Problem& problem, const DeviceProfile&) {
  // The matrix units take whole 16-byte vectors; other extents cost extra passes.
  const MatmulShape shape = matmul_shape(problem);
  const auto wide = static_cast<std::int64_t>(16 / size_of(problem.inputs[0].dtype));
  return shape.m % wide == 0 && shape.n % wide == 0 && shape.k % wide == 0;
}

std::uint64_t cublaslt_workspace_bytes(const Problem& problem, const DeviceProfile&) {
  return std::min(most_workspace, problem.limits.workspace_bytes.value_or(most_workspace));
}

namespace {

std::unique_ptr<CublasLtPlan> described(const Problem& problem, const PrepareContext& context) {
  const CublasLt* api = cublaslt();
  if (api == nullptr) {
    fail(ErrorCode::not_supported, "cublasLt", "libcublasLt is not installed; install it or choose another kernel");
  }
  const ScopedDevice scope(context.device.index);
  xpuruntime::cuda::check(scope.error(), "cublasLt", "prepare");
  return std::make_unique<CublasLtPlan>(*api, problem, context);
}

}  // namespace

std::vector<std::string> cublaslt_variants(const Problem& problem, const PrepareContext& context) {
  std::vector<std::string> tokens;
  for (const auto& proposal : described(problem, context)->proposals(most_algorithms)) {
    std::string token = describe(*cublaslt(), proposal.algo);
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) tokens.push_back(std::move(token));
  }
  return tokens;
}

std::unique_ptr<const Plan> prepare_cublaslt_variant(const Problem& problem, const PrepareContext& context,
                                                     std::string_view token) {
  auto plan = described(problem, context);
  plan->choose(token);
  return plan;
}

std::unique_ptr<const Plan> prepare_cublaslt(const Problem& problem, const PrepareContext& context) {
  return prepare_cublaslt_variant(problem, context, {});
}

}  // namespace xpuruntime::cuda
