#include "backends/cuda/cublaslt_product.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "backends/cuda/finish.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

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
    case DataType::float8_e4m3:
      return CUDA_R_8F_E4M3;
    case DataType::float8_e5m2:
      return CUDA_R_8F_E5M2;
    case DataType::int32:
      return CUDA_R_32I;
    case DataType::int8:
      return CUDA_R_8I;
    default:
      return {};
  }
}

bool is_8_bit_float(cudaDataType_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

/// Nothing where the library does not take the types together. float32 is never rounded to tf32 unless it says so.
/// 8-bit floats are no outputs: the library would clamp what is too large, where we have infinity or NaN.
std::optional<LibraryTypes> types_of(DataType a, DataType b, DataType output) {
  const auto type_a = native_type(a), type_b = native_type(b), type_d = native_type(output);
  if (!type_a || !type_b || !type_d) return {};
  if (is_8_bit_float(*type_a) && is_8_bit_float(*type_b)) {
    const bool both_short = a == DataType::float8_e5m2 && b == DataType::float8_e5m2;
    if (both_short || !fast_floats.contains(output)) return {};
    return LibraryTypes{*type_a, *type_b, *type_d, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  }
  if (a != b) return {};
  if (a == DataType::int8) {
    if (output != DataType::int32) return {};
    return LibraryTypes{CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
  }
  const bool wide = a == DataType::float64;
  if (a == DataType::int32 || (*type_d != *type_a && (wide || *type_d != CUDA_R_32F))) return {};
  if (wide) return LibraryTypes{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
  const auto compute = a == DataType::tfloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  return LibraryTypes{*type_a, *type_b, *type_d, CUDA_R_32F, compute};
}

/// A leading dimension by which columns of `rows` neighbours follow each other; nothing if there is none.
std::optional<std::int64_t> leading_dimension(std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
                                              std::int64_t column_stride) {
  if (rows > 1 && row_stride != 1) return {};
  if (columns <= 1) return std::max<std::int64_t>(rows, 1);
  if (column_stride < std::max<std::int64_t>(rows, 1)) return {};
  return column_stride;
}

/// `strides` as rows and columns of the matrix that the library multiplies by.
std::optional<LibraryMatrix> matrix_of(std::int64_t rows, std::int64_t columns, const MatrixStrides& strides) {
  if (const auto leading = leading_dimension(rows, columns, strides.row, strides.column)) {
    return LibraryMatrix{rows, columns, *leading, strides.batch[0], false};
  }
  if (const auto leading = leading_dimension(columns, rows, strides.column, strides.row)) {
    return LibraryMatrix{columns, rows, *leading, strides.batch[0], true};
  }
  return {};
}

MatrixStrides transpose(const MatrixStrides& strides) {
  MatrixStrides result = strides;
  std::swap(result.row, result.column);
  return result;
}

/// The output, or an input that is walked like it; not stored the other way round.
std::optional<LibraryMatrix> result_of(const MatmulShape& shape, const MatrixStrides& strides, bool swapped) {
  if (shape.batch_dims == 1 && strides.batch[0] == 0) return {};
  const auto matrix = swapped ? matrix_of(shape.n, shape.m, transpose(strides)) : matrix_of(shape.m, shape.n, strides);
  return matrix && !matrix->transposed ? matrix : std::nullopt;
}

/// Sets a, b and d, whose types are still in the problem's order.
bool set_matrices(const MatmulShape& shape, LibraryProduct& product) {
  if (shape.batch_dims > 1) return false;
  for (const bool swapped : {true, false}) {
    const auto d = result_of(shape, shape.c, swapped);
    const auto a = swapped ? matrix_of(shape.n, shape.k, transpose(shape.b)) : matrix_of(shape.m, shape.k, shape.a);
    const auto b = swapped ? matrix_of(shape.k, shape.m, transpose(shape.a)) : matrix_of(shape.k, shape.n, shape.b);
    if (!a || !b || !d) continue;
    product.a = *a;
    product.b = *b;
    product.d = *d;
    product.swapped = swapped;
    if (swapped) std::swap(product.types.a, product.types.b);
    product.k = shape.k;
    product.batch_count = shape.batch_count;
    return true;
  }
  return false;
}

bool walk_alike(const MatmulShape& x, const MatmulShape& y) {
  return x.m == y.m && x.batch_dims == y.batch_dims && (x.batch_dims == 0 || x.batch_extent[0] == y.batch_extent[0]);
}

/// Sets the matrices where the third input is a bias of d, or a matrix like it.
bool set_with_c(const Problem& problem, double beta, LibraryProduct& product) {
  Problem other = problem;
  other.outputs[0] = broadcast_c(problem);
  MatmulShape shape = product_shape(problem), seen = product_shape(other);
  if (!walk_alike(shape, seen) && problem.op == OpId::matmul) {
    shape = matmul_shape(problem);
    seen = matmul_shape(other);
  }
  const DataType c = problem.inputs[2].dtype, output = problem.outputs[0].dtype;
  if (c != output || !walk_alike(shape, seen) || !set_matrices(shape, product)) return false;
  const MatrixStrides& strides = seen.c;
  const bool shared = (shape.m == 1 || strides.row == 0) && (shape.batch_dims == 0 || strides.batch[0] == 0);
  // Beside 8-bit floats the library wants the bias of an f32 output in bf16. It reads any bias in vectors. Beside lines
  // that are not whole vectors of 16 bits it rounds the sums before it adds the bias.
  const bool whole = (product.a.leading | product.b.leading | product.d.leading | product.d.rows) % 8 == 0;
  const bool fits = (!is_8_bit_float(product.types.a) || output != DataType::float32) &&
                    (size_of(output) != 2 || (whole && problem.outputs[0].alignment >= 16)) &&
                    problem.inputs[2].alignment >= 16;
  product.bias = product.swapped && beta == 1 && shared && fits && (shape.n == 1 || strides.column == 1);
  if (product.bias) return true;
  const auto matrix = result_of(shape, strides, product.swapped);
  if (!matrix) return false;
  product.c = *matrix;
  product.beta = beta;
  return true;
}

/// Whether the scales of 8-bit floats are such as the library knows: one number each, or on Hopper a vector each.
bool set_scales(const Problem& problem, const DeviceProfile& profile, const Finish& rest, LibraryProduct& product) {
  if (!rest.scaled[0] && !rest.scaled[1]) return true;
  if (!is_8_bit_float(product.types.a)) return false;
  product.scaled[0] = rest.scaled[0];
  product.scaled[1] = rest.scaled[1];
  if (rest.scale_strides[0] == 0 && rest.scale_strides[1] == 0) return true;
  product.scaled_by_lines = true;
  const auto fits = [&](std::size_t side, std::int64_t lines) {
    const TensorSpec& scale = problem.inputs[3 + side];
    return rest.scale_strides[side] == 1 && scale.shape[0] == lines && scale.alignment >= 16;
  };
  const auto version = profile.library_versions.find("cublasLt");
  const bool known = version != profile.library_versions.end() && std::strtod(version->second.c_str(), nullptr) >= 12.9;
  const bool hopper = profile.compute_capability_major == 9 && profile.compute_capability_minor == 0;
  return known && hopper && product.batch_count == 1 && product.swapped && rest.scaled[0] && rest.scaled[1] &&
         fits(0, product.d.columns) && fits(1, product.d.rows);
}

/// All of the problem, where the library can do it.
std::optional<LibraryProduct> whole_product(const Problem& problem, const DeviceProfile& profile) {
  const Finish rest = finish_of(problem);
  const auto types = types_of(problem.inputs[0].dtype, problem.inputs[1].dtype, problem.outputs[0].dtype);
  if (!types) return {};
  LibraryProduct product;
  product.types = *types;
  product.sums = problem.outputs[0].dtype;
  product.alpha = rest.alpha;
  product.relu = rest.activation == Activation::relu;
  // With an alpha of 0 the library reads neither matrix, and their NaN are lost. Its gelu is an approximation.
  if (rest.alpha == 0 || (rest.activation != Activation::none && !product.relu)) return {};
  const bool plain = rest.alpha == 1 && rest.beta == 0 && !product.relu;
  if (types->compute == CUBLAS_COMPUTE_32I && !plain) return {};
  const MatmulShape shape = product_shape(problem);
  if (rest.beta != 0 && shape.m == 1 && shape.n == 1) return {};  // it rounds such a sum before it adds c
  const bool set = rest.beta == 0 ? set_matrices(shape, product) : set_with_c(problem, rest.beta, product);
  return set && set_scales(problem, profile, rest, product) ? std::optional(product) : std::nullopt;
}

DataType sums_dtype(DataType input) {
  if (input == DataType::float64) return DataType::float64;
  return input == DataType::int8 ? DataType::int32 : DataType::float32;
}

/// The sums alone, in the output where they fit there.
std::optional<LibraryProduct> sums_product(const Problem& problem, const LibraryTypes& types) {
  const TensorSpec& output = problem.outputs[0];
  LibraryProduct product;
  product.types = types;
  product.sums = sums_dtype(problem.inputs[0].dtype);
  product.finish = true;
  product.in_output = native_type(output.dtype) == types.d;
  if (product.in_output && set_matrices(product_shape(problem), product)) return product;
  product.in_output = false;
  Problem sums = problem;
  sums.outputs[0] = make_spec(product.sums, output.shape);
  return set_matrices(product_shape(sums), product) ? std::optional(product) : std::nullopt;
}

Verdict refuse_types(const Problem& problem) {
  return Verdict::no("dtypes " + std::string(to_string(problem.inputs[0].dtype)) + ", " +
                     std::string(to_string(problem.inputs[1].dtype)) + " -> " +
                     std::string(to_string(problem.outputs[0].dtype)) + " are not taken together");
}

Verdict extents_fit(const Problem& problem, const MatmulShape& shape) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (const Verdict verdict = is_not_empty(problem); !verdict.supported) return verdict;
  return is_at_most("the largest extent", std::max({shape.m, shape.n, shape.k, shape.batch_count}), most);
}

/// What integers become must be integer, or float, throughout: a finish of ours computes in one of them.
bool is_one_kind(const Problem& problem) {
  if (is_floating(problem.outputs[0].dtype)) return true;
  return std::none_of(problem.inputs.begin(), problem.inputs.end(),
                      [](const TensorSpec& spec) { return is_floating(spec.dtype); });
}

/// 8-bit matrices go to the tensor cores in one layout only, and in whole vectors.
Verdict narrow_fits(const LibraryProduct& product, const Problem& problem, const DeviceProfile& profile) {
  const bool floats = is_8_bit_float(product.types.a);
  if (!floats && product.types.a != CUDA_R_8I) return Verdict::yes();
  if (const Verdict verdict = has_compute_capability(profile, 8, floats ? 9 : 0); !verdict.supported) return verdict;
  if (!product.a.transposed || product.b.transposed) {
    return Verdict::no("a matrix of 8-bit numbers is not contiguous along k");
  }
  const std::int64_t unit = floats ? 16 : 4;
  bool fits = product.k % unit == 0 && product.d.rows % unit == 0;
  const auto check = [&](const LibraryMatrix& matrix, DataType dtype, std::int64_t alignment) {
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    fits = fits && alignment >= unit && matrix.leading * size % unit == 0 && matrix.batch_stride * size % unit == 0;
  };
  const TensorSpec& first = problem.inputs[product.swapped ? 1 : 0];
  const TensorSpec& second = problem.inputs[product.swapped ? 0 : 1];
  check(product.a, first.dtype, first.alignment);
  check(product.b, second.dtype, second.alignment);
  check(product.d, product.sums, product.in_output ? problem.outputs[0].alignment : unit);
  if (product.beta != 0) check(product.c, product.sums, problem.inputs[2].alignment);
  if (fits) return Verdict::yes();
  return Verdict::no(std::string(product.swapped ? "n" : "m") + ", k, a stride or an address is not a multiple of " +
                     std::to_string(unit) + ", which 8-bit numbers need");
}

}  // namespace

std::uint64_t LibraryProduct::sums_bytes() const {
  if (in_output) return 0;
  constexpr std::uint64_t alignment = 256;
  const auto count = static_cast<std::uint64_t>(d.rows * d.columns * batch_count);
  return (count * size_of(sums) + alignment - 1) / alignment * alignment;
}

void* align_library_workspace(void* address) {
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(address) + 255) / 256 * 256);
}

