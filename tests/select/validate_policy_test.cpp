#include "xpuruntime/select/validate_policy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "select/made_up_kernels.h"

namespace xpuruntime {
namespace {

using testing::MadeUpKernel;

/// Takes matrices of 64 rows in one dtype on processors that have a feature, as the CPU's own kernels do.
class Picky : public MadeUpKernel {
 public:
  Picky(std::string name, std::string feature, DataType dtype)
      : MadeUpKernel(std::move(name)), feature_(std::move(feature)), dtype_(dtype) {
    code = "1";
    ways = Directions::forward;
  }
  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const override {
    if (!feature_.empty() && !profile.has_cpu_feature(feature_)) return Verdict::no("the CPU has no " + feature_);
    if (problem.inputs[0].dtype != dtype_) return Verdict::no("the dtype");
    return Verdict::yes();
  }

 private:
  std::string feature_;
  DataType dtype_;
};

class Validate : public ::testing::Test {
 protected:
  Validate() {
    devices.add_driver(std::make_shared<testing::FakeDriver>(DeviceType::cpu, 1));
    for (const char* name : {"skinny", "packed", "reference"}) add(name);
  }

  std::shared_ptr<MadeUpKernel> add(const char* name, OpId op = OpId::matmul) {
    const auto kernel = std::make_shared<MadeUpKernel>(name);
    kernel->made_for = op;
    kernel->code = "1";
    registry.register_kernel(kernel);
    return kernel;
  }

  std::vector<PolicyFinding> findings(const std::string& json) const {
    return validate_policy(KernelPolicy::from_json(json), registry, {});
  }
  void expect_one(const std::string& json, Severity severity, const std::string& field, const std::string& part) const {
    const auto found = findings(json);
    ASSERT_EQ(found.size(), 1u) << json;
    EXPECT_EQ(found[0].severity, severity) << found[0].text;
    EXPECT_EQ(found[0].field, field);
    EXPECT_NE(found[0].text.find(part), std::string::npos) << found[0].text << "\nlacks: " << part;
  }

  std::shared_ptr<MadeUpKernel> refuse_all;
  DeviceManager devices;
  KernelRegistry registry{devices};
};

TEST_F(Validate, HasNothingToSayOfASoundPolicy) {
  EXPECT_TRUE(findings("{}").empty());
  EXPECT_TRUE(findings(R"({"preferences": {"matmul": ["packed", "skinny"]}, "precision": {"matmul": "f32"},
                           "auto_strategy": 1})")
                  .empty());
  EXPECT_TRUE(findings(R"({"rules": [{"op": "matmul", "when": {"m": {"<=": 8}}, "use": "skinny"},
                                     {"op": "matmul", "use": "packed"}]})")
                  .empty());
}

TEST_F(Validate, NotesWhatIsMeantForOtherDevices) {
  expect_one(R"({"preferences": {"matmul": "cublasLt"}})", Severity::note, "preferences.matmul",
             "cublasLt never runs on cpu:0: it needs an NVIDIA GPU and libcublasLt; this is cpu:0");
  expect_one(R"({"rules": [{"op": "matmul", "use": ["cublasLt", "packed"]}]})", Severity::note, "rules[0].use",
             "cublasLt never runs");
  expect_one(R"({"rules": [{"op": "matmul", "use": "cublasLt", "when": {"device.vendor": "nvidia"}}]})", Severity::note,
             "rules[0].when.device.vendor", "never matches on cpu:0");
}

TEST_F(Validate, WarnsOfKernelsThatAreNotHere) {
  // For this type of device, known, and not there.
  expect_one(R"({"preferences": {"matmul": "onednn"}})", Severity::warning, "preferences.matmul",
             "a build with oneDNN");
  expect_one(R"({"preferences": {"matmul": ["onednn", "packed"]}})", Severity::note, "preferences.matmul", "onednn");
  expect_one(R"({"rules": [{"op": "matmul", "use": "onednn"}]})", Severity::warning, "rules[0].use", "onednn");
}

