#include "empty_backend.h"

XRT_EXPORT_INFO(xpuruntime::backend_contract_version + 41, sizeof(xpuruntime::PluginInfo), XRT_PLUGIN_ABI,
                xpuruntime::make_empty_backend)
