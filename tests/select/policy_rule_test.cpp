#include "xpuruntime/select/policy_rule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/expect_error.h"
#include "xpuruntime/select/policy.h"

namespace xpuruntime {
namespace {

/// The one rule of a policy text.
PolicyRule rule_of(const std::string& op, const std::string& when) {
  const std::string use = op == "matmul" || op == "linear" ? "skinny" : "reference";
  const KernelPolicy policy = KernelPolicy::from_json(R"({"rules": [{"op": ")" + op + R"(", "when": )" + when +
                                                      R"(, "use": ")" + use + "\"}]}");
  return policy.rules.at(0);
}

DeviceProfile h200() {
  DeviceProfile profile;
  profile.type = DeviceType::nvidia;
  profile.vendor = "nvidia";
  profile.name = "NVIDIA H200";
  profile.library_versions = {{"cublasLt", "13.0.2"}};
  profile.compute_capability_major = 9;
  profile.global_memory_bytes = ~std::uint64_t{0};
  profile.max_work_item_sizes = {1024, 1024, 64};
  profile.bf16 = true;
  profile.cpu_features = {"avx2", "amx_bf16"};
  return profile;
}

struct Case {
  const char* problem;
  const char* when;
  bool matches;
};

void expect_all(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const Problem problem = parse_problem(c.problem);
    const PolicyRule rule = rule_of(std::string(to_string(problem.op)), c.when);
    EXPECT_EQ(rule.matches(problem, h200()), c.matches) << c.problem << " " << c.when;
    EXPECT_NO_THROW(rule.check()) << c.when;
  }
}

void expect_refused(const std::string& op, const std::string& when, const std::string& part) {
  expect_invalid(part, [&] { rule_of(op, when); });
}

TEST(PolicyRule, WithoutConditionsMatchesEveryCallOfItsOpAndNoOther) {
  const PolicyRule rule = {OpId::matmul, {}, {"skinny"}, ""};
  EXPECT_TRUE(rule.matches(parse_problem("matmul(f32[2,3], f32[3,4])"), {}));
  EXPECT_FALSE(rule.matches(parse_problem("relu(f32[2])"), {}));
}

TEST(PolicyRule, ReadsTheSizesOfAProduct) {
  expect_all({
      {"matmul(bf16[1,4096], bf16[4096,64])", R"({"m": {"<=": 16}, "dtype": "bf16", "device.vendor": "nvidia"})", true},
      {"matmul(bf16[17,4096], bf16[4096,64])", R"({"m": {"<=": 16}})", false},
      {"matmul(f32[1,4096], f32[4096,64])", R"({"m": {"<=": 16}, "dtype": "bf16"})", false},
      {"matmul(f32[2,3], f32[3,4])", R"({"m": 2, "n": 4, "k": 3, "batch": 1})", true},
      {"matmul(f32[3,2], f32[4,3]; transpose_a=true transpose_b=true)", R"({"m": 2, "n": 4, "k": 3})", true},
      {"matmul(f32[5,6,2,3], f32[3,4])", R"({"batch": 30})", true},
      {"matmul(f32[3], f32[3])", R"({"m": 1, "n": 1, "k": 3})", true},
      {"linear(f32[5,6,8], f32[7,8])", R"({"m": 30, "n": 7, "k": 8, "batch": 1})", true},
  });
}

TEST(PolicyRule, SeesTheForwardSizesOfABackwardCall) {
  expect_all({
      {"matmul:backward(f32[2,3], f32[3,4], f32[2,4])", R"({"m": 2, "n": 4, "k": 3, "direction": "backward"})", true},
      {"matmul:backward(f32[2,3], f32[3,4], f32[2,4])", R"({"direction": "forward"})", false},
      {"matmul:backward(f32[2,3], f32[3,4], f32[2,4])", R"({"inputs.2.shape": [2, 4], "inputs.count": 3})", true},
      {"matmul(f32[2,3], f32[3,4])", R"({"inputs.2.shape": [2, 4]})", false},
  });
}

