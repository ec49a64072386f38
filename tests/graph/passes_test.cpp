#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"

// What the calls of a model are before and after the passes, and that its results stay.

namespace xpuruntime {
namespace {

using Names = std::vector<std::string>;

Tensor random_numbers(const Dims& shape, unsigned seed, float least = -1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(least, 1);
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) tensor.as<float>()[i] = numbers(random);
  return tensor;
}

/// A model with inputs of fixed shapes, written node by node; each node has the name of its first result.
class Graph {
 public:
  Graph() { model_.opsets[""] = 17; }

  std::string input(const std::string& name, const Dims& shape) {
    std::vector<ModelExtent> extents;
    for (const std::int64_t extent : shape) extents.push_back({.size = extent});
    model_.graph.inputs.push_back({.name = name, .type = "float", .dtype = DataType::float32, .shape = extents});
    tensors_.push_back(random_numbers(shape, static_cast<unsigned>(tensors_.size()) + 90));
    return name;
  }
  std::string constant(const std::string& name, const Tensor& tensor) {
    model_.graph.constants.emplace(name, tensor);
    return name;
  }
  std::string random(const std::string& name, const Dims& shape, float least = -1) {
    return constant(name, random_numbers(shape, static_cast<unsigned>(model_.graph.constants.size()), least));
  }
  std::string number(double value) {
    const Tensor tensor = Tensor::empty(DataType::float32, {});
    *tensor.as<float>() = static_cast<float>(value);
    return constant("number" + std::to_string(value), tensor);
  }
  std::string call(const std::string& name, const std::string& op, Names inputs,
                   std::map<std::string, ModelAttribute, std::less<>> attributes = {}) {
    model_.graph.nodes.push_back(
        {.name = name, .op = op, .inputs = std::move(inputs), .outputs = {name}, .attributes = std::move(attributes)});
    return name;
  }
  Graph& outputs(const Names& names) {
    for (const std::string& name : names) model_.graph.outputs.push_back({.name = name, .type = "float"});
    return *this;
  }

  Session session(int level, const KernelPolicy& policy = {}) const {
    ExecutionPolicy execution;
    execution.target = DeviceType::cpu;
    execution.optimize_level = level;
    Runtime& runtime = Runtime::global();
    return {model_, runtime.dispatcher(), runtime.devices(), {.policy = policy, .execution = execution}};
  }
  std::vector<SessionStep> explain(const Session& session) const {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : tensors_) specs.push_back(tensor.spec());
    return session.explain(specs);
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  Model model_ = {};
  std::vector<Tensor> tensors_ = {};
};

Names ops_of(const std::vector<SessionStep>& steps) {
  Names ops;
  for (const SessionStep& step : steps) {
    if (step.decision) ops.emplace_back(to_string(step.decision->problem.op));
  }
  return ops;
}

/// The calls at level 1 and at level 2, whose results must agree; and every node is named at both.
std::vector<SessionStep> expect_passes(const Graph& graph, const Names& before, const Names& after,
                                       double tolerance = 2e-6) {
  const Session plain = graph.session(1), fused = graph.session(2);
  const std::vector<SessionStep> first = graph.explain(plain), second = graph.explain(fused);
  EXPECT_EQ(ops_of(first), before);
  EXPECT_EQ(ops_of(second), after);
  EXPECT_EQ(first.size(), second.size());
  const std::vector<Tensor> expected = plain.run(graph.tensors()), found = fused.run(graph.tensors());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].shape(), expected[i].shape());
    for (std::int64_t n = 0; n < element_count(expected[i].spec()); ++n) {
      EXPECT_NEAR(found[i].as<const float>()[n], expected[i].as<const float>()[n], tolerance) << i << " at " << n;
    }
  }
  return second;
}

const std::map<std::string, ModelAttribute, std::less<>> last_axis = {{"axes", std::vector<std::int64_t>{-1}}};

