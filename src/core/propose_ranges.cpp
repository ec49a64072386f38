#include <algorithm>
#include <map>
#include <set>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {
namespace {

constexpr const char* name_of_size = "n";

/// A problem's text without its strides, and those: "copy(f32[8,4]{}) @cpu:0" and 1, 8.
struct Stripped {
  std::string text = {};
  std::vector<std::int64_t> strides = {};
};

Stripped without_strides(const Problem& problem) {
  Stripped out;
  bool inside = false;
  for (const char c : to_string(problem)) {
    if (c == '}') inside = false;
    if (!inside) out.text += c;
    if (c == '{' || (inside && c == ',')) out.strides.push_back(0);
    if (inside && c != ',') out.strides.back() = out.strides.back() * 10 + (c - '0');
    if (c == '{') inside = true;
  }
  return out;
}

/// Strides in the order of the text, put where they were taken from.
std::string with_strides(const std::string& text, const std::vector<std::string>& strides) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    out += text[at];
    if (text[at] != '{') continue;
    // A tensor has as many strides as extents.
    const std::size_t shape = text.rfind('[', at);
    const auto commas = std::count(text.begin() + static_cast<std::ptrdiff_t>(shape),
                                   text.begin() + static_cast<std::ptrdiff_t>(at), ',');
    for (std::ptrdiff_t i = 0; i <= commas; ++i) out += (i > 0 ? "," : "") + strides[next++];
  }
  return out;
}

/// The text with a name wherever a size stands in the shapes of the inputs and outputs.
std::string text_without(const Problem& problem, const std::string& text, std::int64_t size) {
  const std::size_t inputs_end = text.find(problem.attributes.to_string().empty() ? ")" : ";");
  const std::size_t outputs = text.find(" -> "), outputs_end = text.find(" @");
  const std::string number = std::to_string(size);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool in_shapes = at < inputs_end || (outputs != text.npos && at > outputs && at < outputs_end);
    const std::size_t behind = at + number.size();
    const bool whole = behind < text.size() && (text[behind] == ',' || text[behind] == ']');
    if (in_shapes && (before == '[' || before == ',') && whole && text.compare(at, number.size(), number) == 0) {
      out += name_of_size;
      at = behind;
    } else {
      out += text[at++];
    }
  }
  return out;
}

/// Each size that the inputs have, with what the problem's text is without it.
std::map<std::int64_t, std::string> texts_without_a_size(const Problem& problem, const std::string& text) {
  std::map<std::int64_t, std::string> texts;
  for (const TensorSpec& spec : problem.inputs) {
    for (const std::int64_t size : spec.shape) {
      if (!texts.contains(size)) texts[size] = text_without(problem, text, size);
    }
  }
  return texts;
}

/// A problem of a group, which differs from the others in its size, and maybe in its strides.
struct Member {
  std::int64_t size = 0;
  std::size_t problem = 0;  // its index
  const std::vector<std::int64_t>* strides = nullptr;
};

/// How one stride goes with the size: it stays, or is so many times the size.
struct StrideForm {
  std::int64_t value = 0;
  bool follows = false;

  bool holds(std::int64_t stride, std::int64_t size) const { return stride == (follows ? value * size : value); }
  std::string text() const {
    return (follows && value == 1 ? "" : std::to_string(value)) + (follows ? name_of_size : "");
  }
};
using Form = std::vector<StrideForm>;

bool holds(const Form& form, const Member& member) {
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (!form[i].holds((*member.strides)[i], member.size)) return false;
  }
  return true;
}

/// How the strides of both go with their sizes, which differ; nothing where there is no such way.
std::optional<Form> form_of(const Member& a, const Member& b) {
  Form form;
  for (std::size_t i = 0; i < a.strides->size(); ++i) {
    const std::int64_t stride = (*a.strides)[i];
    const bool follows = stride != (*b.strides)[i];
    if (follows && (a.size == 0 || stride % a.size != 0)) return std::nullopt;
    form.push_back({follows ? stride / a.size : stride, follows});
  }
  return holds(form, b) ? std::optional(form) : std::nullopt;
}

/// Problems that one range may hold.
struct Group {
  std::string text = {};
  std::map<std::int64_t, std::size_t> problems = {};  // by size
};

/// Takes those out of the members that go with the first of them, in the way that most do.
Group take_group(const std::string& text, std::vector<Member>& members) {
  constexpr std::size_t tried = 16;  // others that may show the way
  const Member first = members.front();
  Form best;
  std::size_t most = 0;
  for (std::size_t i = 1; i < std::min(members.size(), tried + 1); ++i) {
    if (members[i].size == first.size) continue;
    const auto form = form_of(first, members[i]);
    if (!form) continue;
    const auto count = static_cast<std::size_t>(
        std::count_if(members.begin(), members.end(), [&](const Member& member) { return holds(*form, member); }));
    if (count > most) most = count, best = *form;
    if (form->empty()) break;  // without strides there is one way only
  }
  Group group;
  if (most == 0) {
    members.erase(members.begin());
    return group;
  }
  std::vector<std::string> strides;
  for (const StrideForm& form : best) strides.push_back(form.text());
  group.text = with_strides(text, strides);
  std::erase_if(members, [&](const Member& member) {
    if (!holds(best, member)) return false;
    group.problems.emplace(member.size, member.problem);
    return true;
  });
  return group;
}

std::vector<Group> groups_of(const std::vector<Stripped>& stripped, std::span<const Problem> problems,
                             std::size_t least_sizes) {
  constexpr int most_layouts = 16;  // of problems of the same shapes
  std::map<std::string, std::vector<Member>> alike;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    for (const auto& [size, text] : texts_without_a_size(problems[i], stripped[i].text)) {
      alike[text].push_back({size, i, &stripped[i].strides});
    }
  }
  std::vector<Group> groups;
  for (auto& [text, members] : alike) {
    for (int tries = 0; tries < most_layouts && members.size() >= least_sizes; ++tries) {
      Group group = take_group(text, members);
      if (group.problems.size() >= least_sizes) groups.push_back(std::move(group));
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.problems.size() > b.problems.size(); });
  return groups;
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
  least_sizes = std::max<std::size_t>(least_sizes, 2);
  std::vector<Stripped> stripped;
  for (const Problem& problem : problems) stripped.push_back(without_strides(problem));
  std::vector<ProblemRange> ranges;
  std::set<std::size_t> taken;  // problems that are in a range
  for (const Group& group : groups_of(stripped, problems, least_sizes)) {
    std::vector<std::int64_t> sizes;
    for (const auto& [size, problem] : group.problems) {
      if (!taken.contains(problem)) sizes.push_back(size);
    }
    if (sizes.size() < least_sizes) continue;
    auto range = range_of(group.text, sizes.front(), sizes.back(), sizes.size());
    if (!range) continue;
    for (const auto& [size, problem] : group.problems) taken.insert(problem);
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
    if (auto wider = range_of(group.text, *low, *high, sizes.size())) {
      range = std::move(wider);
      taken.insert(more.begin(), more.end());
    }
    ranges.push_back(*range);
  }
  return ranges;
}

}  // namespace xpuruntime
