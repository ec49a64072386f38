#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/expect_error.h"
#include "graph/partial_device.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/replay.h"

// Sessions on a device that lacks kernels for some of the model's calls.

namespace xpuruntime {
namespace {

using testing::PartialDevice;

const Device npu{DeviceType::npu, 0};

ModelValue value(const std::string& name, const Dims& shape) {
  std::vector<ModelExtent> extents;
  for (const std::int64_t extent : shape) extents.push_back({.size = extent});
  return {.name = name, .type = "float", .dtype = DataType::float32, .shape = extents};
}

ModelNode node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
  return {.name = "the " + output, .op = op, .inputs = std::move(inputs), .outputs = {output}};
}

Model model_of(std::vector<ModelNode> nodes, const Dims& shape, const std::vector<std::string>& outputs = {"y"}) {
  Model model;
  model.opsets[""] = 17;
  model.graph.inputs = {value("x", shape)};
  for (const std::string& output : outputs) {
    model.graph.outputs.push_back({.name = output, .type = "float", .dtype = DataType::float32});
  }
  model.graph.nodes = std::move(nodes);
  return model;
}

/// y = relu(exp(relu(x)) + tanh(relu(x)))
Model two_that_npu_lacks() {
  return model_of({node("Relu", {"x"}, "a"), node("Exp", {"a"}, "b"), node("Tanh", {"a"}, "c"),
                   node("Add", {"b", "c"}, "d"), node("Relu", {"d"}, "y")},
                  {2, 3});
}

Tensor numbers(const Dims& shape, float step = 0.25f) {
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) tensor.as<float>()[i] = step * static_cast<float>(i);
  return tensor;
}

class Placement : public ::testing::Test {
 protected:
  static ExecutionPolicy policy(bool falls_back = true, int level = 0) {
    ExecutionPolicy policy;
    policy.target = DeviceType::npu;
    policy.optimize_level = level;
    if (falls_back) policy.allow_fallback = DeviceType::cpu;
    return policy;
  }
  Session session(Model model, const ExecutionPolicy& execution, SessionOptions options = {}) {
    options.execution = execution;
    return {std::move(model), device.runtime.dispatcher(), device.runtime.devices(), options};
  }
  Session session(Model model) { return session(std::move(model), policy()); }
  std::vector<float> floats(const Tensor& tensor) {
    const Tensor here = device.runtime.devices().copy_to(tensor, Device{});
    return {here.as<const float>(), here.as<const float>() + element_count(here.spec())};
  }
  /// What the CPU alone gives.
  std::vector<float> expected(const Model& model, const Tensor& x, std::size_t output = 0) {
    ExecutionPolicy on_cpu = policy();
    on_cpu.target = DeviceType::cpu;
    return floats(session(model, on_cpu).run({&x, 1})[output]);
  }
  /// Copies of a run whose input is on the device.
  struct Copies {
    std::size_t to_cpu, to_device;
    bool operator==(const Copies&) const = default;
  };
  Copies copies_of_run(const Session& session, const Tensor& x) {
    const Tensor there = device.runtime.devices().copy_to(x, npu);
    session.run({&there, 1});  // makes constants ready
    device.driver->forget();
    session.run({&there, 1});
    return {device.driver->to_host, device.driver->to_device};
  }

  PartialDevice device{{OpId::relu, OpId::add, OpId::copy}};
};

TEST_F(Placement, AValueIsCopiedOnceForAllThatReadIt) {
  const Session session = this->session(two_that_npu_lacks());
  const Tensor x = numbers({2, 3});
  const std::vector<Tensor> results = session.run({&x, 1});
  EXPECT_EQ(results[0].device(), npu);
  EXPECT_EQ(floats(results[0]), expected(two_that_npu_lacks(), x));
  EXPECT_EQ(copies_of_run(session, x), (Copies{1, 2}));
  EXPECT_EQ(device.driver->bytes_to_host, 24u);
  EXPECT_EQ(device.driver->bytes_to_device, 48u);
}