std::map<std::string, ModelAttribute, std::less<>> turned(std::vector<std::int64_t> dims) { return {{"perm", dims}}; }

Graph conv_with_norm() {
  Graph graph;
  const std::string x = graph.input("x", {2, 3, 6, 5});
  graph.call("conv", "Conv", {x, graph.random("w", {4, 3, 3, 3})});
  graph.call("norm", "BatchNormalization",
             {"conv", graph.random("scale", {4}), graph.random("shift", {4}), graph.random("mean", {4}),
              graph.random("variance", {4}, 0.5f)});
  return graph;
}

TEST(Passes, KnownStatisticsBecomePartOfAConvolution) {
  Graph graph = conv_with_norm();
  graph.outputs({"norm"});
  const auto steps = expect_passes(graph, {"conv2d", "batch_norm2d"}, {"conv2d"});
  EXPECT_EQ(steps[0].decision->problem.inputs.size(), 3u);  // with a bias
  EXPECT_EQ(steps[0].fused, Names{"norm"});
  EXPECT_EQ(steps[0].output_name, "norm");
  EXPECT_EQ(steps[1].kind, StepKind::fused);
  EXPECT_EQ(steps[1].fused_into, "conv");
}

TEST(Passes, ScalesAndShiftsByChannelBecomePartOfAConvolution) {
  Graph graph;
  const std::string x = graph.input("x", {1, 3, 4, 4});
  graph.call("conv", "Conv", {x, graph.random("w", {2, 3, 1, 1}), graph.random("b", {2})});
  graph.call("scaled", "Mul", {"conv", graph.random("scale", {1, 2, 1, 1})});
  graph.call("moved", "Add", {graph.random("shift", {2, 1, 1}), "scaled"});
  graph.call("less", "Sub", {"moved", graph.number(0.25)});
  graph.outputs({"less"});
  const auto steps = expect_passes(graph, {"conv2d", "mul", "add", "sub"}, {"conv2d"});
  EXPECT_EQ(steps[0].fused, (Names{"scaled", "moved", "less"}));
}

TEST(Passes, ScalesOfOtherDimsStay) {
  Graph graph;
  const std::string x = graph.input("x", {1, 3, 4, 4});
  graph.call("conv", "Conv", {x, graph.random("w", {4, 3, 1, 1})});
  graph.call("scaled", "Mul", {"conv", graph.random("by column", {4})});
  graph.outputs({"scaled"});
  expect_passes(graph, {"conv2d", "mul"}, {"conv2d", "mul"});
}

TEST(Passes, AResultThatIsAnOutputOrReadTwiceStays) {
  Graph output = conv_with_norm();
  output.outputs({"norm", "conv"});
  expect_passes(output, {"conv2d", "batch_norm2d"}, {"conv2d", "batch_norm2d"});
  Graph twice = conv_with_norm();
  twice.call("both", "Add", {"norm", "conv"});
  twice.outputs({"both"});
  expect_passes(twice, {"conv2d", "batch_norm2d", "add"}, {"conv2d", "batch_norm2d", "add"});
  Graph viewed = conv_with_norm();  // read through a view
  viewed.call("flat", "Flatten", {"conv"});
  viewed.call("root", "Tanh", {"flat"});
  viewed.outputs({"norm", "root"});
  expect_passes(viewed, {"conv2d", "batch_norm2d", "tanh"}, {"conv2d", "batch_norm2d", "tanh"});
}