LibraryAnswer library_sums(const Problem& problem, const DeviceProfile& profile) {
  const DataType a = problem.inputs[0].dtype, b = problem.inputs[1].dtype, output = problem.outputs[0].dtype;
  const auto types = types_of(a, b, sums_dtype(a));
  const bool widened = output == DataType::float64 && a != DataType::float64;  // its sums would be short of digits
  if (!types || !native_type(output) || widened || !is_one_kind(problem)) return {refuse_types(problem)};
  if (const Verdict verdict = scalars_fit(problem, profile); !verdict.supported) return {verdict};
  const MatmulShape shape = product_shape(problem);
  if (const Verdict verdict = extents_fit(problem, shape); !verdict.supported) return {verdict};
  const auto sums = sums_product(problem, *types);
  if (const Verdict verdict = has_one_batch_stride(shape); !sums && !verdict.supported) return {verdict};
  if (!sums) return {Verdict::no("a matrix has no leading dimension: neither stride is 1")};
  // Our finish needs sums of integers that did not wrap.
  if (a == DataType::int8 && sums->k >= 1 << 17) return {is_at_most("k", sums->k, (1 << 17) - 1)};
  return {narrow_fits(*sums, problem, profile), *sums};
}

LibraryAnswer library_product(const Problem& problem, const DeviceProfile& profile) {
  if (scalars_fit(problem, profile).supported && extents_fit(problem, product_shape(problem)).supported) {
    const auto whole = whole_product(problem, profile);
    if (whole && narrow_fits(*whole, problem, profile).supported) return {Verdict::yes(), *whole};
  }
  return library_sums(problem, profile);
}

}  // namespace xpuruntime::cuda
