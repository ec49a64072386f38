#include "backends/opencl/clblast.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"
#include "core/matmul_shape.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

// The C interface of CLBlast, version 1, without its header.
enum ClBlastLayout : int { clblast_rows = 101, clblast_columns = 102 };
enum ClBlastTranspose : int { clblast_plain = 111, clblast_turned = 112 };

struct ClBlast {
  std::string version = {};
  int (*temporary_size)(ClBlastLayout, ClBlastTranspose a, ClBlastTranspose b, std::size_t m, std::size_t n,
                        std::size_t k, std::size_t a_offset, std::size_t a_step, std::size_t b_offset,
                        std::size_t b_step, std::size_t c_offset, std::size_t c_step, cl_command_queue*,
                        std::size_t* bytes) = nullptr;
  int (*multiply)(ClBlastLayout, ClBlastTranspose, ClBlastTranspose, std::size_t m, std::size_t n, std::size_t k,
                  float alpha, cl_mem a, std::size_t, std::size_t, cl_mem b, std::size_t, std::size_t, float beta,
                  cl_mem c, std::size_t, std::size_t, cl_command_queue*, cl_event*, cl_mem temporary) = nullptr;
  int (*multiply_batches)(ClBlastLayout, ClBlastTranspose, ClBlastTranspose, std::size_t m, std::size_t n,
                          std::size_t k, float alpha, cl_mem a, std::size_t, std::size_t, std::size_t batch_step,
                          cl_mem b, std::size_t, std::size_t, std::size_t, float beta, cl_mem c, std::size_t,
                          std::size_t, std::size_t, std::size_t batches, cl_command_queue*, cl_event*) = nullptr;
};

/// libclblast.so.1.5.3: the library has no function that tells.
std::string version_in(const char* file) {
  char* whole = file == nullptr ? nullptr : realpath(file, nullptr);
  const std::string path = whole == nullptr ? "" : whole;
  std::free(whole);
  const std::size_t at = path.rfind(".so.");
  return at == std::string::npos ? "1" : path.substr(at + 4);
}

ClBlast open_clblast() {
  ClBlast library;
  void* handle = dlopen("libclblast.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return library;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  if (!find(library.temporary_size, "CLBlastSGemmTempBufferSize") ||
      !find(library.multiply, "CLBlastSgemmWithTempBuffer") ||
      !find(library.multiply_batches, "CLBlastSgemmStridedBatched"))
    return {};
  Dl_info found = {};
  dladdr(reinterpret_cast<void*>(library.multiply), &found);
  library.version = version_in(found.dli_fname);
  return library;
}

const ClBlast& clblast() {
  static const ClBlast& once = *new ClBlast(open_clblast());
  return once;
}

/// An operand as BLAS has it: `step` elements from one line to the next, in the layout of the output or across it.
struct ClBlastMatrix {
  ClBlastTranspose turned = clblast_plain;
  std::size_t step = 0;  // 0: neither
  std::size_t batch = 0;
};

ClBlastMatrix blas_matrix(const MatrixStrides& strides, std::int64_t rows, std::int64_t columns, bool by_columns) {
  const auto lines = [](std::int64_t along, std::int64_t across, std::int64_t length, std::int64_t count) {
    if (along != 1 && length > 1) return std::size_t{0};
    if (count == 1) return static_cast<std::size_t>(length);
    return across < length ? std::size_t{0} : static_cast<std::size_t>(across);
  };
  const std::size_t by_row = lines(strides.column, strides.row, columns, rows);
  const std::size_t by_column = lines(strides.row, strides.column, rows, columns);
  const bool plain = (by_columns ? by_column : by_row) != 0;
  return {plain ? clblast_plain : clblast_turned, plain == by_columns ? by_column : by_row,
          static_cast<std::size_t>(strides.batch[0])};
}

/// What a problem is to CLBlast; sizes are those of `shape`.
struct ClBlastProduct {
  ClBlastLayout layout = clblast_rows;
  MatmulShape shape = {};
  ClBlastMatrix a = {}, b = {}, c = {};
};

ClBlastProduct clblast_product(const Problem& problem) {
  ClBlastProduct product;
  const MatmulShape& shape = product.shape = product_shape(problem);
  const bool by_columns = blas_matrix(shape.c, shape.m, shape.n, false).turned == clblast_turned;
  if (by_columns) product.layout = clblast_columns;
  product.a = blas_matrix(shape.a, shape.m, shape.k, by_columns);
  product.b = blas_matrix(shape.b, shape.k, shape.n, by_columns);
  product.c = blas_matrix(shape.c, shape.m, shape.n, by_columns);
  return product;
}

Verdict has_blas_layout(const Problem& problem, const DeviceProfile&) {
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();  // the kernels count in 32 bits
  const ClBlastProduct product = clblast_product(problem);
  if (const Verdict batches = is_at_most("batch dims", product.shape.batch_dims, 1); !batches.supported) return batches;
  for (const TensorSpec* spec : {&problem.inputs[0], &problem.inputs[1], &problem.outputs[0]})
    if (span_bytes(*spec) / sizeof(float) > most) return Verdict::no("a matrix has 2^31 elements or more");
  if (product.a.step == 0) return Verdict::no("input 0 is not a matrix with contiguous rows or columns");
  if (product.b.step == 0) return Verdict::no("input 1 is not a matrix with contiguous rows or columns");
  if (product.c.step == 0) return Verdict::no("output 0 is not a matrix with contiguous rows or columns");
  return Verdict::yes();
}

