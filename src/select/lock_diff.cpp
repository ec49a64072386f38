#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "select/lock_needs.h"
#include "select/lock_ranges.h"

namespace xpuruntime {
namespace {

using Box = std::vector<SizeRange>;       // bounds of the names of a range
using Sizes = std::vector<std::int64_t>;  // one for each name

/// The sizes that are in both, by the names of the first.
std::optional<Box> common_part(Box a, const Box& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i].low = std::max(a[i].low, b[i].low);
    a[i].high = std::min(a[i].high, b[i].high);
    if (a[i].low > a[i].high) return std::nullopt;
  }
  return a;
}

/// Takes the sizes of a box away.
void take_away(std::vector<Box>& boxes, const Box& gone) {
  std::vector<Box> rest;
  for (Box& box : boxes) {
    const auto common = common_part(box, gone);
    for (std::size_t i = 0; common && i < box.size(); ++i) {
      Box below = box, above = box;
      below[i].high = (*common)[i].low - 1;
      above[i].low = (*common)[i].high + 1;
      if (below[i].low <= below[i].high) rest.push_back(std::move(below));
      if (above[i].low <= above[i].high) rest.push_back(std::move(above));
      box[i] = (*common)[i];
    }
    if (!common) rest.push_back(std::move(box));
  }
  boxes = std::move(rest);
}

/// Adds the box without the points, which lie in it and are sorted.
void add_without(const Box& box, std::span<const Sizes> points, std::size_t name, std::vector<Box>& out) {
  if (points.empty()) return out.push_back(box);
  if (name == box.size()) return;
  const auto add_part = [&](std::int64_t low, std::int64_t high, std::span<const Sizes> inside) {
    Box part = box;
    part[name].low = low;
    part[name].high = high;
    if (low <= high) add_without(part, inside, name + 1, out);
  };
  std::int64_t next = box[name].low;
  while (!points.empty()) {
    const std::int64_t size = points.front()[name];
    const auto end = std::find_if(points.begin(), points.end(), [&](const Sizes& p) { return p[name] != size; });
    const auto here = points.first(static_cast<std::size_t>(end - points.begin()));
    add_part(next, size - 1, {});
    add_part(size, size, here);
    next = size + 1;
    points = points.subspan(here.size());
  }
  add_part(next, box[name].high, {});
}

/// The entry of a range.
struct RangeEntry {
  const LockEntry* entry = nullptr;
  ProblemRange range = {};
  std::set<Sizes> alone = {};  // compared by themselves, as one of the locks has an entry for just these
  // Where the other lock does not have the same range:
  std::vector<Box> decides = {};    // the sizes that it decides: no range before it does
  std::vector<Box> unmatched = {};  // those of them that the other lock does not hold in ranges

  std::string text_of(const Box& box) const { return to_string(range.with_names(box)); }
  bool matches_none() const { return alone.empty() && unmatched == std::vector<Box>{range.names()}; }

  /// The texts of the parts of a box that are not compared by themselves.
  std::vector<std::string> texts_of_rest(const Box& box) const {
    std::vector<Sizes> points;
    for (auto at = alone.lower_bound({box[0].low}); at != alone.end() && at->front() <= box[0].high; ++at) {
      bool inside = true;
      for (std::size_t i = 1; i < box.size(); ++i) {
        inside = inside && (*at)[i] >= box[i].low && (*at)[i] <= box[i].high;
      }
      if (inside) points.push_back(*at);
    }
    std::vector<Box> rest;
    add_without(box, points, 0, rest);
    std::vector<std::string> texts;
    for (const Box& part : rest) texts.push_back(text_of(part));
    return texts;
  }
};

/// A lock with its ranges, in the order of the file.
struct Side {
  explicit Side(const KernelLock& whole) : lock(whole) {
    for (const auto& [problem, entry] : lock.entries()) {
      if (has_ranges(problem)) ranges.push_back({&entry, parse_problem_range(problem)});
    }
    std::vector<const ProblemRange*> all;
    for (const RangeEntry& range : ranges) all.push_back(&range.range);
    index = RangeIndex(all);
    for (const ProblemRange* range : all) {
      const Limits& own = range->least().limits;
      if (std::find(limits.begin(), limits.end(), own) == limits.end()) limits.push_back(own);
    }
  }

  /// The sizes of a problem are compared by themselves in the ranges at these places.
  void leave_out(const Problem& problem, const std::vector<std::size_t>& places) {
    for (const std::size_t place : places) ranges[place].alone.insert(*ranges[place].range.sizes_of(problem));
  }

  const KernelLock& lock;
  std::vector<RangeEntry> ranges = {};
  RangeIndex index = {};
  std::vector<Limits> limits = {};  // that ranges have, each once
};

/// A range's text without its bounds, whatever its names are.
std::string family_of(const ProblemRange& range) {
  Box names = range.names();
  for (std::size_t i = 0; i < names.size(); ++i) names[i].name = "abcd"[i];
  const std::string text = to_string(range.with_names(std::move(names)));
  return text.substr(0, text.rfind(" where "));
}

