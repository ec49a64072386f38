#include "xpuruntime/graph/engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "xpuruntime/graph/measure_engines.h"
#include "xpuruntime/graph/model_cache.h"
#include "xpuruntime/graph/process_engine.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// y = exp(x), and what `more` does to it.
Model exp_model(const std::string& more = {}) {
  Model model;
  model.opsets[""] = 17;
  const auto value = [](const std::string& name) {
    return ModelValue{.name = name,
                      .type = "float",
                      .dtype = DataType::float32,
                      .shape = std::vector<ModelExtent>{{.size = 2}, {.size = 3}}};
  };
  model.graph.inputs = {value("x")};
  model.graph.outputs = {value("y")};
  model.graph.nodes = {{.name = "exp", .op = "Exp", .inputs = {"x"}, .outputs = {more.empty() ? "y" : "e"}}};
  if (!more.empty()) model.graph.nodes.push_back({.name = "more", .op = more, .inputs = {"e"}, .outputs = {"y"}});
  return model;
}

Tensor numbers(float value) {
  Tensor tensor = Tensor::empty(DataType::float32, {2, 3});
  std::fill_n(tensor.as<float>(), 6, value);
  return tensor;
}

/// Its results are its input. How it behaves is set by hand.
struct Behaviour {
  std::string version = "1.0";
  std::string absent = {};
  std::vector<DeviceType> devices = {DeviceType::cpu};
  EngineVerdict verdict = {};
  ErrorCode compile_error = ErrorCode::internal;  // internal: none
  std::chrono::microseconds run_time = {};
  bool caches = false;
  int compiled = 0;
  int from_cache = 0;
};

class EchoModel : public CompiledModel {
 public:
  explicit EchoModel(const Behaviour& behaviour) : behaviour_(behaviour) {}
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds) override {
    std::this_thread::sleep_for(behaviour_.run_time);
    return {inputs.begin(), inputs.end()};
  }
  std::string to_cache() override { return behaviour_.caches ? "what was made" : ""; }

 private:
  const Behaviour& behaviour_;
};

class EchoEngine : public Engine {
 public:
  EchoEngine(std::string name, Behaviour& behaviour) : name_(std::move(name)), behaviour_(behaviour) {}
  std::string name() const override { return name_; }
  std::string version() const override { return behaviour_.version; }
  std::string why_absent() const override { return behaviour_.absent; }
  std::vector<DeviceType> devices() const override { return behaviour_.devices; }
  EngineVerdict check(const EngineRequest&) const override { return behaviour_.verdict; }
  bool caches() const override { return behaviour_.caches; }
  std::unique_ptr<CompiledModel> compile(const EngineRequest& request) const override {
    if (behaviour_.compile_error != ErrorCode::internal) fail(behaviour_.compile_error, "echo", "it cannot be made");
    ++(request.cached.empty() ? behaviour_.compiled : behaviour_.from_cache);
    if (!request.cached.empty()) {
      EXPECT_EQ(request.cached, "what was made");
    }
    return std::make_unique<EchoModel>(behaviour_);
  }

 private:
  std::string name_;
  Behaviour& behaviour_;
};

ExecutionPolicy on(DeviceType target, const std::string& engine = "auto") {
  ExecutionPolicy policy;
  policy.target = target;
  policy.engine = engine;
  policy.cache_compiled = false;
  return policy;
}

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() { engines_.add(std::make_shared<EchoEngine>("echo", echo_)); }
  ~EngineTest() override { std::filesystem::remove_all(folder_); }

  Session session(const ExecutionPolicy& policy, Model model = exp_model()) const {
    Runtime& runtime = Runtime::global();
    return {std::move(model), runtime.dispatcher(), runtime.devices(), options(policy)};
  }
  SessionOptions options(const ExecutionPolicy& policy) const {
    return {.execution = policy, .engines = &engines_, .store = store_};
  }
  EngineTimes measured(const ExecutionPolicy& policy) const {
    Runtime& runtime = Runtime::global();
    const Tensor x = numbers(1);
    return measure_engines(exp_model(), runtime.dispatcher(), runtime.devices(), options(policy), {&x, 1}, 0.02);
  }
  std::string folder() {
    std::filesystem::create_directories(folder_);
    return folder_;
  }

  Behaviour echo_ = {};
  EngineRegistry engines_ = {};
  std::shared_ptr<MeasurementStore> store_ = {};

 private:
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("engine_test_" + std::to_string(::getpid()))).string();
};