Verdict is_bare_product(const Problem& problem, const DeviceProfile&) {
  for (std::size_t i = 2; i < problem.inputs.size(); ++i)
    if (has_input(problem.inputs, i)) return Verdict::no("has more than two inputs");
  if (problem.op == OpId::matmul)
    return has_float_scalars(problem) ? Verdict::yes() : Verdict::no("alpha does not fit in f32");
  if (problem.attributes.choice("activation") == "none") return Verdict::yes();
  return Verdict::no("has an activation, which this kernel does not compute");
}

class ClBlastPlan final : public Plan {
 public:
  ClBlastPlan(DeviceContext& device, const ClBlastProduct& product, float alpha)
      : device_(device), product_(product), alpha_(alpha) {
    if (product_.shape.batch_dims > 0) return;  // CLBlast has its own memory for batches
    const QueueUse queue = device.use({});
    cl_command_queue handle = queue;
    const auto& [layout, shape, a, b, c] = product_;
    // Matrices that begin inside a buffer may need copies.
    constexpr std::size_t inside = 1;
    check(clblast().temporary_size(layout, a.turned, b.turned, size(shape.m), size(shape.n), size(shape.k), inside,
                                   a.step, inside, b.step, inside, c.step, &handle, &workspace_bytes_),
          "MATMUL_CLBLAST", "CLBlastSGemmTempBufferSize");
  }

  Status run(const RunArguments& arguments) const override {
    if (Status status = usable_here(); !status.ok()) return status;
    const QueueUse queue = device_.use(arguments.stream);
    int code = multiply(queue, arguments);
    if (code != CL_SUCCESS && error_code_of(code) == ErrorCode::out_of_memory && clFinish(queue) == CL_SUCCESS)
      code = multiply(queue, arguments);
    device_.launched(queue);
    return to_status(code, "CLBlastSgemm");
  }
  std::optional<std::uint64_t> workspace_bytes() const override { return workspace_bytes_; }
  bool outlives_its_work() const override { return false; }

 private:
  static std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

  int multiply(cl_command_queue queue, const RunArguments& arguments) const {
    const auto buffer = [](const Tensor* tensor) { return static_cast<cl_mem>(tensor->data()); };
    const auto offset = [](const Tensor* tensor) { return tensor->byte_offset() / sizeof(float); };
    const Tensor *x = arguments.inputs[0], *y = arguments.inputs[1], *z = arguments.outputs[0];
    const auto& [layout, shape, a, b, c] = product_;
    if (shape.batch_dims > 0)
      return clblast().multiply_batches(layout, a.turned, b.turned, size(shape.m), size(shape.n), size(shape.k), alpha_,
                                        buffer(x), offset(x), a.step, a.batch, buffer(y), offset(y), b.step, b.batch, 0,
                                        buffer(z), offset(z), c.step, c.batch, size(shape.batch_count), &queue,
                                        nullptr);
    return clblast().multiply(layout, a.turned, b.turned, size(shape.m), size(shape.n), size(shape.k), alpha_,
                              buffer(x), offset(x), a.step, buffer(y), offset(y), b.step, 0, buffer(z), offset(z),
                              c.step, &queue, nullptr,
                              workspace_bytes_ == 0 ? nullptr : static_cast<cl_mem>(arguments.workspace));
  }

  DeviceContext& device_;
  ClBlastProduct product_;
  float alpha_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

std::string clblast_version() { return clblast().version; }

Verdict supports_matmul_clblast(const Problem& problem, const DeviceProfile& profile) {
  constexpr auto installed = [](const Problem&, const DeviceProfile& device) { return has_library(device, "clblast"); };
  constexpr auto not_empty = [](const Problem& any, const DeviceProfile&) { return is_not_empty(any); };
  return first_refusal({installed, not_empty, is_bare_product, has_blas_layout}, problem, profile);
}

/// Copies of all three matrices, in whole tiles.
std::uint64_t matmul_clblast_workspace_bytes(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = product_shape(problem);
  if (shape.batch_dims > 0) return 0;
  const auto whole = [](std::int64_t extent) { return static_cast<std::uint64_t>(extent + 127) / 128 * 128; };
  const std::uint64_t m = whole(shape.m), n = whole(shape.n), k = whole(shape.k);
  return (m * k + k * n + m * n) * sizeof(float);
}

std::unique_ptr<const Plan> prepare_matmul_clblast(const Problem& problem, const PrepareContext& context) {
  if (clblast().version.empty())
    fail(ErrorCode::not_supported, "MATMUL_CLBLAST", "libclblast.so.1 is not installed here");
  const double alpha = problem.op == OpId::matmul ? problem.attributes.real("alpha") : 1;
  return std::make_unique<ClBlastPlan>(context_of(context), clblast_product(problem), static_cast<float>(alpha));
}

}  // namespace xpuruntime::opencl