class Differ {
 public:
  Differ(const KernelLock& before, const KernelLock& after) : before_(before), after_(after) {}

  std::vector<LockDifference> run() {
    for (const bool is_before : {true, false}) {
      for (const auto& [problem, entry] : (is_before ? before_ : after_).lock.entries()) {
        if (!has_ranges(problem)) compare_single(entry, is_before);
      }
    }
    for (const bool is_before : {true, false}) pair_with_ranges(is_before);
    for (RangeEntry& range : before_.ranges) {
      const LockEntry* other = after_.lock.find(range.entry->problem);
      other == nullptr ? add(range, &Family::before) : compare_same(range, *other);
    }
    for (RangeEntry& range : after_.ranges) {
      if (before_.lock.find(range.entry->problem) == nullptr) add(range, &Family::after);
    }
    for (auto& [text, family] : families_) compare_ranges(family);
    pair_by_limits();
    for (const auto& [problem, entries] : gone_) {
      for (const LockEntry* entry : entries) out_.push_back({entry->problem, "entry", text_of_choice(*entry), ""});
    }
    for (const auto& [problem, entries] : new_) {
      for (const LockEntry* entry : entries) out_.push_back({entry->problem, "entry", "", text_of_choice(*entry)});
    }
    std::stable_sort(out_.begin(), out_.end(), [](const auto& a, const auto& b) { return a.problem < b.problem; });
    return std::move(out_);
  }

 private:
  using ByProblem = std::map<std::string, std::vector<const LockEntry*>>;

  /// Ranges that differ in their bounds alone.
  struct Family {
    std::vector<RangeEntry*> before, after;
  };

  /// The entry of one problem, with the other lock's or with that of the range that decides it there.
  void compare_single(const LockEntry& entry, bool is_before) {
    Side &own = is_before ? before_ : after_, &other = is_before ? after_ : before_;
    const LockEntry* same = other.lock.find(entry.problem);
    if (same != nullptr && !is_before) return;  // compared already
    if (same != nullptr) compare(entry, *same, entry.problem);
    std::optional<Problem> problem;
    if (!own.ranges.empty() || !other.ranges.empty()) problem = parse_problem(entry.problem);
    const auto held = problem ? other.index.holding(*problem) : std::vector<std::size_t>{};
    if (same == nullptr && held.empty()) {
      return (is_before ? gone_ : new_)[without_limits(entry.problem).problem].push_back(&entry);
    }
    if (same == nullptr) {
      const LockEntry& range = *other.ranges[held.front()].entry;
      compare(is_before ? entry : range, is_before ? range : entry, entry.problem, false);
    }
    if (!problem) return;
    other.leave_out(*problem, held);
    own.leave_out(*problem, own.index.holding(*problem));
  }

  /// The entry of one problem, with that of a range that holds it under other limits, where it is clear which.
  void pair_with_ranges(bool is_before) {
    Side &own = is_before ? before_ : after_, &other = is_before ? after_ : before_;
    if (other.ranges.empty()) return;
    for (auto& [text, entries] : is_before ? gone_ : new_) {
      if (entries.size() != 1 || (is_before ? new_ : gone_).contains(text)) continue;
      const LockEntry& entry = *entries.front();
      std::vector<Problem> found;
      Problem problem = parse_problem(text);
      for (const Limits& limits : other.limits) {
        problem.limits = limits;
        // What the own lock has under these limits is compared with that range instead.
        const bool taken = own.lock.find(to_string(problem)) != nullptr || !own.index.holding(problem).empty();
        if (!taken && !other.index.holding(problem).empty()) found.push_back(problem);
      }
      if (found.size() != 1) continue;
      const std::vector<std::size_t> held = other.index.holding(found.front());
      const LockEntry& range = *other.ranges[held.front()].entry;
      compare_limits(is_before ? entry : range, is_before ? range : entry,
                     is_before ? entry.problem : to_string(found.front()), false);
      // Where the own lock has it in a range too, that one is compared with the other's.
      if (own.index.holding(parse_problem(entry.problem)).empty()) other.leave_out(found.front(), held);
      entries.clear();
    }
  }

  /// A range that both locks have.
  void compare_same(const RangeEntry& range, const LockEntry& other) {
    const LockEntry& entry = *range.entry;
    const bool same_choice = text_of_choice(entry) == text_of_choice(other);
    if (same_choice || range.alone.empty()) return compare(entry, other, entry.problem);
    for (const std::string& text : range.texts_of_rest(range.range.names())) compare(entry, other, text, false);
  }

  void add(RangeEntry& added, std::vector<RangeEntry*> Family::*side) {
    std::vector<RangeEntry*>& entries = families_[family_of(added.range)].*side;
    added.decides = {added.range.names()};
    for (const RangeEntry* earlier : entries) {
      for (const Box& box : earlier->decides) take_away(added.decides, box);
    }
    added.unmatched = added.decides;
    entries.push_back(&added);
  }

