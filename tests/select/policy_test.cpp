#include "xpuruntime/select/policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

KernelPolicy full_policy() {
  KernelPolicy policy;
  policy.set("matmul", "cublasLt").set_order("conv", {"cudnn_winograd", "cudnn"}).force("attention", "flash_v2");
  policy.set_precision("softmax", "lower").set_precision("MatMul", "bf16", "f32");
  policy.auto_strategy = Strategy::lowest_memory;
  policy.default_precision = DataType::bfloat16;
  policy.workspace_limit_bytes = std::uint64_t{1} << 63;
  policy.deterministic = false;
  policy.threads = 3;
  return policy;
}

/// An op that nobody has a kernel for.
std::string_view unserved() {
  static const OpId op = register_op({.name = "unserved", .infer = op_info(OpId::relu).infer});
  return to_string(op);
}

void expect_refused(const std::string& json, const std::string& part) {
  expect_invalid(part, [&] { KernelPolicy::from_json(json); });
}

void expect_corrupt(const std::string& json, const std::string& part) {
  expect_error(ErrorCode::corrupt_data, part, [&] { KernelPolicy::from_json(json); });
}

TEST(Strategy, IsReadByNameInBothStylesAndByNumber) {
  EXPECT_EQ(parse_strategy("best_performance"), Strategy::best_performance);
  EXPECT_EQ(parse_strategy("BestPerformance"), Strategy::best_performance);
  EXPECT_EQ(parse_strategy("0"), Strategy::first_supported);
  EXPECT_EQ(parse_strategy("2"), Strategy::lowest_memory);
  EXPECT_EQ(to_string(Strategy::lowest_memory), "lowest_memory");
  EXPECT_TRUE((std::is_same_v<KernelPolicy::AutoSelectStrategy, Strategy>));
  for (const char* name : {"3", "-1", "", "fastest", "best_perform_ance", "_lowest_memory"})
    EXPECT_THROW(parse_strategy(name), Error) << name;
  expect_error(ErrorCode::unknown_name, "did you mean lowest_memory", [] { parse_strategy("lowest_memry"); });
}

TEST(KernelPolicy, SaysNothingAtFirst) {
  const KernelPolicy policy;
  EXPECT_EQ(policy.get("matmul"), nullptr);
  EXPECT_EQ(policy.limits(), Limits{});
  EXPECT_EQ(KernelPolicy::from_json("{}"), policy);
}

TEST(KernelPolicy, TakesAnOpByAnyOfItsNames) {
  KernelPolicy policy;
  policy.set("MatMul", "cublasLt");
  ASSERT_NE(policy.get("gemm"), nullptr);
  EXPECT_EQ(policy.get("matmul")->kernels, std::vector<std::string>{"cublasLt"});
  EXPECT_TRUE(policy.remove("GEMM"));
  EXPECT_FALSE(policy.remove("matmul"));
}

TEST(KernelPolicy, ReplacesWhatItSaidOfAnOp) {
  KernelPolicy policy;
  policy.force("matmul", "cublasLt").set_order("matmul", {"skinny", "cublas"});
  EXPECT_EQ(*policy.get("matmul"), (KernelPreference{{"skinny", "cublas"}, false}));
}

TEST(KernelPolicy, RefusesUnknownOpsAndKernelsAndListsNearOnes) {
  KernelPolicy policy;
  policy.set("matmul", "skinny");
  expect_error(ErrorCode::unknown_name, "did you mean matmul", [&] { policy.set("matmull", "cublasLt"); });
  expect_error(ErrorCode::unknown_name, "did you mean cublasLt", [&] { policy.set("matmul", "cublasL"); });
  expect_error(ErrorCode::unknown_name, "unknown kernel", [&] { policy.force("matmul", "flash_v2"); });
  expect_error(ErrorCode::unknown_name, "no backend has a kernel for unserved",
               [&] { policy.set(unserved(), "fast"); });
  expect_invalid("name at least one", [&] { policy.set_order("matmul", {}); });
  expect_error(ErrorCode::unknown_name, "matmul", [&] { policy.get("matmull"); });
  EXPECT_EQ(*policy.get("matmul"), (KernelPreference{{"skinny"}, false}));
}

TEST(KernelPolicy, ComesBackFromItsOwnText) {
  const KernelPolicy policy = full_policy();
  EXPECT_EQ(KernelPolicy::from_json(policy.to_json()), policy);
  EXPECT_EQ(KernelPolicy::from_json(KernelPolicy{}.to_json()), KernelPolicy{});
}

