#include "xpuruntime/select/policy_fields.h"

#include <algorithm>
#include <map>

#include "core/json_text.h"
#include "select/policy_check.h"
#include "select/policy_places.h"
#include "select/policy_rule_json.h"

namespace xpuruntime {
namespace {

void add_members(std::vector<PolicyField>& fields, const Json& json, const char* part) {
  if (!json.contains(part)) return;
  for (const auto& [name, value] : json[part].items()) {
    fields.push_back({std::string(part) + "." + name, dump_json(value)});
  }
}

std::vector<std::string> rule_texts(const KernelPolicy& policy) {
  std::vector<std::string> texts;
  for (const PolicyRule& rule : policy.rules) texts.push_back(dump_json(write_value(rule)));
  return texts;
}

std::string rule_field(std::size_t index) { return "rules[" + std::to_string(index) + "]"; }

/// How long the longest common sequence is, from each pair of places on.
class CommonRules {
 public:
  CommonRules(const std::vector<std::string>& a, const std::vector<std::string>& b)
      : width_(b.size() + 1), lengths_((a.size() + 1) * width_, 0) {
    for (std::size_t i = a.size(); i-- > 0;) {
      for (std::size_t j = b.size(); j-- > 0;) {
        lengths_[i * width_ + j] = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
  }
  std::uint32_t at(std::size_t i, std::size_t j) const { return lengths_[i * width_ + j]; }

 private:
  std::size_t width_;
  std::vector<std::uint32_t> lengths_;
};

constexpr std::size_t most_pairs = std::size_t{1} << 22;  // beyond, what lies between equal ends counts as new

std::vector<PolicyChange> rule_changes(std::vector<std::string> a, std::vector<std::string> b) {
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (a.size() > head && b.size() > head && a.back() == b.back()) a.pop_back(), b.pop_back();
  a.erase(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(head));
  b.erase(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(head));
  const bool few = (a.size() + 1) * (b.size() + 1) <= most_pairs;
  const CommonRules common = few ? CommonRules(a, b) : CommonRules({}, {});
  std::vector<PolicyChange> changes;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (few && i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || !few || common.at(i + 1, j) >= common.at(i, j + 1))) {
      changes.push_back({rule_field(head + i), a[i], ""});
      ++i;
    } else {
      changes.push_back({rule_field(head + j), "", b[j]});
      ++j;
    }
  }
  return changes;
}

/// What is set, by field, without the rules.
std::map<std::string, std::string> plain_fields(const KernelPolicy& policy) {
  std::map<std::string, std::string> fields;
  for (const PolicyField& field : policy_fields(policy)) {
    if (!field.value.empty() && !field.field.starts_with("rules[")) fields[field.field] = field.value;
  }
  return fields;
}

}  // namespace

std::vector<PolicyField> policy_fields(const KernelPolicy& policy) {
  const Json json = policy_to_json(policy, true);
  std::vector<PolicyField> fields;
  add_members(fields, json, "preferences");
  std::size_t rule = 0;
  for (const std::string& text : rule_texts(policy)) fields.push_back({rule_field(rule++), text});
  add_members(fields, json, "precision");
  for (const std::string_view name : single_policy_fields()) {
    fields.push_back({std::string(name), json.contains(name) ? dump_json(json[name]) : std::string()});
  }
  return fields;
}

std::vector<PolicyField> policy_fields_of_file(const std::string& path) {
  const std::string text = read_policy_text(path);
  std::vector<PolicyField> fields = policy_fields(policy_in_file(text, path));
  const PolicyPlaces places(text);
  for (PolicyField& field : fields) {
    const auto place = field.value.empty() ? std::nullopt : places.find(field.field);
    if (place) field.line = place->line, field.column = place->column;
  }
  return fields;
}

std::vector<PolicyChange> diff_policies(const KernelPolicy& before, const KernelPolicy& after) {
  const auto old_fields = plain_fields(before), new_fields = plain_fields(after);
  std::vector<PolicyChange> changes;
  for (const auto& [field, value] : old_fields) {
    const auto found = new_fields.find(field);
    if (found == new_fields.end()) {
      changes.push_back({field, value, ""});
    } else if (found->second != value) {
      changes.push_back({field, value, found->second});
    }
  }
  for (const auto& [field, value] : new_fields) {
    if (!old_fields.contains(field)) changes.push_back({field, "", value});
  }
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.field < b.field; });
  const auto rules = rule_changes(rule_texts(before), rule_texts(after));
  changes.insert(changes.end(), rules.begin(), rules.end());
  return changes;
}

}  // namespace xpuruntime
