#include "empty_backend.h"

namespace {
xpuruntime::Backend* create() { return nullptr; }
}  // namespace

XRT_EXPORT_INFO(xpuruntime::backend_contract_version, sizeof(xpuruntime::PluginInfo), XRT_PLUGIN_ABI, create)
