#include "tune/range_search.h"

#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>

#include "tune/contender.h"
#include "tune/range_grid.h"

namespace xpuruntime {
namespace {

/// Problems of one class in a box, and what is at stake there.
struct Task {
  Box box = {};
  std::uint32_t group = 0;
  double weight = 0;
  std::vector<std::size_t> ends = {};  // the corners of the box that it was cut from; none: it is the whole range
  bool narrow = false;                 // that was cut for a change alone, not for its width

  bool operator<(const Task& other) const { return weight < other.weight; }
};

/// A box that needs no more points: each of the kernels is good for all of it.
struct Leaf {
  Box box = {};
  std::uint32_t group = 0;
  std::size_t problems = 0;
  std::vector<int> kernels = {};
};

/// How many times the time of a corner's own choice each kernel takes at worst, and whether a race would care.
struct Standing {
  double loss = 1;
  bool close = true;  // as good at every corner, by the margin of a race
};

class Search {
 public:
  Search(std::span<const SizeRange> names, std::span<const std::uint32_t> classes, const RangeSearchOptions& options,
         const std::function<std::optional<TuneResult>(std::size_t)>& measure)
      : grid_(names), classes_(classes), options_(options), measure_(measure) {
    out_.choice.assign(classes.size(), -1);
  }

  RangeChoices run() {
    std::map<std::uint32_t, std::size_t> groups;
    for (const std::uint32_t group : classes_) ++groups[group];
    groups.erase(nothing_runs);
    // Each class has its corners measured before any is looked at closer.
    for (const auto& [group, problems] : groups) push(grid_.whole(), group, std::numeric_limits<double>::infinity());
    while (!tasks_.empty()) {
      const Task task = tasks_.top();
      tasks_.pop();
      examine(task);
    }
    assign();
    return std::move(out_);
  }

 private:
  std::size_t problems_in(const Box& box, std::uint32_t group) const {
    std::size_t count = 0;
    grid_.each(box, [&](std::size_t index) {
      count += classes_[index] == group;
      return true;
    });
    return count;
  }

  void push(Box box, std::uint32_t group, double loss, const std::vector<std::size_t>& ends = {}, bool narrow = false) {
    const std::size_t problems = problems_in(box, group);
    if (problems > 0) tasks_.push({std::move(box), group, loss * static_cast<double>(problems), ends, narrow});
  }

  double distance(std::span<const std::size_t> a, std::span<const std::size_t> b) const {
    double sum = 0;
    for (std::size_t axis = 0; axis < grid_.axes(); ++axis) {
      const auto size = [&](std::size_t offset) {
        return std::log(1.0 + static_cast<double>(grid_.size(axis, offset)));
      };
      sum += std::abs(size(a[axis]) - size(b[axis]));
    }
    return sum;
  }

  /// For each corner of the box the problem of the class that is nearest to it.
  std::vector<std::size_t> corners(const Box& box, std::uint32_t group) const {
    std::vector<std::size_t> found;
    for (std::size_t bits = 0; bits < std::size_t{1} << grid_.axes(); ++bits) {
      std::vector<std::size_t> corner;
      for (std::size_t axis = 0; axis < grid_.axes(); ++axis) {
        corner.push_back((bits >> axis & 1) == 0 ? box.low[axis] : box.high[axis]);
      }
      std::size_t nearest = grid_.index(corner);
      if (classes_[nearest] != group) nearest = nearest_in(box, group, corner);
      found.push_back(nearest);
    }
    return found;
  }

  std::size_t nearest_in(const Box& box, std::uint32_t group, const std::vector<std::size_t>& corner) const {
    std::size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    grid_.each(box, [&](std::size_t index) {
      if (classes_[index] != group) return true;
      const double away = distance(grid_.offsets(index), corner);
      if (away < least) least = away, nearest = index;
      return true;
    });
    return nearest;
  }

  /// Whether every corner has been measured, by now.
  bool measured(const std::vector<std::size_t>& corners) {
    for (const std::size_t corner : corners) {
      if (results_.contains(corner)) continue;
      std::optional<TuneResult> result = race(corner);
      if (!result) return false;
      results_.emplace(corner, std::move(*result));
    }
    return true;
  }

  std::optional<TuneResult> race(std::size_t index) {
    if (out_.stopped || out_.measured >= options_.most_points) return std::nullopt;
    std::optional<TuneResult> result = measure_(index);
    if (result) ++out_.measured;
    out_.stopped = !result;
    return result;
  }

