#include <thread>

#include "dispatch/fixture.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

using Dispatching = DispatchTest;

TEST_F(Dispatching, RunsTheLibrarysOwnKernelOnRealData) {
  Tensor a = Tensor::empty(DataType::float32, {2, 3});
  Tensor b = Tensor::empty(DataType::float32, {3, 2});
  Tensor out = Tensor::empty(DataType::float32, {2, 2});
  for (int i = 0; i < 6; ++i)
    a.as<float>()[i] = static_cast<float>(i + 1), b.as<float>()[i] = static_cast<float>(6 - i);
  const std::array<const Tensor*, 2> inputs = {&a, &b};
  const std::array<const Tensor*, 1> outputs = {&out};
  const Call call{OpId::matmul, inputs, outputs};
  dispatcher().dispatch(call);
  EXPECT_EQ(dispatcher().decide(call).kernel, "small");
  // By hand: [1 2 3; 4 5 6] times [6 5; 4 3; 2 1].
  EXPECT_EQ(std::vector<float>(out.as<float>(), out.as<float>() + 4), (std::vector<float>{20, 14, 56, 41}));
}

TEST_F(Dispatching, DecidesOnceAndRunsManyTimes) {
  int asked = 0;
  auto calls = add_kernel("mine");
  selector().register_rule(
      OpId::relu, [&](const Problem&, const DeviceProfile&) { return ++asked > 0; }, "mine");
  const Relu relu;
  for (int i = 0; i < 5; ++i) dispatcher().dispatch(relu.call());
  EXPECT_EQ(calls->load(), 5);
  EXPECT_EQ(asked, 1);
}

TEST_F(Dispatching, TellsProblemsApartByEveryPartOfTheirSignature) {
  int asked = 0;
  selector().register_rule(
      OpId::relu, [&](const Problem&, const DeviceProfile&) { return ++asked < 0; }, "reference");
  const Relu base(8);
  const Relu longer(9);
  const Relu other_dtype(8, DataType::float64);
  Tensor memory = Tensor::empty(DataType::float32, {64});
  Tensor strided(memory.data(), make_spec(DataType::float32, {8}, {2}));
  Tensor shifted(memory.data(), make_spec(DataType::float32, {8}), {}, 4);
  Tensor matrix(memory.data(), make_spec(DataType::float32, {2, 4}));
  Tensor deep(memory.data(), make_spec(DataType::float32, {1, 2, 1, 2, 1, 2}));
  Tensor deeper(memory.data(), make_spec(DataType::float32, {1, 2, 1, 2, 2, 1}));
  std::vector<Tensor> outs;
  std::vector<const Tensor*> ins = {&base.in, &longer.in, &other_dtype.in, &strided, &shifted, &matrix, &deep, &deeper};
  for (const Tensor* in : ins) outs.push_back(Tensor::empty(in->dtype(), in->shape()));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < ins.size(); ++i) {
      const std::array<const Tensor*, 1> inputs = {ins[i]};
      const std::array<const Tensor*, 1> outputs = {&outs[i]};
      dispatcher().dispatch({OpId::relu, inputs, outputs});
    }
  }
  EXPECT_EQ(asked, static_cast<int>(ins.size()));
}

TEST_F(Dispatching, AnyRegistrationMakesOldDecisionsMiss) {
  const Relu relu;
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  add_kernel("newer");
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "newer");
  const auto rule = selector().register_rule(
      OpId::relu, [](const Problem&, const DeviceProfile&) { return true; }, "reference");
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "reference");
  EXPECT_TRUE(selector().unregister_rule(rule));
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "newer");
  EXPECT_TRUE(runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "newer"));
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
}

TEST_F(Dispatching, KeepsAPlanOverADecisionThatChangedAndChangedBack) {
  // Preparing may be slow: a new rule must not make the same plan anew.
  struct CountingKernel : Kernel {
    explicit CountingKernel(int& prepared) : prepared_(prepared) {}
    OpId op() const override { return OpId::relu; }
    std::string_view name() const override { return "counting"; }
    DeviceType device_type() const override { return DeviceType::cpu; }
    Verdict accepts(const Problem&, const DeviceProfile&) const override { return Verdict::yes(); }
    std::unique_ptr<const Plan> make_plan(const Problem&, const PrepareContext&, std::string_view) const override {
      ++prepared_;
      struct Nothing : Plan {
        Status run(const RunArguments&) const override { return {}; }
        std::string token() const override { return "tile=8"; }
      };
      return std::make_unique<Nothing>();
    }
    int& prepared_;
  };
  int prepared = 0;
  runtime.registry().register_kernel(std::make_shared<CountingKernel>(prepared));
  const Relu relu;
  EXPECT_EQ(dispatcher().decide(relu.call()).plan, "tile=8");
  runtime.registry().invalidate();
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(prepared, 1);
}

