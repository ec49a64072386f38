#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/cuda/cublaslt_api.h"
#include "backends/cuda/cublaslt_product.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict has_cublas(const Problem&, const DeviceProfile& profile) { return has_library(profile, "cublas"); }

Verdict is_plain_product(const Problem& problem, const DeviceProfile& profile) {
  const auto [verdict, product] = library_product(problem, profile);
  if (!verdict.supported) return verdict;
  const bool plain = !product.finish && !product.bias && !product.relu && product.beta == 0;
  return plain ? Verdict::yes() : Verdict::no("it computes alpha * a @ b only, and casts nothing");
}

class CublasPlan final : public Plan {
 public:
  CublasPlan(const LibraryProduct& product, int device, std::uint64_t workspace)
      : api_(*cublas()),
        device_(device),
        product_(product),
        alpha_(product.alpha),
        handle_(cublas_handle(device)),
        workspace_(workspace) {}

  Status run(const RunArguments& arguments) const override {
    if (workspace_ > 0 && arguments.workspace == nullptr) {
      return Status(ErrorCode::invalid_argument, "[cublas] no workspace; pass the bytes that the kernel declares");
    }
    const ScopedDevice scope(device_);
    if (scope.error() != cudaSuccess) return to_status(scope.error(), "cublas");
    const cublasStatus_t status = multiply(arguments);
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    if (const cudaError_t error = cudaGetLastError(); is_lost(error)) return to_status(error, "cublas");
    return Status(ErrorCode::device_error, std::string("[cublas] launch failed: ") + api_.status_string(status) +
                                               "; choose another kernel for this problem");
  }

  bool outlives_its_work() const override { return false; }
  bool sets_device() const override { return true; }

 private:
  cublasStatus_t multiply(const RunArguments& arguments) const {
    const auto input = [&](std::size_t i) { return arguments.inputs[i]->as<const std::byte>(); };
    const std::lock_guard lock(handle_.mutex);
    cublasStatus_t status = api_.set_stream(handle_.handle, native_stream(arguments.stream));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    // Behind the stream: setting that one brings the library's own workspace back.
    const std::uint64_t room = workspace_ - std::min(workspace_, workspace_shift);
    status =
        api_.set_workspace(handle_.handle, room > 0 ? align_library_workspace(arguments.workspace) : nullptr, room);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const LibraryProduct& p = product_;
    const auto operation = [](const LibraryMatrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    return api_.multiply(handle_.handle, operation(p.a), operation(p.b), p.d.rows, p.d.columns, p.k,
                         alpha_.as(p.types.scale), input(p.swapped ? 1 : 0), p.types.a, p.a.leading, p.a.batch_stride,
                         input(p.swapped ? 0 : 1), p.types.b, p.b.leading, p.b.batch_stride, zero_.as(p.types.scale),
                         arguments.outputs[0]->as<std::byte>(), p.types.d, p.d.leading, p.d.batch_stride, p.batch_count,
                         p.types.compute, CUBLAS_GEMM_DEFAULT);
  }

  const Cublas& api_;
  int device_;
  LibraryProduct product_;
  LibraryScalar alpha_;
  LibraryScalar zero_{0};
  CublasHandle& handle_;
  std::uint64_t workspace_;
};

}  // namespace

Verdict supports_cublas(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, has_cublas, is_plain_product}, problem, profile);
}

std::uint64_t cublas_workspace_bytes(const Problem& problem, const DeviceProfile&) {
  return std::min(most_library_workspace, problem.limits.workspace_bytes.value_or(most_library_workspace));
}

std::unique_ptr<const Plan> prepare_cublas(const Problem& problem, const PrepareContext& context) {
  const ScopedDevice scope(context.device.index);
  check(scope.error(), "cublas", "prepare");
  cublas_handle(context.device.index);  // says so where there is no library
  return std::make_unique<CublasPlan>(library_product(problem, context.profile).product, context.device.index,
                                      cublas_workspace_bytes(problem, context.profile));
}

}  // namespace xpuruntime::cuda