TEST(KernelPolicy, WritesTheFormatOfTheManual) {
  const auto json = nlohmann::json::parse(full_policy().to_json());
  EXPECT_EQ(json["preferences"]["matmul"], "cublasLt");
  EXPECT_EQ(json["preferences"]["conv"], (nlohmann::json{"cudnn_winograd", "cudnn"}));
  EXPECT_EQ(json["preferences"]["attention"], (nlohmann::json{{"kernel", "flash_v2"}, {"mode", "force"}}));
  EXPECT_EQ(json["precision"]["softmax"], "lower");
  EXPECT_EQ(json["precision"]["matmul"], (nlohmann::json{{"forward", "bf16"}, {"backward", "f32"}}));
  EXPECT_EQ(json["auto_strategy"], 2);
  EXPECT_EQ(json["default_precision"], "bf16");
  EXPECT_EQ(json["workspace_limit_bytes"], std::uint64_t{1} << 63);
  EXPECT_EQ(json["deterministic"], false);
  EXPECT_EQ(json["threads"], 3);
}

TEST(KernelPolicy, ReadsEveryFormOfAPrecision) {
  const KernelPolicy policy = KernelPolicy::from_json(R"({"precision": {"conv": "half",
    "relu": {"backward": "higher"}, "add": {"forward": "keep", "backward": "f64"}}})");
  const RequestedPrecision f16{OpPrecision::custom, DataType::float16}, f64{OpPrecision::custom, DataType::float64};
  EXPECT_EQ(policy.precision.at(OpId::conv2d), (DirectionPrecisions{f16, {}}));
  EXPECT_EQ(policy.precision.at(OpId::relu), (DirectionPrecisions{{}, RequestedPrecision{OpPrecision::higher}}));
  EXPECT_EQ(policy.precision.at(OpId::add), (DirectionPrecisions{RequestedPrecision{OpPrecision::keep}, f64}));
  EXPECT_EQ(KernelPolicy::from_json(policy.to_json()), policy);
}

TEST(KernelPolicy, RefusesPrecisionsThatCannotBe) {
  expect_refused(R"({"precision": []})", "must map ops to precisions");
  expect_refused(R"({"precision": {"matmull": "bf16"}})", "did you mean");
  expect_refused(R"({"precision": {"matmul": 16}})", "must be a precision");
  expect_refused(R"({"precision": {"matmul": "lowest"}})", "lower");
  expect_refused(R"({"precision": {"matmul": "i8"}})", "not a float type");
  expect_refused(R"({"precision": {"matmul": {"forward": "tf32"}}})", "precision.matmul.forward");
  expect_refused(R"({"precision": {"matmul": {"sideways": "bf16"}}})", "precision.matmul.sideways");
  expect_refused(R"({"precision": {"matmul": "bf16", "gemm": "f16"}})", "another name");
  expect_refused(R"({"precision": {"matmul": {}}})", "is empty");
  expect_refused(R"({"default_precision": "i16"})", "not a float type");
  KernelPolicy policy;
  expect_invalid("no direction is named", [&] { policy.set_precision("relu", ""); });
  policy.precision[OpId::relu] = {};
  expect_invalid("is empty", [&] { policy.check(); });
  policy.precision[OpId::relu] = {RequestedPrecision{OpPrecision::custom, DataType::int8}, {}};
  expect_invalid("not a float type", [&] { policy.check(); });
  EXPECT_TRUE(policy.remove_precision("relu"));
  EXPECT_FALSE(policy.remove_precision("relu"));
  policy.default_precision = DataType::uint8;
  expect_invalid("not a float type", [&] { policy.check(); });
}

TEST(KernelPolicy, MergesPrecisionsOpByOp) {
  KernelPolicy one, two;
  one.set_precision("relu", "f16").set_precision("gelu", "f16");
  two.set_precision("relu", "bf16");
  const KernelPolicy merged = one.merge(two);
  EXPECT_EQ(merged.precision.at(OpId::relu), two.precision.at(OpId::relu));
  EXPECT_EQ(merged.precision.at(OpId::gelu), one.precision.at(OpId::gelu));
}

TEST(KernelPolicy, KeepsTheNameThatAnOpWasGivenBy) {
  KernelPolicy policy;
  policy.set("conv", "cudnn").force("MatMul", "cublasLt");
  const KernelPolicy read = KernelPolicy::from_json(policy.to_json());
  for (const KernelPolicy& each : {policy, read, KernelPolicy().merge(policy)}) {
    const auto preferences = nlohmann::json::parse(each.to_json())["preferences"];
    EXPECT_EQ(preferences["conv"], "cudnn");
    EXPECT_TRUE(preferences.contains("MatMul"));
    EXPECT_EQ(preferences.size(), 2u);
  }
  KernelPolicy plain;
  plain.set("conv2d", "cudnn").force("matmul", "cublasLt");
  EXPECT_EQ(policy, plain) << "it says the same";
  // A name set by hand that is none of the op's does not get into a file.
  plain.preferences[OpId::conv2d].name = "relu";
  EXPECT_EQ(KernelPolicy::from_json(plain.to_json()), policy);
}

