#include "xpuruntime/registry/catalogue.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

constexpr DeviceType cpu = DeviceType::cpu;
constexpr DeviceType cuda = DeviceType::nvidia;
constexpr DeviceType opencl = DeviceType::opencl;
constexpr std::string_view nvidia_gpu = "an NVIDIA GPU";
constexpr std::string_view opencl_device = "an OpenCL device";
constexpr std::string_view not_yet = "a backend that has it; this version's have not";

constexpr CatalogueEntry built_in[] = {
    {OpId::matmul, "small", cpu, "our tiles without packing: extents up to 64, batches of them", "nothing more"},
    {OpId::matmul, "skinny", cpu, "up to 8 rows or columns: bound by memory, as in decoding", "nothing more"},
    {OpId::matmul, "amx", cpu, "bf16 on AMX tiles, the smaller operand packed in each call", "a CPU with AMX"},
    {OpId::matmul, "int8", cpu, "8-bit integers, exact, with VNNI or dot product where there is one", "nothing more"},
    {OpId::matmul, "packed", cpu, "our own blocked product: f32, f16 and bf16, any layout", "nothing more"},
    {OpId::matmul, "onednn", cpu, "oneDNN: f32, bf16 and INT8 with AVX-512 and AMX", "a build with oneDNN", "onednn"},
    {OpId::matmul, "openblas", cpu, "OpenBLAS sgemm and dgemm: large and middle sizes", "nothing more", "openblas"},
    {OpId::matmul, "reference", cpu, "any dtype and layout, one loop; the yardstick for all others", "nothing more"},
    {OpId::matmul, "skinny", cuda, "few rows (up to 16): bound by memory, as in decoding", nvidia_gpu},
    {OpId::matmul, "cublasLt", cuda, "cuBLASLt with a chosen algorithm: tensor cores, most sizes",
     "an NVIDIA GPU and libcublasLt", "cublasLt"},
    {OpId::matmul, "cublas", cuda, "classic cuBLAS", not_yet},
    {OpId::matmul, "cutlass", cuda, "CUTLASS templates, FP8", not_yet},
    {OpId::matmul, "reference", cuda, "any dtype and layout, one thread per output", nvidia_gpu},
    {OpId::matmul, "MATMUL_TILED_LOCAL", opencl, "tiles in local memory", opencl_device, "opencl"},
    {OpId::matmul, "MATMUL_DIRECT", opencl, "any layout, one work-item per output", opencl_device, "opencl"},
    {OpId::conv2d, "depthwise", cpu, "one input channel a group: vectors along rows", "nothing more"},
    {OpId::conv2d, "direct", cpu, "sums in registers, no matrix of columns: most shapes", "nothing more"},
    {OpId::conv2d, "winograd", cpu, "3x3 filters with stride 1: large images, not too many channels", "nothing more"},
    {OpId::conv2d, "im2col", cpu, "tiles of columns times the weight as a matrix product", "nothing more"},
    {OpId::conv2d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::conv3d, "depthwise", cpu, "one input channel a group: vectors along rows", "nothing more"},
    {OpId::conv3d, "direct", cpu, "sums in registers, no matrix of columns: most shapes", "nothing more"},
    {OpId::conv3d, "im2col", cpu, "tiles of columns times the weight as a matrix product", "nothing more"},
    {OpId::conv3d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::attention, "single_query", cpu, "up to 4 queries, as in decoding: keys and values are read once",
     "nothing more"},
    {OpId::attention, "tiled_amx", cpu, "bf16 on tile registers, the softmax in blocks of keys",
     "a processor with amx_bf16 and a system that allows it"},
    {OpId::attention, "tiled", cpu, "the softmax in blocks of keys: little memory, any length", "nothing more"},
    {OpId::attention, "composed", cpu, "matrix product, softmax, matrix product over whole rows", "nothing more"},
    {OpId::attention, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::max_pool2d, "simd", cpu, "one dim after the other, in vectors; f32, f16 and bf16", "nothing more"},
    {OpId::max_pool2d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::max_pool3d, "simd", cpu, "one dim after the other, in vectors; f32, f16 and bf16", "nothing more"},
    {OpId::max_pool3d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::avg_pool2d, "simd", cpu, "one dim after the other, in vectors; f32, f16 and bf16", "nothing more"},
    {OpId::avg_pool2d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::avg_pool3d, "simd", cpu, "one dim after the other, in vectors; f32, f16 and bf16", "nothing more"},
    {OpId::avg_pool3d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::batch_norm1d, "simd", cpu, "dense f32, f16 and bf16, planes or channels last: vectors along either",
     "nothing more"},
    {OpId::batch_norm1d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::batch_norm2d, "simd", cpu, "dense f32, f16 and bf16, planes or channels last: vectors along either",
     "nothing more"},
    {OpId::batch_norm2d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::batch_norm3d, "simd", cpu, "dense f32, f16 and bf16, planes or channels last: vectors along either",
     "nothing more"},
    {OpId::batch_norm3d, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::layer_norm, "simd", cpu, "dense f32, f16 and bf16: two passes over a row in cache", "nothing more"},
    {OpId::layer_norm, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::rms_norm, "simd", cpu, "dense f32, f16 and bf16: two passes over a row in cache", "nothing more"},
    {OpId::rms_norm, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::normalize, "simd", cpu, "dense f32, f16 and bf16, p of 0, 1, 2 or infinity, any axis", "nothing more"},
    {OpId::normalize, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::softmax, "simd", cpu, "dense f32, f16 and bf16, any axis: rows, or vectors across columns", "nothing more"},
    {OpId::softmax, "reference", cpu, "any dtype, layout and axis, computed in float64", "nothing more"},
    {OpId::log_softmax, "simd", cpu, "dense f32, f16 and bf16, any axis: rows, or vectors across columns",
     "nothing more"},
    {OpId::log_softmax, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::dropout, "simd", cpu, "random words made in vectors, f32, f16 and bf16", "nothing more"},
    {OpId::dropout, "reference", cpu, "any float dtype and layout, one random word at a time", "nothing more"},
    {OpId::add, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16; most integers", "nothing more"},
    {OpId::linear, "small", cpu, "our tiles without packing: extents up to 64, batches of them", "nothing more"},
    {OpId::linear, "skinny", cpu, "up to 8 rows or columns: bound by memory, as in decoding", "nothing more"},
    {OpId::linear, "amx", cpu, "bf16 on AMX tiles, the smaller operand packed in each call", "a CPU with AMX"},
    {OpId::linear, "int8", cpu, "8-bit integers, exact, with VNNI or dot product where there is one", "nothing more"},
    {OpId::linear, "packed", cpu, "our own blocked product: f32, f16 and bf16, any layout", "nothing more"},
    {OpId::linear, "onednn", cpu, "oneDNN: f32 and bf16 with AVX-512 and AMX", "a build with oneDNN", "onednn"},
    {OpId::linear, "openblas", cpu, "OpenBLAS sgemm, bias and activation on what it leaves in the cache",
     "nothing more", "openblas"},
    {OpId::linear, "reference", cpu, "any dtype and layout, one loop", "nothing more"},
    {OpId::conv2d, "onednn", cpu, "oneDNN in its own layouts: AVX-512 and AMX", "a build with oneDNN", "onednn"},
    {OpId::conv3d, "onednn", cpu, "oneDNN in its own layouts: AVX-512 and AMX", "a build with oneDNN", "onednn"},
    {OpId::add, "reference", cpu, "any dtype and layout", "nothing more"},
    {OpId::add, "elementwise", cuda, "any layout, vector loads where contiguous", nvidia_gpu},
    {OpId::add, "ADD_DIRECT", opencl, "any layout", opencl_device, "opencl"},
    {OpId::sub, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16; most integers", "nothing more"},
    {OpId::sub, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::mul, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16; most integers", "nothing more"},
    {OpId::mul, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::div, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::div, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::log, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::log, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::exp, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::exp, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::sqrt, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::sqrt, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::relu, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::relu, "reference", cpu, "any dtype and layout", "nothing more"},
    {OpId::gelu, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::gelu, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::silu, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::silu, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::sigmoid, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::sigmoid, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::tanh, "simd", cpu, "vectors of f32, any layout; f32, f16 and bf16", "nothing more"},
    {OpId::tanh, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::reduce_sum, "simd", cpu, "f32, f16 and bf16, any axes: rows or vectors across columns, in fixed chunks",
     "nothing more"},
    {OpId::reduce_sum, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::reduce_mean, "simd", cpu, "f32, f16 and bf16, any axes: rows or vectors across columns, in fixed chunks",
     "nothing more"},
    {OpId::reduce_mean, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::reduce_max, "simd", cpu, "f32, f16 and bf16, any axes: rows or vectors across columns, in fixed chunks",
     "nothing more"},
    {OpId::reduce_max, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::reduce_min, "simd", cpu, "f32, f16 and bf16, any axes: rows or vectors across columns, in fixed chunks",
     "nothing more"},
    {OpId::reduce_min, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::embedding, "rows", cpu, "copies whole rows of the table", "nothing more"},
    {OpId::embedding, "reference", cpu, "any dtype and layout", "nothing more"},
    {OpId::cross_entropy, "simd", cpu, "dense f32, f16 and bf16: one pass over the scores", "nothing more"},
    {OpId::cross_entropy, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::nll_loss, "simd", cpu, "dense f32, f16 and bf16: reads the scores of the targets alone", "nothing more"},
    {OpId::nll_loss, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::kl_div, "simd", cpu, "dense f32, f16 and bf16 of one shape: one pass, sums in fixed chunks", "nothing more"},
    {OpId::kl_div, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::poisson_nll_loss, "simd", cpu, "dense f32, f16 and bf16 of one shape: one pass, sums in fixed chunks",
     "nothing more"},
    {OpId::poisson_nll_loss, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
    {OpId::cast, "simd", cpu, "vectors: between f32, f16, bf16 and from and to bytes and i32", "nothing more"},
    {OpId::cast, "reference", cpu, "exact, ties to even, any pair of dtypes", "nothing more"},
    {OpId::cast, "elementwise", cuda, "exact, ties to even", nvidia_gpu},
    {OpId::cast, "CAST_DIRECT", opencl, "exact, ties to even", opencl_device, "opencl"},
    {OpId::copy, "blocked", cpu, "whole rows, or tiles where the layouts cross", "nothing more"},
    {OpId::copy, "reference", cpu, "any pair of dtypes and layouts", "nothing more"},
    {OpId::transpose, "blocked", cpu, "tiles turned round in vectors", "nothing more"},
    {OpId::transpose, "reference", cpu, "any pair of dtypes and layouts", "nothing more"},
    {OpId::concat, "rows", cpu, "whole rows of inputs of one dtype", "nothing more"},
    {OpId::concat, "reference", cpu, "any pair of dtypes and layouts", "nothing more"},
    {OpId::slice, "rows", cpu, "whole rows of what is kept", "nothing more"},
    {OpId::slice, "reference", cpu, "any pair of dtypes and layouts", "nothing more"},
    {OpId::unscale, "simd", cpu, "f32, f16 and bf16 gradients of any layout to f32, in one pass", "nothing more"},
    {OpId::unscale, "reference", cpu, "any dtype and layout, computed in float64", "nothing more"},
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
  Mutex mutex;
  std::deque<std::string> names;
  std::vector<CatalogueEntry> entries;
};

Remembered& remembered() {
  static Remembered& instance = *new Remembered;  // for ever: daemon threads decide while a process ends
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

std::optional<CatalogueEntry> find_in_catalogue(OpId op, std::string_view kernel, DeviceType device_type) {
  for (const CatalogueEntry& entry : find_in_catalogue(op, kernel)) {
    if (entry.device_type == device_type) return entry;
  }
  return std::nullopt;
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