// A user's function of inputs and outputs would run on backward's tensors just as well, and give wrong numbers.
TEST_F(Dispatching, DoesNotGiveBackwardToAKernelThatDeclaresForwardAlone) {
  auto calls = add_kernel("mine");
  const Relu relu;
  Tensor gradient = Tensor::empty(DataType::float32, {8});
  std::fill_n(gradient.as<float>(), 8, 2.0f);
  std::fill_n(relu.in.as<float>(), 8, 1.0f);
  const std::array<const Tensor*, 2> inputs = {&relu.in, &gradient};
  const Call backward{.op = OpId::relu, .inputs = inputs, .outputs = relu.outputs, .direction = Direction::backward};
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(calls->load(), 1);
  dispatcher().dispatch(backward);
  EXPECT_EQ(calls->load(), 1);
  EXPECT_EQ(relu.out.as<float>()[7], 2.0f);
  EXPECT_EQ(dispatcher().decide(backward).kernel, "simd");
  KernelPolicy policy;
  policy.force("relu", "mine");
  const ScopedPolicy scope(dispatcher(), policy);
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(backward); }),
             "the policy forces mine, which cannot run: forward only");
}

TEST_F(Dispatching, GivesTheWorkspaceThatTheKernelDeclared) {
  void* seen = nullptr;
  FunctionKernel kernel;
  kernel.op = OpId::relu;
  kernel.name = "hungry";
  kernel.workspace_bytes = 1000;
  kernel.run = [&](const Problem&, const RunArguments& arguments) {
    seen = arguments.workspace;
    std::fill_n(static_cast<char*>(seen), 1000, 'x');
    return Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  const Relu relu;
  dispatcher().dispatch(relu.call());
  EXPECT_NE(seen, nullptr);
  EXPECT_EQ(dispatcher().decide(relu.call()).workspace_bytes, 1000u);
  EXPECT_EQ(runtime.devices().workspace({}).stats().bytes_in_use, 0u);
}

TEST_F(Dispatching, AKernelMayDispatchWhileItRuns) {
  // More inner problems than the table has room for: the outer entry must survive being pushed out.
  std::vector<std::unique_ptr<Relu>> inner;
  for (int i = 0; i < 3000; ++i) inner.push_back(std::make_unique<Relu>(i + 100));
  auto calls = std::make_shared<int>(0);
  FunctionKernel outer;
  outer.op = OpId::gelu;
  outer.name = "outer";
  outer.run = [&, calls](const Problem&, const RunArguments&) {
    for (const auto& relu : inner) dispatcher().dispatch(relu->call());
    ++*calls;
    return Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(outer)));
  const Relu relu;
  for (int i = 0; i < 2; ++i) dispatcher().dispatch({OpId::gelu, relu.inputs, relu.outputs});
  EXPECT_EQ(*calls, 2);
}

TEST_F(Dispatching, ManyThreadsDecideWhileOthersRegister) {
  add_kernel("stable");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Relu relu(16 + t);
      while (!stop) dispatcher().dispatch(relu.call());
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::string name = "extra_" + std::to_string(i);
    add_kernel(name);
    const auto rule = selector().register_rule(
        OpId::relu, [](const Problem&, const DeviceProfile&) { return true; }, "stable", i);
    if (i % 2) selector().unregister_rule(rule);
    runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, name);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  const Relu relu;
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "stable");
}

TEST_F(Dispatching, TwoRuntimesDoNotMixTheirDecisions) {
  Runtime other({false, false, {}});
  FunctionKernel kernel;
  kernel.op = OpId::relu;
  kernel.name = "only_here";
  kernel.run = [](const Problem&, const RunArguments&) { return Status(); };
  other.registry().register_kernel(make_kernel(std::move(kernel)));
  const Relu relu;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
    EXPECT_EQ(other.dispatcher().decide(relu.call()).kernel, "only_here");
  }
}

TEST_F(Dispatching, ARuntimeMayGoWhileItsThreadsLiveOn) {
  std::thread([&] {
    const Relu relu;
    {
      Runtime gone({false, false, {}});
      gone.dispatcher().dispatch(relu.call());
    }
    Runtime next({false, false, {}});
    EXPECT_EQ(next.dispatcher().decide(relu.call()).kernel, "simd");
  }).join();
}

