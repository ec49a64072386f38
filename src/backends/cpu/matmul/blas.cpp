#include "backends/cpu/matmul/blas.h"

#include <cblas.h>

namespace xpuruntime::cpu {

void use_one_blas_thread() { [[maybe_unused]] static const bool done = (openblas_set_num_threads(1), true); }

}  // namespace xpuruntime::cpu
