#include "backends/cuda/cublaslt_api.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "xpuruntime/core/error.h"

namespace xpuruntime::cuda {
namespace {

namespace fs = std::filesystem;

/// The folders of Python packages that something of this process was loaded from, this library perhaps.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  const auto add = [](dl_phdr_info* info, std::size_t, void* out) {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
      const std::size_t at = path.find(name);
      if (at == path.npos) continue;
      auto& found = *static_cast<std::vector<std::string>*>(out);
      std::string folder(path.substr(0, at + name.size()));
      if (std::find(found.begin(), found.end(), folder) == found.end()) found.push_back(std::move(folder));
    }
    return 0;
  };
  dl_iterate_phdr(add, &folders);
  return folders;
}

/// "nvidia/cublas/lib" of CUDA 12, "nvidia/cu13/lib" of CUDA 13.
std::vector<std::string> pip_folders() {
  std::vector<std::string> folders;
  for (const std::string& packages : package_folders()) {
    std::error_code none;
    for (fs::directory_iterator entry(packages + "nvidia", none), end; !none && entry != end; entry.increment(none)) {
      folders.push_back(entry->path() / "lib" / "");
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

/// Opens one of NVIDIA's libraries under the first of these file names that is found: in the process already, where
/// whatever was imported first has brought it; in pip's nvidia packages beside the Python packages that are loaded; on
/// the system's paths. A second copy beside one that PyTorch brings would be of another version. Null: there is none.
void* open_first(std::span<const std::string> files) {
  for (const std::string& file : files) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  std::vector<std::string> folders = pip_folders();
  folders.emplace_back();  // the system's own search
  for (const std::string& folder : folders) {
    for (const std::string& file : files) {
      if (void* library = dlopen((folder + file).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

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

/// `why`: what the library says of the status.
[[noreturn]] void fail_handle(const char* name, cublasStatus_t status, const char* why) {
  const bool memory = status == CUBLAS_STATUS_ALLOC_FAILED;
  fail(memory ? ErrorCode::out_of_memory : ErrorCode::device_error, name,
       std::string("no handle for the device: ") + why +
           (memory ? "; free memory on the device or choose another kernel" : "; choose another kernel"));
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
    if (status != CUBLAS_STATUS_SUCCESS) fail_handle("cublasLt", status, api->status_string(status));
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
    if (status != CUBLAS_STATUS_SUCCESS) fail_handle("cublas", status, api->status_string(status));
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
