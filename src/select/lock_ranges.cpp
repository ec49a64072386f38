#include "select/lock_ranges.h"

#include <algorithm>

#include "xpuruntime/core/error.h"

namespace xpuruntime {

std::optional<ProblemRange> joined(const ProblemRange& a, const ProblemRange& b) {
  std::vector<SizeRange> names = a.names();
  if (b.names().size() != names.size()) return std::nullopt;
  bool wider = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    SizeRange& own = names[i];
    const SizeRange& other = b.names()[i];
    if (own.low == other.low && own.high == other.high) continue;
    if (wider || other.low - 1 > own.high || own.low - 1 > other.high) return std::nullopt;
    own.low = std::min(own.low, other.low);
    own.high = std::max(own.high, other.high);
    wider = true;
  }
  try {
    ProblemRange both = a.with_names(std::move(names));
    if (both.contains(a) && both.contains(b)) return both;
  } catch (const Error&) {  // more problems than a range may hold
  }
  return std::nullopt;
}

RangeIndex::RangeIndex(std::span<const ProblemRange* const> ranges) : ranges_(ranges.begin(), ranges.end()) {
  for (std::size_t place = 0; place < ranges_.size(); ++place) {
    const Problem& least = ranges_[place]->least();
    const Problem largest = ranges_[place]->at(ranges_[place]->count() - 1);
    Varying varying;
    for (std::size_t i = 0; i < least.inputs.size(); ++i) {
      const Dims &low = least.inputs[i].shape, &high = largest.inputs[i].shape;
      std::vector<bool>& extents = varying.emplace_back();
      for (std::size_t k = 0; k < low.size(); ++k) extents.push_back(low[k] != high[k]);
    }
    spans_[varying][fixed_part(least, varying)].push_back(
        {first_varying(least, varying), first_varying(largest, varying), 0, place});
  }
  for (auto& [varying, by_fixed] : spans_) {
    for (auto& [fixed, spans] : by_fixed) {
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.low < b.low; });
      std::int64_t reach = 0;
      for (Span& span : spans) span.reach = reach = std::max(reach, span.high);
    }
  }
}

std::vector<std::size_t> RangeIndex::holding(const Problem& problem) const {
  std::vector<std::size_t> places;
  for (const auto& [varying, by_fixed] : spans_) {
    const auto same_rank = [](const std::vector<bool>& extents, const TensorSpec& spec) {
      return extents.size() == spec.shape.size();
    };
    if (!std::equal(varying.begin(), varying.end(), problem.inputs.begin(), problem.inputs.end(), same_rank)) continue;
    const auto found = by_fixed.find(fixed_part(problem, varying));
    if (found == by_fixed.end()) continue;
    const std::int64_t size = first_varying(problem, varying);
    const auto above = [](std::int64_t value, const Span& span) { return value < span.low; };
    auto span = std::upper_bound(found->second.begin(), found->second.end(), size, above);
    while (span != found->second.begin() && (--span)->reach >= size) {
      if (ranges_[span->place]->contains(problem)) places.push_back(span->place);
    }
  }
  std::sort(places.begin(), places.end());
  return places;
}

/// The op and the extents that do not vary.
std::string RangeIndex::fixed_part(const Problem& problem, const Varying& varying) {
  std::string text(to_string(problem.op));
  text += problem.direction == Direction::backward ? ":backward" : "";
  for (std::size_t i = 0; i < varying.size(); ++i) {
    for (std::size_t k = 0; k < varying[i].size(); ++k) {
      text += varying[i][k] ? " *" : " " + std::to_string(problem.inputs[i].shape[k]);
    }
  }
  return text;
}

/// Zero where none does.
std::int64_t RangeIndex::first_varying(const Problem& problem, const Varying& varying) {
  for (std::size_t i = 0; i < varying.size(); ++i) {
    for (std::size_t k = 0; k < varying[i].size(); ++k) {
      if (varying[i][k]) return problem.inputs[i].shape[k];
    }
  }
  return 0;
}

}  // namespace xpuruntime
