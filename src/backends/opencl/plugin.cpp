#include "backends/opencl/backend.h"

XRT_EXPORT_BACKEND(xpuruntime::opencl::OpenClBackend)