TEST_F(Validate, CallsAForcedKernelThatNeverRunsAnError) {
  expect_one(R"({"preferences": {"matmul": {"kernel": "cublasLt", "mode": "force"}}})", Severity::error,
             "preferences.matmul", "Every matmul there fails");
  EXPECT_TRUE(findings(R"({"preferences": {"matmul": {"kernel": "packed", "mode": "force"}}})").empty());
}

TEST_F(Validate, AsksKernelsWhetherTheDeviceLacksSomething) {
  registry.register_kernel(std::make_shared<Picky>("amx", "amx_bf16", DataType::bfloat16));
  expect_one(R"({"preferences": {"matmul": "amx"}})", Severity::warning, "preferences.matmul",
             "amx never runs on cpu:0: the CPU has no amx_bf16");
  // One that takes no usual problem on any device is not judged.
  refuse_all = add("int8");
  refuse_all->verdict = [] { return Verdict::no("the shape"); };
  EXPECT_TRUE(findings(R"({"preferences": {"matmul": "int8"}})").empty());
}

TEST_F(Validate, KnowsThatDeterministicPoliciesRuleKernelsOut) {
  add("small")->same_bits = false;
  EXPECT_TRUE(findings(R"({"preferences": {"matmul": "small"}})").empty());
  expect_one(R"({"preferences": {"matmul": "small"}, "deterministic": true})", Severity::warning, "preferences.matmul",
             "deterministic");
}

TEST_F(Validate, FindsRulesThatOthersHide) {
  expect_one(R"({"rules": [{"op": "matmul", "use": "packed", "name": "all"},
                           {"op": "matmul", "when": {"m": 1}, "use": "skinny"}]})",
             Severity::warning, "rules[1]", "every problem that matches it matches rules[0] (\"all\") before");
  expect_one(R"({"rules": [{"op": "matmul", "when": {"m": {"<=": 8}}, "use": "packed"},
                           {"op": "matmul", "when": {"m": {"<=": 9}}, "use": "skinny"},
                           {"op": "matmul", "when": {"m": [3, 9], "dtype": "bf16"}, "use": "skinny"}]})",
             Severity::warning, "rules[2]", "rules[1] before");
}

TEST_F(Validate, FindsRulesBehindPreferences) {
  expect_one(R"({"preferences": {"matmul": {"kernel": "packed", "mode": "force"}},
                 "rules": [{"op": "matmul", "use": "skinny"}]})",
             Severity::warning, "rules[0]", "never used: packed is forced for matmul");
  expect_one(R"({"preferences": {"matmul": "packed"}, "rules": [{"op": "matmul", "use": "skinny"}]})", Severity::note,
             "rules[0]", "used only if none of the kernels preferred for matmul can run");
}

TEST_F(Validate, FindsRulesThatExcludeThemselves) {
  expect_one(R"({"rules": [{"op": "matmul", "when": {"m": {">": 4, "<": 3}}, "use": "skinny"}]})", Severity::warning,
             "rules[0].when.m", "no problem can match");
}

TEST_F(Validate, FindsPrecisionsThatNoKernelOffers) {
  const auto relu = std::make_shared<Picky>("simd", "", DataType::float32);
  relu->made_for = OpId::relu;
  registry.register_kernel(relu);
  EXPECT_TRUE(findings(R"({"precision": {"relu": "f32"}})").empty());
  EXPECT_TRUE(findings(R"({"precision": {"relu": "lower"}})").empty());
  expect_one(R"({"precision": {"relu": "bf16"}})", Severity::warning, "precision.relu",
             "no kernel here computes relu forward in bf16");
  // It has no backward at all: that is another matter.
  EXPECT_TRUE(findings(R"({"precision": {"relu": {"backward": "bf16"}}})").empty());
}

