#pragma once

#include <memory>
#include <string>

#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime {

/// SHA-256 of the model, its file and all of its constants, wherever they lie.
std::string content_of_model(const Model& model);

/// Compiles, or takes what was kept of it. Keyed by all that may change what comes out: the model's content, the
/// policy, the versions of the engine and this library, the device.
std::unique_ptr<CompiledModel> compile_with_cache(const Engine& engine, EngineRequest request,
                                                  const DeviceManager& devices);

}  // namespace xpuruntime
