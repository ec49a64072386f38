#include "xpuruntime/select/rule_list.h"

#include <gtest/gtest.h>

#include "select/random_rules.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

RuleList two_rules() { return {testing::rule_of(R"({"m": 1})", "matmul"), testing::rule_of(R"({"m": 2})", "matmul")}; }

TEST(RuleList, CopiesShareWhatTheyHoldAndWhatIsKnownOfIt) {
  const RuleList rules = two_rules();
  const RuleList copy = rules;
  EXPECT_TRUE(copy.same_as(rules));
  EXPECT_EQ(&copy.text(), &rules.text());
  EXPECT_EQ(&copy.index(), &rules.index());
  EXPECT_EQ(copy, rules);
  EXPECT_EQ(copy, two_rules());
  EXPECT_FALSE(copy.same_as(two_rules()));
}

TEST(RuleList, AChangedCopyLeavesTheOthersAsTheyWere) {
  const RuleList rules = two_rules();
  RuleList copy = rules;
  copy.push_back(testing::rule_of("{}", "matmul"));
  EXPECT_EQ(rules, two_rules());
  EXPECT_EQ(copy.size(), 3u);
  EXPECT_NE(copy.text(), rules.text());
  const std::string before = copy.text();
  copy.push_back(testing::rule_of("{}", "relu"));  // what was known of three is not of four
  EXPECT_NE(copy.text(), before);
  copy.clear();
  EXPECT_TRUE(copy.empty());
  EXPECT_EQ(copy.text(), "[]");
  EXPECT_EQ(copy, RuleList());
}

TEST(RuleList, PutsOthersBeforeItsOwn) {
  RuleList rules = two_rules();
  rules.prepend({testing::rule_of("{}", "relu")});
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules.front().op, OpId::relu);
  rules.prepend(rules);
  EXPECT_EQ(rules.size(), 6u);
  RuleList none;
  none.prepend(rules);
  EXPECT_TRUE(none.same_as(rules));  // nothing is copied
}

TEST(RuleList, IsCheckedAnewAfterAChange) {
  RuleList rules = two_rules();
  EXPECT_NO_THROW(rules.check());
  PolicyRule wrong = testing::rule_of("{}", "matmul");
  wrong.use = {"no such kernel"};
  rules.push_back(wrong);
  EXPECT_THROW(rules.check(), Error);
  EXPECT_THROW(rules.check(), Error);
}

}  // namespace
}  // namespace xpuruntime