TEST_F(Placement, EachStepAndCopyIsExplained) {
  const Session session = this->session(two_that_npu_lacks());
  const TensorSpec spec = make_spec(DataType::float32, {2, 3});
  std::vector<std::string> found;
  for (const SessionStep& step : session.explain({&spec, 1})) {
    found.push_back(step.node + " " + std::string(to_string(step.kind)) + " " +
                    (step.decision ? to_string(step.decision->problem.device)
                                   : to_string(*step.transfer) + " of " + std::to_string(step.transfer->bytes)));
    if (step.op == "Exp" && step.decision) {
      EXPECT_HAS(step.decision->because, "on cpu:0, as no backend has a kernel for exp on npu:0");
    }
  }
  EXPECT_EQ(found, (std::vector<std::string>{"the a kernel npu:0", "the b transfer copy to cpu:0 of 24",
                                             "the b kernel cpu:0", "the c kernel cpu:0",
                                             "the d transfer copy to npu:0 of 24", "the d transfer copy to npu:0 of 24",
                                             "the d kernel npu:0", "the y kernel npu:0"}));
  EXPECT_EQ(session.memory_bytes({&spec, 1}), 3 * 64u);  // a has gone when b, c and d are there
}

TEST_F(Placement, TheRecordSaysWhatRunsOnTheCpu) {
  const Session session = this->session(two_that_npu_lacks());
  const SessionRecord& before = session.record();
  EXPECT_TRUE(before.on_fallback.empty());
  const Tensor x = numbers({2, 3});
  session.run({&x, 1});
  const SessionRecord& record = session.record();
  EXPECT_EQ(record.target, DeviceType::npu);
  EXPECT_FALSE(record.is_fallback);
  ASSERT_EQ(record.on_fallback.size(), 2u);
  EXPECT_EQ(record.on_fallback[0].op, "Exp");
  EXPECT_EQ(record.on_fallback[0].nodes, 1u);
  EXPECT_EQ(record.on_fallback[0].reason, "no backend has a kernel for exp on npu:0");
  EXPECT_HAS(record.because, "2 nodes run on cpu, which npu lacks: Exp (1), Tanh (1)");
  EXPECT_EQ(&record, &session.record());
  EXPECT_TRUE(before.on_fallback.empty());  // stays as it was
}

TEST_F(Placement, ViewsOfWhatIsCopiedStayViews) {
  Model model = model_of({node("Relu", {"x"}, "a"), node("Reshape", {"a", "flat"}, "b"), node("Exp", {"b"}, "c"),
                          node("Reshape", {"c", "square"}, "d"), node("Relu", {"d"}, "y"), node("Tanh", {"a"}, "z")},
                         {2, 8}, {"y", "z"});
  const auto shape = [](std::vector<std::int64_t> extents) {
    const Tensor tensor = Tensor::empty(DataType::int64, {static_cast<std::int64_t>(extents.size())});
    std::copy(extents.begin(), extents.end(), tensor.as<std::int64_t>());
    return tensor;
  };
  model.graph.constants = {{"flat", shape({16})}, {"square", shape({4, 4})}};
  const Session session = this->session(model);
  const Tensor x = numbers({2, 8});
  const std::vector<Tensor> results = session.run({&x, 1});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(floats(results[i]), expected(model, x, i));
  EXPECT_EQ(results[0].shape(), (Dims{4, 4}));
  EXPECT_EQ(copies_of_run(session, x), (Copies{1, 2}));
}

TEST_F(Placement, ConstantsAreWhereTheyAreRead) {
  Model model = model_of({node("Sub", {"x", "c"}, "a"), node("Add", {"a", "c"}, "y")}, {2, 3});
  model.graph.constants = {{"c", numbers({2, 3}, 0.5f)}};
  const Session session = this->session(model);
  const Tensor x = numbers({2, 3});
  EXPECT_EQ(floats(session.run({&x, 1})[0]), expected(model, x));
  EXPECT_EQ(copies_of_run(session, x), (Copies{1, 1}));
}

TEST_F(Placement, OutputsEndOnTheDeviceAndMayBeTheCallers) {
  const Model model =
      model_of({node("Exp", {"x"}, "y"), node("Tanh", {"y"}, "z"), node("Relu", {"y"}, "w")}, {2, 3}, {"y", "z", "w"});
  const Session session = this->session(model);
  const Tensor x = numbers({2, 3});
  const DeviceManager& devices = device.runtime.devices();
  std::vector<std::optional<Tensor>> outputs = {devices.allocate(DataType::float32, {2, 3}, npu), numbers({2, 3}),
                                                std::nullopt};
  for (int i = 0; i < 2; ++i) {
    const std::vector<Tensor> results = session.run({&x, 1}, outputs);
    EXPECT_EQ(results[0].data(), outputs[0]->data());
    EXPECT_EQ(results[1].data(), outputs[1]->data());
    EXPECT_EQ(results[2].device(), npu);
    for (std::size_t o = 0; o < 3; ++o) EXPECT_EQ(floats(results[o]), expected(model, x, o)) << o;
  }
  EXPECT_EQ(copies_of_run(session, x), (Copies{1, 2}));  // y is read again on the side that made it
}