TEST_F(Validate, RefusesWhatCheckRefusesAndDevicesThatAreNotHere) {
  KernelPolicy policy;
  policy.threads = 0;
  EXPECT_THROW(validate_policy(policy, registry, {}), Error);
  EXPECT_THROW(validate_policy({}, registry, {DeviceType::npu, 0}), Error);
}

TEST_F(Validate, NamesTheLineOfAFileAlsoWhereItUsesAnotherNameOfAnOp) {
  const auto path = std::filesystem::temp_directory_path() / ("xrt_validate_" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << "{\n  \"preferences\": {\n    \"GEMM\": \"cublasLt\"\n  },\n"
                         "  \"rules\": [\n    {\"op\": \"relu\", \"use\": \"simd\", \"when\": {\"elements\": {\"<\": "
                         "1, \">\": 1}}}\n  ]\n}\n";
  const auto found = validate_policy_file(path.string(), registry, {});
  std::filesystem::remove(path);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ((std::pair{found[0].line, found[0].column}), (std::pair<std::size_t, std::size_t>{3, 5}));
  EXPECT_EQ((std::pair{found[1].line, found[1].column}), (std::pair<std::size_t, std::size_t>{6, 44}));
  expect_error(ErrorCode::io_error, path.string(), [&] { validate_policy_file(path.string(), registry, {}); });
}

std::string rules_json(const std::string& rules) { return R"({"rules": [)" + rules + "]}"; }

std::string many(int count, const std::function<std::string(int)>& when) {
  std::string rules;
  for (int i = 0; i < count; ++i) {
    rules += (i == 0 ? "" : ",") + (R"({"op": "matmul", "use": "skinny", "when": )" + when(i) + "}");
  }
  return rules;
}

TEST_F(Validate, FindsTheHiddenOneAmongManyRulesWithoutComparingAllWithAll) {
  // A hundred million pairs; within the bound, as each is only held against those that ask for the same.
  const std::string rules = many(
      20000, [](int i) { return R"({"m": )" + std::to_string(i / 2) + R"(, "n": [)" + std::to_string(i % 2) + "]}"; });
  EXPECT_TRUE(findings(rules_json(rules)).empty());
  const std::string hidden = many(1, [](int) { return R"({"m": 7, "n": 1, "k": {">": 3}})"; });
  const auto found = findings(rules_json(rules + "," + hidden));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "rules[20000]");
  EXPECT_NE(found[0].text.find("matches rules[15] before"), std::string::npos) << found[0].text;
}

TEST_F(Validate, AsksAKernelOfManyRangesASmallNumberOfSizes) {
  std::size_t asked = 0;
  add("counted")->verdict = [&] { return ++asked, Verdict::yes(); };
  std::string rules;
  for (int i = 0; i < 100; ++i) {
    rules += (i == 0 ? "" : ",") + std::string(R"({"op": "matmul", "use": "counted", "range": )") +
             R"("matmul(f32[m,8], f32[8,8]) @cpu:0 where m=)" + std::to_string(4096 * i + 1) + ".." +
             std::to_string(4096 * (i + 1)) + "\"}";
  }
  const auto found = findings(rules_json(rules));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_NE(found[0].text.find("so many ranges"), std::string::npos) << found[0].text;
  EXPECT_GE(asked, 200'000u);
  EXPECT_LT(asked, 205'000u);
}

TEST_F(Validate, SaysSoWhereThereAreTooManyToCompare) {
  // No two hide each other, and nothing but a comparison can tell.
  const auto found = findings(rules_json(many(1500, [](int i) {
    return R"({"m": {">": )" + std::to_string(i) + R"(, "<": )" + std::to_string(i + 1000) + "}}";
  })));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].severity, Severity::note);
  EXPECT_NE(found[0].text.find("too many to compare"), std::string::npos);
}

}  // namespace
}  // namespace xpuruntime
