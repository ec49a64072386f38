#include <algorithm>
#include <map>
#include <set>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {
namespace {

constexpr const char* name_of_size = "n";

bool is_plain(const Problem& problem) {
  const auto contiguous = [](const TensorSpec& spec) { return spec.contiguous; };
  return std::all_of(problem.inputs.begin(), problem.inputs.end(), contiguous) &&
         std::all_of(problem.outputs.begin(), problem.outputs.end(), contiguous);
}

/// The problem's text with a name wherever a size stands in the shapes of the inputs.
std::string text_without(const Problem& problem, std::int64_t size) {
  const std::string text = to_string(problem);
  const std::string inputs_end = problem.attributes.to_string().empty() ? ")" : ";";
  const std::string number = std::to_string(size);
  std::string out;
  const std::size_t end = text.find(inputs_end);
  for (std::size_t at = 0; at < text.size();) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool starts = at < end && (before == '[' || before == ',');
    const std::size_t behind = at + number.size();
    const bool whole = behind < text.size() && (text[behind] == ',' || text[behind] == ']');
    if (starts && whole && text.compare(at, number.size(), number) == 0) {
      out += name_of_size;
      at = behind;
    } else {
      out += text[at++];
    }
  }
  return out;
}

/// Each size that the inputs have, with what the problem's text is without it.
std::map<std::int64_t, std::string> texts_without_a_size(const Problem& problem) {
  std::map<std::int64_t, std::string> texts;
  for (const TensorSpec& spec : problem.inputs) {
    for (const std::int64_t size : spec.shape) {
      if (!texts.contains(size)) texts[size] = text_without(problem, size);
    }
  }
  return texts;
}

/// Sizes with far more holes than sizes between them are no range that somebody runs through.
bool are_dense(std::int64_t low, std::int64_t high, std::size_t count) {
  constexpr std::int64_t always = 4096, holes_a_size = 256;
  return high - low < always || (high - low) / holes_a_size <= static_cast<std::int64_t>(count);
}

std::optional<ProblemRange> range_of(const std::string& text, std::int64_t low, std::int64_t high, std::size_t count) {
  if (!are_dense(low, high, count)) return std::nullopt;
  try {
    return parse_problem_range(text + " where " + name_of_size + "=" + std::to_string(low) + ".." +
                               std::to_string(high));
  } catch (const Error&) {
    return std::nullopt;  // too wide, or sizes in between do not fit
  }
}

/// The size that would make a range hold a problem.
std::optional<std::int64_t> size_in(const ProblemRange& range, const Problem& problem) {
  for (const TensorSpec& spec : problem.inputs) {
    if (problem.op != range.least().op) break;
    for (const std::int64_t size : spec.shape) {
      try {
        if (range.with_names({{name_of_size, size, size}}).contains(problem)) return size;
      } catch (const Error&) {  // that size does not fit the others: it is not this one
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ProblemRange> propose_ranges(std::span<const Problem> problems, std::size_t least_sizes) {
  std::map<std::string, std::map<std::int64_t, std::size_t>> seen;  // which problem has which size, by the text without
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (!is_plain(problems[i])) continue;
    for (const auto& [size, text] : texts_without_a_size(problems[i])) seen[text].emplace(size, i);
  }
  using Group = decltype(seen)::value_type;
  std::vector<const Group*> groups;
  for (const Group& group : seen) {
    if (group.second.size() >= std::max<std::size_t>(least_sizes, 2)) groups.push_back(&group);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group* a, const Group* b) { return a->second.size() > b->second.size(); });
  std::vector<ProblemRange> ranges;
  std::set<std::size_t> taken;  // problems that are in a range
  for (const Group* group : groups) {
    std::vector<std::int64_t> sizes;
    for (const auto& [size, problem] : group->second) {
      if (!taken.contains(problem)) sizes.push_back(size);
    }
    if (sizes.size() < least_sizes) continue;
    auto range = range_of(group->first, sizes.front(), sizes.back(), sizes.size());
    if (!range) continue;
    for (const auto& [size, problem] : group->second) taken.insert(problem);
    // A size that is by chance another extent's too was not seen as this one.
    std::vector<std::size_t> more;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      if (taken.contains(i)) continue;
      const auto size = size_in(*range, problems[i]);
      if (!size) continue;
      more.push_back(i);
      sizes.push_back(*size);
    }
    const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
    if (auto wider = range_of(group->first, *low, *high, sizes.size())) {
      range = std::move(wider);
      taken.insert(more.begin(), more.end());
    }
    ranges.push_back(*range);
  }
  return ranges;
}

}  // namespace xpuruntime
