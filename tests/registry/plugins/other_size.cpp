#include "empty_backend.h"

XRT_EXPORT_INFO(xpuruntime::backend_contract_version, sizeof(xpuruntime::PluginInfo) + 8, XRT_PLUGIN_ABI,
                xpuruntime::make_empty_backend)
