#include "xpuruntime/precision/autocast.h"

namespace xpuruntime {

Autocast make_autocast(const AmpRegistry& registry, bool enabled, std::optional<DataType> dtype) {
  Autocast autocast{registry.snapshot(), registry.config()};
  autocast.config.enabled = autocast.config.enabled && enabled;
  if (dtype) autocast.config.target_precision = *dtype;
  autocast.config.check();
  return autocast;
}

}  // namespace xpuruntime
