#pragma once

#include <functional>
#include <vector>

#include "graph/native/deadline.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime::native {

/// What `work` returns or throws, by a thread of its own: nothing ends a kernel inside of its call, but nobody has to
/// wait for it. Once the deadline is over this fails, the work goes on to its end, and what it returns is dropped: it
/// must own all that it uses. The process waits for it at its end, for ten seconds.
std::vector<Tensor> run_aside(std::function<std::vector<Tensor>()> work, const Deadline& deadline);

}  // namespace xpuruntime::native
