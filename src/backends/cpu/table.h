#pragma once

#include <algorithm>
#include <array>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/loss/kernels.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/movement/kernels.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/pointwise/kernels.h"
#include "backends/cpu/pool/kernels.h"
#include "backends/cpu/quantization/kernels.h"
#include "backends/cpu/reduce/kernels.h"

namespace xpuruntime::cpu {

template <std::size_t... sizes>
consteval auto joined(const KernelSpec (&... families)[sizes]) {
  std::array<KernelSpec, (sizes + ...)> rows = {};
  auto at = rows.begin();
  ((at = std::copy(std::begin(families), std::end(families), at)), ...);
  return rows;
}

// The rows of an op stand fastest first, reference last: their order is the priority. Those of products have oneDNN's
// in between, those of convolutions after it.
inline constexpr auto table = joined(product_rows, onednn_rows, product_rows_after_onednn, conv_rows, attention_rows,
                                     pool_rows, norm_rows, elementwise_rows, reduce_rows, movement_rows, indexing_rows,
                                     loss_rows, decoder_rows, quantization_rows, pointwise_rows);

}  // namespace xpuruntime::cpu