TEST(PolicyRule, ReadsTheSizesOfConvolutionsAndAttention) {
  const char* conv = "conv2d(f32[2,32,28,30], f32[64,16,3,3]; stride=1,2 padding=1,1 groups=2)";
  const char* attention = "attention(f32[2,8,5,64], f32[2,4,7,64], f32[2,4,7,32]; causal=true)";
  expect_all({
      {conv, R"({"batch": 2, "in_channels": 32, "out_channels": 64, "groups": 2, "group_channels": 16})", true},
      {conv, R"({"kernel": [3, 3], "stride": [1, 2], "image": [28, 30], "output": [28, 15]})", true},
      {conv, R"({"kernel": 3, "stride": {"<=": 2}, "padding": 1})", true},
      {conv, R"({"stride": 1})", false},
      {conv, R"({"stride": {"!=": 1}, "stride.0": 1, "stride.-1": 2, "kernel": [[1, 1], [3, 3]]})", true},
      {conv, R"({"stride": {"contains": 2}, "image": {"multiple_of": 2}})", true},
      {conv, R"({"image": {"multiple_of": 4}})", false},
      {conv, R"({"image": {"in": [28, [28, 30]]}})", true},
      {attention, R"({"batch": 2, "heads": 8, "key_heads": 4, "queries": 5, "keys": 7, "head_dim": 64})", true},
      {attention, R"({"value_dim": 32, "causal": true, "masked": false})", true},
      {attention, R"({"causal": {"!=": true}})", false},
  });
}

TEST(PolicyRule, ReadsRowsAndColumnsOfNormalisations) {
  expect_all({
      {"softmax(f32[4,5,6])", R"({"rows": 20, "columns": 6})", true},
      {"softmax(f32[4,5,6]; dim=1)", R"({"rows": 24, "columns": 5, "dim": 1})", true},
      {"log_softmax(f32[0,6])", R"({"rows": 0, "columns": 6})", true},
      {"layer_norm(f32[4,5,6]; normalized_rank=2)", R"({"rows": 4, "columns": 30})", true},
      {"layer_norm(f32[4,5,6])", R"({"rows": 20, "columns": 6})", true},
      {"max_pool2d(f32[1,2,8,8]; kernel_size=2,2)", R"({"image": [8, 8], "output": 4, "kernel_size": [2, 2]})", true},
  });
}

std::vector<std::int64_t> rows_of_first(const Problem& forward) { return {forward.inputs[0].shape[0]}; }

TEST(PolicyRule, ReadsTheSizesOfAnOpThatAProgramRegistered) {
  OpInfo info = op_info(OpId::relu);
  info.name = "rule_test_relu";
  const SizeSpec sizes[] = {{.name = "tokens", .read = rows_of_first, .summary = "rows"}};
  info.sizes = sizes;
  const OpId op = register_op(info);
  EXPECT_EQ(rule_keys(op).front(), (RuleKey{"tokens", RuleKeyKind::integer, "rows"}));
  const PolicyRule rule = {.op = op, .when = {{"tokens", {{Comparison::at_most, {std::int64_t{7}}}}}}, .use = {"mine"}};
  EXPECT_TRUE(rule.matches(parse_problem("rule_test_relu(f32[7,2])"), h200()));
  EXPECT_FALSE(rule.matches(parse_problem("rule_test_relu(f32[8,2])"), h200()));
}