TEST(Passes, AnOpThatThePolicyNamesForAllItsCallsKeepsThem) {
  Graph graph = conv_with_norm();
  graph.outputs({"norm"});
  const auto ops = [&](const std::string& policy) {
    return ops_of(graph.explain(graph.session(2, KernelPolicy::from_json(policy))));
  };
  const Names apart = {"conv2d", "batch_norm2d"}, one = {"conv2d"};
  EXPECT_EQ(ops(R"({"preferences": {"batch_norm2d": {"kernel": "reference", "mode": "force"}}})"), apart);
  EXPECT_EQ(ops(R"({"rules": [{"op": "batch_norm2d", "use": "reference"}]})"), apart);
  EXPECT_EQ(ops(R"({"rules": [{"op": "batch_norm2d", "when": {"dtype": "f32"}, "use": "reference"}]})"), one);
  const auto steps = graph.explain(graph.session(2, KernelPolicy().force("conv2d", "reference")));
  EXPECT_EQ(ops_of(steps), one);
  EXPECT_EQ(steps[0].decision->kernel, "reference");
}

TEST(Passes, AProductABiasAndAnActivationAreALinearLayer) {
  for (const auto& [op, after] : {std::pair("Relu", Names{"linear"}), std::pair("Tanh", Names{"linear", "tanh"}),
                                  std::pair("Gelu", Names{"linear"})}) {
    Graph graph;
    const std::string x = graph.input("x", {2, 5, 8});
    graph.call("product", "MatMul", {x, graph.random("w", {8, 6})});
    graph.call("sum", "Add", {graph.random("b", {6}), "product"});
    graph.call("active", op, {"sum"});
    graph.outputs({"active"});
    const std::string name = op == std::string("Relu") ? "relu" : op == std::string("Tanh") ? "tanh" : "gelu";
    const auto steps = expect_passes(graph, {"matmul", "add", name}, after);
    EXPECT_EQ(steps[0].decision->problem.attributes.choice("activation"), after.size() == 2 ? "none" : name);
    EXPECT_EQ(steps[0].node, "product");
  }
}

TEST(Passes, ASumThatIsNoBiasStays) {
  Graph graph;
  const std::string x = graph.input("x", {6, 8});
  graph.call("product", "MatMul", {x, graph.random("w", {8, 6})});
  graph.call("sum", "Add", {"product", graph.random("by row", {6, 1})});
  graph.outputs({"sum"});
  expect_passes(graph, {"matmul", "add"}, {"matmul", "add"});
}

TEST(Passes, SiluIsFoundInItsFormula) {
  Graph graph;
  const std::string x = graph.input("x", {3, 7}), y = graph.input("y", {3, 7});
  graph.call("gate", "Sigmoid", {x});
  graph.call("silu", "Mul", {"gate", x});
  graph.call("other", "Sigmoid", {y});
  graph.call("no silu", "Mul", {"other", x});
  graph.outputs({"silu", "no silu"});
  expect_passes(graph, {"sigmoid", "mul", "sigmoid", "mul"}, {"silu", "sigmoid", "mul"});
}

TEST(Passes, SiluTimesAFactorIsOneCall) {
  Graph graph;
  const std::string x = graph.input("x", {3, 7}), y = graph.input("y", {3, 7});
  graph.call("gate", "Sigmoid", {x});
  graph.call("silu", "Mul", {x, "gate"});
  graph.call("gated", "Mul", {"silu", y});
  graph.outputs({"gated"});
  expect_passes(graph, {"sigmoid", "mul", "mul"}, {"silu_mul"});
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + cubic x^3)))
Graph gelu_by_tanh(double cubic) {
  Graph graph;
  const std::string x = graph.input("x", {4, 9});
  graph.call("square", "Mul", {x, x});
  graph.call("cube", "Mul", {"square", x});
  graph.call("cubic", "Mul", {"cube", graph.number(cubic)});
  graph.call("sum", "Add", {x, "cubic"});
  graph.call("inner", "Mul", {"sum", graph.number(std::sqrt(2 / std::numbers::pi))});
  graph.call("tanh", "Tanh", {"inner"});
  graph.call("above", "Add", {"tanh", graph.number(1)});
  graph.call("half", "Mul", {x, graph.number(0.5)});
  graph.call("gelu", "Mul", {"half", "above"});
  return graph.outputs({"gelu"});
}

