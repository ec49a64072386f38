#pragma once

#include <string>

namespace xpuruntime::cpu {

/// Tells OpenBLAS, once in the process, to stay on the calling thread: the pool's tasks call it side by side. It is
/// linked into this library, unseen by others: no other package's calls are meant by that.
void use_one_blas_thread();

/// "0.3.21 SkylakeX": the version, and the processor that it took this one for.
std::string blas_version();

}  // namespace xpuruntime::cpu
