#include "select/policy_places.h"

#include "xpuruntime/core/op.h"

namespace xpuruntime {

std::optional<JsonPlace> PolicyPlaces::find(const std::string& field) const {
  if (const auto place = find_field(text_, field)) return place;
  if (field == "auto_strategy") return find_field(text_, "strategy");
  for (const char* part : {"preferences", "precision"}) {
    const std::string prefix = std::string(part) + ".";
    if (!field.starts_with(prefix) || !json_.contains(part)) continue;
    for (const auto& [name, value] : json_[part].items()) {
      const auto op = find_op(name);
      if (op && prefix + std::string(to_string(*op)) == field) return find_field(text_, prefix + name);
    }
  }
  return std::nullopt;
}

}  // namespace xpuruntime
