#include "backends/cpu/matmul/blas.h"

#include <cblas.h>

namespace xpuruntime::cpu {

void use_one_blas_thread() { [[maybe_unused]] static const bool done = (openblas_set_num_threads(1), true); }

std::string blas_version() {
  std::string words = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
  if (const auto first = words.find(' '); first != words.npos) words.erase(0, first + 1);
  return words.substr(0, words.find(' ')) + " " + openblas_get_corename();
}

}  // namespace xpuruntime::cpu
