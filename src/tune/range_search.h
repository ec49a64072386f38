#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {

struct RangeSearchOptions {
  double min_gain = 0.02;         // as in a race: less is no change
  std::size_t most_points = 256;  // measured at most
};

/// Which kernel runs which problem of a range.
struct RangeChoices {
  std::vector<std::string> kernels = {};
  std::vector<int> choice = {};  // of each problem, by its index in the range: one of the kernels, -1: none
  std::size_t measured = 0;      // races
  std::size_t guessed = 0;       // problems with the kernel of the corners around them, as points ran out
  std::size_t undecided = 0;     // problems without one, as points or time ran out
  bool stopped = false;          // by `measure`
};

inline constexpr std::uint32_t nothing_runs = UINT32_MAX;

/// For each problem of a range, a number: two have the same one where the same kernels can run them, and nothing_runs
/// where none can. Empty where `keep_going`, which is asked now and then, said no.
std::vector<std::uint32_t> classes_of(const KernelRegistry& registry, const ProblemRange& range,
                                      const std::function<bool()>& keep_going);

/// Finds the kernels of a range from few of its problems. There is no clock in here: `measure` holds the race on the
/// problem of an index, or returns nothing to stop. Problems that other kernels can run are searched apart, so no
/// kernel is given to a problem that it refuses.
///
/// The range is cut into boxes, their corners are measured, and a box at whose corners no kernel is as good as each
/// corner's own is cut again, those with the most to lose first. A kernel is as good where a race would not leave it.
/// Before that, races at its corners that were cut short are held again. Where time runs out, what is known stays, and
/// the rest has no kernel. Where points do, a box that would have been cut further has one that is as good at all
/// corners of the larger box, or, if that was narrow, the nearest corner's.
RangeChoices search_range(std::span<const SizeRange> names, std::span<const std::uint32_t> classes,
                          const RangeSearchOptions& options,
                          const std::function<std::optional<TuneResult>(std::size_t index)>& measure);

/// A part of a range that has one kernel throughout.
struct RangePart {
  std::vector<SizeRange> names = {};
  int kernel = -1;  // of RangeChoices::kernels
};

/// As few parts as a plain sweep finds. They do not overlap, and leave out only problems without a kernel.
std::vector<RangePart> parts_of(std::span<const SizeRange> names, std::span<const int> choice);

}  // namespace xpuruntime
