#pragma once

#include <optional>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Products of quantized integers. The sums are exact, in 32 bits; scales come afterwards.

namespace xpuruntime::native {

/// Integers of 8 bits, and what is to be taken off them.
struct Integers {
  int codes = -1;
  int zero = -1;  // below 0: nothing
};

/// Sums of products as MatMul has them. `bias`: i32, one for each column; below 0: none.
int integer_matmul(const NodeCall& call, const Integers& a, const Integers& b, int bias = -1);
/// The same of a convolution with the node's attributes.
int integer_conv(const NodeCall& call, const Integers& x, const Integers& weight, int bias = -1);

/// What sums become: times a scale for all, or for each slice of a dim.
int scaled_sums(const NodeCall& call, int sums, int scale_a, int scale_b, std::int64_t dim);
/// The same, quantized again.
int quantized_sums(const NodeCall& call, int sums, int scale_a, int scale_b, std::int64_t dim, int scale, int zero);

/// MatMul or Gemm of inputs that were quantized (weights [n,k] where they lie across), on the integers. Nothing where
/// the floats must be multiplied.
std::optional<int> matmul_of_codes(const NodeCall& call, bool across, int bias);
std::optional<int> conv_of_codes(const NodeCall& call, int bias);

/// A convolution with the node's attributes; `around` images there is this value. Below 0: no bias.
int convolved(const NodeCall& call, int x, int weight, int bias, double around = 0);
/// Whether the node's windows reach beyond the image.
bool pads_images(const NodeCall& call, int weight);

}  // namespace xpuruntime::native
