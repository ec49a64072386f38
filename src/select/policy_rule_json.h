#pragma once

#include <string>

#include "core/json_text.h"
#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

/// Parses with a function that throws on its own behalf and blames the field instead.
template <class Parse>
auto blame_field(const JsonSource& source, std::string_view field, Parse&& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    const std::string_view text = error.what();
    const auto end = text.find("] ");
    source.refuse_field(field, "is wrong: " + std::string(end == text.npos ? text : text.substr(end + 2)));
  }
}

std::string read_string(const Json& value, std::string_view field, const JsonSource& source);

/// A kernel's name or a list of names, each of which some backend must have for the op.
std::vector<std::string> read_kernels(const Json& value, OpId op, const std::string& field, const JsonSource& source);

PolicyRule read_rule(const Json& value, const std::string& field, const JsonSource& source);
Json rule_to_json(const PolicyRule& rule);

}  // namespace xpuruntime
