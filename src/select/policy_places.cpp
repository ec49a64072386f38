#include "select/policy_places.h"

#include "core/json_scan.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime {
namespace {

constexpr std::size_t deepest = 4;  // rules[1].when.m

/// Places of bytes that come in their order, so that the text is gone through once.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  JsonPlace at(std::size_t byte) {
    for (; at_ < byte; ++at_) {
      if (text_[at_] == '\n') ++line_, begin_ = at_ + 1;
    }
    return {line_, byte - begin_ + 1};
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t begin_ = 0;  // of the line
};

std::string canonical(std::string_view path) {
  if (path == "strategy") return "auto_strategy";
  for (const std::string_view part : {"preferences.", "precision."}) {
    if (!path.starts_with(part)) continue;
    if (const auto op = find_op(path.substr(part.size()))) return std::string(part) + std::string(to_string(*op));
  }
  return std::string(path);
}

}  // namespace

PolicyPlaces::PolicyPlaces(std::string_view text) {
  Lines lines(text);
  scan_json(text, [&](const JsonField& field) {
    places_.emplace(canonical(field.path), lines.at(field.byte));
    return field.depth < deepest ? Scanning::inside : Scanning::after;
  });
}

std::optional<JsonPlace> PolicyPlaces::find(const std::string& field) const {
  const auto found = places_.find(field);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace xpuruntime