TEST(PolicyRule, ReadsTensors) {
  const char* problem = "add(f32[2,3]{1,2}/4, f16[3])";
  expect_all({
      {problem, R"({"inputs.0.dtype": "float32", "inputs.1.dtype": "half", "dtype": "f32"})", true},
      {problem, R"({"inputs.0.rank": 2, "inputs.1.rank": 1, "inputs.count": 2, "outputs.count": 1})", true},
      {problem, R"({"inputs.0.shape": [2, 3], "inputs.0.shape.1": 3, "inputs.0.shape.-2": 2})", true},
      {problem, R"({"inputs.1.shape.1": 3})", false},
      {problem, R"({"inputs.1.shape.1": {"!=": 3}})", false},  // it has none
      {problem, R"({"inputs.0.strides": [1, 2], "inputs.0.contiguous": false, "inputs.0.alignment": 4})", true},
      {problem, R"({"inputs.0.elements": 6, "inputs.1.elements": 3, "elements": 6})", true},
      {problem, R"({"outputs.0.dtype": "f32", "outputs.0.shape": [2, 3]})", true},
      {"reduce_sum(f32[2,3,4])", R"({"elements": 24, "dim": []})", true},
      {"relu(f32[])", R"({"inputs.0.shape": [], "inputs.0.rank": 0})", true},
  });
}

TEST(PolicyRule, ReadsAttributesByTheirNamesAndTheirLongNames) {
  expect_all({
      {"gelu(f32[4]; approximate=tanh)", R"({"approximate": "tanh"})", true},
      {"gelu(f32[4])", R"({"approximate": {"not_in": ["tanh"]}, "attributes.approximate": "none"})", true},
      {"cast(f32[4]; dtype=bf16)", R"({"dtype": "f32", "attributes.dtype": "bf16"})", true},
      {"layer_norm(f32[4,4]; eps=0.25)", R"({"eps": 0.25})", true},
      {"layer_norm(f32[4,4]; eps=1)", R"({"eps": 1, "attributes.normalized_rank": 1})", true},
      {"layer_norm(f32[4,4]; eps=0.25)", R"({"eps": {">": 0.25}})", false},
      {"transpose(f32[2,3,4]; dims=0,2,1)", R"({"dims": [0, 2, 1], "dims.1": 2})", true},
      {"slice(f32[9]; end=4)", R"({"end": {"<": 5}, "start": 0})", true},
  });
}

TEST(PolicyRule, ReadsTheLimitsWhereThereAreAny) {
  expect_all({
      {"relu(f32[4]) @cpu:0 deterministic threads=2 workspace_limit=100",
       R"({"deterministic": true, "threads": {"<=": 2}, "workspace_limit_bytes": 100})", true},
      {"relu(f32[4])", R"({"deterministic": false})", true},
      {"relu(f32[4])", R"({"threads": {">=": 1}})", false},
      {"relu(f32[4])", R"({"threads": {"!=": 1}})", false},
      {"relu(f32[4])", R"({"workspace_limit_bytes": {"<": 5}})", false},
  });
}

TEST(PolicyRule, ReadsTheDevice) {
  const char* problem = "matmul(f32[2,3], f32[3,4]) @cuda:1";
  expect_all({
      {problem, R"({"device.vendor": ["amd", "nvidia"], "device.type": "nvidia", "device.index": 1})", true},
      {problem, R"({"device.name": {"contains": "H200"}, "device.compute_capability": {">=": 8.6, "<": 9.1}})", true},
      {problem, R"({"device.compute_capability": 9, "device.compute_capability_major": 9})", true},
      {problem, R"({"device.library_versions.cublasLt": "13.0.2"})", true},
      {problem, R"({"device.library_versions.cudnn": {"!=": "9"}})", false},
      {problem, R"({"device.cpu_features": {"contains": "avx2"}, "device.bf16": true, "device.fp16": false})", true},
      {problem, R"({"device.cpu_features": {"contains": ["avx2", "amx_bf16"]}})", true},
      {problem, R"({"device.cpu_features": {"contains": ["avx2", "sve"]}})", false},
      {problem, R"({"device.global_memory_bytes": {">=": 9223372036854775807}})", true},
      {problem, R"({"device.max_work_item_sizes.2": 64, "device.max_work_item_sizes": {">": 32}})", true},
  });
}