/// relu6(x + 3)
std::string relu6_of(Graph& graph, const std::string& x) {
  graph.call("sum", "Add", {x, graph.number(3)});
  return graph.call("clipped", "Clip", {"sum", graph.number(0), graph.number(6)});
}

TEST(Passes, HardSwishIsFoundInItsFormula) {
  Graph graph;
  const std::string x = graph.input("x", {3, 40});
  graph.call("product", "Mul", {x, relu6_of(graph, x)});
  graph.call("y", "Div", {"product", graph.number(6)});
  expect_passes(graph.outputs({"y"}), {"add", "clip", "mul", "div"}, {"hard_swish"});
}

TEST(Passes, HardSwishIsFoundWhereTheGateIsDividedFirst) {
  Graph graph;
  const std::string x = graph.input("x", {3, 40});
  graph.call("gate", "Mul", {relu6_of(graph, x), graph.number(1.0 / 6)});
  graph.call("y", "Mul", {"gate", x});
  expect_passes(graph.outputs({"y"}), {"add", "clip", "mul", "mul"}, {"hard_swish"});
}

TEST(Passes, AGateOfAnotherInputIsAHardSigmoid) {
  Graph graph;
  const std::string x = graph.input("x", {3, 40}), other = graph.input("other", {3, 40});
  graph.call("gate", "Div", {relu6_of(graph, x), graph.number(6)});
  graph.call("y", "Mul", {"gate", other});
  expect_passes(graph.outputs({"y"}), {"add", "clip", "div", "mul"}, {"hard_sigmoid", "mul"});
}

TEST(Passes, OtherBoundsAreNoHardSwish) {
  Graph graph;
  const std::string x = graph.input("x", {3, 40});
  graph.call("sum", "Add", {x, graph.number(3)});
  graph.call("clipped", "Clip", {"sum", graph.number(0), graph.number(5)});
  graph.call("product", "Mul", {x, "clipped"});
  graph.call("y", "Div", {"product", graph.number(6)});
  expect_passes(graph.outputs({"y"}), {"add", "clip", "mul", "div"}, {"add", "clip", "mul", "div"});
}

/// Whether something in a step's problem has its channels last and is not in line.
bool is_turned(const SessionStep& step) {
  const Problem& problem = step.decision->problem;
  const auto turned = [](const TensorSpec& spec) { return has_channels_last(spec) && !spec.contiguous; };
  return std::any_of(problem.inputs.begin(), problem.inputs.end(), turned) ||
         std::any_of(problem.outputs.begin(), problem.outputs.end(), turned);
}

void expect_same_results(const Graph& graph, int level, int other, double tolerance) {
  const std::vector<Tensor> expected = graph.session(level).run(graph.tensors());
  const std::vector<Tensor> found = graph.session(other).run(graph.tensors());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(found[i].spec(), expected[i].spec());
    for (std::int64_t n = 0; n < element_count(expected[i].spec()); ++n) {
      EXPECT_NEAR(found[i].as<const float>()[n], expected[i].as<const float>()[n], tolerance) << i << " at " << n;
    }
  }
}

bool has_onednn() {
  for (const auto& kernel : Runtime::global().registry().kernels(OpId::conv2d, DeviceType::cpu)) {
    if (kernel->name() == "onednn") {
      const Problem problem =
          parse_problem("conv2d(f32[1,8,6,6]{288,1,48,8}, f32[8,8,3,3]) -> f32[1,8,4,4]{128,1,32,8}");
      return kernel->supports(problem, Runtime::global().devices().profile(Device{})).supported;
    }
  }
  return false;
}

const std::map<std::string, ModelAttribute, std::less<>> same_size = {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}};