TEST(KernelPolicy, WritesPrecisionsAsItReadsThem) {
  for (const char* name : {"fp32", "fp16", "bf16", "int8", "fp64"}) {
    const std::string text = R"({"default_precision": ")" + std::string(name) + "\"}";
    const KernelPolicy policy = KernelPolicy::from_json(text);
    policy.check();
    EXPECT_EQ(nlohmann::json::parse(policy.to_json())["default_precision"], name);
  }
}

TEST(KernelPolicy, WritesNothingForAnOpWithoutPreference) {
  KernelPolicy policy;
  policy.preferences[OpId::matmul] = {{}, true};
  EXPECT_EQ(KernelPolicy::from_json(policy.to_json()), KernelPolicy{});
}

TEST(KernelPolicy, ReadsTheFileThatUsersAlreadyHave) {
  const KernelPolicy policy = KernelPolicy::from_json(R"({
  "preferences": {
    "matmul": "cublasLt",
    "attention": "flash_v2",
    "conv": "cudnn"
  },
  "auto_strategy": 0,
  "default_precision": "fp16"
})");
  EXPECT_EQ(*policy.get("matmul"), (KernelPreference{{"cublasLt"}, false}));
  EXPECT_EQ(*policy.get("attention"), (KernelPreference{{"flash_v2"}, false}));
  EXPECT_EQ(*policy.get("conv2d"), (KernelPreference{{"cudnn"}, false}));
  EXPECT_EQ(policy.auto_strategy, Strategy::first_supported);
  EXPECT_EQ(policy.default_precision, DataType::float16);
  EXPECT_EQ(policy.workspace_limit_bytes, std::nullopt);
}

TEST(KernelPolicy, ReadsEveryFormOfAPreference) {
  const KernelPolicy policy = KernelPolicy::from_json(R"({"version": 1, "strategy": "BestPerformance", "preferences": {
    "matmul": {"kernel": "cublasLt", "mode": "force"}, "conv2d": {"mode": "prefer", "kernel": "cudnn"},
    "attention": ["flash_v2", "xformers"], "add": {"kernel": "reference"}}})");
  EXPECT_EQ(*policy.get("matmul"), (KernelPreference{{"cublasLt"}, true}));
  EXPECT_EQ(*policy.get("conv2d"), (KernelPreference{{"cudnn"}, false}));
  EXPECT_EQ(*policy.get("attention"), (KernelPreference{{"flash_v2", "xformers"}, false}));
  EXPECT_EQ(*policy.get("add"), (KernelPreference{{"reference"}, false}));
  EXPECT_EQ(policy.auto_strategy, Strategy::best_performance);
}

TEST(KernelPolicy, RefusesUnknownFieldsAndListsNearOnes) {
  expect_refused(R"({"preference": {}})", "did you mean preferences?");
  expect_refused(R"({"zzzz": 1})", "field 'zzzz' is not a policy field");
  expect_refused(R"({"preferences": {"matmul": {"kernl": "cublasLt"}}})", "did you mean kernel?");
}

TEST(KernelPolicy, RefusesUnknownOpsAndKernelsOfAFile) {
  expect_refused(R"({"preferences": {"matmull": "cublasLt"}})", "field 'preferences.matmull'");
  expect_refused(R"({"preferences": {"matmull": "cublasLt"}})", "did you mean matmul?");
  expect_refused(R"({"preferences": {"matmul": "cublasL"}})", "did you mean cublasLt");
  expect_refused(R"({"preferences": {"matmul": ["skinny", "flash_v2"]}})", "unknown kernel for matmul 'flash_v2'");
  unserved();
  expect_refused(R"({"preferences": {"unserved": "fast"}})", "no backend has a kernel for unserved");
}

TEST(KernelPolicy, RefusesAnOpThatStandsTwice) {
  expect_refused(R"({"preferences": {"matmul": "skinny", "gemm": "skinny"}})", "under another name");
  expect_refused(R"({"preferences": {"matmul": "skinny", "matmul": "skinny"}})",
                 "line 1, column 38: field 'preferences.matmul' is a duplicate");
  expect_refused(R"({"strategy": 0, "auto_strategy": 0})", "are both given");
}

