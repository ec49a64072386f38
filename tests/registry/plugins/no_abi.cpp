#include "empty_backend.h"

XRT_EXPORT_INFO(xpuruntime::backend_contract_version, sizeof(xpuruntime::PluginInfo), nullptr,
                xpuruntime::make_empty_backend)
