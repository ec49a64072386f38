#pragma once

namespace xpuruntime::python {

class OpCall;

// What a signature does beyond its table row: parameters that stand for something else than an attribute of their name.
void alpha_before(OpCall& call);
void attention_before(OpCall& call);
void batch_norm_before(OpCall& call);
void batch_norm_after(OpCall& call);
void conv_after(OpCall& call);
void dropout_after(OpCall& call);
void layer_norm_after(OpCall& call);
void matmul_after(OpCall& call);
void permute_after(OpCall& call);
void pool_after(OpCall& call);
void reduce_after(OpCall& call);
void rms_norm_after(OpCall& call);
void transpose_after(OpCall& call);

}  // namespace xpuruntime::python
