#pragma once

#include "backends/cpu/onednn/program.h"

namespace xpuruntime::cpu {

/// What a backward convolution asks for beyond supports_onednn.
Verdict supports_conv_backward(const Problem& problem);

/// The gradients of input, weight and bias, in the layouts that oneDNN likes best.
Program conv_backward_program(const Problem& problem);

}  // namespace xpuruntime::cpu
