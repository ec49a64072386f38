#include "xpuruntime/dispatch/held_constants.h"

#include <gtest/gtest.h>

#include <vector>

#include "dispatch/prepared.h"

namespace xpuruntime {
namespace {

class HoldingPlan : public Plan {
 public:
  explicit HoldingPlan(bool holds) : holds_(holds) {}
  Status run(const RunArguments&) const override { return {}; }
  std::unique_ptr<const Plan> with_constants(std::span<const Tensor* const>) const override {
    return holds_ ? std::make_unique<HoldingPlan>(false) : nullptr;
  }

 private:
  bool holds_;
};

std::vector<const void*>& told() {
  static std::vector<const void*> constants;
  return constants;
}

TEST(HeldConstantsTest, WhoeverHasTheConstantsIsToldOnceWhatIsHeld) {
  const Tensor x = Tensor::empty(DataType::float32, {4}), weight = Tensor::empty(DataType::float32, {4});
  const Tensor *inputs[] = {&x, &weight}, *output = &x;
  const Call call{.op = OpId::add, .inputs = inputs, .outputs = {&output, 1}};
  for (const bool holds : {false, true}) {
    const auto decided = std::make_shared<CachedPlan>();
    decided->plan = std::make_unique<HoldingPlan>(holds);
    HeldConstants held({false, true}, [](const Tensor& constant) { told().push_back(constant.data()); });
    const Plan& plan = held.plan_for(decided, call);
    EXPECT_EQ(&plan == decided->plan.get(), !holds);
    EXPECT_EQ(&held.plan_for(decided, call), &plan);
    EXPECT_EQ(told(), holds ? std::vector<const void*>{weight.data()} : std::vector<const void*>());
  }
}

}  // namespace
}  // namespace xpuruntime
