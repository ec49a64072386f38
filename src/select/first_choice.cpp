#include "select/first_choice.h"

#include <algorithm>

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

bool prefers(const Option& option, const DeviceProfile& profile) {
  try {
    return option.kernel->prefers(*option.problem, profile);
  } catch (...) {
    return false;  // a hint that throws is no hint
  }
}

class Chooser {
 public:
  Chooser(std::span<const Option> options, std::span<const BuiltinRule> rules, const DeviceProfile& profile)
      : options_(options), rules_(rules), profile_(profile) {}

  FirstChoice run() const {
    const auto worthy = [](const Option& option) { return !is_reference(option) && is_worth_its_copies(option); };
    const auto any_but_reference = [](const Option& option) { return !is_reference(option); };
    if (const FirstChoice known = by_knowledge(worthy); known.option) return known;
    if (const FirstChoice known = by_knowledge(any_but_reference); known.option) return known;
    // A reference that the table has first is there for a reason.
    const auto fast_and_direct = [](const Option& option) { return is_direct(option) && !is_reference(option); };
    if (std::any_of(options_.begin(), options_.end(), fast_and_direct)) return first_where(is_direct);
    if (const FirstChoice first = first_where(any_but_reference); first.option) return first;
    if (const FirstChoice first = first_where(is_direct); first.option) return first;
    return first_where([](const Option&) { return true; });
  }

 private:
  /// By rules, then by hints.
  template <class Allowed>
  FirstChoice by_knowledge(const Allowed& allowed) const {
    for (const BuiltinRule& rule : rules_) {
      for (std::size_t i = 0; i < options_.size(); ++i) {
        const Problem& problem = *options_[i].problem;
        if (rule.op != problem.op || rule.device_type != problem.device.type) break;
        if (options_[i].kernel->name() != rule.kernel) continue;
        if (allowed(options_[i]) && rule.condition(problem, profile_)) {
          return {i, "built-in rule: " + std::string(rule.because)};
        }
      }
    }
    for (std::size_t i = 0; i < options_.size(); ++i) {
      if (allowed(options_[i]) && prefers(options_[i], profile_))
        return {i, "the first that is made for such problems"};
    }
    return {};
  }

  template <class Allowed>
  FirstChoice first_where(const Allowed& allowed) const {
    const auto found = std::find_if(options_.begin(), options_.end(), allowed);
    if (found == options_.end()) return {};
    return {static_cast<std::size_t>(found - options_.begin()), "the first that can run it"};
  }

  std::span<const Option> options_;
  std::span<const BuiltinRule> rules_;
  const DeviceProfile& profile_;
};

}  // namespace

FirstChoice first_choice(std::span<const Option> options, std::span<const BuiltinRule> rules,
                         const DeviceProfile& profile) {
  return Chooser(options, rules, profile).run();
}

}  // namespace xpuruntime
