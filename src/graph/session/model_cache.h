#pragma once

#include <memory>
#include <string>

#include "cache/disk_cache.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime {

/// SHA-256 of the model, and of its files as they are now. `kept` keeps what was computed of files.
std::string content_of_model(const Model& model, const DiskCache& kept);

/// Compiles, or takes what was kept of it. Keyed by all that may change what comes out: the model's content, the
/// policy, the versions of the engine and this library, the device.
std::unique_ptr<CompiledModel> compile_with_cache(const Engine& engine, EngineRequest request,
                                                  const DeviceManager& devices);

}  // namespace xpuruntime
