#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/program/given_outputs.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/graph/model.h"

// What a run takes: the same for all engines.

namespace xpuruntime {

/// What is wrong with inputs of types that no tensor here has, so that no engine can be given them; empty: nothing.
std::string flaw_of_input_types(const Model& model);

/// Fails where shapes are static and there is not one that fits for each input, and where some are given and they are
/// not static.
void check_fixed_shapes(const Model& model, const ExecutionPolicy& execution);

/// Fails where the number of inputs, a dtype or a shape is not what the model takes or the policy fixes.
void check_inputs(const Model& model, const ExecutionPolicy& execution, std::span<const TensorSpec> specs);

/// Fails where memory that is given for outputs cannot be theirs, as far as it is known before a run.
void check_outputs(const Model& model, std::span<const Tensor> inputs, GivenOutputs outputs);

/// Fails where what an engine gave is not what the model says of its outputs: another number, dtype, rank or size.
void check_results(const Model& model, const std::string& engine, std::span<const Tensor> results);

std::vector<TensorSpec> specs_of(std::span<const Tensor> tensors);

}  // namespace xpuruntime