  /// Before a box is cut for it: what a race that the budget cut short says is tried again, once. True where one was.
  bool raced_again(const std::vector<std::size_t>& corners) {
    bool again = false;
    for (const std::size_t corner : corners) {
      TuneResult& first = results_.at(corner);
      if (!first.cut_short || !raced_twice_.insert(corner).second) continue;
      const std::optional<TuneResult> second = race(corner);
      if (!second) continue;
      again = true;
      first = second->cut_short ? better_of(first, *second) : *second;
    }
    return again;
  }

  /// An interruption only makes times longer: the shorter ones of two races count, and the default stays as in a race.
  TuneResult better_of(TuneResult both, const TuneResult& second) const {
    std::optional<double> least, of_default;
    for (TunedCandidate& candidate : both.candidates) {
      for (const TunedCandidate& other : second.candidates) {
        if (other.kernel != candidate.kernel || !other.time_us) continue;
        if (!candidate.time_us || *other.time_us < *candidate.time_us) candidate = other;
      }
      if (!candidate.time_us) continue;
      if (candidate.kernel == both.incumbent) of_default = candidate.time_us;
      if (least && *candidate.time_us >= *least) continue;
      least = candidate.time_us;
      both.chosen = candidate.kernel;
    }
    if (of_default && *of_default * (1 - options_.min_gain) <= *least) both.chosen = both.incumbent;
    return both;
  }

  int number_of(const std::string& kernel) {
    const auto found = std::find(out_.kernels.begin(), out_.kernels.end(), kernel);
    if (found != out_.kernels.end()) return static_cast<int>(found - out_.kernels.begin());
    out_.kernels.push_back(kernel);
    return static_cast<int>(out_.kernels.size() - 1);
  }

  int own_choice(std::size_t index) {
    const TuneResult& result = results_.at(index);
    if (!result.chosen.empty()) return number_of(result.chosen);
    return result.cut_short ? undecided : -1;
  }

  /// How a kernel stands at a corner: never better than that corner's own choice, which a race has left it for.
  Standing standing(const TuneResult& result, const std::string& kernel) const {
    const auto find = [&](const std::string& name) {
      return std::find_if(result.candidates.begin(), result.candidates.end(),
                          [&](const TunedCandidate& c) { return c.kernel == name && c.time_us.has_value(); });
    };
    const auto other = find(kernel), own = find(result.chosen);
    if (kernel == result.chosen || result.chosen.empty()) return {};
    if (other == result.candidates.end() || own == result.candidates.end()) {
      return {std::numeric_limits<double>::infinity(), false};
    }
    const double time = std::max(*own->time_us, 1e-9);
    const double loss = std::max(1.0, *other->time_us / time);
    const double noise = (own->noise_us.value_or(0) + other->noise_us.value_or(0)) / time;
    // Noise excuses a change no further than to twice what would matter: it must not hide one on a busy machine.
    const double margin = std::clamp(noise, options_.min_gain, 2 * options_.min_gain);
    return {loss, loss <= 1 + margin};
  }

  /// Every kernel that some corner has a time for, with how it stands at all of them.
  std::map<int, Standing> standings(const std::vector<std::size_t>& corners) {
    std::map<int, Standing> all;
    for (const std::size_t corner : corners) {
      for (const TunedCandidate& candidate : results_.at(corner).candidates) {
        if (candidate.time_us) all[number_of(candidate.kernel)];
      }
    }
    for (auto& [kernel, at_all] : all) {
      for (const std::size_t corner : corners) {
        const Standing here = standing(results_.at(corner), out_.kernels[static_cast<std::size_t>(kernel)]);
        at_all = {std::max(at_all.loss, here.loss), at_all.close && here.close};
      }
    }
    return all;
  }

  bool splits(const Box& box, std::size_t axis) const { return box.high[axis] - box.low[axis] > 1; }

  /// Too much of the range, or sizes too far apart, to be believed from its corners alone.
  bool wide(const Box& box, std::size_t axis) const {
    const std::size_t parts = std::max<std::size_t>(2, 16 >> (grid_.axes() - 1));
    const double factor = grid_.axes() == 1 ? 2 : 4;
    const auto low = static_cast<double>(std::max<std::int64_t>(1, grid_.size(axis, box.low[axis])));
    const auto high = static_cast<double>(grid_.size(axis, box.high[axis]));
    return splits(box, axis) && (high > factor * low || (box.high[axis] - box.low[axis]) * parts > grid_.extent(axis));
  }

