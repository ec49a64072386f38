#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cuda/cublaslt_api.h"
#include "backends/cuda/cublaslt_product.h"
#include "backends/cuda/finish.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict has_cublaslt(const Problem&, const DeviceProfile& profile) { return has_library(profile, "cublasLt"); }

Verdict is_library_product(const Problem& problem, const DeviceProfile& profile) {
  return library_product(problem, profile).verdict;
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
using Proposals = std::vector<cublasLtMatmulHeuristicResult_t>;

OwnedLayout make_layout(const CublasLt& api, cudaDataType_t type, const LibraryMatrix& matrix,
                        std::int64_t batch_count) {
  cublasLtMatrixLayout_t handle = nullptr;
  check(api, "matrix layout",
        api.layout_create(&handle, type, static_cast<std::uint64_t>(matrix.rows),
                          static_cast<std::uint64_t>(matrix.columns), matrix.leading));
  OwnedLayout owned(handle, api.layout_destroy);
  const auto count = static_cast<std::int32_t>(batch_count);
  check(api, "batch count", api.layout_set(handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
  check(api, "batch stride",
        api.layout_set(handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.batch_stride,
                       sizeof(matrix.batch_stride)));
  return owned;
}

/// What the limit leaves to the library itself.
std::uint64_t library_room(const Problem& problem, const LibraryProduct& product) {
  const std::uint64_t limit = problem.limits.workspace_bytes.value_or(product.sums_bytes() + most_library_workspace);
  return std::min(most_library_workspace, limit - std::min(limit, product.sums_bytes()));
}

/// The memory of what the library reads beside its matrices.
struct SidePointers {
  const void* bias = nullptr;
  const void* scales[2] = {};
};

cublasStatus_t set_pointers(const CublasLt& api, cublasLtMatmulDesc_t description, const LibraryProduct& product,
                            const SidePointers& pointers) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void* pointer) {
    return api.desc_set(description, attribute, &pointer, sizeof(pointer));
  };
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (product.bias) status = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
  for (const int side : {0, 1}) {
    if (!product.scaled[side] || status != CUBLAS_STATUS_SUCCESS) continue;
    const bool of_a = (side == 0) != product.swapped;
    status =
        set(of_a ? CUBLASLT_MATMUL_DESC_A_SCALE_POINTER : CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, pointers.scales[side]);
  }
  return status;
}

/// Heuristics look at the alignment of pointers, not at what is there.
SidePointers stand_ins(const Problem& problem, const LibraryProduct& product) {
  const auto aligned = [&](std::size_t input) {
    return reinterpret_cast<const void*>(std::uintptr_t{problem.inputs[input].alignment});
  };
  SidePointers pointers;
  if (product.bias) pointers.bias = aligned(2);
  for (const std::size_t side : {0u, 1u}) {
    if (product.scaled[side]) pointers.scales[side] = aligned(3 + side);
  }
  return pointers;
}

OwnedDescription make_description(const CublasLt& api, const Problem& problem, const LibraryProduct& product) {
  cublasLtMatmulDesc_t handle = nullptr;
  check(api, "description", api.desc_create(&handle, product.types.compute, product.types.scale));
  OwnedDescription owned(handle, api.desc_destroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    check(api, "description", api.desc_set(handle, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  const auto epilogue = product.bias ? (product.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                     : (product.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (product.bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, product.types.d);
  if (product.scaled_by_lines) {
    constexpr std::int32_t vectors = 3;  // CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F and the modes of A and B, which
    set(static_cast<cublasLtMatmulDescAttributes_t>(31), vectors);  // headers have from 12.9 on
    set(static_cast<cublasLtMatmulDescAttributes_t>(32), vectors);
  }
  check(api, "description", set_pointers(api, handle, product, stand_ins(problem, product)));
  return owned;
}

OwnedPreference make_preference(const CublasLt& api, const Problem& problem, const LibraryProduct& product,
                                std::uint64_t room) {
  cublasLtMatmulPreference_t handle = nullptr;
  check(api, "preference", api.preference_create(&handle));
  OwnedPreference owned(handle, api.preference_destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(api, "preference", api.preference_set(handle, attribute, &value, sizeof(value)));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, room - std::min(room, workspace_shift));
  // Parts of a sum are added up in the precision that is computed in: not rounded to the output's 16 bits one by one.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  // Without these the library counts on 256 bytes.
  const std::uint32_t d = product.in_output ? problem.outputs[0].alignment : 64;
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{problem.inputs[product.swapped ? 1 : 0].alignment});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t{problem.inputs[product.swapped ? 0 : 1].alignment});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.beta != 0 ? std::uint32_t{problem.inputs[2].alignment} : d);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, d);
  return owned;
}

// How many of the library's proposals are looked at; it puts the likely ones first.
constexpr int most_algorithms = 32;

// Where it may use a large workspace, the library likes to split the sums of few rows. What it proposes for a small one
// took 5 % less time where it did not split them: geometric mean of 52 products of 16 bits on an H200, with a cold L2.
constexpr std::uint64_t small_room = std::uint64_t{1} << 20;
constexpr int most_small = 8;

bool may_split_in_vain(const LibraryProduct& product, const DeviceProfile& profile) {
  const std::int64_t rows = std::min(product.d.rows, product.d.columns);
  const bool whole_lines = (product.a.leading | product.b.leading | product.d.leading) % 8 == 0;
  return profile.compute_capability_major == 9 && rows > 16 && rows <= 64 && whole_lines &&
         (product.types.a == CUDA_R_16F || product.types.a == CUDA_R_16BF);
}

class CublasLtPlan final : public Plan {
 public:
  CublasLtPlan(const CublasLt& api, const Problem& problem, const PrepareContext& context,
               const LibraryProduct& product)
      : api_(api),
        device_(context.device.index),
        product_(product),
        alpha_(product.alpha),
        beta_(product.beta),
        handle_(cublaslt_handle(device_)),
        description_(make_description(api, problem, product)),
        a_(make_layout(api, product.types.a, product.a, product.batch_count)),
        b_(make_layout(api, product.types.b, product.b, product.batch_count)),
        c_(make_layout(api, product.types.d, product.beta != 0 ? product.c : product.d, product.batch_count)),
        d_(make_layout(api, product.types.d, product.d, product.batch_count)),
        preference_(make_preference(api, problem, product, library_room(problem, product))) {
    if (may_split_in_vain(product, context.profile)) {
      const std::uint64_t room = std::min(small_room, library_room(problem, product));
      small_preference_ = make_preference(api, problem, product, room);
    }
    if (!product.finish) return;
    const FinishLaunch finish = finish_launch(problem, product.sums, product.in_output);
    finish_ = std::make_unique<LaunchPlan<FinishLaunch>>("cublasLt finish", context.device, finish);
  }

  /// What the library proposes, best first by its own estimate, but for a split that a small workspace avoids.
  Proposals proposals(int most) const {
    Proposals results = asked(*preference_, most);
    if (!small_preference_) return results;
    const Proposals others = asked(*small_preference_, std::min(most, most_small));
    const bool better = !others.empty() && (results.empty() || (splits(results[0]) && !splits(others[0])));
    results.insert(better ? results.begin() : results.end(), others.begin(), others.end());
    return results;
  }

  std::string token_of(const cublasLtMatmulAlgo_t& algorithm) const {
    return describe(api_, algorithm) + (finish_ ? " finish=" + std::string(to_string(product_.sums)) : "");
  }

  /// Takes the first proposal, or the one with this token.
  void choose(std::string_view token) {
    for (const auto& proposal : proposals(token.empty() ? 1 : most_algorithms)) {
      if (!token.empty() && token_of(proposal.algo) != token) continue;
      algorithm_ = proposal.algo;
      workspace_ = proposal.workspaceSize;
      return;
    }
    fail(ErrorCode::not_supported, "cublasLt",
         token.empty()
             ? "the library has no algorithm for this problem"
             : "the library does not propose the algorithm '" + std::string(token) + "' for this problem here");
  }

  Status run(const RunArguments& arguments) const override {
    if (*workspace_bytes() > 0 && arguments.workspace == nullptr) {
      return Status(ErrorCode::invalid_argument, "[cublasLt] no workspace; pass the bytes that the kernel declares");
    }
    const ScopedDevice scope(device_);
    if (scope.error() != cudaSuccess) return to_status(scope.error(), "cublasLt");
    const cublasStatus_t status = multiply(arguments);
    if (status == CUBLAS_STATUS_SUCCESS) return finish_ ? finish_->run(arguments) : Status();
    if (const cudaError_t error = cudaGetLastError(); is_lost(error)) return to_status(error, "cublasLt");
    return Status(ErrorCode::device_error, std::string("[cublasLt] launch failed: ") + api_.status_string(status) +
                                               "; choose another kernel for this problem");
  }

  std::string token() const override { return token_of(algorithm_); }
  std::optional<std::uint64_t> workspace_bytes() const override {
    return product_.sums_bytes() + (workspace_ > 0 ? workspace_ + workspace_shift : 0);
  }
  // Descriptors are host memory that a launch only reads.
  bool outlives_its_work() const override { return false; }
  bool sets_device() const override { return true; }

 private:
  Proposals asked(cublasLtMatmulPreferenceOpaque_t& preference, int most) const {
    Proposals results(static_cast<std::size_t>(most));
    int found = 0;
    const cublasStatus_t status = api_.heuristic(handle_, description_.get(), a_.get(), b_.get(), c_.get(), d_.get(),
                                                 &preference, most, results.data(), &found);
    results.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
    std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return results;
  }
  bool splits(const cublasLtMatmulHeuristicResult_t& proposal) const {
    std::int32_t parts = 1;
    std::size_t written = 0;
    const cublasStatus_t status =
        api_.config_get(&proposal.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof(parts), &written);
    return status == CUBLAS_STATUS_SUCCESS && parts > 1;
  }

  cublasStatus_t multiply(const RunArguments& arguments) const {
    const auto input = [&](std::size_t i) { return arguments.inputs[i]->as<const std::byte>(); };
    cublasLtMatmulDesc_t description = description_.get();
    cublasLtMatmulDescOpaque_t own;
    if (product_.bias || product_.scaled[0] || product_.scaled[1]) {
      // Calls may overlap, and each has its own pointers.
      own = *description;
      description = &own;
      SidePointers pointers;
      if (product_.bias) pointers.bias = input(2);
      for (const std::size_t side : {0u, 1u}) {
        if (product_.scaled[side]) pointers.scales[side] = input(3 + side);
      }
      const cublasStatus_t status = set_pointers(api_, description, product_, pointers);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
    }
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    void* const d = product_.in_output ? arguments.outputs[0]->as<std::byte>() : workspace;
    const void* const c = product_.beta != 0 ? input(2) : d;
    const cudaDataType_t scale = product_.types.scale;
    return api_.matmul(handle_, description, alpha_.as(scale), input(product_.swapped ? 1 : 0), a_.get(),
                       input(product_.swapped ? 0 : 1), b_.get(), beta_.as(scale), c, c_.get(), d, d_.get(),
                       &algorithm_,
                       workspace_ > 0 ? align_library_workspace(workspace + product_.sums_bytes()) : nullptr,
                       workspace_, native_stream(arguments.stream));
  }

  const CublasLt& api_;
  int device_;
  LibraryProduct product_;
  LibraryScalar alpha_;
  LibraryScalar beta_;
  cublasLtHandle_t handle_;
  OwnedDescription description_;
  OwnedLayout a_;
  OwnedLayout b_;
  OwnedLayout c_;
  OwnedLayout d_;
  OwnedPreference preference_;
  OwnedPreference small_preference_{nullptr, nullptr};
  std::unique_ptr<const Plan> finish_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  std::size_t workspace_ = 0;
};

std::unique_ptr<CublasLtPlan> described(const Problem& problem, const PrepareContext& context) {
  const CublasLt* api = cublaslt();
  if (api == nullptr) {
    fail(ErrorCode::not_supported, "cublasLt", "libcublasLt is not installed; install it or choose another kernel");
  }
  const ScopedDevice scope(context.device.index);
  xpuruntime::cuda::check(scope.error(), "cublasLt", "prepare");
  const auto plan_of = [&](const LibraryAnswer& answer) {
    if (!answer.verdict.supported) fail(ErrorCode::not_supported, "cublasLt", answer.verdict.reason);
    return std::make_unique<CublasLtPlan>(*api, problem, context, answer.product);
  };
  const LibraryAnswer answer = library_product(problem, context.profile);
  auto plan = plan_of(answer);
  // Not every product goes with every epilogue, and only the library knows which.
  const bool sums_may = !answer.product.finish && plan->proposals(1).empty();
  return sums_may ? plan_of(library_sums(problem, context.profile)) : std::move(plan);
}

}  // namespace

Verdict supports_cublaslt(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, has_cublaslt, is_library_product}, problem, profile);
}

std::uint64_t cublaslt_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const LibraryProduct product = library_product(problem, profile).product;
  return product.sums_bytes() + library_room(problem, product);
}

std::vector<std::string> cublaslt_variants(const Problem& problem, const PrepareContext& context) {
  std::vector<std::string> tokens;
  const auto plan = described(problem, context);
  for (const auto& proposal : plan->proposals(most_algorithms)) {
    std::string token = plan->token_of(proposal.algo);
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
