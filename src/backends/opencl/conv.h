#pragma once

#include "backends/opencl/product.h"
#include "core/windows.h"

namespace xpuruntime::opencl {

/// With strides: the struct of kernels/conv.cl.
struct ConvShape : xpuruntime::ConvShape {
  std::int64_t x_batch = 0;
  std::int64_t x_channel = 0;
  Extents x = {};
  std::int64_t w_out = 0;
  std::int64_t w_in = 0;
  Extents w = {};
  std::int64_t y_batch = 0;
  std::int64_t y_channel = 0;
  Extents y = {};
  std::int64_t bias_stride = 0;
  std::int64_t has_bias = 0;
};
ConvShape strided_conv_shape(const Problem& problem);

/// conv.cl and what else goes before a source.
std::string conv_source(const char* source);
/// The types of input, weight, output and bias.
std::string conv_types(const Problem& problem);
/// The bias, or any tensor in its place where there is none.
Operand bias_of(const Problem& problem);

}  // namespace xpuruntime::opencl