TEST(Passes, ImagesBetweenConvolutionsHaveTheirChannelsLast) {
  if (!has_onednn()) GTEST_SKIP() << "no kernel takes channels last without a copy here";
  Graph graph;
  const std::string x = graph.input("x", {2, 3, 9, 7});
  graph.call("conv1", "Conv", {x, graph.random("w1", {8, 3, 3, 3}), graph.random("b1", {8})}, same_size);
  graph.call("relu", "Relu", {"conv1"});
  graph.call("conv2", "Conv", {"relu", graph.random("w2", {8, 1, 3, 3})},
             {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}, {"group", std::int64_t{8}}});
  graph.call("sum", "Add", {"conv2", "relu"});
  graph.call("norm", "Softmax", {"sum"}, {{"axis", std::int64_t{3}}});
  graph.call("flat", "Flatten", {"norm"});
  graph.call("conv3", "Conv", {"sum", graph.random("w3", {4, 8, 1, 1})});
  graph.call("y", "MatMul", {"flat", graph.random("v", {8 * 9 * 7, 2})});
  graph.outputs({"conv3", "norm", "y"});
  const std::vector<SessionStep> steps = graph.explain(graph.session(3));
  std::size_t turned = 0;
  for (const SessionStep& step : steps) {
    if (step.decision && step.decision->problem.op == OpId::conv2d) turned += is_turned(step) ? 1 : 0;
  }
  EXPECT_EQ(turned, 3u);
  for (const SessionStep& step : graph.explain(graph.session(2))) {
    if (!step.decision) continue;
    EXPECT_FALSE(is_turned(step));
  }
  expect_same_results(graph, 1, 3, 1e-5);
}

TEST(Passes, OneConvolutionAloneKeepsItsLayout) {
  Graph graph;
  const std::string x = graph.input("x", {1, 8, 9, 7});
  graph.call("y", "Conv", {x, graph.random("w", {8, 8, 3, 3})}, same_size);
  const std::vector<SessionStep> steps = graph.outputs({"y"}).explain(graph.session(3));
  EXPECT_EQ(ops_of(steps), Names{"conv2d"});
  EXPECT_FALSE(is_turned(steps[0]));
}

TEST(Passes, PartsThatStandInLineAreViews) {
  Graph graph;
  const std::string x = graph.input("x", {1, 64});
  graph.call("relu", "Relu", {x});
  const auto integer = [&](const std::string& name, std::int64_t value) {
    Tensor one = Tensor::empty(DataType::int64, {1});
    *one.as<std::int64_t>() = value;
    return graph.constant(name, one);
  };
  graph.call("part", "Slice", {"relu", integer("start", 32), integer("end", 64), integer("axis", 1)});
  graph.call("turned", "Transpose", {"part"}, turned({1, 0}));
  graph.call("y", "Sigmoid", {"turned"});
  const std::vector<SessionStep> steps = graph.outputs({"y"}).explain(graph.session(1));
  EXPECT_EQ(ops_of(steps), (Names{"relu", "sigmoid"}));
  const Tensor result = graph.session(1).run(graph.tensors())[0];
  EXPECT_EQ(result.shape(), (Dims{32, 1}));
  for (int i = 0; i < 32; ++i) {
    const float from = std::max(graph.tensors()[0].as<const float>()[32 + i], 0.0f);
    EXPECT_NEAR(result.as<const float>()[i], 1 / (1 + std::exp(-from)), 1e-6f);
  }
}

TEST(Passes, GeluIsFoundInItsFormulaWithTanh) {
  const Names before = {"mul", "mul", "mul", "add", "mul", "tanh", "add", "mul", "mul"};
  const auto steps = expect_passes(gelu_by_tanh(0.044715), before, {"gelu"});
  EXPECT_EQ(steps.back().decision->problem.attributes.choice("approximate"), "tanh");
  EXPECT_EQ(steps.back().fused.size(), 8u);
  expect_passes(gelu_by_tanh(0.0447), before, before);
}