TEST_F(EngineTest, NativeComesFirstAndAnotherWhereItIsNamed) {
  const Tensor x = numbers(1);
  const Session native = session(on(DeviceType::cpu));
  EXPECT_EQ(native.record().engine, "native");
  EXPECT_NEAR(static_cast<double>(native.run({&x, 1})[0].as<const float>()[0]), 2.718281828, 1e-6);
  const Session echo = session(on(DeviceType::cpu, "echo"));
  EXPECT_EQ(echo.record().engine, "echo");
  EXPECT_EQ(echo.record().version, "1.0");
  EXPECT_EQ(echo.run({&x, 1})[0].as<const float>()[0], 1.0F);
  expect_error(ErrorCode::not_supported, "does not tell", [&] { echo.memory_bytes({&x, 1}); });
  expect_error(ErrorCode::unknown_name, "did you mean echo", [&] { session(on(DeviceType::cpu, "eco")); });
}

/// Counts how often it was asked for its devices.
class AskedDriver : public testing::FakeDriver {
 public:
  using FakeDriver::FakeDriver;
  const std::vector<DeviceProfile>& devices() const override {
    ++asked;
    return FakeDriver::devices();
  }
  mutable int asked = 0;
};

TEST_F(EngineTest, NativeOnTheCpuLooksForNoOtherDevices) {
  DeviceManager devices;
  const auto other = std::make_shared<AskedDriver>(DeviceType::opencl);
  devices.add_driver(std::make_shared<testing::FakeDriver>(DeviceType::cpu));
  devices.add_driver(other);
  const Session session(exp_model(), Runtime::global().dispatcher(), devices, options(on(DeviceType::cpu)));
  EXPECT_EQ(session.record().engine, "native");
  EXPECT_EQ(other->asked, 0);
}

TEST_F(EngineTest, AnotherTakesWhatNativeLacksAndTheRecordSaysSo) {
  const Session taken = session(on(DeviceType::cpu), exp_model("NoSuchOp"));
  EXPECT_EQ(taken.record().engine, "echo");
  ASSERT_EQ(taken.record().rejections.size(), 1u);
  EXPECT_EQ(taken.record().rejections[0].engine, "native");
  EXPECT_HAS(taken.record().because, "NoSuchOp (1)");
  expect_error(ErrorCode::not_supported, "NoSuchOp (1)",
               [&] { session(on(DeviceType::cpu, "native"), exp_model("NoSuchOp")); });
  echo_.verdict = EngineVerdict::no("it is too long");
  const auto both = [&] { session(on(DeviceType::cpu), exp_model("NoSuchOp")); };
  expect_error(ErrorCode::not_supported, "echo: it is too long", both);
  expect_error(ErrorCode::not_supported, "NoSuchOp (1)", both);
  echo_.absent = "buy it first";
  expect_error(ErrorCode::not_supported, "buy it first", [&] { session(on(DeviceType::cpu, "echo")); });
}

TEST_F(EngineTest, ATargetOfAnEngineIsHereAndOthersNeedADeclaredFallback) {
  echo_.devices = {DeviceType::npu};
  EXPECT_EQ(session(on(DeviceType::npu)).record().target, DeviceType::npu);
  expect_error(ErrorCode::not_supported, "target kunlun is not here", [&] { session(on(DeviceType::kunlun)); });
  ExecutionPolicy policy = on(DeviceType::kunlun);
  policy.allow_fallback = DeviceType::npu;
  const Session fallen = session(policy);
  EXPECT_EQ(fallen.record().engine, "echo");
  EXPECT_TRUE(fallen.record().is_fallback);
  EXPECT_HAS(fallen.record().because, "the fallback of kunlun");
}

TEST_F(EngineTest, AFailureToCompileIsItsOwnErrorOrTheDeclaredFallback) {
  echo_.devices = {DeviceType::npu};
  echo_.compile_error = ErrorCode::timeout;
  ExecutionPolicy policy = on(DeviceType::npu);
  expect_error(ErrorCode::timeout, "it cannot be made", [&] { session(policy); });
  policy.allow_fallback = DeviceType::cpu;
  const Session fallen = session(policy);
  EXPECT_EQ(fallen.record().engine, "native");
  EXPECT_HAS(fallen.record().because, "echo on npu: it cannot be made");
}

TEST_F(EngineTest, ALockIsReplayedByNative) {
  Runtime& runtime = Runtime::global();
  SessionOptions with_lock = options(on(DeviceType::cpu));
  with_lock.lock = LockUse{std::make_shared<const KernelLock>()};
  expect_error(ErrorCode::not_supported, "NoSuchOp (1)",
               [&] { Session(exp_model("NoSuchOp"), runtime.dispatcher(), runtime.devices(), with_lock); });
}

