#include "core/op_table.h"
#include "xpuruntime/precision/amp_registry.h"

namespace xpuruntime {
namespace {

/// The names of the ops on one side, by which users know them; two of them may name one op.
std::vector<std::string_view> names_on(AutocastSide side) {
  std::vector<std::string_view> names;
  for (const OpInfo& info : builtin_ops()) {
    if (info.autocast != side) continue;
    for_each_part(info.autocast_names.empty() ? info.name : info.autocast_names, [&](std::string_view name) {
      names.push_back(name);
      return true;
    });
  }
  return names;
}

}  // namespace

std::span<const std::string_view> DefaultAmpRules::default_whitelist() {
  static const auto* const names = new std::vector<std::string_view>(names_on(AutocastSide::lower));
  return *names;
}

std::span<const std::string_view> DefaultAmpRules::default_blacklist() {
  static const auto* const names = new std::vector<std::string_view>(names_on(AutocastSide::higher));
  return *names;
}

void DefaultAmpRules::apply_default_rules(AmpRegistry& registry) {
  const std::lock_guard lock(registry.mutex_);
  for (const OpInfo& info : builtin_ops()) {
    if (info.autocast == AutocastSide::category) continue;
    registry.add_default(info.id, info.autocast == AutocastSide::lower ? OpPrecision::lower : OpPrecision::higher);
  }
  registry.changed();
}

}  // namespace xpuruntime
