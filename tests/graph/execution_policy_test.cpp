#include "xpuruntime/graph/execution_policy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime {
namespace {

ExecutionPolicy full_policy() {
  ExecutionPolicy policy;
  policy.target = DeviceType::npu;
  policy.precision = DataType::int8;
  policy.static_shape = true;
  policy.fixed_shapes = {{1, 3, 224, 224}, {}};
  policy.allow_fallback = DeviceType::cpu;
  policy.optimize_level = 3;
  policy.cache_compiled = false;
  policy.cache_dir = "compiled";
  policy.compile_timeout_ms = 1000;
  policy.execution_timeout_ms = 50;
  policy.engine = "openvino";
  return policy;
}

std::string temporary_path() {
  return (std::filesystem::temp_directory_path() / ("execution_policy_" + std::to_string(::getpid()) + ".json"))
      .string();
}

TEST(ExecutionPolicy, HasTheSeedsDefaults) {
  const ExecutionPolicy policy;
  EXPECT_EQ(to_string(policy.target), "cuda");
  EXPECT_EQ(engine_precision_name(policy.precision), "fp32");
  EXPECT_FALSE(policy.static_shape);
  EXPECT_FALSE(policy.allow_fallback);
  EXPECT_EQ(policy.optimize_level, 2);
  EXPECT_TRUE(policy.cache_compiled);
  EXPECT_EQ(policy.compile_timeout_ms, 300000);
  EXPECT_EQ(policy.execution_timeout_ms, 30000);
  EXPECT_EQ(policy.engine, "auto");
  EXPECT_EQ(policy.to_json().find("engine"), std::string::npos) << "the seed's readers take no field beyond theirs";
  policy.check();
}

TEST(ExecutionPolicy, ChangesOneFieldAndKeepsTheOthers) {
  ExecutionPolicy expected = full_policy();
  expected.precision = DataType::float16;
  EXPECT_EQ(full_policy().with_precision("half"), expected);
  expected = full_policy();
  expected.allow_fallback = DeviceType::nvidia;
  EXPECT_EQ(full_policy().with_fallback("cuda"), expected);
  expected.allow_fallback.reset();
  EXPECT_EQ(full_policy().with_fallback({}), expected);
}

TEST(ExecutionPolicy, RefusesWhatCannotBe) {
  const auto refuses = [](const std::string& part, auto change) {
    expect_invalid(part, [&] {
      ExecutionPolicy policy = full_policy();
      change(policy);
      policy.check();
    });
  };
  refuses("fixed_shapes required", [](auto& policy) { policy.fixed_shapes.clear(); });
  refuses("fixed_shapes[1] has the extent 0", [](auto& policy) { policy.fixed_shapes[1] = {2, 0}; });
  refuses("at most 8", [](auto& policy) { policy.fixed_shapes[0].assign(9, 1); });
  refuses("64 bits", [](auto& policy) { policy.fixed_shapes[0].assign(8, 1 << 20); });
  refuses("give 0, 1, 2 or 3", [](auto& policy) { policy.optimize_level = 4; });
  refuses("compile_timeout_ms is 0", [](auto& policy) { policy.compile_timeout_ms = 0; });
  for (const char* name : {"", "Native", "1st", "open vino", "a-b"}) {
    refuses("engine is '" + std::string(name), [name](auto& policy) { policy.engine = name; });
  }
  refuses("execution_timeout_ms is -1", [](auto& policy) { policy.execution_timeout_ms = -1; });
  refuses("no engine computes in f64", [](auto& policy) { policy.precision = DataType::float64; });
  expect_invalid("no engine computes in f64", [] { (void)full_policy().with_precision("double"); });
  expect_error(ErrorCode::unknown_name, "unknown device", [] { (void)full_policy().with_fallback("toaster"); });
}

TEST(ExecutionPolicy, IsReadAsItWasWritten) {
  for (const ExecutionPolicy& policy : {ExecutionPolicy(), full_policy()}) {
    EXPECT_EQ(ExecutionPolicy::from_json(policy.to_json()), policy);
  }
}

TEST(ExecutionPolicy, ReadsTheSeedsFileAndNulls) {
  const ExecutionPolicy policy = ExecutionPolicy::from_json(R"({
    "target": "npu", "precision": "int8", "static_shape": true, "fixed_shapes": [[1, 3, 224, 224]],
    "allow_fallback": "cpu", "optimize_level": 2, "cache_compiled": true})");
  EXPECT_EQ(policy.fixed_shapes, (std::vector<std::vector<std::int64_t>>{{1, 3, 224, 224}}));
  EXPECT_EQ(policy.allow_fallback, DeviceType::cpu);
  EXPECT_EQ(policy.compile_timeout_ms, 300000);
  EXPECT_EQ(ExecutionPolicy::from_json(R"({"fixed_shapes": null, "allow_fallback": null})"), ExecutionPolicy());
}