TEST(KernelPolicy, RefusesWrongTypes) {
  expect_refused("[]", "a policy is a JSON object");
  expect_refused("3", "a policy is a JSON object");
  expect_refused(R"({"preferences": []})", "must map ops to kernels");
  expect_refused(R"({"preferences": {"matmul": 3}})", "must be a kernel's name");
  expect_refused(R"({"preferences": {"matmul": null}})", "must be a kernel's name");
  expect_refused(R"({"preferences": {"matmul": []}})", "is an empty list");
  expect_refused(R"({"preferences": {"matmul": ["skinny", 1]}})", "must be a string");
  expect_refused(R"({"preferences": {"matmul": {}}})", "names no kernel");
  expect_refused(R"({"preferences": {"matmul": {"mode": "force"}}})", "names no kernel");
  expect_refused(R"({"preferences": {"matmul": {"kernel": "skinny", "mode": "must"}}})", "\"force\" or \"prefer\"");
  expect_refused(R"({"auto_strategy": 3})", "unknown strategy '3'");
  expect_refused(R"({"auto_strategy": -1})", "unknown strategy '-1'");
  expect_refused(R"({"auto_strategy": 1.0})", "or 0, 1 or 2");
  expect_refused(R"({"auto_strategy": null})", "or 0, 1 or 2");
  expect_refused(R"({"default_precision": "fp17"})", "did you mean");
  expect_refused(R"({"default_precision": 16})", "must be a string");
  expect_refused(R"({"workspace_limit_bytes": -1})", "0 or more");
  expect_refused(R"({"workspace_limit_bytes": 1.5})", "whole number");
  expect_refused(R"({"workspace_limit_bytes": "1"})", "whole number");
  expect_refused(R"({"deterministic": 1})", "true or false");
  expect_refused(R"({"threads": 0})", "1 or more");
  expect_refused(R"({"threads": 4294967296})", "1 or more");
  expect_refused(R"({"threads": "2"})", "whole number");
  expect_refused(R"({"version": 2})", "must be 1");
}

TEST(KernelPolicy, SaysWhereATextIsNoJson) {
  expect_corrupt("{\n  \"preferences\": {\n    \"matmul\": cublasLt\n  }\n}", "line 3, column 15");
  expect_corrupt("// mine\n{}", "line 1, column 1");
  expect_corrupt("{}\n// mine", "line 2, column 1");
  expect_corrupt("{\"strategy\": 0} x", "line 1, column 17");
  expect_corrupt("{\"strategy\": 0,}", "line 1, column 16");
  expect_corrupt("", "line 1, column 1");
}

TEST(KernelPolicy, SaysWhereATextMeansNothing) {
  expect_refused("{\n  \"threads\": 2,\n  \"thread\": 2\n}", "line 3, column 3: field 'thread' is not a policy field");
  expect_refused("{\n  \"preferences\": {\n    \"matmul\": [\n      \"skinny\",\n      \"skiny\"\n    ]\n  }\n}",
                 "line 5, column 7: field 'preferences.matmul[1]' is wrong: unknown kernel for matmul 'skiny'");
  expect_refused("{\"preferences\": {\n\"matmull\": \"skinny\"}}", "line 2, column 1: field 'preferences.matmull'");
  expect_refused("{\"precision\": {\"relu\": {\"forward\": \"f33\"}}}",
                 "line 1, column 25: field 'precision.relu.forward'");
}

TEST(KernelPolicy, MayNameItsSchemaForEditors) {
  EXPECT_EQ(KernelPolicy::from_json(R"({"$schema": "kernel_policy.schema.json", "threads": 2})").threads, 2u);
  expect_refused(R"({"$schema": 3})", "must be a string");
}

TEST(KernelPolicy, RefusesNestingDeeperThanAPolicyHas) {
  expect_refused(R"({"preferences": {"matmul": {"kernel": ["skinny"]}}})", "must be a string");
  expect_corrupt(R"({"rules": [{"when": {"m": {"in": [[[1]]]}}}]})", "line 1, column 37: nested deeper");
  expect_corrupt(std::string(500000, '['), "nested deeper");
}