TEST_F(Placement, InputsThatLieScatteredOnTheHostAreCopied) {
  Model model = model_of({node("Expand", {"x", "shape"}, "a"), node("Exp", {"a"}, "y")}, {2, 3});
  model.graph.constants["shape"] = Tensor::empty(DataType::int64, {3});
  for (int i = 0; i < 3; ++i) model.graph.constants["shape"].as<std::int64_t>()[i] = i == 0 ? 4 : i + 1;
  const Tensor memory = numbers({6});
  const Tensor x(memory.data(), make_spec(DataType::float32, {2, 3}, {1, 2}), {}, 0, memory.owner());
  const Session session = this->session(model);
  EXPECT_EQ(floats(session.run({&x, 1})[0]), expected(model, x));
  EXPECT_EQ(session.explain({&x, 1}).empty(), false);
}

TEST_F(Placement, LargeValuesThatCallsMayWriteOverStayRight) {
  Model model = two_that_npu_lacks();
  model.graph.nodes.push_back(node("Tanh", {"d"}, "e"));
  model.graph.nodes.push_back(node("Add", {"e", "b"}, "z"));
  const Dims shape = {64, 128};
  model.graph.inputs = {value("x", shape)};
  model.graph.outputs.push_back({.name = "z", .type = "float", .dtype = DataType::float32});
  const Tensor x = numbers(shape, 1e-4f);
  const Session session = this->session(model);
  for (int i = 0; i < 2; ++i) {
    const std::vector<Tensor> results = session.run({&x, 1});
    for (std::size_t o = 0; o < 2; ++o) EXPECT_EQ(floats(results[o]), expected(model, x, o));
  }
}

TEST_F(Placement, ManyThreadsRunAtOnce) {
  const Session session = this->session(two_that_npu_lacks());
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = numbers({2, 3}, 0.1f * static_cast<float>(t));
      const std::vector<float> want = expected(two_that_npu_lacks(), x);
      for (int i = 0; i < 30; ++i) EXPECT_EQ(floats(session.run({&x, 1})[0]), want);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Placement, WithoutAFallbackOneErrorListsAll) {
  const Tensor x = numbers({2, 3});
  Model model = two_that_npu_lacks();
  model.graph.nodes.insert(model.graph.nodes.begin() + 2, node("Exp", {"b"}, "e"));
  model.graph.nodes[3].inputs = {"e"};
  ExecutionPolicy other = policy();
  other.allow_fallback = DeviceType::kunlun;
  for (const ExecutionPolicy& execution : {policy(false), other}) {
    const Session session = this->session(model, execution);
    const std::string text =
        "npu:0 has no kernels for tanh(f32[2,3]) @npu:0 (1 call), exp(f32[2,3]) @npu:0 (2 calls); with allow_fallback "
        "cpu "
        "in the execution policy these run on the CPU, with copies";
    const TensorSpec spec = x.spec();
    expect_error(ErrorCode::not_supported, text, [&] { session.run({&x, 1}); });
    expect_error(ErrorCode::not_supported, text, [&] { session.explain({&spec, 1}); });
  }
}

TEST_F(Placement, WhatTheCpuLacksTooIsAnErrorOfTheRun) {
  Dispatcher& dispatcher = device.runtime.dispatcher();
  const Problem lost = parse_problem("tanh(f32[2,3]) @cpu:0");
  for (const auto& kernel : device.runtime.registry().kernels(OpId::tanh, DeviceType::cpu)) {
    dispatcher.quarantine(lost, kernel, "it is lost");
  }
  ExecutionPolicy execution = policy();
  execution.engine = "native";  // or the whole model goes to the fallback, which has no more
  const Session session = this->session(two_that_npu_lacks(), execution);
  const Tensor x = numbers({2, 3});
  expect_error(ErrorCode::not_supported, "tanh(f32[2,3]) @npu:0: no backend has a kernel for tanh", [&] {
    session.run({&x, 1});
  });
}