TEST(Passes, GeluIsFoundInItsFormulaWithErf) {
  for (const bool divides : {true, false}) {
    Graph graph;
    const std::string x = graph.input("x", {4, 9});
    const double root = std::numbers::sqrt2;
    graph.call("scaled", divides ? "Div" : "Mul", {x, graph.number(divides ? root : 1 / root)});
    graph.call("erf", "Erf", {"scaled"});
    graph.call("above", "Add", {graph.number(1), "erf"});
    graph.call("product", "Mul", {"above", x});
    graph.call("gelu", "Mul", {graph.number(0.5), "product"});
    graph.outputs({"gelu"});
    const auto steps = expect_passes(graph, {divides ? "div" : "mul", "erf", "add", "mul", "mul"}, {"gelu"});
    EXPECT_EQ(steps.back().decision->problem.attributes.choice("approximate"), "none");
  }
}

/// (x - mean) / sqrt(variance + eps), scaled and moved.
Graph layer_norm(bool keeps) {
  Graph graph;
  const std::string x = graph.input("x", {2, 3, 8});
  auto mean = last_axis;
  mean["keepdims"] = std::int64_t{1};
  graph.call("mean", "ReduceMean", {x}, mean);
  graph.call("off", "Sub", {x, "mean"});
  graph.call("square", "Pow", {"off", graph.number(2)});
  graph.call("variance", "ReduceMean", {"square"}, mean);
  graph.call("above", "Add", {"variance", graph.number(1e-3)});
  graph.call("root", "Sqrt", {"above"});
  graph.call("normed", "Div", {"off", "root"});
  graph.call("scaled", "Mul", {"normed", graph.random("w", {8})});
  graph.call("moved", "Add", {"scaled", graph.random("b", {8})});
  return graph.outputs(keeps ? Names{"moved", "variance"} : Names{"moved"});
}

TEST(Passes, LayerNormIsFoundInItsFormula) {
  const Names before = {"reduce_mean", "sub", "mul", "reduce_mean", "add", "sqrt", "div", "mul", "add"};
  const auto steps = expect_passes(layer_norm(false), before, {"layer_norm"}, 1e-5);
  for (const SessionStep& step : steps) {
    if (!step.decision) continue;
    EXPECT_EQ(step.decision->problem.inputs.size(), 3u);
    EXPECT_NEAR(step.decision->problem.attributes.real("eps"), 1e-3, 1e-9);
  }
  expect_passes(layer_norm(true), before, before);
}

TEST(Passes, RmsNormIsFoundInItsFormulaAndTakesTheResidual) {
  Graph graph;
  const std::string x = graph.input("x", {2, 3, 8}), r = graph.input("r", {2, 3, 8});
  auto mean = last_axis;
  mean["keepdims"] = std::int64_t{1};
  graph.call("sum", "Add", {x, r});
  graph.call("square", "Mul", {"sum", "sum"});
  graph.call("mean", "ReduceMean", {"square"}, mean);
  graph.call("above", "Add", {"mean", graph.number(1e-3)});
  graph.call("root", "Sqrt", {"above"});
  graph.call("inverse", "Div", {graph.number(1), "root"});
  graph.call("normed", "Mul", {"sum", "inverse"});
  graph.call("scaled", "Mul", {graph.random("w", {8}), "normed"});
  graph.call("next", "Add", {"sum", "scaled"});
  graph.outputs({"next"});
  expect_passes(graph, {"add", "mul", "reduce_mean", "add", "sqrt", "div", "mul", "mul", "add"},
                {"add_rms_norm", "add"}, 1e-5);
}