  /// Across which the most pairs of corners differ; nothing where no axis is long enough to be cut.
  std::optional<std::size_t> axis_to_split(const Box& box, const std::vector<std::size_t>& corners, bool only_wide) {
    std::optional<std::size_t> best;
    double most = -1;
    for (std::size_t axis = 0; axis < grid_.axes(); ++axis) {
      if (only_wide ? !wide(box, axis) : !splits(box, axis)) continue;
      const auto low = static_cast<double>(std::max<std::int64_t>(1, grid_.size(axis, box.low[axis])));
      double score = 1 - low / (static_cast<double>(grid_.size(axis, box.high[axis])) + 1);  // below 1: breaks ties
      for (std::size_t bits = 0; bits < corners.size() && !only_wide; ++bits) {
        const std::size_t across = bits ^ std::size_t{1} << axis;
        score += own_choice(corners[bits]) != own_choice(corners[across]);
      }
      if (score > most) most = score, best = axis;
    }
    return best;
  }

  /// At the geometric middle, which is odd and even in turn: kernels like round sizes better than others.
  void split(const Task& task, const std::vector<std::size_t>& corners, std::size_t axis, double loss, bool narrow) {
    const auto low = static_cast<double>(std::max<std::int64_t>(1, grid_.size(axis, task.box.low[axis])));
    const auto high = static_cast<double>(grid_.size(axis, task.box.high[axis]));
    const auto wanted = static_cast<std::int64_t>(std::sqrt(low * high)) - grid_.size(axis, 0);
    const std::size_t middle = std::clamp(static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0)),
                                          task.box.low[axis] + 1, task.box.high[axis] - 1);
    Box lower = task.box, upper = task.box;
    lower.high[axis] = upper.low[axis] = middle;
    push(std::move(lower), task.group, loss, corners, narrow);
    push(std::move(upper), task.group, loss, corners, narrow);
  }

  void examine(const Task& task) {
    const std::vector<std::size_t> at = corners(task.box, task.group);
    if (!measured(at)) return unresolved_.push_back(task);
    if (const auto axis = axis_to_split(task.box, at, true)) return split(task, at, *axis, 1, false);
    if (all_failed(at)) {  // and so do those between, for all that is known
      const bool cut = std::any_of(at.begin(), at.end(), [&](auto corner) { return results_.at(corner).cut_short; });
      return fill(task, [&](std::size_t index) {
        return results_.contains(index) ? own_choice(index) : cut ? undecided : -1;
      });
    }
    Leaf leaf{task.box, task.group, problems_in(task.box, task.group), {}};
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [kernel, standing] : standings(at)) {
      if (standing.close) leaf.kernels.push_back(kernel);
      least = std::min(least, standing.loss);
    }
    if (!leaf.kernels.empty()) return leaves_.push_back(std::move(leaf));
    if (raced_again(at)) return tasks_.push(task);
    const auto axis = axis_to_split(task.box, at, false);
    if (!axis) return assign_own(task);
    split(task, at, *axis, std::clamp(least - 1, 0.01, 0.99), true);
  }

  bool all_failed(const std::vector<std::size_t>& corners) const {
    return std::all_of(corners.begin(), corners.end(), [&](auto corner) { return results_.at(corner).chosen.empty(); });
  }

  /// A box so small that each of its problems is a corner.
  void assign_own(const Task& task) {
    grid_.each(task.box, [&](std::size_t index) {
      if (classes_[index] == task.group && results_.contains(index)) out_.choice[index] = own_choice(index);
      return true;
    });
  }

  /// Where several kernels will do, the one that does for most: fewer parts.
  void assign() {
    std::map<int, std::size_t> does_for;
    for (const Leaf& leaf : leaves_) {
      for (const int kernel : leaf.kernels) does_for[kernel] += leaf.problems;
    }
    for (const Leaf& leaf : leaves_) {
      const int chosen = *std::max_element(leaf.kernels.begin(), leaf.kernels.end(),
                                           [&](int a, int b) { return does_for[a] < does_for[b]; });
      fill(leaf, [&](std::size_t) { return chosen; });
    }
    for (const Task& task : unresolved_) {
      const int between = out_.stopped ? -1 : good_at_all(task.ends);
      fill(task, [&](std::size_t index) {
        if (results_.contains(index)) return own_choice(index);
        const bool ask_nearest = between < 0 && task.narrow && !out_.stopped;
        const int guess = ask_nearest ? own_choice(nearest_of(task.ends, index)) : between;
        out_.guessed += guess >= 0;
        return guess >= 0 ? guess : undecided;
      });
    }
    for (int& choice : out_.choice) {
      out_.undecided += choice == undecided;
      choice = std::max(choice, -1);
    }
  }

  void fill(const auto& part, const auto& choose) {
    grid_.each(part.box, [&](std::size_t index) {
      if (classes_[index] == part.group && out_.choice[index] < 0) out_.choice[index] = choose(index);
      return true;
    });
  }

  std::size_t nearest_of(const std::vector<std::size_t>& ends, std::size_t index) const {
    return *std::min_element(ends.begin(), ends.end(), [&](std::size_t a, std::size_t b) {
      const auto at = grid_.offsets(index);
      return distance(at, grid_.offsets(a)) < distance(at, grid_.offsets(b));
    });
  }

  /// The kernel that loses least of those that are as good as the own choice of each of these; -1: there is none.
  int good_at_all(const std::vector<std::size_t>& ends) {
    int best = -1;
    if (all_failed(ends)) return best;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [kernel, standing] : standings(ends)) {
      if (standing.close && standing.loss < least) least = standing.loss, best = kernel;
    }
    return best;
  }

  static constexpr int undecided = -2;  // until all boxes have been asked
  const RangeGrid grid_;
  const std::span<const std::uint32_t> classes_;
  const RangeSearchOptions options_;
  const std::function<std::optional<TuneResult>(std::size_t)>& measure_;
  std::map<std::size_t, TuneResult> results_ = {};  // by index
  std::set<std::size_t> raced_twice_ = {};
  std::priority_queue<Task> tasks_ = {};
  std::vector<Leaf> leaves_ = {};
  std::vector<Task> unresolved_ = {};
  RangeChoices out_ = {};
};

}  // namespace