TEST_F(Placement, WithTheWholeDeviceAbsentAllFallsBack) {
  ExecutionPolicy execution = policy();
  execution.target = DeviceType::kunlun;
  const Session session = this->session(two_that_npu_lacks(), execution);
  EXPECT_TRUE(session.record().is_fallback);
  const Tensor x = numbers({2, 3});
  EXPECT_EQ(session.run({&x, 1})[0].device(), Device{});
  EXPECT_TRUE(session.record().on_fallback.empty());
}

TEST_F(Placement, ALockHasTheCallsOfBothDevicesAndReplaysThem) {
  const Session recorded = session(two_that_npu_lacks());
  const Tensor x = numbers({2, 3});
  const KernelLock lock = record_lock(device.runtime, recorded, {&x, 1}, 1);
  for (const char* call : {"exp(f32[2,3]) @cpu:0", "relu(f32[2,3]) @npu:0"}) {
    EXPECT_NE(lock.find_for(parse_problem(call)), nullptr) << call;
  }
  SessionOptions under;
  under.lock = LockUse{std::make_shared<const KernelLock>(lock)};
  const Session replayed = session(two_that_npu_lacks(), policy(), under);
  EXPECT_EQ(floats(replayed.run({&x, 1})[0]), expected(two_that_npu_lacks(), x));
  EXPECT_EQ(replayed.record().target, DeviceType::npu);
  // The lock's target is not left for the fallback, and what it lacks is no reason to move a call.
  expect_error(ErrorCode::not_supported, "npu:0 has no kernels for tanh", [&] {
    session(two_that_npu_lacks(), policy(false), under).run({&x, 1});
  });
  Model longer = two_that_npu_lacks();
  longer.graph.nodes[4] = node("Add", {"d", "a"}, "y");
  longer.graph.nodes.push_back(node("Relu", {"y"}, "unread"));
  under.lock->lock = std::make_shared<const KernelLock>();
  expect_error(ErrorCode::not_supported, "the lock has no entry", [&] {
    session(longer, policy(), under).run({&x, 1});
  });
}

TEST_F(Placement, CopiesAreTimedAsCalls) {
  const Session session = this->session(two_that_npu_lacks());
  const Tensor x = numbers({2, 3});
  std::vector<std::string> kernels;
  for (const CallTime& call : session.profile({&x, 1}, 3).calls) {
    kernels.push_back(call.kernel);
    EXPECT_EQ(to_string(call.problem).starts_with("copy("), call.kernel.starts_with("copy to "));
    EXPECT_EQ(call.count, 1);
  }
  ASSERT_EQ(kernels.size(), 8u);
  EXPECT_EQ(kernels[1], "copy to cpu:0");
  EXPECT_EQ(kernels[4], "copy to npu:0");
}

TEST_F(Placement, AFailedCopyIsTheErrorOfTheRunAndTheNextOneWorks) {
  const Session session = this->session(two_that_npu_lacks());
  const Tensor x = device.runtime.devices().copy_to(numbers({2, 3}), npu);
  session.run({&x, 1});
  device.driver->copy_status = {ErrorCode::device_error, "the cable is out"};
  expect_error(ErrorCode::device_error, "copying from npu:0 failed: the cable is out", [&] { session.run({&x, 1}); });
  device.driver->copy_status = {};
  EXPECT_EQ(floats(session.run({&x, 1})[0]), expected(two_that_npu_lacks(), numbers({2, 3})));
}

TEST_F(Placement, LoopsRunWithBodiesOnBothDevices) {
  auto body = std::make_shared<ModelGraph>();
  ModelValue scalar{.name = "i", .type = "int64", .dtype = DataType::int64, .shape = std::vector<ModelExtent>{}};
  ModelValue going{.name = "on", .type = "bool", .dtype = DataType::boolean, .shape = std::vector<ModelExtent>{}};
  body->inputs = {scalar, going, value("s", {2, 3})};
  body->nodes = {node("Identity", {"on"}, "still"), node("Tanh", {"s"}, "t"), node("Relu", {"t"}, "next")};
  going.name = "still";
  body->outputs = {going, value("next", {2, 3})};
  Model model = model_of({node("Loop", {"count", "", "x"}, "y")}, {2, 3});
  model.graph.nodes[0].attributes["body"] = std::shared_ptr<const ModelGraph>(body);
  model.graph.constants["count"] = Tensor::empty(DataType::int64, {});
  *model.graph.constants["count"].as<std::int64_t>() = 3;
  const Session session = this->session(model);
  const Tensor x = numbers({2, 3});
  EXPECT_EQ(floats(session.run({&x, 1})[0]), expected(model, x));
  ASSERT_EQ(session.record().on_fallback.size(), 1u);
  EXPECT_EQ(session.record().on_fallback[0].op, "Tanh");
}

