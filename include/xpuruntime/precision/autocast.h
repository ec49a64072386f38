#pragma once

#include <memory>
#include <optional>

#include "xpuruntime/precision/amp_registry.h"

namespace xpuruntime {

/// Autocast as it is in force in a scope: the rules as they were when it was entered, and what `lower` means in them.
struct Autocast {
  std::shared_ptr<const AmpRules> rules = {};
  AmpConfig config = {};

  /// Nothing is cast where it is off.
  bool on() const { return rules != nullptr && config.enabled; }
  bool operator==(const Autocast& other) const { return rules == other.rules && config == other.config; }
};

/// The registry's rules, with its own target precision or another. A dtype that is not a low precision is an error.
Autocast make_autocast(const AmpRegistry& registry, bool enabled = true, std::optional<DataType> dtype = {});

}  // namespace xpuruntime