TEST(PolicyRule, ComparesWithEveryOperator) {
  const char* problem = "matmul(f32[12,3], f32[3,4])";
  expect_all({
      {problem, R"({"m": {"==": 12}})", true},
      {problem, R"({"m": {"!=": 12}})", false},
      {problem, R"({"m": {"<": 12}})", false},
      {problem, R"({"m": {"<=": 12}})", true},
      {problem, R"({"m": {">": 12}})", false},
      {problem, R"({"m": {">=": 12}})", true},
      {problem, R"({"m": {"in": [1, 12]}})", true},
      {problem, R"({"m": {"not_in": [1, 12]}})", false},
      {problem, R"({"m": {"multiple_of": 4}})", true},
      {problem, R"({"m": {"multiple_of": 5}})", false},
      {problem, R"({"m": [1, 12]})", true},
      {problem, R"({"m": [1, 2]})", false},
      {problem, R"({"m": {">": 4, "<": 20}})", true},
      {problem, R"({"m": {">": 4, "<": 12}})", false},
  });
}

TEST(PolicyRule, RefusesKeysThatTheOpDoesNotHave) {
  expect_refused("matmul", R"({"mm": 1})", "unknown key for rules of matmul 'mm'");
  expect_refused("conv2d", R"({"in_channel": 1})", "did you mean in_channels");
  expect_refused("relu", R"({"m": 1})", "unknown key for rules of relu 'm'");
  expect_refused("matmul", R"({"device.vendr": "nvidia"})", "did you mean device.vendor");
  expect_refused("matmul", R"({"inputs.6.dtype": "f32"})", "inputs.6.dtype");
  expect_refused("matmul", R"({"inputs.00.dtype": "f32"})", "inputs.00.dtype");
  expect_refused("matmul", R"({"inputs.0.shape.8": 1})", "inputs.0.shape.8");
  expect_refused("matmul", R"({"m.0": 1})", "m.0");
  expect_refused("conv2d", R"({"stride.2": 1})", "stride.2");
  expect_refused("matmul", R"({"device.library_versions.": "1"})", "device.library_versions.");
  expect_refused("matmul", R"({"": 1})", "unknown key");
}

TEST(PolicyRule, RefusesComparisonsThatDoNotGoWithTheKey) {
  expect_refused("matmul", R"({"dtype": {"<=": "f32"}})", "is a dtype and cannot be compared with <=");
  expect_refused("matmul", R"({"device.vendor": {">": "a"}})", "use one of: == != in not_in contains");
  expect_refused("matmul", R"({"m": {"contains": 1}})", "cannot be compared with contains");
  expect_refused("matmul", R"({"deterministic": [true]})", "cannot be compared with in");
  expect_refused("matmul", R"({"device.cpu_features": "avx2"})", "use one of: contains");
  expect_refused("matmul", R"({"device.cpu_features": ["avx2"]})", "use one of: contains");
  expect_refused("layer_norm", R"({"eps": {"multiple_of": 2}})", "cannot be compared with multiple_of");
  expect_refused("matmul", R"({"m": {"=<": 1}})", "unknown comparison '=<'");
  expect_refused("matmul", R"({"m": {}})", "is empty; add a comparison");
}

TEST(PolicyRule, RefusesValuesOfAnotherType) {
  expect_refused("matmul", R"({"m": "16"})", "compare it with a whole number");
  expect_refused("matmul", R"({"m": 16.0})", "without a point");
  expect_refused("matmul", R"({"m": true})", "whole number");
  expect_refused("matmul", R"({"m": null})", "must be a value");
  expect_refused("matmul", R"({"m": []})", "is an empty list");
  expect_refused("matmul", R"({"m": {"in": []}})", "is an empty list");
  expect_refused("matmul", R"({"m": {"in": 3}})", "must be a list");
  expect_refused("matmul", R"({"m": {"<": [3]}})", "whole number");
  expect_refused("matmul", R"({"m": {"multiple_of": 0}})", "give 1 or more");
  expect_refused("matmul", R"({"m": 9223372036854775808})", "larger than any number here");
  expect_refused("matmul", R"({"dtype": 16})", "compare it with a string");
  expect_refused("matmul", R"({"dtype": "bf61"})", "use one of: f64");
  expect_refused("matmul", R"({"device.type": "gpu"})", "gpu");
  expect_refused("matmul", R"({"direction": "forwards"})", "did you mean forward");
  expect_refused("matmul", R"({"deterministic": 1})", "true or false");
  expect_refused("gelu", R"({"approximate": "tan"})", "did you mean tanh");
  expect_refused("conv2d", R"({"stride": [1, 1, 1]})", "has 2 values");
  expect_refused("conv2d", R"({"stride": [1, 1.5]})", "whole numbers");
  expect_refused("conv2d", R"({"stride": [["a"]]})", "whole numbers");
  expect_refused("transpose", R"({"dims": [0,1,2,3,4,5,6,7,8]})", "at most 8");
  expect_refused("conv2d", R"({"stride": {"<": [1, 1]}})", "whole number");
  expect_refused("layer_norm", R"({"eps": "small"})", "is a number");
}

