#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "core/expect_error.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// A kernel of relu that stays in its calls for as long as it is told to, and then gives its input.
class Stuck {
 public:
  Status run(const RunArguments& arguments) {
    std::unique_lock lock(mutex_);
    ++calls_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_stuck_; });
    const Tensor &from = *arguments.inputs[0], &to = *arguments.outputs[0];
    std::copy_n(from.as<const float>(), element_count(from.spec()), to.as<float>());
    ++ended_;
    changed_.notify_all();
    return {};
  }
  void stick() { set(true); }
  void let_go() { set(false); }
  void wait_for_end(int of) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ >= of; });
  }
  int calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  void set(bool stuck) {
    const std::lock_guard lock(mutex_);
    is_stuck_ = stuck;
    changed_.notify_all();
  }

  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  bool is_stuck_ = false;
  int calls_ = 0, ended_ = 0;
};

class SessionTimeout : public ::testing::Test {
 protected:
  /// Runs that nobody waits for may still be in it when a test ends.
  static Runtime& runtime() {
    static Runtime& one = *new Runtime({false, false, {}});
    return one;
  }
  const std::shared_ptr<Stuck> stuck = std::make_shared<Stuck>();

  void SetUp() override {
    FunctionKernel kernel;
    kernel.op = OpId::relu;
    kernel.name = "stuck";
    kernel.run = [kernel = stuck](const Problem&, const RunArguments& arguments) { return kernel->run(arguments); };
    runtime().registry().register_kernel(make_kernel(std::move(kernel)));
  }
  void TearDown() override { runtime().registry().unregister_kernel(OpId::relu, DeviceType::cpu, "stuck"); }

  Session session(std::int64_t milliseconds, Runtime* own = nullptr) {
    Model model;
    model.opsets[""] = 17;
    ModelValue x{.name = "x", .type = "float", .dtype = DataType::float32};
    x.shape = std::vector<ModelExtent>{{.name = "n"}};
    model.graph.inputs = {x};
    model.graph.outputs = model.graph.inputs;
    model.graph.outputs[0].name = "y";
    model.graph.nodes = {{.name = "the node", .op = "Relu", .inputs = {"x"}, .outputs = {"y"}}};
    SessionOptions options;
    if (own == nullptr) options.policy.preferences[OpId::relu] = {.kernels = {"stuck"}, .force = true};
    options.execution.emplace().target = DeviceType::cpu;
    options.execution->execution_timeout_ms = milliseconds;
    Runtime& used = own == nullptr ? runtime() : *own;
    return {std::move(model), used.dispatcher(), used.devices(), options};
  }
};

TEST_F(SessionTimeout, NobodyWaitsForAKernelThatDoesNotEnd) {
  const Session model = session(50);
  stuck->stick();
  {
    std::vector<float> lent(1000, 3.0f);  // gone before the kernel reads it
    const Tensor x(lent.data(), make_spec(DataType::float32, {1000}));
    expect_error(ErrorCode::timeout, "execution_timeout_ms of 50 ms is over", [&] { model.run({&x, 1}); });
  }
  stuck->let_go();
  stuck->wait_for_end(1);
  const std::vector<float> two(1000, 2.0f);
  const Tensor x(const_cast<float*>(two.data()), make_spec(DataType::float32, {1000}));
  EXPECT_EQ(model.run({&x, 1})[0].as<const float>()[999], 2.0f);
  EXPECT_EQ(stuck->calls(), 2);
}

TEST_F(SessionTimeout, WhatIsLateWritesNothingOfTheCallers) {
  const Session model = session(50);
  const Tensor x = Tensor::empty(DataType::float32, {4}), y = Tensor::empty(DataType::float32, {4});
  std::fill_n(x.as<float>(), 4, 5.0f);
  std::fill_n(y.as<float>(), 4, 7.0f);
  stuck->stick();
  const std::optional<Tensor> outputs[] = {y};
  expect_error(ErrorCode::timeout, "50 ms", [&] { model.run({&x, 1}, outputs); });
  stuck->let_go();
  stuck->wait_for_end(1);
  EXPECT_EQ(y.as<const float>()[0], 7.0f);
  model.run({&x, 1}, outputs);
  EXPECT_EQ(y.as<const float>()[0], 5.0f);
}

TEST_F(SessionTimeout, ASessionMayGoWhileItsRunIsStillInAKernel) {
  stuck->stick();
  {
    const Session model = session(20);
    const Tensor x = Tensor::empty(DataType::float32, {4});
    expect_error(ErrorCode::timeout, "20 ms", [&] { model.run({&x, 1}); });
  }
  stuck->let_go();
  stuck->wait_for_end(1);
}

// Under the sanitizers: what a run has used may go as soon as it has returned.
TEST_F(SessionTimeout, TheRuntimeMayGoAfterARun) {
  const Tensor x = Tensor::empty(DataType::float32, {4});
  std::fill_n(x.as<float>(), 4, 5.0f);
  for (int i = 0; i < 20; ++i) {
    const auto own = std::make_unique<Runtime>(RuntimeOptions{false, false, {}});
    std::optional<Session> model(session(30000, own.get()));
    EXPECT_EQ(model->run({&x, 1})[0].as<const float>()[3], 5.0f);
  }
}

}  // namespace
}  // namespace xpuruntime
