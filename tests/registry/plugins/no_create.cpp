#include "empty_backend.h"

XRT_EXPORT_INFO(xpuruntime::backend_contract_version, sizeof(xpuruntime::PluginInfo), XRT_PLUGIN_ABI, nullptr)
