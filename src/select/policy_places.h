#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/json_text.h"

namespace xpuruntime {

/// Where the fields of a policy stand in its text, which was read as a policy. Fields go by their canonical names; the
/// text may spell ops and fields in other ways.
class PolicyPlaces {
 public:
  explicit PolicyPlaces(std::string_view text);

  std::optional<JsonPlace> find(const std::string& field) const;

 private:
  std::map<std::string, JsonPlace> places_;
};

}  // namespace xpuruntime
