#include "xpuruntime/precision/precision.h"

namespace xpuruntime {
namespace {

struct Wish {
  DataType dtype;
  std::string from;
};

std::optional<Wish> strongest(const Problem& problem, const PrecisionWishes& wishes) {
  if (wishes.explicit_dtype) return Wish{*wishes.explicit_dtype, "the call"};
  if (wishes.hook != nullptr && *wishes.hook) {
    if (const auto dtype = (*wishes.hook)(problem)) return Wish{*dtype, "the precision hook"};
  }
  if (wishes.policy_default) return Wish{*wishes.policy_default, "the policy's default"};
  return std::nullopt;
}

}  // namespace

Precision resolve_precision(const Problem& problem, const PrecisionWishes& wishes) {
  const DataType own = promoted_dtype(problem);
  const std::string own_name(to_string(own));
  const std::optional<Wish> wish = strongest(problem, wishes);
  if (!wish) return {own, own, "the inputs are " + own_name};
  const std::string wished(to_string(wish->dtype));
  if (wish->dtype == own) return {own, own, wish->from + " asks for " + wished};
  if (!is_floating(own)) return {own, own, wish->from + " asks for " + wished + ", but integers are never cast"};
  return {own, own,
          wish->from + " asks for " + wished + "; the inputs are " + own_name +
              " and calls are not cast: cast them to get " + wished};
}

}  // namespace xpuruntime