TEST_F(EngineTest, RefusesNamesThatAreTakenOrNone) {
  for (const char* name : {"", "auto", "native", "Echo", "1st", "two words"}) {
    expect_error(ErrorCode::invalid_argument, "can be no engine's name",
                 [&] { engines_.add(std::make_shared<EchoEngine>(name, echo_)); });
  }
  expect_error(ErrorCode::invalid_argument, "can be no engine's name", [&] { engines_.add(nullptr); });
  EXPECT_TRUE(engines_.remove("echo"));
  EXPECT_FALSE(engines_.remove("echo"));
}

TEST_F(EngineTest, TheFastestIsMeasuredKeptAndTakenUntilItsVersionChanges) {
  store_ = open_store(folder() + "/store.sqlite");
  EXPECT_EQ(session(on(DeviceType::cpu)).record().engine, "native");
  echo_.run_time = std::chrono::milliseconds(5);
  EXPECT_EQ(measured(on(DeviceType::cpu)).chosen, "native");
  EXPECT_HAS(session(on(DeviceType::cpu)).record().because, "measured: ");
  // The shapes are part of the key, and so is the model.
  Model slow = exp_model("Relu");
  EXPECT_HAS(session(on(DeviceType::cpu), slow).record().because, "none was measured");

  echo_.run_time = {};
  EngineTimes times = measured(on(DeviceType::cpu));
  for (int i = 0; i < 20 && times.chosen != "echo"; ++i) times = measured(on(DeviceType::cpu));
  ASSERT_EQ(times.chosen, "echo") << "it only copies pointers";
  EXPECT_EQ(times.not_stored, "");
  EXPECT_EQ(session(on(DeviceType::cpu)).record().engine, "echo");
  store_ = open_store(folder() + "/store.sqlite", StoreMode::read_only);  // as another process would
  EXPECT_EQ(session(on(DeviceType::cpu)).record().engine, "echo");
  echo_.version = "1.1";
  const Session later = session(on(DeviceType::cpu));
  EXPECT_EQ(later.record().engine, "native");
  EXPECT_HAS(later.record().because, "was measured as version 1.0 and is 1.1");
  EXPECT_EQ(session(on(DeviceType::cpu, "native")).record().engine, "native");
}

TEST_F(EngineTest, EnginesThatCannotRunAreInTheRaceWithTheirReason) {
  echo_.absent = "buy it first";
  const EngineTimes times = measured(on(DeviceType::cpu));
  ASSERT_EQ(times.engines.size(), 2u);
  EXPECT_EQ(times.chosen, "native");
  EXPECT_GT(times.engines[0].runs, 4);
  EXPECT_HAS(times.engines[1].reason, "buy it first");
}

TEST_F(EngineTest, WhatIsCompiledIsKeptByAllThatItDependsOn) {
  echo_.caches = true;
  ExecutionPolicy policy = on(DeviceType::cpu, "echo");
  policy.cache_compiled = true;
  policy.cache_dir = folder() + "/cache";
  session(policy);
  EXPECT_EQ(echo_.compiled, 1);
  session(policy);
  EXPECT_EQ(echo_.compiled, 1);
  EXPECT_EQ(echo_.from_cache, 1);
  EXPECT_EQ(cached_models(policy.cache_dir).size(), 1u);
  policy.execution_timeout_ms = 1;  // no part of what is compiled
  session(policy);
  EXPECT_EQ(echo_.from_cache, 2);
  policy.optimize_level = 1;
  session(policy);
  session(policy, exp_model("Relu"));
  echo_.version = "2";
  session(policy);
  EXPECT_EQ(echo_.compiled, 4);
  for (const auto& file : std::filesystem::directory_iterator(policy.cache_dir)) {
    std::filesystem::resize_file(file.path(), 30);
  }
  session(policy);
  EXPECT_EQ(echo_.compiled, 5) << "damaged entries are made anew";
  policy.cache_compiled = false;
  session(policy);
  EXPECT_EQ(echo_.compiled, 6);
  EXPECT_EQ(clear_cached_models(policy.cache_dir), 4u);
  EXPECT_EQ(cached_models(policy.cache_dir).size(), 0u);
}

TEST_F(EngineTest, OfTheUserIsToldWherePythonOrThePackageIsMissing) {
  ::setenv("XRT_PYTHON", "/no/such/python", 1);
  engines_.add(make_process_engine("away", "nowhere:Engine"));
  expect_error(ErrorCode::not_supported, "XRT_PYTHON", [&] { session(on(DeviceType::cpu, "away")); });
  ::setenv("XRT_PYTHON", "/bin/false", 1);
  engines_.add(make_process_engine("away", "nowhere:Engine"));
  expect_error(ErrorCode::not_supported, "ended with exit code 1", [&] { session(on(DeviceType::cpu, "away")); });
  ::unsetenv("XRT_PYTHON");
}

}  // namespace
}  // namespace xpuruntime
