#pragma once

#include "graph/passes/rewriter.h"

namespace xpuruntime::native {

/// Changes the program in every place where its pattern is found.
using Pass = void(Rewriter& program);

// Calls of one op in place of several that compute the same. From level 2 on, in this order.
Pass fold_channel_scales;  // conv, batch_norm or products and sums by channel -> conv with other constants
Pass add_biases;           // matmul or linear, sum -> linear with a bias
Pass find_activations;     // formulas of gelu, silu, hard_swish -> gelu, silu, hard_swish, silu_mul
Pass find_norms;           // formulas of layer_norm and rms_norm
Pass find_attention;       // product, scale, mask, softmax, product -> attention
Pass join_activations;     // linear, activation -> linear with an activation
Pass join_residuals;       // sum, rms_norm -> add_rms_norm

/// The passes of an optimise level. Every result that the caller or another step needs stays, and every note.
void run_passes(Program& program, int optimize_level, const PassContext& context);

/// Images between convolutions with channels last, on devices whose kernels take them so: at level 3, after the others.
void turn_channels_last(Program& program, const PassContext& context);
/// Computes in f16 or bf16 where the context's autocast asks for that: after all other passes, at every level.
void lower_precision(Program& program, const PassContext& context);
/// Puts the calls that the device has no kernel for on the CPU, with copies of what they read and make; where the
/// context does not allow that, it is one error that lists all of them. After lower_precision.
void place_steps(Program& program, const PassContext& context);

}  // namespace xpuruntime::native
