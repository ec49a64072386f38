#pragma once

#include <string>

namespace xpuruntime::cpu {

/// Tells OpenBLAS, once in the process, to stay on the calling thread: the pool's tasks call it side by side. Where it
/// does not know this CPU and has fallen back to code from before AVX, it is told of a CPU with the same vectors.
void use_one_blas_thread();

/// "0.3.21 SkylakeX": the version, and the processor that it took this one for.
std::string blas_version();

}  // namespace xpuruntime::cpu
