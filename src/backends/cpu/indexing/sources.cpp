#include "backends/cpu/indexing/sources.h"

#include <algorithm>
#include <string_view>

namespace xpuruntime::cpu {
namespace {

/// The output's dims that the input has not.
std::size_t missing_dims(const Problem& problem) {
  return problem.outputs[0].shape.size() - problem.inputs[0].shape.size();
}

/// Around an axis that is mirrored: forward and backward in turns, without its edges twice.
void add_mirrored(std::vector<Run>& runs, std::int64_t first, std::int64_t count, std::int64_t extent) {
  const std::int64_t period = std::max<std::int64_t>(2 * (extent - 1), 1);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t phase = ((first + done) % period + period) % period;
    const bool forward = phase < extent - 1;
    const std::int64_t left = std::min(count - done, forward ? extent - 1 - phase : period - phase);
    runs.push_back({done, left, forward || extent == 1 ? phase : period - phase, forward ? 1 : -1});
    done += left;
  }
}

/// The axis again and again.
void add_repeated(std::vector<Run>& runs, std::int64_t first, std::int64_t count, std::int64_t extent) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t phase = ((first + done) % extent + extent) % extent;
    const std::int64_t left = std::min(count - done, extent - phase);
    runs.push_back({done, left, phase, 1});
    done += left;
  }
}

/// The axis, and before and after it the edge again or nothing.
void add_between(std::vector<Run>& runs, std::int64_t first, std::int64_t count, std::int64_t extent, bool edge) {
  const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t from, std::int64_t step) {
    if (begin < end) runs.push_back({begin, end - begin, from, step});
  };
  const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t end = std::clamp<std::int64_t>(extent - first, begin, count);
  add(0, begin, edge ? 0 : -1, 0);
  add(begin, end, first + begin, 1);
  add(end, count, edge ? extent - 1 : -1, 0);
}

std::vector<Run> padded(const Problem& problem, std::size_t dim) {
  const std::vector<std::int64_t> pads = problem.attributes.list("pads");
  const std::size_t pair = problem.inputs[0].shape.size() - 1 - dim;
  const std::int64_t before = 2 * pair < pads.size() ? pads[2 * pair] : 0;
  const std::int64_t extent = problem.inputs[0].shape[dim], count = problem.outputs[0].shape[dim];
  const std::string_view mode = problem.attributes.choice("mode");
  std::vector<Run> runs;
  if (mode == "reflect") {
    add_mirrored(runs, -before, count, extent);
  } else if (mode == "wrap") {
    add_repeated(runs, -before, count, extent);
  } else {
    add_between(runs, -before, count, extent, mode == "replicate");
  }
  return runs;
}

bool is_flipped(const Problem& problem, std::size_t dim) {
  const std::vector<std::int64_t> dims = problem.attributes.list("dims");
  const auto rank = static_cast<std::int64_t>(problem.inputs[0].shape.size());
  return dims.empty() || std::any_of(dims.begin(), dims.end(), [&](std::int64_t one) {
           return static_cast<std::size_t>(one < 0 ? one + rank : one) == dim;
         });
}

}  // namespace

std::vector<Run> runs_of(const Problem& problem, std::size_t dim) {
  const std::int64_t count = problem.outputs[0].shape[dim];
  if (count == 0) return {};
  if (problem.op == OpId::pad) return padded(problem, dim);
  std::vector<Run> runs;
  if (problem.op == OpId::tile) {
    const std::size_t missing = missing_dims(problem);
    add_repeated(runs, 0, count, dim < missing ? 1 : problem.inputs[0].shape[dim - missing]);
  } else if (is_flipped(problem, dim)) {
    runs.push_back({0, count, count - 1, -1});
  } else {
    runs.push_back({0, count, 0, 1});
  }
  return runs;
}

Dims source_strides(const Problem& problem) {
  Dims strides = Dims::filled(problem.outputs[0].shape.size(), 0);
  const std::size_t missing = missing_dims(problem);
  for (std::size_t d = missing; d < strides.size(); ++d) strides[d] = problem.inputs[0].strides[d - missing];
  return strides;
}

}  // namespace xpuruntime::cpu
