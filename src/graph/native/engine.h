#pragma once

#include <memory>

#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {

/// The engine that is always here: our own kernels, each decided in this scope. Both outlive it and what it compiles.
std::shared_ptr<const Engine> make_engine(Dispatcher& dispatcher, const DeviceManager& devices, ScopePtr scope);

}  // namespace xpuruntime::native