/// As exporters write it: [batch, length, heads * size] by heads, and back.
Graph attention(bool masked, bool shows_scores) {
  Graph graph;
  const std::int64_t size = 4;
  const Dims shape = {2, 5, 3, size};
  for (const std::string name : {"q", "k", "v"}) {
    graph.input(name, shape);
    graph.call(name + " by head", "Transpose", {name},
               turned(name == "k" ? std::vector<std::int64_t>{0, 2, 3, 1} : std::vector<std::int64_t>{0, 2, 1, 3}));
  }
  graph.call("scores", "MatMul", {"q by head", "k by head"});
  std::string scores = graph.call("scaled", "Div", {"scores", graph.number(2)});
  if (masked) scores = graph.call("masked", "Add", {scores, graph.random("mask", {2, 1, 1, 5})});
  graph.call("softmax", "Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  graph.call("mixed", "MatMul", {"softmax", "v by head"});
  graph.call("y", "Transpose", {"mixed"}, turned({0, 2, 1, 3}));
  return graph.outputs(shows_scores ? Names{"y", "softmax"} : Names{"y"});
}

TEST(Passes, AttentionIsFoundInItsFormulaAndNothingIsTransposed) {
  const Names before = {"transpose", "transpose", "transpose", "matmul", "div", "softmax", "matmul", "transpose"};
  const auto steps = expect_passes(attention(false, false), before, {"attention"}, 1e-5);
  for (const SessionStep& step : steps) {
    EXPECT_EQ(step.fused.size(), step.decision ? 7u : 0u);
    EXPECT_EQ(step.fused_into, step.decision ? "" : "scores");
  }
  expect_passes(attention(false, true), before, before);
}

TEST(Passes, AMaskIsPartOfAttention) {
  const auto steps =
      expect_passes(attention(true, false),
                    {"transpose", "transpose", "transpose", "matmul", "div", "add", "softmax", "matmul", "transpose"},
                    {"attention"}, 1e-5);
  for (const SessionStep& step : steps) {
    if (!step.decision) continue;
    EXPECT_EQ(step.decision->problem.inputs.size(), 4u);
  }
}

/// Two layers that read one mask: a constant, or an input that a run may fill with anything.
Graph masked_layers(bool is_constant, const Tensor& mask) {
  Graph graph;
  const std::string name = is_constant ? graph.constant("mask", mask) : graph.input("mask", mask.shape());
  if (!is_constant) std::copy_n(mask.as<float>(), element_count(mask.spec()), graph.tensors().back().as<float>());
  std::string x = graph.input("x", {2, 3, 5, 4});
  for (const std::string layer : {"1", "2"}) {
    graph.call("turned" + layer, "Transpose", {x}, turned({0, 1, 3, 2}));
    graph.call("scores" + layer, "MatMul", {x, "turned" + layer});
    graph.call("masked" + layer, "Add", {"scores" + layer, name});
    graph.call("softmax" + layer, "Softmax", {"masked" + layer}, {{"axis", std::int64_t{-1}}});
    x = graph.call("mixed" + layer, "MatMul", {"softmax" + layer, x});
  }
  return graph.outputs({x});
}

TEST(Passes, ARowThatIsMaskedWhollyStaysNaN) {
  const float none = -std::numeric_limits<float>::infinity();
  for (const bool is_constant : {true, false}) {
    for (const Dims& shape : {Dims{2, 1, 5, 5}, Dims{5, 5}, Dims{2, 1, 1, 5}}) {
      Tensor mask = random_numbers(shape, 5);
      std::fill_n(mask.as<float>(), 5, none);
      mask.as<float>()[element_count(mask.spec()) - 1] = none;
      const Graph graph = masked_layers(is_constant, mask);
      const Session plain = graph.session(1), fused = graph.session(2);
      const Names expected =
          is_constant ? Names{"attention", "attention"} : Names{"reduce_max", "sub", "add", "attention", "attention"};
      EXPECT_EQ(ops_of(graph.explain(fused)), expected);
      const Tensor want = plain.run(graph.tensors())[0], found = fused.run(graph.tensors())[0];
      std::int64_t without_number = 0;
      for (std::int64_t i = 0; i < element_count(want.spec()); ++i) {
        const float a = want.as<const float>()[i], b = found.as<const float>()[i];
        EXPECT_EQ(std::isnan(a), std::isnan(b)) << i;
        without_number += std::isnan(a) ? 1 : 0;
        EXPECT_TRUE(std::isnan(a) || std::fabs(a - b) < 1e-5F) << i;
      }
      EXPECT_GT(without_number, 0);
      EXPECT_EQ(fused.profile(graph.tensors(), 1).calls.size(), expected.size());
    }
  }
}

TEST(Passes, AResultThatWouldVanishIsNoOperandOfWhatTakesItIn) {
  {
    Graph graph;  // silu, squared
    const std::string x = graph.input("x", {3, 4});
    graph.call("gate", "Sigmoid", {x});
    graph.call("silu", "Mul", {x, "gate"});
    graph.call("square", "Mul", {"silu", "silu"});
    graph.outputs({"square"});
    expect_passes(graph, {"sigmoid", "mul", "mul"}, {"silu", "mul"});
  }
  for (const std::string op : {"MatMul", "Gemm"}) {  // a product of one row as its own bias
    Graph graph;
    const std::string x = graph.input("x", {1, 8});
    graph.call("product", op, {x, graph.random("w", {8, 6})});
    graph.call("twice", "Add", {"product", "product"});
    graph.call("y", "Tanh", {"twice"});
    graph.outputs({"y"});
    expect_passes(graph, {"matmul", "add", "tanh"}, {"matmul", "add", "tanh"});
  }
  {
    Graph graph;  // under another shape
    const std::string x = graph.input("x", {1, 8});
    graph.call("product", "MatMul", {x, graph.random("w", {8, 6})});
    const Tensor six = Tensor::empty(DataType::int64, {1});
    *six.as<std::int64_t>() = 6;
    graph.call("row", "Reshape", {"product", graph.constant("six", six)});
    graph.call("twice", "Add", {"product", "row"});
    graph.outputs({"twice"});
    expect_passes(graph, {"matmul", "add"}, {"matmul", "add"});
  }
  {
    Graph graph;  // a norm as its own weight
    const std::string x = graph.input("x", {8});
    auto mean = last_axis;
    mean["keepdims"] = std::int64_t{1};
    graph.call("square", "Mul", {x, x});
    graph.call("mean", "ReduceMean", {"square"}, mean);
    graph.call("above", "Add", {"mean", graph.number(1e-3)});
    graph.call("root", "Sqrt", {"above"});
    graph.call("normed", "Div", {x, "root"});
    graph.call("squared", "Mul", {"normed", "normed"});
    graph.outputs({"squared"});
    expect_passes(graph, {"mul", "reduce_mean", "add", "sqrt", "div", "mul"}, {"rms_norm", "mul"}, 1e-5);
  }
  {
    Graph graph;  // scores as their own mask
    for (const std::string name : {"q", "k", "v"}) graph.input(name, {1, 2, 4, 4});
    graph.call("scores", "MatMul", {"q", "k"});
    graph.call("twice", "Add", {"scores", "scores"});
    graph.call("softmax", "Softmax", {"twice"}, {{"axis", std::int64_t{-1}}});
    graph.call("y", "MatMul", {"softmax", "v"});
    graph.outputs({"y"});
    const Names calls = {"matmul", "add", "softmax", "matmul"};
    expect_passes(graph, calls, calls, 1e-5);
  }
}

TEST(Passes, AModelWithoutPatternsStaysAsItIs) {
  Graph graph;
  const std::string x = graph.input("x", {3, 4});
  graph.call("a", "Tanh", {x});
  graph.call("b", "Mul", {"a", x});
  graph.call("c", "Add", {"b", "a"});
  graph.outputs({"c"});
  expect_passes(graph, {"tanh", "mul", "add"}, {"tanh", "mul", "add"});
}

}  // namespace
}  // namespace xpuruntime
