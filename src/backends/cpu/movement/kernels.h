#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

/// Takes what needs no conversion: every input has the output's dtype. Concat's too.
SupportsFunction supports_copy_bytes;
SupportsFunction supports_embedding_rows;
PrepareFunction prepare_copy_reference, prepare_copy_bytes, prepare_concat_reference, prepare_concat_rows,
    prepare_embedding_reference, prepare_embedding_rows;

inline constexpr KernelSpec movement_rows[] = {
    {OpId::embedding, "rows", "copies or casts whole rows of the table, gathers strided ones", any_dtype,
     prepare_embedding_rows, supports_embedding_rows},
    {OpId::embedding, "reference", "any dtype and layout", any_dtype, prepare_embedding_reference},
    {.ops = {OpId::copy, OpId::transpose},
     .name = "blocked",
     .summary = "whole rows, or tiles transposed in vectors where the layouts differ",
     .prepare = prepare_copy_bytes,
     .supports = supports_copy_bytes,
     .any_alignment = true},
    {.ops = OpId::concat,
     .name = "rows",
     .summary = "whole rows of inputs of one dtype",
     .prepare = prepare_concat_rows,
     .supports = supports_copy_bytes,
     .any_alignment = true},
    {.ops = OpId::slice,
     .name = "rows",
     .summary = "whole rows of what is kept",
     .prepare = prepare_copy_bytes,
     .supports = supports_copy_bytes,
     .any_alignment = true},
    {{OpId::copy, OpId::transpose, OpId::slice}, "reference", summary::moved, any_dtype, prepare_copy_reference},
    {OpId::concat, "reference", summary::moved, any_dtype, prepare_concat_reference},
};

}  // namespace xpuruntime::cpu