std::vector<std::uint32_t> classes_of(const KernelRegistry& registry, const ProblemRange& range,
                                      const std::function<bool()>& keep_going) {
  constexpr std::size_t asked_at_once = 1024;
  const auto kernels = registry.kernels(range.least().op, range.least().device.type);
  const DeviceProfile& profile = registry.devices().profile(range.least().device);
  std::map<std::string, std::uint32_t> numbers = {{std::string(kernels.size(), '-'), nothing_runs}};
  std::vector<std::uint32_t> classes;
  for (std::size_t index = 0; index < range.count(); ++index) {
    if (index % asked_at_once == 0 && !keep_going()) return {};
    const Problem problem = range.at(index);
    std::string usable;
    for (const auto& kernel : kernels) {
      std::optional<std::uint64_t> workspace;
      usable += refusal_of(*kernel, problem, profile, workspace).empty() ? '+' : '-';
    }
    classes.push_back(numbers.emplace(usable, static_cast<std::uint32_t>(numbers.size())).first->second);
  }
  return classes;
}

RangeChoices search_range(std::span<const SizeRange> names, std::span<const std::uint32_t> classes,
                          const RangeSearchOptions& options,
                          const std::function<std::optional<TuneResult>(std::size_t index)>& measure) {
  return Search(names, classes, options, measure).run();
}

std::vector<RangePart> parts_of(std::span<const SizeRange> names, std::span<const int> choice) {
  const RangeGrid grid(names);
  std::vector<bool> taken(choice.size(), false);
  std::vector<RangePart> parts;
  for (std::size_t index = 0; index < choice.size(); ++index) {
    if (choice[index] < 0 || taken[index]) continue;
    Box box{grid.offsets(index), grid.offsets(index)};
    for (std::size_t axis = grid.axes(); axis-- > 0;) {
      while (box.high[axis] + 1 < grid.extent(axis)) {
        Box next = box;
        next.low[axis] = next.high[axis] = box.high[axis] + 1;
        if (!grid.each(next, [&](std::size_t i) { return choice[i] == choice[index] && !taken[i]; })) break;
        ++box.high[axis];
      }
    }
    grid.each(box, [&](std::size_t i) { return taken[i] = true; });
    RangePart part{{}, choice[index]};
    for (std::size_t axis = 0; axis < grid.axes(); ++axis) {
      part.names.push_back({names[axis].name, grid.size(axis, box.low[axis]), grid.size(axis, box.high[axis])});
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace xpuruntime