TEST(ExecutionPolicy, NamesThePlaceOfWhatIsWrongInAText) {
  const auto refuses = [](const std::string& text, const std::string& part) {
    expect_invalid(part, [&] { (void)ExecutionPolicy::from_json(text); });
  };
  refuses("{\n \"targt\": \"cpu\"}", "line 2, column 2: field 'targt' is not a policy field");
  refuses(R"({"target": "toaster"})", "line 1, column 2: field 'target' is wrong: unknown device");
  refuses(R"({"precision": "fp64"})", "field 'precision' is wrong: no engine computes in f64");
  refuses(R"({"precision": 16})", "field 'precision' must be");
  refuses(R"({"static_shape": 1})", "field 'static_shape' must be true or false");
  refuses(R"({"static_shape": true})", "line 1, column 2: field 'static_shape' is true, and there fixed_shapes");
  refuses(R"({"fixed_shapes": 3})", "must be a list of shapes");
  refuses(R"({"fixed_shapes": [3]})", "field 'fixed_shapes[0]' must be a shape");
  refuses(R"({"fixed_shapes": [[1, 0]]})", "line 1, column 23: field 'fixed_shapes[0][1]' must be a whole number");
  refuses(R"({"fixed_shapes": [[1.5]]})", "must be a whole number");
  refuses(R"({"fixed_shapes": [[18446744073709551615]]})", "must be a whole number");
  refuses(R"({"fixed_shapes": [[1,1,1,1,1,1,1,1,1]]})", "at most 8");
  refuses(R"({"optimize_level": 4})", "must be 0, 1, 2 or 3");
  refuses(R"({"optimize_level": true})", "must be 0, 1, 2 or 3");
  refuses(R"({"compile_timeout_ms": 0})", "milliseconds, 1 or more");
  refuses(R"({"execution_timeout_ms": "1"})", "milliseconds, 1 or more");
  refuses(R"({"version": 2})", "the only version");
  refuses("[]", "put its fields in braces");
  refuses(R"({"target": "cpu", "target": "cpu"})", "is a duplicate");
  expect_error(ErrorCode::corrupt_data, "not JSON", [] { (void)ExecutionPolicy::from_json("{} // no"); });
  expect_error(ErrorCode::corrupt_data, "nested deeper", [] { (void)ExecutionPolicy::from_json("{\"a\":[[[[1]]]]}"); });
}

TEST(ExecutionPolicy, IsLoadedAsItWasSaved) {
  const std::string path = temporary_path();
  full_policy().save(path);
  EXPECT_EQ(ExecutionPolicy::load(path), full_policy());
  std::ofstream(path) << "{\n\"optimize_level\": -1}";
  expect_invalid("execution policy file '" + path + "': line 2, column 1", [&] { (void)ExecutionPolicy::load(path); });
  std::filesystem::remove(path);
  expect_error(ErrorCode::io_error, path, [&] { (void)ExecutionPolicy::load(path); });
}

TEST(ExecutionPolicy, IsNotWrittenWhereItIsWrong) {
  const std::string path = temporary_path();
  ExecutionPolicy wrong;
  wrong.static_shape = true;
  expect_invalid("fixed_shapes required", [&] { wrong.save(path); });
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ValidateExecutionPolicy, SaysWhatWillNotWorkHere) {
  DeviceManager devices;
  devices.add_driver(std::make_shared<testing::FakeDriver>(DeviceType::cpu));
  const EngineRegistry engines;
  ExecutionPolicy policy;
  policy.target = DeviceType::cpu;
  EXPECT_TRUE(validate_policy(policy, devices, engines).empty());

  policy.target = DeviceType::npu;
  auto findings = validate_policy(policy, devices, engines);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].field, "target");

  policy.allow_fallback = DeviceType::cpu;
  findings = validate_policy(policy, devices, engines);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].text.find("falls back to cpu"), std::string::npos);

  policy.target = DeviceType::cpu;
  policy.fixed_shapes = {{1}};
  policy.cache_compiled = false;
  policy.cache_dir = "x";
  findings = validate_policy(policy, devices, engines);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].field, "fixed_shapes");
  EXPECT_EQ(findings[1].field, "allow_fallback");  // the target itself
  EXPECT_EQ(findings[2].field, "cache_dir");

  EXPECT_EQ(findings[0].severity, Severity::error);
  policy.fixed_shapes.clear();
  policy.cache_compiled = true;
  policy.cache_dir = "/proc/x";
  findings = validate_policy(policy, devices, engines);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[1].field, "cache_dir");
  EXPECT_EQ(findings[1].severity, Severity::error);

  policy.optimize_level = 9;
  expect_invalid("optimize_level", [&] { (void)validate_policy(policy, devices, engines); });
}