TEST(PolicyRule, RefusesRulesThatLackSomething) {
  const auto refused = [](const std::string& rule, const std::string& part) {
    expect_invalid(part, [&] { KernelPolicy::from_json("{\"rules\": [" + rule + "]}"); });
  };
  refused(R"({"use": "skinny"})", "names no op");
  refused(R"({"op": "matmul"})", "names no kernel");
  refused(R"({"op": "matmull", "use": "skinny"})", "did you mean matmul");
  refused(R"({"op": "matmul", "use": "skiny"})", "did you mean skinny");
  refused(R"({"op": "matmul", "use": "simd"})", "unknown kernel");
  refused(R"({"op": "matmul", "use": []})", "is an empty list");
  refused(R"({"op": "matmul", "use": ["skinny", 3]})", "rules[0].use[1]");
  refused(R"({"op": "matmul", "use": "skinny", "when": []})", "put it in braces");
  refused(R"({"op": "matmul", "use": "skinny", "whn": {}})", "did you mean when?");
  refused(R"({"op": "matmul", "use": "skinny", "name": 3})", "must be a string");
  refused(R"("skinny")", "must be a rule");
  expect_invalid("must be a list", [] { KernelPolicy::from_json(R"({"rules": {}})"); });
}

TEST(PolicyRule, SaysTheLineAndTheColumnOfWhatIsWrong) {
  const std::string text =
      "{\n  \"rules\": [\n    {\"op\": \"matmul\", \"use\": \"skinny\"},\n"
      "    {\n      \"op\": \"matmul\",\n      \"when\": {\n        \"device.vendor\": \"a\",\n"
      "        \"m\": {\"<=\": 1, \">=\": \"x\"}\n      },\n      \"use\": \"skinny\"\n    }\n  ]\n}\n";
  expect_invalid("line 8, column 24: field 'rules[1].when.m.>='", [&] { KernelPolicy::from_json(text); });
}

TEST(PolicyRule, MayNameAKernelThatIsNotHereAndSeveralInOrder) {
  const KernelPolicy policy = KernelPolicy::from_json(R"({"rules": [{"op": "gemm", "use": ["cutlass", "cublasLt"]}]})");
  EXPECT_EQ(policy.rules.at(0).use, (std::vector<std::string>{"cutlass", "cublasLt"}));
  EXPECT_EQ(policy.rules.at(0).op, OpId::matmul);
}

