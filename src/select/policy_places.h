#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json_text.h"

namespace xpuruntime {

/// Where the fields of a policy stand in its text, which was read as a policy. Fields go by their canonical names; the
/// text may spell ops and fields in other ways.
class PolicyPlaces {
 public:
  explicit PolicyPlaces(std::string_view text) : text_(text), json_(parse_known_json(text)) {}

  std::optional<JsonPlace> find(const std::string& field) const;

 private:
  std::string_view text_;
  Json json_;
};

}  // namespace xpuruntime