TEST(KernelPolicy, MergesOnlyWhatTheOtherSets) {
  const KernelPolicy base = full_policy();
  EXPECT_EQ(base.merge({}), base);
  EXPECT_EQ(KernelPolicy{}.merge(base), base);
  KernelPolicy other;
  other.set("matmul", "skinny");
  other.workspace_limit_bytes = 0;
  const KernelPolicy merged = base.merge(other);
  EXPECT_EQ(merged.get("matmul")->kernels, std::vector<std::string>{"skinny"});
  EXPECT_EQ(*merged.get("attention"), *base.get("attention"));
  EXPECT_EQ(merged.workspace_limit_bytes, 0u);
  EXPECT_EQ(merged.auto_strategy, base.auto_strategy);
  EXPECT_EQ(merged.deterministic, false);
  EXPECT_EQ(merged.threads, 3u);
  EXPECT_EQ(base, full_policy());
}

TEST(KernelPolicy, GivesItsLimits) {
  KernelPolicy policy;
  policy.workspace_limit_bytes = 7;
  policy.deterministic = true;
  EXPECT_EQ(policy.limits(), (Limits{7, true}));
}

/// A folder of its own that goes with the test.
class PolicyFile : public ::testing::Test {
 protected:
  PolicyFile() {
    std::string name = (fs::temp_directory_path() / "xrt_policy_XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~PolicyFile() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {})); }

  fs::path folder;
};

TEST_F(PolicyFile, IsNotWrittenWhereItCouldNotBeReadAgain) {
  PolicyRule rule;
  rule.op = OpId::relu;
  rule.use = {"simd"};
  KernelPolicy policy;
  policy.rules = std::vector<PolicyRule>(100'001, rule);
  expect_error(ErrorCode::invalid_argument, "can be read again", [&] { policy.save(path("large.json")); });
  EXPECT_FALSE(fs::exists(path("large.json")));
}

TEST_F(PolicyFile, ComesBackAsItWasSaved) {
  full_policy().save(path("policy.json"));
  EXPECT_EQ(KernelPolicy::load(path("policy.json")), full_policy());
  KernelPolicy{}.save(path("policy.json"));
  EXPECT_EQ(KernelPolicy::load(path("policy.json")), KernelPolicy{});
  EXPECT_EQ(files(), 1u);
}

TEST_F(PolicyFile, StaysTheOldOneWhenSavingFails) {
  full_policy().save(path("policy.json"));
  expect_error(ErrorCode::io_error, "cannot be written", [&] { KernelPolicy{}.save(path("missing/policy.json")); });
  fs::create_directory(folder / "taken");
  expect_error(ErrorCode::io_error, "cannot be written", [&] { KernelPolicy{}.save(path("taken")); });
  EXPECT_EQ(KernelPolicy::load(path("policy.json")), full_policy());
  EXPECT_EQ(files(), 2u);
}

TEST_F(PolicyFile, NamesTheFileInEveryError) {
  const std::string prefix = "policy file '" + path("policy.json") + "': ";
  expect_error(ErrorCode::io_error, "[KernelPolicy::load] " + prefix, [&] { KernelPolicy::load(path("policy.json")); });
  std::ofstream(path("policy.json")) << "{\"strategy\": }";
  expect_error(ErrorCode::corrupt_data, prefix, [&] { KernelPolicy::load(path("policy.json")); });
  std::ofstream(path("policy.json")) << "{\"strategie\": 0}";
  expect_invalid(prefix, [&] { KernelPolicy::load(path("policy.json")); });
}

TEST_F(PolicyFile, IsNamedByTheEnvironment) {
  unsetenv("XPURUNTIME_POLICY");
  EXPECT_EQ(policy_from_environment(), std::nullopt);
  setenv("XPURUNTIME_POLICY", "", 1);
  EXPECT_EQ(policy_from_environment(), std::nullopt);
  EXPECT_EQ(load_policy(""), KernelPolicy{});
  setenv("XPURUNTIME_POLICY", path("policy.json").c_str(), 1);
  const std::string prefix = "[policy_from_environment] XPURUNTIME_POLICY: policy file '" + path("policy.json") + "': ";
  expect_error(ErrorCode::io_error, prefix + "cannot be read", [] { policy_from_environment(); });
  std::ofstream(path("policy.json")) << "{\n\"threads\": 0}";
  expect_error(ErrorCode::invalid_argument, prefix + "line 2, column 1", [] { policy_from_environment(); });
  full_policy().save(path("policy.json"));
  EXPECT_EQ(policy_from_environment(), full_policy());
  EXPECT_EQ(load_policy(""), full_policy());
  KernelPolicy{}.save(path("explicit.json"));
  EXPECT_EQ(load_policy(path("explicit.json")), KernelPolicy{});
  expect_error(ErrorCode::io_error, "none.json", [&] { load_policy(path("none.json")); });
  unsetenv("XPURUNTIME_POLICY");
}

}  // namespace
}  // namespace xpuruntime