  /// The same sizes may be in parts that are cut otherwise.
  void compare_ranges(Family& family) {
    for (RangeEntry* a : family.before) {
      for (RangeEntry* b : family.after) compare_common(*a, *b);
    }
    const auto leave = [&](const RangeEntry& range, ByProblem& whole, bool is_gone) {
      const LockEntry& entry = *range.entry;
      if (range.matches_none()) return whole[without_limits(entry.problem).problem].push_back(&entry);
      const std::string choice = text_of_choice(entry);
      for (const Box& box : range.unmatched) {
        for (const std::string& text : range.texts_of_rest(box))
          out_.push_back({text, "entry", is_gone ? choice : "", is_gone ? "" : choice});
      }
    };
    for (const RangeEntry* range : family.before) leave(*range, gone_, true);
    for (const RangeEntry* range : family.after) leave(*range, new_, false);
  }

  void compare_common(RangeEntry& a, RangeEntry& b) {
    const bool same_choice = text_of_choice(*a.entry) == text_of_choice(*b.entry);
    for (const Box& own : a.decides) {
      for (const Box& other : b.decides) {
        const auto common = common_part(own, other);
        if (!common) continue;
        take_away(a.unmatched, *common);
        take_away(b.unmatched, *common);
        const auto texts = same_choice ? std::vector<std::string>{a.text_of(*common)} : a.texts_of_rest(*common);
        for (const std::string& text : texts) compare(*a.entry, *b.entry, text, false);
      }
    }
  }

  void compare(const LockEntry& a, const LockEntry& b, const std::string& problem, bool whole = true) {
    const auto field = [&](const std::string& name, const std::string& before, const std::string& after) {
      if (before != after) out_.push_back({problem, name, before, after});
    };
    field("kernel", a.kernel, b.kernel);
    field("kernel_version", a.kernel_version, b.kernel_version);
    if (whole || !(a.plans_vary() || b.plans_vary())) field("plan", a.plan, b.plan);
    // Of a range it is the most that any of its sizes needs.
    if (whole) field("workspace_bytes", std::to_string(a.workspace_bytes), std::to_string(b.workspace_bytes));
    const bool both_hashed = !a.outputs.empty() && !b.outputs.empty() && a.seed == b.seed;
    if (both_hashed) field("outputs", a.outputs, b.outputs);
    const Environment &there = before_.lock.environment_of(a), &here = after_.lock.environment_of(b);
    if (a.environment == b.environment) return;
    const LockNeeds needs = needs_of(a) | needs_of(b);
    for (const EnvironmentDifference& d : environment_differences(needs.part_of(there), needs.part_of(here))) {
      field("environment." + d.field, d.there, d.here);
    }
  }

  void compare_limits(const LockEntry& a, const LockEntry& b, const std::string& problem, bool whole = true) {
    out_.push_back({problem, "limits", without_limits(a.problem).limits, without_limits(b.problem).limits});
    compare(a, b, problem, whole);
  }

  /// A problem that one lock has under some limits and the other under others is one problem, where it is clear which.
  void pair_by_limits() {
    for (auto& [problem, entries] : gone_) {
      const auto found = new_.find(problem);
      if (found == new_.end() || entries.size() != 1 || found->second.size() != 1) continue;
      const LockEntry& before = *entries.front();
      compare_limits(before, *found->second.front(), before.problem);
      entries.clear();
      found->second.clear();
    }
  }

  Side before_, after_;
  ByProblem gone_, new_;
  std::map<std::string, Family> families_;
  std::vector<LockDifference> out_;
};

}  // namespace

namespace {

void add_engine_differences(const KernelLock& before, const KernelLock& after, std::vector<LockDifference>& out) {
  for (const auto& [model, a] : before.engines()) {
    const std::string name = "model " + model;
    const auto found = after.engines().find(model);
    if (found == after.engines().end()) {
      out.push_back({name, "entry", text_of_choice(a), ""});
      continue;
    }
    const LockedEngine& b = found->second;
    const auto field = [&](const char* field, const std::string& one, const std::string& other) {
      if (one != other) out.push_back({name, field, one, other});
    };
    field("engine", a.engine, b.engine);
    field("version", a.version, b.version);
    field("target", a.target, b.target);
    field("precision", a.precision, b.precision);
    field("optimize_level", std::to_string(a.optimize_level), std::to_string(b.optimize_level));
  }
  for (const auto& [model, b] : after.engines()) {
    if (!before.engines().contains(model)) out.push_back({"model " + model, "entry", "", text_of_choice(b)});
  }
}

}  // namespace

std::vector<LockDifference> diff(const KernelLock& before, const KernelLock& after) {
  std::vector<LockDifference> found = Differ(before, after).run();
  add_engine_differences(before, after, found);
  return found;
}

}  // namespace xpuruntime
