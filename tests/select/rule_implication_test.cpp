#include "select/rule_implication.h"

#include <gtest/gtest.h>

#include <random>

#include "xpuruntime/select/policy.h"

namespace xpuruntime {
namespace {

PolicyRule rule_of(const std::string& when, const std::string& op = "conv2d") {
  return KernelPolicy::from_json(R"({"rules": [{"op": ")" + op + R"(", "use": "reference", "when": )" + when + "}]}")
      .rules.at(0);
}

bool hides(const std::string& earlier, const std::string& later) { return implies(rule_of(later), rule_of(earlier)); }

TEST(Implication, KnowsThatARuleWithoutConditionsHidesAll) {
  EXPECT_TRUE(hides("{}", "{}"));
  EXPECT_TRUE(hides("{}", R"({"batch": 1})"));
  EXPECT_FALSE(hides(R"({"batch": {">=": 0}})", "{}"));  // sound, if not clever
  EXPECT_FALSE(implies(rule_of("{}", "relu"), rule_of("{}")));
}

TEST(Implication, ComparesRangesSetsAndExclusions) {
  EXPECT_TRUE(hides(R"({"batch": {"<=": 16}})", R"({"batch": {"<": 17}})"));
  EXPECT_FALSE(hides(R"({"batch": {"<=": 16}})", R"({"batch": {"<=": 17}})"));
  EXPECT_TRUE(hides(R"({"batch": {">": 3}})", R"({"batch": {">=": 4}, "groups": 1})"));
  EXPECT_TRUE(hides(R"({"batch": [1, 2, 3]})", R"({"batch": {">=": 1, "<": 4}})"));
  EXPECT_FALSE(hides(R"({"batch": [1, 2]})", R"({"batch": {">=": 1, "<": 4}})"));
  EXPECT_TRUE(hides(R"({"batch": {"!=": 5}})", R"({"batch": {">": 100000}})"));
  EXPECT_FALSE(hides(R"({"batch": {"!=": 500000}})", R"({"batch": {">": 100000}})"));
  EXPECT_TRUE(hides(R"({"batch": {"multiple_of": 4}})", R"({"batch": {"multiple_of": 8}})"));
  EXPECT_FALSE(hides(R"({"batch": {"multiple_of": 8}})", R"({"batch": {"multiple_of": 4}})"));
  EXPECT_TRUE(hides(R"({"batch": {"multiple_of": 8}})", R"({"batch": [8, 16]})"));
  EXPECT_TRUE(hides(R"({"dtype": {"!=": "f32"}})", R"({"dtype": ["f16", "bf16"]})"));
  EXPECT_TRUE(hides(R"({"direction": ["forward", "backward"]})", R"({"direction": {"!=": "forward"}})"));
  EXPECT_TRUE(hides(R"({"deterministic": {"!=": false}})", R"({"deterministic": true})"));
  EXPECT_TRUE(hides(R"({"device.name": {"contains": "H2"}})", R"({"device.name": {"contains": "H200"}})"));
  EXPECT_FALSE(hides(R"({"device.name": {"contains": "H200"}})", R"({"device.name": {"contains": "H2"}})"));
  EXPECT_TRUE(hides(R"({"device.name": {"!=": "A100"}})", R"({"device.name": {"contains": "H2"}})"));
  EXPECT_TRUE(
      hides(R"({"device.cpu_features": {"contains": "a"}})", R"({"device.cpu_features": {"contains": ["b", "a"]}})"));
  EXPECT_TRUE(hides(R"({"device.compute_capability": {">=": 8}})", R"({"device.compute_capability": {">": 8}})"));
  EXPECT_FALSE(hides(R"({"device.compute_capability": {">": 8}})", R"({"device.compute_capability": {">=": 8}})"));
  EXPECT_TRUE(hides(R"({"kernel": {"<=": 3}})", R"({"kernel": [[1, 1], [3, 2]]})"));
  EXPECT_TRUE(hides(R"({"kernel": 3})", R"({"kernel": [3, 3]})"));
  EXPECT_TRUE(hides(R"({"kernel": [3, 3]})", R"({"kernel": 3})"));
  EXPECT_FALSE(hides(R"({"kernel": {"!=": 3}})", R"({"kernel": {"<=": 4}})"));
  EXPECT_TRUE(hides(R"({"inputs.0.shape": {"<=": 9}})", R"({"inputs.0.shape": {"<=": 8}})"));
  EXPECT_TRUE(hides(R"({"inputs.0.shape": 3})", R"({"inputs.0.shape": 3})"));
}

TEST(Contradiction, IsFoundInRangesSetsAndWords) {
  for (const char* when :
       {R"({"batch": {"<": 3, ">": 5}})", R"({"batch": {"<": 4, ">": 3}})", R"({"batch": {"==": 3, "!=": 3}})",
        R"({"batch": {"in": [1, 2], ">": 2}})", R"({"batch": {"==": 3, "multiple_of": 2}})",
        R"({"batch": {">": 9223372036854775807}})", R"({"batch": {"<": -9223372036854775808}})",
        R"({"dtype": {"in": ["f32"], "not_in": ["f32"]}})", R"({"deterministic": {"==": true, "!=": true}})",
        R"({"device.compute_capability": {">": 8, "<=": 8}})", R"({"kernel": {"<": 3, ">": 3}})",
        R"({"device.name": {"==": "a", "contains": "b"}})", R"({"batch": {">=": 9, "<=": 15, "multiple_of": 8}})"}) {
    EXPECT_NE(contradiction_in(rule_of(when)), "") << when;
  }
  for (const char* when :
       {"{}", R"({"batch": {"<": 5, ">": 3}})", R"({"batch": {">=": 9223372036854775807}})",
        R"({"batch": {">=": -9223372036854775808, "<=": 9223372036854775807}})",
        R"({"device.compute_capability": {">=": 8, "<=": 8}})", R"({"inputs.0.shape": {"<": 3, ">": 3}})"}) {
    EXPECT_EQ(contradiction_in(rule_of(when)), "") << when;
  }
}

/// Random conditions over few small values, so that they overlap often.
class RandomRules {
 public:
  explicit RandomRules(unsigned seed) : random_(seed) {}

