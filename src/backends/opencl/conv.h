#pragma once

#include "backends/opencl/product.h"

namespace xpuruntime::opencl {

/// A convolution read once from its problem: the struct of kernels/conv.cl. Depth, height and width; conv2d has a depth
/// of 1. Channels are those of one group.
struct ConvShape {
  std::int64_t batch = 0;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t in[3] = {1, 1, 1};
  std::int64_t kernel[3] = {1, 1, 1};
  std::int64_t out[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1};
  std::int64_t padding[3] = {};
  std::int64_t dilation[3] = {1, 1, 1};
  std::int64_t x_batch = 0;
  std::int64_t x_channel = 0;
  std::int64_t x[3] = {};
  std::int64_t w_out = 0;
  std::int64_t w_in = 0;
  std::int64_t w[3] = {};
  std::int64_t y_batch = 0;
  std::int64_t y_channel = 0;
  std::int64_t y[3] = {};
  std::int64_t bias_stride = 0;
  std::int64_t has_bias = 0;

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// How many products an output element sums.
  std::int64_t depth() const { return in_channels * taps(); }
  std::int64_t pixels() const { return out[0] * out[1] * out[2]; }
  /// 1x1 with stride 1 and no padding: a plain matrix product.
  bool pointwise() const;
};
ConvShape conv_shape(const Problem& problem);

/// conv.cl and what else goes before a source.
std::string conv_source(const char* source);
/// The types of input, weight, output and bias.
std::string conv_types(const Problem& problem);
/// The bias, or any tensor in its place where there is none.
Operand bias_of(const Problem& problem);

}  // namespace xpuruntime::opencl
