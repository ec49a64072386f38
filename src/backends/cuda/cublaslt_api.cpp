#include "backends/cuda/cublaslt_api.h"

#include <dlfcn.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cuda/libraries.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::cuda {
namespace {

void* open_library(const std::string& name) {
  // The version we were built with first; the functions we use are the same in both.
  std::vector<std::string> files;
  for (const int version : {CUBLAS_VER_MAJOR, 13, 12}) files.push_back(name + ".so." + std::to_string(version));
  return open_first(files);
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<CublasLt> load_lt() {
  void* library = open_library("libcublasLt");
  if (library == nullptr) return {};
  CublasLt api;
  const bool complete = find(library, "cublasLtCreate", api.create) &&
                        find(library, "cublasLtGetVersion", api.get_version) &&
                        find(library, "cublasLtGetStatusString", api.status_string) &&
                        find(library, "cublasLtMatmulDescCreate", api.desc_create) &&
                        find(library, "cublasLtMatmulDescDestroy", api.desc_destroy) &&
                        find(library, "cublasLtMatmulDescSetAttribute", api.desc_set) &&
                        find(library, "cublasLtMatrixLayoutCreate", api.layout_create) &&
                        find(library, "cublasLtMatrixLayoutDestroy", api.layout_destroy) &&
                        find(library, "cublasLtMatrixLayoutSetAttribute", api.layout_set) &&
                        find(library, "cublasLtMatmulPreferenceCreate", api.preference_create) &&
                        find(library, "cublasLtMatmulPreferenceDestroy", api.preference_destroy) &&
                        find(library, "cublasLtMatmulPreferenceSetAttribute", api.preference_set) &&
                        find(library, "cublasLtMatmulAlgoGetHeuristic", api.heuristic) &&
                        find(library, "cublasLtMatmulAlgoConfigGetAttribute", api.config_get) &&
                        find(library, "cublasLtMatmul", api.matmul);
  if (!complete) {
    dlclose(library);
    return {};
  }
  return api;
}

std::optional<Cublas> load_classic() {
  void* library = open_library("libcublas");
  if (library == nullptr) return {};
  Cublas api;
  const bool complete =
      find(library, "cublasCreate_v2", api.create) && find(library, "cublasGetProperty", api.property) &&
      find(library, "cublasGetStatusString", api.status_string) &&
      find(library, "cublasSetMathMode", api.set_math_mode) && find(library, "cublasSetStream_v2", api.set_stream) &&
      find(library, "cublasSetWorkspace_v2", api.set_workspace) &&
      find(library, "cublasGemmStridedBatchedEx_64", api.multiply);
  if (!complete) {
    dlclose(library);
    return {};
  }
  return api;
}

/// Made on first use with that device current. Kept until the process ends: destroying one then would reach into a
/// runtime that is already gone.
template <class Kept, class Make>
Kept& of_device(int device, Make make) {
  static auto* const kept = new std::map<int, Kept>();
  static Mutex mutex;
  const std::lock_guard lock(mutex);
  const auto found = kept->find(device);
  return found != kept->end() ? found->second : kept->try_emplace(device, make()).first->second;
}

[[noreturn]] void fail_handle(const char* name, const char* why) {
  fail(ErrorCode::device_error, name, std::string("no handle for the device: ") + why + "; choose another kernel");
}

struct Name {
  unsigned value;
  const char* text;
};
#include "cublaslt_names.inc"

template <std::size_t count>
std::string name_of(const Name (&names)[count], unsigned value) {
  for (const Name& name : names) {
    if (name.value == value) return name.text;
  }
  return std::to_string(value).insert(0, 1, '#');  // newer than the header
}

std::optional<unsigned> read(const CublasLt& api, const cublasLtMatmulAlgo_t& algorithm,
                             cublasLtMatmulAlgoConfigAttributes_t attribute) {
  // Four bytes or two, by attribute: the wrong size is refused.
  unsigned value = 0;
  std::size_t written = 0;
  if (api.config_get(&algorithm, attribute, &value, sizeof(value), &written) == CUBLAS_STATUS_SUCCESS) return value;
  std::uint16_t narrow = 0;
  if (api.config_get(&algorithm, attribute, &narrow, sizeof(narrow), &written) == CUBLAS_STATUS_SUCCESS) return narrow;
  return {};
}

}  // namespace

const CublasLt* cublaslt() {
  static const std::optional<CublasLt> api = load_lt();
  return api ? &*api : nullptr;
}

std::string cublaslt_version() {
  const CublasLt* api = cublaslt();
  if (api == nullptr) return {};
  const std::size_t version = api->get_version();  // 13.1.0 is 130100
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

cublasLtHandle_t cublaslt_handle(int device) {
  return of_device<cublasLtHandle_t>(device, [] {
    const CublasLt* api = cublaslt();
    if (api == nullptr) {
      fail(ErrorCode::not_supported, "cublasLt", "libcublasLt is not installed; install it or choose another kernel");
    }
    cublasLtHandle_t handle = nullptr;
    const cublasStatus_t status = api->create(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) fail_handle("cublasLt", api->status_string(status));
    return handle;
  });
}

const Cublas* cublas() {
  static const std::optional<Cublas> api = load_classic();
  return api ? &*api : nullptr;
}

std::string cublas_version() {
  const Cublas* api = cublas();
  std::string text;
  for (const auto part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int value = 0;
    if (api == nullptr || api->property(part, &value) != CUBLAS_STATUS_SUCCESS) return {};
    text += (text.empty() ? "" : ".") + std::to_string(value);
  }
  return text;
}

CublasHandle& cublas_handle(int device) {
  return of_device<CublasHandle>(device, [] {
    const Cublas* api = cublas();
    if (api == nullptr) {
      fail(ErrorCode::not_supported, "cublas", "libcublas is not installed; install it or choose another kernel");
    }
    cublasHandle_t handle = nullptr;
    cublasStatus_t status = api->create(&handle);
    // Parts of a sum are added up in the precision that is computed in: not rounded to the output's 16 bits one by one.
    constexpr auto mode = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (status == CUBLAS_STATUS_SUCCESS) status = api->set_math_mode(handle, static_cast<cublasMath_t>(mode));
    if (status != CUBLAS_STATUS_SUCCESS) fail_handle("cublas", api->status_string(status));
    return handle;
  });
}

std::string describe(const CublasLt& api, const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  const auto add = [&](std::string_view name, cublasLtMatmulAlgoConfigAttributes_t attribute, auto&& print) {
    const auto value = read(api, algorithm, attribute);
    if (!value) return;
    if (!text.empty()) text += ' ';
    text += name;
    text += print(*value);
  };
  const auto number = [](unsigned value) { return std::to_string(value); };
  add("algo=", CUBLASLT_ALGO_CONFIG_ID, number);
  add("tile=", CUBLASLT_ALGO_CONFIG_TILE_ID, [](unsigned value) { return name_of(matmul_tile, value); });
  add("stages=", CUBLASLT_ALGO_CONFIG_STAGES_ID, [](unsigned value) { return name_of(matmul_stages, value); });
  add("splitk=", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, number);
  add("reduction=", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, number);
  add("swizzle=", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, number);
  add("custom=", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, number);
  add("inner=", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, number);
  add("cluster=", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, [](unsigned value) { return name_of(cluster_shape, value); });
  return text;
}

}  // namespace xpuruntime::cuda