/// A kernel of exp on the CPU that stays in its call for as long as it is told to. It may outlive its test.
struct Waiting {
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool waits = true, ended = false;
};

class ZeroPlan : public Plan {
 public:
  Status run(const RunArguments& arguments) const override {
    std::memset(arguments.outputs[0]->data(), 0, arguments.outputs[0]->span());
    return {};
  }
};

/// As kernels that are compiled when they are first needed.
std::unique_ptr<const Plan> prepare_slowly(const Problem&, const PrepareContext&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return std::make_unique<ZeroPlan>();
}

TEST(PlacementTimeout, KernelsThatTakeTooLongToCompileAreATimeoutOrGoToTheDeclaredFallback) {
  static constexpr KernelSpec slow{.ops = {OpId::exp}, .name = "slow", .prepare = prepare_slowly};
  PartialDevice device({OpId::relu});
  device.runtime.registry().register_kernel(make_kernel(slow, OpId::exp, DeviceType::npu, "1"));
  const Model model = model_of({node("Relu", {"x"}, "a"), node("Exp", {"a"}, "y")}, {2, 3});
  SessionOptions options;
  options.execution.emplace().target = DeviceType::npu;
  options.execution->compile_timeout_ms = 200;
  const Tensor x = numbers({2, 3});
  const Session alone(model, device.runtime.dispatcher(), device.runtime.devices(), options);
  expect_error(ErrorCode::timeout, "compile_timeout_ms of 200 ms is over", [&] { alone.run({&x, 1}); });
  options.execution->allow_fallback = DeviceType::cpu;
  PartialDevice another({OpId::relu});
  another.runtime.registry().register_kernel(make_kernel(slow, OpId::exp, DeviceType::npu, "1"));
  const Session session(model, another.runtime.dispatcher(), another.runtime.devices(), options);
  EXPECT_NEAR(session.run({&x, 1})[0].as<const float>()[0], 1, 1e-6);
  EXPECT_EQ(session.record().target, DeviceType::cpu);
  EXPECT_TRUE(session.record().is_fallback);
  EXPECT_HAS(session.record().because, "compile_timeout_ms of 200 ms is over");
}

TEST(PlacementTimeout, NobodyWaitsForAKernelOnTheCpuThatDoesNotEnd) {
  static PartialDevice& device = *new PartialDevice({OpId::relu, OpId::add, OpId::copy});
  const auto waiting = std::make_shared<Waiting>();
  FunctionKernel kernel;
  kernel.op = OpId::exp;
  kernel.name = "waiting";
  kernel.run = [waiting](const Problem&, const RunArguments& arguments) {
    std::unique_lock lock(waiting->mutex);
    waiting->changed.wait(lock, [&] { return !waiting->waits; });
    std::memset(arguments.outputs[0]->as<float>(), 0, arguments.outputs[0]->span());
    waiting->ended = true;
    waiting->changed.notify_all();
    return Status();
  };
  device.runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  SessionOptions options;
  options.policy.preferences[OpId::exp] = {.kernels = {"waiting"}, .force = true};
  options.execution.emplace().target = DeviceType::npu;
  options.execution->allow_fallback = DeviceType::cpu;
  options.execution->execution_timeout_ms = 50;
  const Session session(two_that_npu_lacks(), device.runtime.dispatcher(), device.runtime.devices(), options);
  const Tensor x = numbers({2, 3});
  expect_error(ErrorCode::timeout, "execution_timeout_ms of 50 ms is over", [&] { session.run({&x, 1}); });
  {
    std::unique_lock lock(waiting->mutex);
    waiting->waits = false;
    waiting->changed.notify_all();
    waiting->changed.wait(lock, [&] { return waiting->ended; });
  }
  const Tensor there = device.runtime.devices().copy_to(x, npu);
  const Tensor lent(there.data(), there.spec(), npu, there.byte_offset());  // nothing keeps it
  EXPECT_EQ(session.run({&lent, 1})[0].shape(), (Dims{2, 3}));
}

}  // namespace
}  // namespace xpuruntime