/// An engine that takes models in these precisions on these devices.
class FakeEngine : public Engine {
 public:
  FakeEngine(std::vector<DeviceType> devices, std::vector<DataType> precisions, std::string absent = {})
      : devices_(std::move(devices)), precisions_(std::move(precisions)), absent_(std::move(absent)) {}
  std::string name() const override { return "fake"; }
  std::string version() const override { return "1"; }
  std::string why_absent() const override { return absent_; }
  std::vector<DeviceType> devices() const override { return devices_; }
  std::vector<DataType> precisions() const override { return precisions_; }
  EngineVerdict check(const EngineRequest&) const override { return {}; }
  std::unique_ptr<CompiledModel> compile(const EngineRequest&) const override { return nullptr; }

 private:
  std::vector<DeviceType> devices_;
  std::vector<DataType> precisions_;
  std::string absent_;
};

class ValidateEngines : public ::testing::Test {
 protected:
  ValidateEngines() { devices_.add_driver(std::make_shared<testing::FakeDriver>(DeviceType::cpu)); }

  std::string findings(DeviceType target, const std::string& engine, DataType precision = DataType::float32,
                       std::optional<DeviceType> fallback = {}) {
    ExecutionPolicy policy;
    policy.target = target;
    policy.engine = engine;
    policy.precision = precision;
    policy.allow_fallback = fallback;
    std::string text;
    for (const PolicyFinding& finding : validate_policy(policy, devices_, engines_)) {
      text += std::string(to_string(finding.severity)) + " " + finding.field + ": " + finding.text + "\n";
    }
    return text;
  }
  void expect(const std::string& part, const std::string& found) {
    EXPECT_NE(found.find(part), std::string::npos) << found;
  }

  DeviceManager devices_ = {};
  EngineRegistry engines_ = {};
};

TEST_F(ValidateEngines, AnEngineThatIsNotHereIsAnError) {
  expect("error engine: no engine 'fake' is known here; there are auto, native", findings(DeviceType::cpu, "fake"));
  expect("did you mean native", findings(DeviceType::cpu, "nativ"));
  engines_.add(std::make_shared<FakeEngine>(std::vector{DeviceType::cpu}, std::vector<DataType>(), "buy it first"));
  EXPECT_EQ(findings(DeviceType::cpu, "fake"), "error engine: fake is not here: buy it first\n");
  EXPECT_EQ(findings(DeviceType::cpu, "auto"), "") << "it is passed over";
}

TEST_F(ValidateEngines, ATargetIsThatOfTheEnginesThatMayRunThere) {
  engines_.add(std::make_shared<FakeEngine>(std::vector{DeviceType::npu}, std::vector{DataType::int8}));
  EXPECT_EQ(findings(DeviceType::npu, "auto", DataType::int8), "");
  EXPECT_EQ(findings(DeviceType::npu, "fake", DataType::int8), "");
  expect("error target: npu is not here", findings(DeviceType::npu, "native"));
  expect("error target: fake does not run on cpu here; it runs on npu", findings(DeviceType::cpu, "fake"));
  expect("warning target: fake does not run on cpu here; it runs on npu. Everything falls back to npu",
         findings(DeviceType::cpu, "fake", DataType::int8, DeviceType::npu));
  EXPECT_EQ(findings(DeviceType::cpu, "auto", DataType::float32, DeviceType::npu), "");
}

TEST_F(ValidateEngines, APrecisionThatNoEngineTakesThereIsAnError) {
  engines_.add(
      std::make_shared<FakeEngine>(std::vector{DeviceType::npu, DeviceType::cpu}, std::vector{DataType::int8}));
  EXPECT_EQ(findings(DeviceType::npu, "auto"), "error precision: no engine here takes fp32 on npu; fake takes int8\n");
  EXPECT_EQ(findings(DeviceType::cpu, "fake"), "error precision: no engine here takes fp32 on cpu; fake takes int8\n");
  EXPECT_EQ(findings(DeviceType::cpu, "auto"), "");
  expect("note precision: a model of floats needs calibration", findings(DeviceType::cpu, "auto", DataType::int8));
  EXPECT_EQ(findings(DeviceType::cpu, "fake", DataType::int8), "");
  engines_.add(std::make_shared<FakeEngine>(std::vector{DeviceType::npu}, std::vector<DataType>()));
  EXPECT_EQ(findings(DeviceType::npu, "auto"), "") << "one that does not tell may take it";
}

}  // namespace
}  // namespace xpuruntime
