#include "select/first_choice.h"

#include <algorithm>
#include <vector>

#include "tune/check.h"

namespace xpuruntime {
namespace {

// A copied byte, read and written, takes about as long as this many products of a fast kernel. Kernels whose order the
// rules know differ by more than that.
constexpr double products_per_copied_byte = 64;

bool is_reference(const Option& option) { return option.kernel->name() == "reference"; }

bool is_direct(const Option& option) { return option.copied_bytes == 0; }

bool is_worth_its_copies(const Option& option) {
  if (is_direct(option)) return true;
  return reference_work(*option.problem) >= products_per_copied_byte * static_cast<double>(option.copied_bytes);
}

/// A line of the order: take this option where the rule holds.
struct Line {
  std::size_t option = 0;
  const BuiltinRule* rule = nullptr;  // null: a row of the table, which holds always
};

/// The rules whose kernels can run, and after them all rows of the table.
std::vector<Line> lines_of(std::span<const Option> options, std::span<const BuiltinRule> rules) {
  std::vector<Line> lines;
  for (const BuiltinRule& rule : rules) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      const Problem& problem = *options[i].problem;
      const bool named = rule.op == problem.op && rule.device_type == problem.device.type;
      if (named && options[i].kernel->name() == rule.kernel && !is_reference(options[i])) lines.push_back({i, &rule});
    }
  }
  for (std::size_t i = 0; i < options.size(); ++i) lines.push_back({i, nullptr});
  return lines;
}

/// What copies do to the order: lines of a lower rank come first. Where a fast kernel takes the tensors as they are, so
/// may a reference that the table has before it: it is there for a reason.
int rank(const Option& option, bool by_rule, bool any_fast_direct) {
  if (option.copies_unused) return 5;
  if (by_rule) return is_worth_its_copies(option) ? 0 : 1;
  if (is_direct(option) && (any_fast_direct || !is_reference(option))) return 2;
  if (!is_reference(option)) return 3;
  return is_direct(option) ? 4 : 6;
}

}  // namespace

FirstChoice first_choice(std::span<const Option> options, std::span<const BuiltinRule> rules,
                         const DeviceProfile& profile) {
  const bool any_fast_direct = std::any_of(
      options.begin(), options.end(), [](const Option& option) { return is_direct(option) && !is_reference(option); });
  FirstChoice best;
  int best_rank = 7;
  for (const auto& [i, rule] : lines_of(options, rules)) {
    const int own = rank(options[i], rule != nullptr, any_fast_direct);
    if (own >= best_rank || (rule != nullptr && !rule->condition(*options[i].problem, profile))) continue;
    best = {i, rule == nullptr ? "the first that can run it"
                               : "built-in rule: " + std::string(rule->because) + unmeasured_note(profile)};
    best_rank = own;
  }
  return best;
}

}  // namespace xpuruntime