  PolicyRule rule() {
    std::string when;
    for (const char* key : {"m", "batch", "dtype", "deterministic", "device.compute_capability", "device.name",
                            "inputs.0.shape", "device.cpu_features", "inputs.0.shape.-1"}) {
      if (below(4) != 0) continue;
      when += (when.empty() ? "" : ", ") + std::string("\"") + key + "\": " + tests(key);
    }
    return rule_of("{" + when + "}", "matmul");
  }

  Problem problem() {
    static const char* const dtypes[] = {"f32", "bf16", "f16"};
    const std::string d = dtypes[below(3)];
    const std::string batch = below(2) ? std::to_string(below(4)) + "," : "";
    std::string text = "matmul(" + d + "[" + batch + number() + ",2], " + d + "[2,3])";
    return parse_problem(text + (below(2) ? " deterministic" : ""));
  }

  DeviceProfile profile() {
    DeviceProfile profile;
    profile.compute_capability_major = 7 + below(4);
    profile.name = text();
    for (const char* feature : {"a", "b", "c"}) {
      if (below(2)) profile.cpu_features.emplace_back(feature);
    }
    return profile;
  }

 private:
  int below(int bound) { return std::uniform_int_distribution(0, bound - 1)(random_); }
  std::string number() { return std::to_string(below(6)); }
  std::string text() {
    std::string out;
    for (int i = below(3); i >= 0; --i) out += static_cast<char>('x' + below(2));
    return out;
  }

  std::string value(const std::string& key) {
    static const char* const dtypes[] = {"\"f32\"", "\"bf16\"", "\"f16\""};
    if (key == "dtype") return dtypes[below(3)];
    if (key == "deterministic") return below(2) ? "true" : "false";
    if (key == "device.name") return "\"" + text() + "\"";
    if (key == "device.compute_capability") return std::to_string(7 + below(4));
    if (key == "inputs.0.shape") return below(2) ? number() : "[" + number() + ", 2]";
    return number();
  }

  std::string list(const std::string& key) {
    std::string out = value(key);
    for (int i = below(3); i > 0; --i) out += ", " + value(key);
    return "[" + out + "]";
  }

  std::string tests(const std::string& key) {
    if (key == "device.cpu_features") return below(2) ? R"({"contains": "a"})" : R"({"contains": ["a", "b"]})";
    const bool number_key = key == "m" || key == "batch" || key == "inputs.0.shape.-1";
    std::string out;
    const auto add = [&](const std::string& name, const std::string& operand) {
      out += (out.empty() ? "" : ", ") + std::string("\"") + name + "\": " + operand;
    };
    do {
      out.clear();
      if (key != "deterministic" && below(4) == 0) add("in", list(key));
      if (key != "deterministic" && below(4) == 0) add("not_in", list(key));
      if (below(5) == 0) add("==", value(key));
      if (below(4) == 0) add("!=", value(key));
      if (number_key || key == "device.compute_capability" || key == "inputs.0.shape") {
        for (const char* order : {"<", "<=", ">", ">="}) {
          if (below(4) == 0) add(order, key == "inputs.0.shape" ? number() : value(key));
        }
      }
      if ((number_key || key == "inputs.0.shape") && below(4) == 0) add("multiple_of", std::to_string(1 + below(4)));
      if (key == "device.name" && below(3) == 0) add("contains", value(key));
      if (key == "inputs.0.shape" && below(4) == 0) add("contains", number());
    } while (out.empty());
    return "{" + out + "}";
  }

  std::mt19937 random_;
};

TEST(Implication, IsNeverContradictedByAProblem) {
  RandomRules random(7);
  std::vector<std::pair<Problem, DeviceProfile>> calls;
  for (int i = 0; i < 300; ++i) calls.emplace_back(random.problem(), random.profile());
  int hidden = 0, impossible = 0, matched = 0;
  for (int i = 0; i < 4000; ++i) {
    const PolicyRule narrow = random.rule(), wide = random.rule();
    const bool implied = implies(narrow, wide);
    const bool never = !contradiction_in(narrow).empty();
    hidden += implied;
    impossible += never;
    if (!implied && !never) continue;
    for (const auto& [problem, profile] : calls) {
      if (!narrow.matches(problem, profile)) continue;
      ++matched;
      ASSERT_FALSE(never) << KernelPolicy{.rules = {narrow}}.to_json();
      ASSERT_TRUE(wide.matches(problem, profile)) << KernelPolicy{.rules = {narrow, wide}}.to_json();
    }
  }
  EXPECT_GT(hidden, 100);
  EXPECT_GT(impossible, 100);
  EXPECT_GT(matched, 1000);
}

}  // namespace
}  // namespace xpuruntime
