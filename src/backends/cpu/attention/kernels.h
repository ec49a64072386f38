#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

/// Names the class of problems that differ in the number of keys and what follows from it: how keys, values and mask
/// lie, or how many pages a sequence has.
std::optional<Problem> attention_of_any_length(const Problem& problem);

SupportsFunction supports_attention_composed, supports_attention_tiled, supports_attention_tiled_amx,
    supports_attention_single_query;
WorkspaceFunction workspace_attention_composed, workspace_attention_tiled, workspace_attention_tiled_amx,
    workspace_attention_single_query;
PrepareFunction prepare_attention_reference, prepare_attention_composed, prepare_attention_tiled,
    prepare_attention_tiled_amx, prepare_attention_single_query;

inline constexpr KernelSpec attention_rows[] = {
    taking("lengths|page_table|causal_align|lse",
           by_class(attention_of_any_length,
                    {OpId::attention, "single_query", "up to 4 queries, as in decoding: keys and values are read once",
                     fast_floats, prepare_attention_single_query, supports_attention_single_query,
                     workspace_attention_single_query})),
    {.ops = OpId::attention,
     .name = "tiled_amx",
     .summary = "AMX tiles, the softmax in blocks of keys",
     .dtypes = DataType::bfloat16,
     .prepare = prepare_attention_tiled_amx,
     .supports = supports_attention_tiled_amx,
     .workspace_bytes = workspace_attention_tiled_amx,
     .outputs = fast_floats,
     .needs = "a CPU with AMX",
     .takes = "lengths|causal_align|lse"},
    taking("lengths|causal_align|lse",
           {OpId::attention, "tiled", "the softmax in blocks of keys: little memory, any length", fast_floats,
            prepare_attention_tiled, supports_attention_tiled, workspace_attention_tiled}),
    {OpId::attention, "composed", "matrix product, softmax, matrix product over whole rows", fast_floats,
     prepare_attention_composed, supports_attention_composed, workspace_attention_composed},
    taking("lengths|page_table|causal_align|lse",
           by_class(attention_of_any_length,
                    {OpId::attention, "reference", summary::exact, any_dtype, prepare_attention_reference})),
};

}  // namespace xpuruntime::cpu