TEST_F(Dispatching, WrongCallsAreErrorsThatSayWhatIsWrong) {
  const Relu relu;
  const Relu longer(9);
  const Tensor empty;
  const auto dispatch = [&](std::vector<const Tensor*> inputs, std::vector<const Tensor*> outputs,
                            OpId op = OpId::relu) {
    return error_text(ErrorCode::invalid_argument, [&] { dispatcher().dispatch({op, inputs, outputs}); });
  };
  EXPECT_HAS(dispatch({}, {&relu.out}), "no input");
  EXPECT_HAS(dispatch({nullptr}, {&relu.out}), "input 0 is a null pointer");
  EXPECT_HAS(dispatch({&relu.in}, {nullptr}), "output 0 is a null pointer");
  EXPECT_HAS(dispatch({&empty}, {&relu.out}), "empty Tensor object");
  EXPECT_HAS(dispatch({&relu.in}, {&longer.out}), "[9]");
  dispatch({&relu.in}, {});
  dispatch({&relu.in, &relu.in}, {&relu.out});

  const Tensor broadcast(relu.out.data(), make_spec(DataType::float32, {8}, {0}));
  EXPECT_HAS(dispatch({&relu.in}, {&broadcast}), "stride of 0");
  Tensor square = Tensor::empty(DataType::float32, {4, 4});
  const Tensor overlapping(square.data(), make_spec(DataType::float32, {4, 4}, {1, 1}));
  EXPECT_HAS(dispatch({&square}, {&overlapping}), "overlap");
  const Tensor elsewhere(relu.out.data(), make_spec(DataType::float32, {8}), {DeviceType::nvidia, 0});
  EXPECT_HAS(dispatch({&relu.in}, {&elsewhere}), "tensors are on cpu:0 and cuda:0");

  const Attributes wrong(OpId::softmax);
  EXPECT_HAS(error_text(ErrorCode::invalid_argument,
                        [&] {
                          dispatcher().dispatch({OpId::relu, relu.inputs, relu.outputs, &wrong});
                        }),
             "attributes are those of softmax");
}

TEST_F(Dispatching, ADeviceThatIsNotHereIsAnErrorThatSaysWhy) {
  float memory[8] = {};
  const Tensor in(memory, make_spec(DataType::float32, {8}), {DeviceType::nvidia, 0});
  const std::array<const Tensor*, 1> tensors = {&in};
  EXPECT_HAS(error_text(ErrorCode::not_supported,
                        [&] {
                          dispatcher().dispatch({OpId::relu, tensors, tensors});
                        }),
             "turned off");
}

TEST_F(Dispatching, NothingThatCanRunItIsAnErrorWithEveryReason) {
  const OpId op = register_op({.name = "shrug", .infer = op_info(OpId::relu).infer});
  FunctionKernel kernel;
  kernel.op = op;
  kernel.name = "picky";
  kernel.supports = [](const Problem&, const DeviceProfile&) { return Verdict::no("it is Sunday"); };
  kernel.run = [](const Problem&, const RunArguments&) { return Status(); };
  runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  const Relu relu;
  const std::string text = error_text(ErrorCode::not_supported, [&] {
    dispatcher().dispatch({op, relu.inputs, relu.outputs});
  });
  EXPECT_HAS(text, "picky: it is Sunday");
  const Decision decision = dispatcher().explain(make_problem(op, {relu.in.spec()}, Attributes(op)));
  EXPECT_TRUE(decision.kernel.empty());
  EXPECT_HAS(decision.because, "it is Sunday");
}

TEST_F(Dispatching, AProblemFilledInByHandIsCheckedBeforeAnyKernelSeesIt) {
  error_text(ErrorCode::invalid_argument, [&] { dispatcher().explain(Problem{}); });
  error_text(ErrorCode::invalid_argument, [&] { selector().select(Problem{}, {}); });
}

TEST_F(Dispatching, ThePrecisionHookIsInTheRecord) {
  dispatcher().set_precision_hook([](const Problem&) { return std::optional(DataType::float32); });
  const Relu relu;
  EXPECT_EQ(dispatcher().decide(relu.call()).precision.because, "the precision hook asks for f32");
  dispatcher().set_precision_hook({});
  EXPECT_EQ(dispatcher().decide(relu.call()).precision.because, "the inputs are f32");
}

}  // namespace
}  // namespace xpuruntime
