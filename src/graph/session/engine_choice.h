#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/graph/model.h"
#include "xpuruntime/tune/store.h"

// The engine that was measured to be the fastest, as a choice of the store of measurements.

namespace xpuruntime {

/// SHA-256 of all that a model is, but of large constants only of the shapes.
std::string structure_of_model(const Model& model);

/// How the store calls a model under a policy. Times do not depend on the values
/// of large constants. Without shapes: whatever those of the inputs are.
std::string name_in_store(const Model& model, const ExecutionPolicy& execution, int threads,
                          const std::vector<TensorSpec>* inputs);

/// The shapes that the policy or the model fixes for all inputs.
std::optional<std::vector<TensorSpec>> fixed_inputs(const Model& model, const ExecutionPolicy& execution);

/// The environment whose measurements count for a target.
Environment environment_for(const DeviceManager& devices, DeviceType target);

/// What was measured for the shapes that are fixed, or else last. Nothing where nothing was, or only elsewhere.
std::optional<TunedChoice> measured_engine(const MeasurementStore& store, const Model& model,
                                           const ExecutionPolicy& execution, int threads, const DeviceManager& devices);

}  // namespace xpuruntime
