#include <algorithm>
#include <cmath>
#include <span>

#include "select/lock_needs.h"

namespace xpuruntime {
namespace {

/// How far a problem is from the one of an entry, and in what.
struct Distance {
  double far = 0;
  std::string fields = {};  // "the shape of input 1 (f32[9] there, f32[8] here)"

  void add(double weight, const std::string& field, const std::string& there, const std::string& here) {
    const auto said = [](const std::string& text) { return text.empty() ? "none" : text; };
    far += weight;
    fields += (fields.empty() ? "" : ", ") + field + " (" + said(there) + " there, " + said(here) + " here)";
  }
};

/// Each extent that differs counts, and counts more the more it differs.
double distance_of(const Dims& there, const Dims& here) {
  if (there.size() != here.size()) return 8;
  double far = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i] == here[i]) continue;
    far += 1 + std::abs(std::log2(static_cast<double>(there[i] + 1) / static_cast<double>(here[i] + 1))) / 64;
  }
  return far;
}

void compare(const TensorSpec& there, const TensorSpec& here, const std::string& name, Distance& out) {
  const std::string a = to_string(there), b = to_string(here);
  if (there.dtype != here.dtype) {
    out.add(2 + distance_of(there.shape, here.shape), "the dtype of " + name, a, b);
  } else if (there.shape != here.shape) {
    out.add(distance_of(there.shape, here.shape), "the shape of " + name, a, b);
  } else if (there.strides != here.strides) {
    out.add(1, "the layout of " + name, a, b);
  } else if (a != b) {
    out.add(1, "the alignment of " + name, a, b);
  }
}

/// Where one has more, those that both have; `last_alike`: the last of both are the same thing.
void compare(std::span<const TensorSpec> there, std::span<const TensorSpec> here, const char* what, bool last_alike,
             Distance& out) {
  if (there.size() != here.size()) {
    out.add(16, "the number of " + std::string(what) + "s", std::to_string(there.size()), std::to_string(here.size()));
  }
  const std::size_t common = std::min(there.size(), here.size());
  for (std::size_t i = 0; i < common; ++i) {
    const bool from_the_end = last_alike && i + 1 == common;
    const std::size_t a = from_the_end ? there.size() - 1 : i, b = from_the_end ? here.size() - 1 : i;
    compare(there[a], here[b], std::string(what) + " " + std::to_string(b), out);
  }
}

/// Without the gradient of the output, which is the last of a backward problem.
std::span<const TensorSpec> forward_inputs(const Problem& problem) {
  const bool backward = problem.direction == Direction::backward && !problem.inputs.empty();
  return std::span(problem.inputs).first(problem.inputs.size() - (backward ? 1 : 0));
}

Distance distance(const Problem& there, const Problem& here, const std::string& limits_there,
                  const std::string& limits_here) {
  Distance out;
  if (there.direction == here.direction) {
    compare(there.inputs, here.inputs, "input", here.direction == Direction::backward, out);
  } else {
    const auto said = [](Direction way) { return way == Direction::forward ? "forward" : "backward"; };
    out.add(32, "the direction", said(there.direction), said(here.direction));
    compare(forward_inputs(there), forward_inputs(here), "input", false, out);
  }
  if (there.attributes != here.attributes) {
    out.add(1, "the attributes", there.attributes.to_string(), here.attributes.to_string());
  }
  // Otherwise they differ because the inputs or the attributes do.
  if (out.fields.empty()) compare(there.outputs, here.outputs, "output", false, out);
  if (there.device != here.device) out.add(4, "the device", to_string(there.device), to_string(here.device));
  if (limits_there != limits_here) out.add(0.5, "the limits", limits_there, limits_here);
  return out;
}

}  // namespace

std::string KernelLock::why_missing(const Problem& problem) const {
  const std::string op(to_string(problem.op)), limits = without_limits(to_string(problem)).limits;
  const LockEntry* nearest = nullptr;
  Distance least;
  for (auto at = entries_.lower_bound(op); at != entries_.end() && at->first.starts_with(op); ++at) {
    const auto range = ranges_.find(at->first);
    const Problem there = range == ranges_.end() ? parse_problem(at->first)
                                                 : range->second.nearest(problem).value_or(range->second.least());
    if (there.op != problem.op) continue;  // log_softmax is not log
    Distance found = distance(there, problem, without_limits(at->first).limits, limits);
    if (nearest != nullptr && found.far >= least.far) continue;
    nearest = &at->second;
    least = std::move(found);
  }
  const std::string remedy = "record it too (xrt lock record, record_lock)";
  if (nearest == nullptr) return "the lock has no entry for it, nor any other of " + op + "; " + remedy;
  std::string limits_alike;
  if (least.fields.starts_with("the limits")) {  // compared last: nothing else differs
    const bool none_there = without_limits(nearest->problem).limits.empty();
    limits_alike = none_there ? "drop these limits from the call, the policy and the environment, or "
                              : "set the same limits in the policy (XPURUNTIME_POLICY, with_policy), or ";
  }
  return "the lock has no entry for it; the nearest is " + nearest->problem + ", which differs in " + least.fields +
         "; " + limits_alike + remedy;
}

}  // namespace xpuruntime
