#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "xpuruntime/runtime/call_op.h"

// Made by tools/op_functions.py from the rows of the ops. What the functions of ops.h may be given beyond what they
// must be: inputs that may be left out, and attributes.

namespace xpuruntime::ops {

struct MatmulOptions {
  const Tensor* c = nullptr;
  const Tensor* scale_a = nullptr;
  const Tensor* scale_b = nullptr;
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1.0;
  double beta = 1.0;  // of `c`
};

struct LinearOptions {
  const Tensor* bias = nullptr;
  std::string_view activation = "none";  // none|relu|gelu|silu
};

struct Conv2dOptions {
  const Tensor* bias = nullptr;
  Ints stride = 1;
  Ints padding = 0;
  Ints dilation = 1;
  std::int64_t groups = 1;
};
using Conv3dOptions = Conv2dOptions;

struct AttentionOptions {
  const Tensor* attn_mask = nullptr;
  const Tensor* lengths = nullptr;
  const Tensor* page_table = nullptr;
  bool causal = false;
  double scale = 0.0;                          // 0: one over the root of the head size
  std::string_view causal_align = "top_left";  // top_left|bottom_right
};

struct MaxPool2dOptions {
  Ints stride = 0;  // 0: the kernel size
  Ints padding = 0;
  Ints dilation = 1;
  bool ceil_mode = false;
};
using MaxPool3dOptions = MaxPool2dOptions;

struct AvgPool2dOptions {
  Ints stride = 0;  // 0: the kernel size
  Ints padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};
using AvgPool3dOptions = AvgPool2dOptions;

struct BatchNorm1dOptions {
  const Tensor* running_mean = nullptr;
  const Tensor* running_var = nullptr;
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-05;
};
using BatchNorm2dOptions = BatchNorm1dOptions;
using BatchNorm3dOptions = BatchNorm1dOptions;

struct LayerNormOptions {
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;
  std::int64_t normalized_rank = 1;
  double eps = 1e-05;
};

struct RmsNormOptions {
  const Tensor* weight = nullptr;
  double eps = 1e-06;
};

struct NormalizeOptions {
  double p = 2.0;
  std::int64_t dim = 1;
  double eps = 1e-12;
};

struct SoftmaxOptions {
  std::int64_t dim = -1;
};
using LogSoftmaxOptions = SoftmaxOptions;

struct DropoutOptions {
  const Tensor* seed_and_offset = nullptr;
  double p = 0.5;
  std::int64_t seed = 0;
  bool training = true;
};

struct GeluOptions {
  std::string_view approximate = "none";  // none|tanh
};

struct ReduceSumOptions {
  Ints dim = {};  // empty: all
  bool keepdim = false;
};
using ReduceMeanOptions = ReduceSumOptions;
using ReduceMaxOptions = ReduceSumOptions;
using ReduceMinOptions = ReduceSumOptions;

struct CrossEntropyOptions {
  const Tensor* weight = nullptr;
  std::string_view reduction = "mean";  // mean|sum|none
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;
};

struct NllLossOptions {
  const Tensor* weight = nullptr;
  std::string_view reduction = "mean";  // mean|sum|none
  std::int64_t ignore_index = -100;
};

struct KlDivOptions {
  std::string_view reduction = "mean";  // mean|sum|none|batchmean
  bool log_target = false;
};

struct PoissonNllLossOptions {
  bool log_input = true;
  bool full = false;
  double eps = 1e-08;
  std::string_view reduction = "mean";  // mean|sum|none
};

struct TransposeOptions {
  Ints dims = {};  // empty: reversed
};

struct ConcatOptions {
  std::int64_t dim = 0;
};

struct SliceOptions {
  std::int64_t dim = 0;
  std::int64_t start = 0;
  std::int64_t end = INT64_MAX;  // the end
  std::int64_t step = 1;
};
using AddRmsNormOptions = RmsNormOptions;

struct SiluMulOptions {
  const Tensor* other = nullptr;
};

struct RopeOptions {
  bool interleaved = false;
};

struct KvAppendOptions {
  const Tensor* page_table = nullptr;
};
using GatherOptions = ConcatOptions;
using GatherElementsOptions = ConcatOptions;

struct GatherNdOptions {
  std::int64_t batch_dims = 0;
};

struct ScatterElementsOptions {
  std::int64_t dim = 0;
  std::string_view reduction = "none";  // none|add|mul|max|min
};

struct ScatterNdOptions {
  std::string_view reduction = "none";  // none|add|mul|max|min
};

struct PadOptions {
  const Tensor* value = nullptr;
  Ints pads = {};                      // before and after, from the last dim on
  std::string_view mode = "constant";  // constant|reflect|replicate|wrap
};

struct TileOptions {
  Ints repeats = {};  // of the last dims
};

struct FlipOptions {
  Ints dims = {};  // empty: all
};

struct CumsumOptions {
  std::int64_t dim = 0;
  bool exclusive = false;
  bool reverse = false;
};

struct ArgMaxOptions {
  std::int64_t dim = -1;
  bool keepdim = false;
  bool select_last_index = false;
};
using ArgMinOptions = ArgMaxOptions;

struct TopKOptions {
  std::int64_t k = 1;
  std::int64_t dim = -1;
  bool largest = true;
  bool sorted = true;
};

struct OneHotOptions {
  const Tensor* values = nullptr;
  std::int64_t depth = 1;
  std::int64_t dim = -1;
};

struct TriluOptions {
  std::int64_t diagonal = 0;
  bool upper = true;
};
using ReduceProdOptions = ReduceSumOptions;

struct ReverseSequenceOptions {
  std::int64_t batch_dim = 0;
  std::int64_t time_dim = 1;
};

struct QuantizeOptions {
  const Tensor* zero_point = nullptr;
  std::int64_t dim = 1;         // of the scales, where there is more than one
  std::int64_t block_size = 0;  // 0: a scale for each slice
  DataType dtype = DataType::uint8;
};

struct DequantizeOptions {
  const Tensor* zero_point = nullptr;
  std::int64_t dim = 1;         // of the scales, where there is more than one
  std::int64_t block_size = 0;  // 0: a scale for each slice
  DataType dtype = DataType::float32;
};

struct ClipOptions {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

struct LeakyReluOptions {
  double negative_slope = 0.01;
};

struct EluOptions {
  double alpha = 1.0;
};

struct HardSigmoidOptions {
  double alpha = 0.16666666666666666;
  double beta = 0.5;
};

}  // namespace xpuruntime::ops