TEST(PolicyRule, ChecksWhatWasSetByHand) {
  PolicyRule rule = {OpId::matmul, {}, {"skinny"}, ""};
  EXPECT_NO_THROW(rule.check());
  const Problem problem = parse_problem("matmul(f32[2,3], f32[3,4])");
  const auto bad = [&](const std::string& key, const RuleTests& tests) {
    rule.when = {{key, tests}};
    EXPECT_THROW(rule.check(), Error) << key;
  };
  bad("nothing", {{Comparison::equal, {RuleValue{std::int64_t{1}}}}});
  EXPECT_THROW(rule.matches(problem, {}), Error);
  bad("m", {});
  bad("m", {{Comparison::equal, {}}});
  bad("m", {{Comparison::less, {RuleValue{std::int64_t{1}}, RuleValue{std::int64_t{2}}}}});
  bad("m", {{Comparison::less, {RuleValue{std::string("1")}}}});
  EXPECT_THROW(rule.matches(problem, {}), Error);
  bad("dtype", {{Comparison::equal, {RuleValue{std::string("bfloat16")}}}});  // not as it is printed
  rule.when = {{"dtype", {{Comparison::equal, {RuleValue{std::string("bf16")}}}}}};
  EXPECT_NO_THROW(rule.check());
  rule.use = {};
  EXPECT_THROW(rule.check(), Error);
  rule.use = {"skiny"};
  EXPECT_THROW(rule.check(), Error);
  KernelPolicy policy;
  policy.rules = {rule};
  EXPECT_THROW(policy.check(), Error);
}

TEST(RuleKeys, AreAllReadable) {
  for (const OpId op : all_ops()) {
    const std::vector<RuleKey> keys = rule_keys(op);
    for (const RuleKey& key : keys) {
      if (key.name.find_first_of("NK") != std::string::npos) continue;  // stands for many
      const std::string value = key.kind == RuleKeyKind::texts ? R"({"contains": "x"})" : "null";
      const std::string text = "{\"rules\": [{\"op\": \"" + std::string(to_string(op)) +
                               "\", \"use\": \"reference\", \"when\": {\"" + key.name + "\": " + value + "}}]}";
      try {
        KernelPolicy::from_json(text);
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("unknown key"), std::string::npos) << error.what();
      }
      EXPECT_EQ(std::count_if(keys.begin(), keys.end(), [&](const RuleKey& k) { return k.name == key.name; }), 1)
          << key.name;
      EXPECT_FALSE(key.summary.empty()) << key.name;
    }
  }
}

TEST(KernelPolicy, PutsTheOthersRulesBeforeItsOwn) {
  KernelPolicy ours, theirs;
  ours.rules = {{OpId::matmul, {}, {"skinny"}, "ours"}};
  theirs.rules = {{OpId::matmul, {}, {"packed"}, "first"}, {OpId::matmul, {}, {"packed"}, "second"}};
  const KernelPolicy merged = ours.merge(theirs);
  ASSERT_EQ(merged.rules.size(), 3u);
  EXPECT_EQ(merged.rules[0].name, "first");
  EXPECT_EQ(merged.rules[1].name, "second");
  EXPECT_EQ(merged.rules[2].name, "ours");
  EXPECT_EQ(ours.merge({}).rules, ours.rules);
  EXPECT_EQ(KernelPolicy{}.merge(ours).rules, ours.rules);
}

TEST(KernelPolicy, ComesBackWithItsRules) {
  const KernelPolicy policy = KernelPolicy::from_json(R"({"rules": [
    {"name": "decode \"fast\"", "op": "matmul", "use": ["skinny", "packed"],
     "when": {"m": {"<=": 16, ">=": 2}, "dtype": ["bfloat16", "half"], "device.compute_capability": {">=": 9}}},
    {"op": "conv", "use": "direct", "when": {"stride": [1, 2], "kernel": {"in": [3, [5, 1]]}, "padding": [[1, 1]],
     "dilation": 1}},
    {"op": "relu", "use": "simd", "when": {"device.cpu_features": {"contains": ["avx2", "fma"]}, "deterministic": false}},
    {"op": "reduce_sum", "use": "simd", "when": {"dim": []}}, {"op": "matmul", "use": "packed", "when": {}}]})");
  EXPECT_EQ(policy.rules.size(), 5u);
  EXPECT_EQ(KernelPolicy::from_json(policy.to_json()), policy) << policy.to_json();
  EXPECT_EQ(KernelPolicy::from_json(policy.to_json()).to_json(), policy.to_json());
  EXPECT_EQ(std::get<std::string>(policy.rules[0].when.at("dtype").at(Comparison::in)[0]), "bf16");
  EXPECT_NO_THROW(policy.check());
}

}  // namespace
}  // namespace xpuruntime
