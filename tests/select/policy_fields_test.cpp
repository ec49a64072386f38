#include "xpuruntime/select/policy_fields.h"

#include <gtest/gtest.h>

#include <random>

#include "select/policy_places.h"

namespace xpuruntime {
namespace {

using Changes = std::vector<PolicyChange>;

TEST(PolicyFields, ListWhatIsSetAndTheSingleFieldsThatAreNot) {
  const KernelPolicy policy = KernelPolicy::from_json(
      R"({"preferences": {"gemm": ["skinny", "packed"]}, "rules": [{"op": "relu", "use": "simd"}], "threads": 2})");
  const std::vector<PolicyField> expected = {{"preferences.matmul", R"(["skinny","packed"])"},
                                             {"rules[0]", R"({"op":"relu","use":"simd"})"},
                                             {"auto_strategy", ""},
                                             {"default_precision", ""},
                                             {"workspace_limit_bytes", ""},
                                             {"deterministic", ""},
                                             {"threads", "2"}};
  EXPECT_EQ(policy_fields(policy), expected);
}

TEST(PolicyFields, NameOpsAndStrategiesByTheirOwnNames) {
  const KernelPolicy policy = KernelPolicy::from_json(
      R"({"preferences": {"gemm": "skinny"}, "auto_strategy": 1, "default_precision": "half"})");
  const std::vector<PolicyField> fields = policy_fields(policy);
  EXPECT_EQ(fields[0], (PolicyField{"preferences.matmul", "\"skinny\""}));
  EXPECT_EQ(fields[1], (PolicyField{"auto_strategy", "\"best_performance\""}));
  EXPECT_EQ(fields[2], (PolicyField{"default_precision", "\"fp16\""}));
  EXPECT_EQ(diff_policies(policy, KernelPolicy::from_json(R"({"preferences": {"matmul": "skinny"}, "strategy":
    "BestPerformance", "default_precision": "f16"})")),
            Changes{});
}

TEST(PolicyPlaces, AreThoseThatASearchForEachFieldFinds) {
  std::string text =
      "{\"strategy\": 1,\n\"preferences\": {\"gemm\": \"packed\",\n  \"relu\": {\"kernel\": \"simd\"}}, \"rules\": [\n";
  for (int i = 0; i < 50; ++i) {
    text += std::string(i == 0 ? "" : ",\n") + "  {\"op\": \"matmul\", \"when\": {\"m\": " + std::to_string(i) +
            ",\n \"device.vendor\": \"x\"}, \"use\": [\"skinny\"]}";
  }
  text += "]}";
  const PolicyPlaces places(text);
  for (int i = 0; i < 50; ++i) {
    for (const char* part : {"", ".use", ".use[0]", ".when", ".when.m", ".when.device.vendor"}) {
      const std::string field = "rules[" + std::to_string(i) + "]" + part;
      ASSERT_TRUE(places.find(field)) << field;
      EXPECT_EQ(places.find(field), find_field(text, field)) << field;
    }
  }
  EXPECT_EQ(places.find("auto_strategy"), find_field(text, "strategy"));
  EXPECT_EQ(places.find("preferences.matmul"), find_field(text, "preferences.gemm"));
  EXPECT_EQ(places.find("preferences.relu"), (JsonPlace{3, 3}));
  EXPECT_EQ(places.find("rules[50]"), std::nullopt);
}

// One search of the text for each of them is not done within the time that a test has.
TEST(PolicyPlaces, AreFoundInOneGoThroughTheText) {
  std::string text = "{\"rules\": [";
  for (int i = 0; i < 200000; ++i) text += std::string(i == 0 ? "" : ",\n") + "{\"op\": \"relu\", \"use\": \"simd\"}";
  const PolicyPlaces places(text + "]}");
  for (std::size_t i = 1; i < 200000; ++i) {
    ASSERT_EQ(places.find("rules[" + std::to_string(i) + "].use"), (JsonPlace{i + 1, 16}));
  }
}

TEST(PolicyDiff, FindsNothingBetweenEqualPolicies) {
  const KernelPolicy policy = KernelPolicy::from_json(R"({"threads": 2, "rules": [{"op": "relu", "use": "simd"}]})");
  EXPECT_EQ(diff_policies(policy, policy), Changes{});
  EXPECT_EQ(diff_policies({}, {}), Changes{});
}

TEST(PolicyDiff, NamesWhatWasAddedRemovedAndChanged) {
  KernelPolicy a, b;
  a.set("relu", "simd").set("gelu", "simd");
  b.set("relu", "reference");
  b.set_precision("matmul", "bf16");
  a.threads = 1;
  const Changes expected = {{"precision.matmul", "", "\"bf16\""},
                            {"preferences.gelu", "\"simd\"", ""},
                            {"preferences.relu", "\"simd\"", "\"reference\""},
                            {"threads", "1", ""}};
  EXPECT_EQ(diff_policies(a, b), expected);
}

KernelPolicy with_rules(const std::vector<int>& rows) {
  KernelPolicy policy;
  for (const int m : rows) {
    PolicyRule rule = {OpId::matmul, {}, {"skinny"}, ""};
    rule.when["m"] = {{Comparison::equal, {RuleValue{std::int64_t{m}}}}};
    policy.rules.push_back(rule);
  }
  return policy;
}

/// The rules of `before`, with the changes made to them.
std::vector<std::string> applied(const KernelPolicy& before, const Changes& changes) {
  std::vector<std::string> rules;
  for (const PolicyField& field : policy_fields(before)) {
    if (field.field.starts_with("rules[")) rules.push_back(field.value);
  }
  const auto index = [](const PolicyChange& change) { return std::stol(change.field.substr(6)); };
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    if (change->after.empty()) {
      EXPECT_EQ(rules.at(static_cast<std::size_t>(index(*change))), change->before);
      rules.erase(rules.begin() + index(*change));
    }
  }
  for (const PolicyChange& change : changes) {
    if (change.before.empty()) rules.insert(rules.begin() + index(change), change.after);
  }
  return rules;
}

TEST(PolicyDiff, DoesNotCountRulesThatMerelyMovedDown) {
  const Changes changes = diff_policies(with_rules({1, 2, 3}), with_rules({9, 1, 2, 3}));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].field, "rules[0]");
}

TEST(PolicyDiff, LeadsFromOnePolicyToTheOther) {
  std::mt19937 random(5);
  const auto rows = [&] {
    std::vector<int> out(random() % 7);
    for (int& m : out) m = static_cast<int>(random() % 4);
    return out;
  };
  for (int i = 0; i < 200; ++i) {
    const KernelPolicy a = with_rules(rows()), b = with_rules(rows());
    EXPECT_EQ(applied(a, diff_policies(a, b)), applied(b, {}));
  }
}

TEST(PolicyDiff, ComparesThousandsOfRules) {
  std::vector<int> many(3000), reversed(3000);
  for (int i = 0; i < 3000; ++i)
    many[static_cast<std::size_t>(i)] = i, reversed[static_cast<std::size_t>(i)] = 2999 - i;
  const KernelPolicy a = with_rules(many), b = with_rules(reversed);
  EXPECT_EQ(applied(a, diff_policies(a, b)), applied(b, {}));
}

}  // namespace
}  // namespace xpuruntime
