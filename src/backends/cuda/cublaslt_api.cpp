#include "backends/cuda/cublaslt_api.h"

#include <dlfcn.h>

#include <map>
#include <optional>
#include <string_view>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::cuda {
namespace {

void* open_library() {
  // The version we were built with first; the functions we use are the same in both.
  const std::string own = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  for (const char* name : {own.c_str(), "libcublasLt.so.13", "libcublasLt.so.12"}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::optional<CublasLt> load() {
  void* library = open_library();
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
  static const std::optional<CublasLt> api = load();
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
  // Kept until the process ends: destroying one then would reach into a runtime that is already gone.
  static auto* const handles = new std::map<int, cublasLtHandle_t>();
  static Mutex mutex;
  const std::lock_guard lock(mutex);
  const auto found = handles->find(device);
  if (found != handles->end()) return found->second;
  const CublasLt* api = cublaslt();
  if (api == nullptr) {
    fail(ErrorCode::not_supported, "cublasLt", "libcublasLt is not installed; install it or choose another kernel");
  }
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = api->create(&handle); status != CUBLAS_STATUS_SUCCESS) {
    fail(ErrorCode::device_error, "cublasLt",
         std::string("no handle for the device: ") + api->status_string(status) + "; choose another kernel");
  }
  return handles->emplace(device, handle).first->second;
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
