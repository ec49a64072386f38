#include "xpuruntime/registry/catalogue.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>

namespace xpuruntime {
namespace {

constexpr DeviceType cpu = DeviceType::cpu;
constexpr DeviceType cuda = DeviceType::nvidia;
constexpr DeviceType opencl = DeviceType::opencl;
constexpr std::string_view nvidia_gpu = "an NVIDIA GPU";
constexpr std::string_view opencl_device = "an OpenCL device";
constexpr std::string_view not_yet = "a backend that has it; this version's have not";

constexpr CatalogueEntry built_in[] = {
    {OpId::matmul, "openblas", cpu, "OpenBLAS sgemm and dgemm: large and middle sizes", "nothing more"},
    {OpId::matmul, "reference", cpu, "any dtype and layout, one loop; the yardstick for all others", "nothing more"},
    {OpId::matmul, "skinny", cuda, "few rows (up to 16): bound by memory, as in decoding", nvidia_gpu},
    {OpId::matmul, "cublasLt", cuda, "cuBLASLt with a chosen algorithm: tensor cores, most sizes",
     "an NVIDIA GPU and libcublasLt"},
    {OpId::matmul, "cublas", cuda, "classic cuBLAS", not_yet},
    {OpId::matmul, "cutlass", cuda, "CUTLASS templates, FP8", not_yet},
    {OpId::matmul, "reference", cuda, "any dtype and layout, one thread per output", nvidia_gpu},
    {OpId::matmul, "MATMUL_TILED_LOCAL", opencl, "tiles in local memory", opencl_device},
    {OpId::matmul, "MATMUL_DIRECT", opencl, "any layout, one work-item per output", opencl_device},
    {OpId::add, "reference", cpu, "any dtype and layout", "nothing more"},
    {OpId::add, "elementwise", cuda, "any layout, vector loads where contiguous", nvidia_gpu},
    {OpId::add, "ADD_DIRECT", opencl, "any layout", opencl_device},
    {OpId::relu, "reference", cpu, "any dtype and layout", "nothing more"},
    {OpId::cast, "reference", cpu, "exact, ties to even, any pair of dtypes", "nothing more"},
    {OpId::cast, "elementwise", cuda, "exact, ties to even", nvidia_gpu},
    {OpId::cast, "CAST_DIRECT", opencl, "exact, ties to even", opencl_device},
    {OpId::softmax, "reference", cpu, "any dtype, layout and axis, computed in float64", "nothing more"},
    {OpId::attention, "torch", cuda, "PyTorch's own attention", not_yet},
    {OpId::attention, "flash_v2", cuda, "FlashAttention 2: long sequences in little memory", not_yet},
    {OpId::attention, "xformers", cuda, "xFormers: many attention patterns", not_yet},
    {OpId::conv2d, "cudnn", cuda, "cuDNN, algorithm chosen by its heuristics", not_yet},
    {OpId::conv2d, "cudnn_implicit_gemm", cuda, "cuDNN as an implicit matrix product", not_yet},
    {OpId::conv2d, "cudnn_winograd", cuda, "cuDNN Winograd for small filters", not_yet},
    {OpId::conv2d, "CONV2D_WINOGRAD", opencl, "Winograd for 3x3 filters with stride 1", not_yet},
    {OpId::conv2d, "CONV2D_IM2COL", opencl, "1x1 filters as a matrix product", not_yet},
    {OpId::conv2d, "CONV2D_TILED_LOCAL", opencl, "tiles in local memory: integrated GPUs", not_yet},
    {OpId::conv2d, "CONV2D_IMPLICIT_GEMM", opencl, "the general case", not_yet},
    {OpId::conv2d, "CONV2D_NAIVE_SMALL", opencl, "tiny inputs", not_yet},
};

/// Names from plugins and from register_kernel. Entries are never removed, so views of their names stay good.
struct Remembered {
  std::mutex mutex;
  std::deque<std::string> names;
  std::vector<CatalogueEntry> entries;
};

Remembered& remembered() {
  static Remembered instance;
  return instance;
}

}  // namespace

std::vector<CatalogueEntry> catalogue() {
  std::vector<CatalogueEntry> all(std::begin(built_in), std::end(built_in));
  Remembered& more = remembered();
  const std::lock_guard lock(more.mutex);
  all.insert(all.end(), more.entries.begin(), more.entries.end());
  return all;
}

std::vector<CatalogueEntry> find_in_catalogue(OpId op, std::string_view kernel) {
  std::vector<CatalogueEntry> found;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.op == op && entry.name == kernel) found.push_back(entry);
  }
  return found;
}

void remember_kernel(OpId op, std::string_view name, DeviceType device_type) {
  const auto same = [&](const CatalogueEntry& entry) {
    return entry.op == op && entry.name == name && entry.device_type == device_type;
  };
  if (std::any_of(std::begin(built_in), std::end(built_in), same)) return;
  Remembered& more = remembered();
  const std::lock_guard lock(more.mutex);
  if (std::any_of(more.entries.begin(), more.entries.end(), same)) return;
  more.names.emplace_back(name);
  more.entries.push_back({op, more.names.back(), device_type, "registered at run time", "the code that registers it"});
}

}  // namespace xpuruntime
