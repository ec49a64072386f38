#include "xpuruntime/graph/engine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "xpuruntime/graph/measure_engines.h"
#include "xpuruntime/graph/model_cache.h"
#include "xpuruntime/graph/process_engine.h"
#include "xpuruntime/runtime/replay.h"
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
  std::string kept = "what was made";
  int compiled = 0;
  int from_cache = 0;
  bool makes_nothing = false;
  std::function<std::vector<Tensor>()> results = {};  // empty: its input
};

class EchoModel : public CompiledModel {
 public:
  explicit EchoModel(const Behaviour& behaviour) : behaviour_(behaviour) {}
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds) override {
    std::this_thread::sleep_for(behaviour_.run_time);
    if (behaviour_.results) return behaviour_.results();
    return {inputs.begin(), inputs.end()};
  }
  std::string to_cache() override { return behaviour_.caches ? behaviour_.kept : ""; }

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
    ++(request.cached == nullptr ? behaviour_.compiled : behaviour_.from_cache);
    if (request.cached != nullptr) {
      EXPECT_TRUE(*request.cached == behaviour_.kept) << request.cached->size() << " bytes";
    }
    if (behaviour_.makes_nothing) return nullptr;
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
  /// Unless it is told otherwise, the results of `echo` are right.
  EngineTimes measured(const ExecutionPolicy& policy) {
    Runtime& runtime = Runtime::global();
    const Tensor x = numbers(1);
    if (!echo_.results) echo_.results = [e = numbers(2.7182818F)] { return std::vector<Tensor>{e}; };
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

/// What native takes when it is loaded, and refuses in a run: erf of integers.
Model erf_of_integers() {
  Model model = exp_model();
  model.graph.nodes[0].op = "Erf";
  for (ModelValue* value : {&model.graph.inputs[0], &model.graph.outputs[0]}) value->dtype = DataType::int32;
  return model;
}

TEST_F(EngineTest, AutoGoesOnWhereARunFindsOutThatNativeLacksADtype) {
  const Tensor x = Tensor::empty(DataType::int32, {2, 3});
  std::fill_n(x.as<std::int32_t>(), 6, 7);
  const Session going_on = session(on(DeviceType::cpu), erf_of_integers());
  EXPECT_EQ(going_on.record().engine, "native");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(going_on.run({&x, 1})[0].as<const std::int32_t>()[5], 7);
  EXPECT_EQ(going_on.record().engine, "echo");
  EXPECT_EQ(echo_.compiled, 1);
  ASSERT_EQ(going_on.record().rejections.size(), 1u);
  EXPECT_HAS(going_on.record().rejections[0].reason, "i32[2,3], is not floating");
  EXPECT_HAS(going_on.record().because, "native on cpu: node 'exp' (Erf)");

  const Session named = session(on(DeviceType::cpu, "native"), erf_of_integers());
  expect_error(ErrorCode::not_supported, "node 'exp' (Erf)", [&] { named.run({&x, 1}); });
  EXPECT_EQ(named.record().engine, "native");

  echo_.absent = "buy it first";
  const Session stuck = session(on(DeviceType::cpu), erf_of_integers());
  for (const char* text : {"no engine takes the model: native: node 'exp' (Erf)", "echo: is not here: buy it first"}) {
    expect_error(ErrorCode::not_supported, text, [&] { stuck.run({&x, 1}); });
  }
  EXPECT_EQ(stuck.record().engine, "native");
}

TEST_F(EngineTest, AutoGoesOnToTheDeclaredFallbackInARunToo) {
  echo_.devices = {DeviceType::npu};
  ExecutionPolicy policy = on(DeviceType::cpu);
  const Tensor x = Tensor::empty(DataType::int32, {2, 3});
  expect_error(ErrorCode::not_supported, "node 'exp' (Erf)", [&] { session(policy, erf_of_integers()).run({&x, 1}); });
  policy.allow_fallback = DeviceType::npu;
  const Session fallen = session(policy, erf_of_integers());
  fallen.run({&x, 1});
  EXPECT_EQ(fallen.record().engine, "echo");
  EXPECT_TRUE(fallen.record().is_fallback);
}

TEST_F(EngineTest, WhatAForcedKernelRefusesNoOtherEngineDoes) {
  Runtime& runtime = Runtime::global();
  SessionOptions forcing = options(on(DeviceType::cpu));
  forcing.policy.preferences[OpId::exp] = {.kernels = {"reference"}, .force = true};
  const Session session(erf_of_integers(), runtime.dispatcher(), runtime.devices(), forcing);
  const Tensor x = Tensor::empty(DataType::int32, {2, 3});
  expect_error(ErrorCode::not_supported, "node 'exp' (Erf)", [&] { session.run({&x, 1}); });
}

TEST_F(EngineTest, ManyThreadsThatAreRefusedGoOnToOneEngine) {
  const Session session = this->session(on(DeviceType::cpu), erf_of_integers());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&session] {
      const Tensor x = Tensor::empty(DataType::int32, {2, 3});
      for (int i = 0; i < 20; ++i) EXPECT_EQ(session.run({&x, 1}).size(), 1u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(echo_.compiled, 1);
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

TEST_F(EngineTest, ResultsThatAreNotTheModelsAreAnErrorOfTheEngine) {
  const Session echo = session(on(DeviceType::cpu, "echo"));
  const Tensor x = numbers(1), out = numbers(0);
  const std::optional<Tensor> into[] = {out};
  struct Case {
    std::vector<Tensor> results;
    std::string text;
  };
  const Case cases[] = {
      {{}, "engine echo gave 0 results for the model's 1: 'y' f32[2,3]; use another engine"},
      {{x, x}, "engine echo gave 2 results for the model's 1: 'y' f32[2,3]"},
      {{Tensor::empty(DataType::float64, {2, 3})},
       "engine echo gave f64[2,3] for output 'y', which is f32[2,3] in the model"},
      {{Tensor::empty(DataType::float32, {6})}, "engine echo gave f32[6] for output 'y'"},
  };
  for (const Case& one : cases) {
    echo_.results = [&] { return one.results; };
    expect_error(ErrorCode::device_error, one.text, [&] { echo.run({&x, 1}); });
    expect_error(ErrorCode::device_error, one.text, [&] { echo.run({&x, 1}, into); });
    EXPECT_EQ(*out.as<const float>(), 0);
  }
  echo_.results = [] { return std::vector<Tensor>{Tensor::empty(DataType::float32, {2, 4})}; };
  EXPECT_EQ(echo.run({&x, 1})[0].shape(), (Dims{2, 4}));  // the model's sizes may be wrong
  echo_.results = {};
  EXPECT_EQ(*echo.run({&x, 1}, into)[0].as<const float>(), 1);
  EXPECT_EQ(*out.as<const float>(), 1);
}

TEST_F(EngineTest, WhatACompileOfNothingMeansIsSaid) {
  echo_.makes_nothing = true;
  for (const bool caches : {false, true}) {
    echo_.caches = caches;
    ExecutionPolicy policy = on(DeviceType::cpu, "echo");
    policy.cache_compiled = caches;
    policy.cache_dir = folder();
    expect_error(ErrorCode::device_error, "engine echo compiled the model to nothing", [&] { session(policy); });
  }
}

TEST_F(EngineTest, ALockIsReplayedByNative) {
  Runtime& runtime = Runtime::global();
  SessionOptions with_lock = options(on(DeviceType::cpu));
  with_lock.lock = LockUse{std::make_shared<const KernelLock>()};
  expect_error(ErrorCode::not_supported, "NoSuchOp (1)",
               [&] { Session(exp_model("NoSuchOp"), runtime.dispatcher(), runtime.devices(), with_lock); });
}

TEST_F(EngineTest, ALockHasTheEngineThatRanAndItsVersion) {
  Runtime& runtime = Runtime::global();
  const Tensor x = numbers(1);
  const std::span<const Tensor> inputs(&x, 1);
  const auto under = [&](const KernelLock& lock, const ExecutionPolicy& policy, Model model = exp_model()) {
    SessionOptions with_lock = options(policy);
    with_lock.lock = LockUse{std::make_shared<const KernelLock>(lock)};
    return Session(std::move(model), runtime.dispatcher(), runtime.devices(), with_lock);
  };
  const KernelLock echoed = record_lock(runtime, session(on(DeviceType::cpu, "echo")), inputs);
  EXPECT_TRUE(echoed.entries().empty());
  const KernelLock read = KernelLock::from_json(echoed.to_json());
  EXPECT_EQ(read, echoed);
  const Session replayed = under(read, on(DeviceType::cpu));
  EXPECT_EQ(replayed.record().engine, "echo");
  EXPECT_EQ(replayed.record().because, "the lock names it");
  EXPECT_EQ(replayed.run(inputs)[0].as<const float>()[0], 1.0F);

  const auto refused = [&](const std::string& text, const ExecutionPolicy& policy, Model model = exp_model()) {
    expect_error(ErrorCode::not_supported, text, [&] { under(read, policy, std::move(model)); });
  };
  refused("engine is echo in the lock, native here", on(DeviceType::cpu, "native"));
  refused("the lock has no engine for this model", on(DeviceType::cpu), exp_model("Relu"));
  ExecutionPolicy other = on(DeviceType::npu);
  other.precision = DataType::float16;
  other.optimize_level = 1;
  refused(
      "target is cpu in the lock, npu here, precision is fp32 in the lock, fp16 here, optimize_level is 2 in the lock, "
      "1",
      other);
  echo_.version = "1.1";
  refused("engine echo is 1.0 in the lock, 1.1 here", on(DeviceType::cpu));
  echo_.absent = "buy it first";
  refused("engine echo is not here: buy it first", on(DeviceType::cpu));
  engines_.remove("echo");
  refused("engine echo is not registered here", on(DeviceType::cpu));

  const KernelLock native = record_lock(runtime, session(on(DeviceType::cpu)), inputs);
  EXPECT_EQ(native.engines().begin()->second.engine, "native");
  ASSERT_EQ(native.entries().size(), 1u);
  EXPECT_NEAR(static_cast<double>(under(native, on(DeviceType::cpu)).run(inputs)[0].as<const float>()[0]), 2.718281828,
              1e-6);
  EXPECT_TRUE(verify_lock(runtime, {std::make_shared<const KernelLock>(native)}).fine());
  const auto differences = diff(read, native);
  ASSERT_EQ(differences.size(), 3u);  // engine, version, and the kernel of exp
  EXPECT_EQ(differences[1].field, "engine");
}

TEST_F(EngineTest, ALockKeepsWhatWasMeasured) {
  store_ = open_store(folder() + "/store.sqlite");
  for (int i = 0; i < 20 && session(on(DeviceType::cpu)).record().engine != "echo"; ++i) measured(on(DeviceType::cpu));
  const Tensor x = numbers(1);
  SessionOptions with_lock = options(on(DeviceType::cpu));
  with_lock.store = nullptr;
  Runtime& runtime = Runtime::global();
  with_lock.lock =
      LockUse{std::make_shared<const KernelLock>(record_lock(runtime, session(on(DeviceType::cpu)), std::span(&x, 1)))};
  const Session session(exp_model(), runtime.dispatcher(), runtime.devices(), with_lock);
  EXPECT_EQ(session.record().engine, "echo") << "the measured choice";
}

TEST_F(EngineTest, ALockInForceAllowsNoEngineThatItDoesNotName) {
  Runtime& runtime = Runtime::global();
  const Tensor x = numbers(1);
  const KernelLock native = record_lock(runtime, session(on(DeviceType::cpu)), std::span(&x, 1));
  {
    const ScopedLock scope(runtime.dispatcher(), {std::make_shared<const KernelLock>(native)});
    EXPECT_EQ(session(on(DeviceType::cpu)).run({&x, 1}).size(), 1u);
    expect_error(ErrorCode::not_supported, "engine is native in the lock, echo here",
                 [&] { session(on(DeviceType::cpu, "echo")); });
  }
  const ScopedLock scope(runtime.dispatcher(), {std::make_shared<const KernelLock>()});
  expect_error(ErrorCode::not_supported, "names no engine for this model",
               [&] { session(on(DeviceType::cpu, "echo")); });
  const Session going_nowhere = session(on(DeviceType::cpu), erf_of_integers());
  const Tensor integers = Tensor::empty(DataType::int32, {2, 3});
  expect_error(ErrorCode::not_supported, "node 'exp' (Erf)", [&] { going_nowhere.run({&integers, 1}); });
}

TEST_F(EngineTest, ADamagedEngineOfALockIsRefused) {
  const Tensor x = numbers(1);
  Runtime& runtime = Runtime::global();
  const std::string text = record_lock(runtime, session(on(DeviceType::cpu, "echo")), std::span(&x, 1)).to_json();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  expect_error(ErrorCode::corrupt_data, "does not fit its checksum",
               [&] { KernelLock::from_json(with("\"engine\":\"echo\"", "\"engine\":\"native\"")); });
  expect_error(ErrorCode::invalid_argument, "is of locks from version 4 on",
               [&] { KernelLock::from_json(with("\"version\": 4", "\"version\": 3")); });
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

TEST_F(EngineTest, OnlyNativeObeysWhatAPolicyAsksOfKernels) {
  store_ = open_store(folder() + "/store.sqlite");
  EngineTimes times = measured(on(DeviceType::cpu));
  for (int i = 0; i < 20 && times.chosen != "echo"; ++i) times = measured(on(DeviceType::cpu));
  ASSERT_EQ(times.chosen, "echo") << "it only copies pointers";
  Runtime& runtime = Runtime::global();
  const auto with = [&](const KernelPolicy& policy, const std::string& engine) {
    SessionOptions given = options(on(DeviceType::cpu, engine));
    given.policy = policy;
    return Session(exp_model(), runtime.dispatcher(), runtime.devices(), given);
  };
  const std::vector<std::pair<KernelPolicy, std::string>> asked = {
      {KernelPolicy().force("exp", "reference"), "forces reference for exp"},
      {KernelPolicy().set_precision("exp", "bf16"), "precisions of ops"},
      {KernelPolicy{.deterministic = true}, "deterministic kernels"},
      {KernelPolicy{.workspace_limit_bytes = 1 << 20}, "limits their workspace"}};
  for (const auto& [policy, text] : asked) {
    const Session automatic = with(policy, "auto");
    EXPECT_EQ(automatic.record().engine, "native") << text;
    EXPECT_HAS(automatic.record().because, text);
    expect_error(ErrorCode::not_supported, text, [&] { with(policy, "echo"); });
  }
  // What it only likes is passed over, and said.
  const Session liking = with(KernelPolicy().set("exp", "reference"), "auto");
  EXPECT_EQ(liking.record().engine, "echo");
  EXPECT_HAS(liking.record().because, "the kernel policy's choices are for native alone");
  const AmpRegistry registry;
  const ScopedAutocast autocast(runtime.dispatcher(), registry);
  EXPECT_HAS(session(on(DeviceType::cpu)).record().because, "autocast is on");
}

TEST_F(EngineTest, EnginesThatCannotRunAreInTheRaceWithTheirReason) {
  echo_.absent = "buy it first";
  const EngineTimes times = measured(on(DeviceType::cpu));
  ASSERT_EQ(times.engines.size(), 2u);
  EXPECT_EQ(times.chosen, "native");
  EXPECT_GT(times.engines[0].runs, 4);
  EXPECT_HAS(times.engines[1].reason, "buy it first");
}

TEST_F(EngineTest, AnEngineWithOtherResultsIsOut) {
  const auto with = [&](float result) {
    echo_.results = [tensor = numbers(result)] { return std::vector<Tensor>{tensor}; };
    return measured(on(DeviceType::cpu)).engines[1];
  };
  EXPECT_HAS(with(2.8F).reason, "differ from those of native by 3.01 %, more than 1 %");
  EXPECT_EQ(with(2.8F).runs, 0);
  EXPECT_EQ(with(2.7183F).reason, "");
  EXPECT_NEAR(with(2.7183F).difference.value_or(1), 6.7e-6, 1e-6);
  EXPECT_HAS(with(NAN).reason, "no numbers where those are");
  echo_.results = [n = 1.0F]() mutable { return std::vector<Tensor>{numbers(n++)}; };
  EXPECT_HAS(measured(on(DeviceType::cpu)).engines[1].reason, "change from run to run");
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

TEST_F(EngineTest, AProcessThatIsKilledAHundredTimesWhileItWritesTheCacheLeavesNoHalfEntry) {
  echo_.caches = true;
  echo_.kept.assign(std::size_t{1} << 19, 'x');
  ExecutionPolicy policy = on(DeviceType::cpu, "echo");
  policy.cache_compiled = true;
  policy.cache_dir = folder() + "/cache";
  std::filesystem::create_directory(policy.cache_dir);
  constexpr int models = 4;
  const auto load = [&](int model) {
    policy.optimize_level = model;
    return session(policy);
  };
  const auto half_written = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(policy.cache_dir)) {
      if (file.path().extension() != ".entry") found.push_back(file.path());
    }
    return found;
  };
  std::size_t halves = 0;
  for (int round = 0; round < 100; ++round) {
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int model = 0;; model = (model + 1) % models) {
        load(model);
        if (model == 0) clear_cached_models(policy.cache_dir);
      }
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (half_written().empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(round % 10 * 100));  // at another place each time
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (const auto& file : half_written()) halves += std::filesystem::remove(file) ? 1 : 0;
  }
  EXPECT_GT(halves, 10u) << "files that were being written";
  echo_.compiled = echo_.from_cache = 0;
  for (int model = 0; model < models; ++model) load(model);  // whole, or made anew
  EXPECT_EQ(echo_.compiled + echo_.from_cache, models);
  for (int model = 0; model < models; ++model) load(model);
  EXPECT_GE(echo_.from_cache, models);
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
