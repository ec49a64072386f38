#include "backends/cuda/cutlass.h"

namespace xpuruntime::cuda {

#define XRT_TILES(use)                                                                                       \
  use(128x256) use(256x128) use(128x128) use(64x128) use(128x256_split) use(128x128_split) use(64x128_split) \
      use(32x128_split)
#define XRT_DECLARE(tile) extern const CutlassConfiguration cutlass_##tile##_half_t, cutlass_##tile##_bfloat16_t;
XRT_TILES(XRT_DECLARE)

std::vector<const CutlassConfiguration*> cutlass_configurations() {
#define XRT_LIST(tile) &cutlass_##tile##_half_t, &cutlass_##tile##_bfloat16_t,
  return {XRT_TILES(XRT_LIST)};
}

}  // namespace xpuruntime::cuda
