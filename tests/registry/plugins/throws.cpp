#include "empty_backend.h"

namespace {

/// A type that only this library knows.
struct NoLicence : std::runtime_error {
  using std::runtime_error::runtime_error;
};

xpuruntime::Backend* create() { throw NoLicence("no licence was found"); }

}  // namespace

XRT_EXPORT_INFO(xpuruntime::backend_contract_version, sizeof(xpuruntime::PluginInfo), XRT_PLUGIN_ABI, create)
