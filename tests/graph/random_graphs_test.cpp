#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "graph/partial_device.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"

// Random graphs of what the passes look for, in which every operand may be another value instead: each level gives the
// numbers of level 0, which has no passes; so does a device that lacks kernels for some of the ops.
//   XRT_TEST_SEEDS=5000 graph_tests --gtest_filter='RandomGraphs*'

namespace xpuruntime {
namespace {

using Attributes = std::map<std::string, ModelAttribute, std::less<>>;

unsigned graphs() {
  if (const char* const seeds = std::getenv("XRT_TEST_SEEDS")) return static_cast<unsigned>(std::atoi(seeds));
  return 150;
}

/// All values have one shape, so that any of them can stand for any other.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    const Dims shapes[] = {{2, 3, 8}, {1, 8}, {8}, {8, 8}, {1, 4, 4, 4}, {2, 4, 4, 4}};
    shape_ = shapes[below(std::size(shapes))];
    model_.opsets[""] = 17;
    for (const std::string name : {"x", "z"}) {
      std::vector<ModelExtent> extents;
      for (const std::int64_t extent : shape_) extents.push_back({.size = extent});
      model_.graph.inputs.push_back({.name = name, .type = "float", .dtype = DataType::float32, .shape = extents});
      tensors_.push_back(numbers(shape_));
      values_.push_back(name);
    }
    const std::size_t parts = 2 + below(7);
    for (std::size_t i = 0; i < parts; ++i) add_part();
    for (std::size_t i = 2; i < values_.size(); ++i) {
      if (i + 1 == values_.size() || below(12) == 0) {
        model_.graph.outputs.push_back({.name = values_[i], .type = "float"});
      }
    }
  }

  Session session(int level) const { return session(level, Runtime::global(), DeviceType::cpu); }
  Session session(int level, Runtime& runtime, DeviceType target) const {
    ExecutionPolicy execution;
    execution.target = target;
    execution.allow_fallback = DeviceType::cpu;
    execution.optimize_level = level;
    return {model_, runtime.dispatcher(), runtime.devices(), {.execution = execution}};
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<ModelValue>& outputs() const { return model_.graph.outputs; }
  std::string text() const {
    std::string text = "x" + to_string(shape_) + "\n";
    for (const ModelNode& node : model_.graph.nodes) {
      text += node.outputs[0] + " = " + node.op + "(";
      for (const std::string& input : node.inputs) text += input + " ";
      text += ")\n";
    }
    return text;
  }

 private:
  std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

  Tensor numbers(const Dims& shape, float least = -1) {
    std::uniform_real_distribution<float> numbers(least, 1);
    Tensor tensor = Tensor::empty(DataType::float32, shape);
    for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) tensor.as<float>()[i] = numbers(random_);
    return tensor;
  }
  std::string constant(const Tensor& tensor) {
    const std::string name = "c" + std::to_string(model_.graph.constants.size());
    model_.graph.constants.emplace(name, tensor);
    return name;
  }
  std::string number(double value) {
    const Tensor tensor = Tensor::empty(DataType::float32, {});
    *tensor.as<float>() = static_cast<float>(value);
    return constant(tensor);
  }
  std::string shape_constant() {
    const Tensor tensor = Tensor::empty(DataType::int64, {static_cast<std::int64_t>(shape_.size())});
    std::copy(shape_.begin(), shape_.end(), tensor.as<std::int64_t>());
    return constant(tensor);
  }

  /// One of the values, more often one of the last.
  std::string pick() {
    const std::size_t count = below(3) == 0 ? values_.size() : std::min<std::size_t>(values_.size(), 3);
    return values_[values_.size() - 1 - below(count)];
  }
  /// An operand, which now and then is another.
  std::string op_or_other(const std::string& operand) { return below(15) == 0 ? pick() : operand; }

  /// A value that only the part knows has another shape.
  std::string call(const std::string& op, std::vector<std::string> inputs, Attributes attributes = {},
                   bool is_value = true) {
    const std::string name = "v" + std::to_string(model_.graph.nodes.size());
    model_.graph.nodes.push_back(
        {.name = name, .op = op, .inputs = std::move(inputs), .outputs = {name}, .attributes = std::move(attributes)});
    if (is_value) values_.push_back(name);
    return name;
  }
  /// Of two operands, in any order and each now and then another.
  std::string either(const std::string& op, const std::string& a, const std::string& b) {
    std::vector<std::string> inputs = {op_or_other(a), op_or_other(b)};
    if (below(2) == 0) std::swap(inputs[0], inputs[1]);
    return call(op, inputs);
  }
  /// With a number, which stays where it is.
  std::string with(const std::string& op, const std::string& a, double value) {
    return call(op, {op_or_other(a), number(value)});
  }

  void add_part() {
    constexpr std::size_t parts = 16;
    switch (below(parts)) {
      case 0:
        return add_product();
      case 1:
        return add_product();
      case 2:
        return add_gelu();
      case 3:
        return add_silu();
      case 4:
        return add_hard_swish();
      case 5:
        return add_norm(false);
      case 6:
        return add_norm(true);
      case 7:
      case 8:
        return shape_.size() == 4 ? add_attention() : add_product();
      case 9:
      case 10:
        return shape_.size() == 4 ? add_convolution() : add_product();
      case 11:
        call("Reshape", {pick(), shape_constant()});
        return;
      case 12:
        call("Add", {constant(numbers({shape_[shape_.size() - 1]})), pick()});
        return;
      default: {
        const char* const twos[] = {"Add", "Mul", "Sub", "Max"};
        const char* const ones[] = {"Relu", "Tanh", "Sigmoid", "Neg", "HardSwish", "Identity"};
        if (below(2) == 0) {
          call(twos[below(std::size(twos))], {pick(), pick()});
        } else {
          call(ones[below(std::size(ones))], {pick()});
        }
      }
    }
  }

  void add_product() {
    const std::int64_t last = shape_[shape_.size() - 1];
    const bool is_square = shape_.size() >= 2 && shape_[shape_.size() - 2] == last;
    std::string product =
        call("MatMul", {pick(), is_square && below(3) == 0 ? pick() : constant(numbers({last, last}))});
    if (below(2) == 0) product = either("Add", product, below(3) == 0 ? product : constant(numbers({last})));
    if (below(2) == 0) call(below(2) == 0 ? "Relu" : "Sigmoid", {op_or_other(product)});
  }

  void add_silu() {
    const std::string x = pick();
    const std::string silu = either("Mul", x, call("Sigmoid", {op_or_other(x)}));
    if (below(2) == 0) either("Mul", silu, below(2) == 0 ? silu : pick());
  }

  void add_gelu() {
    const std::string x = pick();
    std::string inner;
    if (below(2) == 0) {
      inner = call("Erf", {with("Div", x, std::sqrt(2.0))});
    } else {
      const std::string cubic = with("Mul", either("Mul", x, either("Mul", x, x)), 0.044715);
      inner = call("Tanh", {with("Mul", either("Add", x, cubic), std::sqrt(2 / 3.14159265358979))});
    }
    const std::string sum = with("Add", inner, 1);
    if (below(2) == 0) {
      with("Mul", either("Mul", x, sum), 0.5);
    } else {
      either("Mul", with("Mul", x, 0.5), sum);
    }
  }

  void add_hard_swish() {
    const std::string x = pick();
    const std::string gate = call("Clip", {with("Add", x, 3), number(0), number(6)});
    with(below(2) == 0 ? "Div" : "Mul", below(2) == 0 ? gate : either("Mul", x, gate), below(2) == 0 ? 6 : 1.0 / 6);
  }

  void add_norm(bool is_centred) {
    const Attributes last = {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", std::int64_t{1}}};
    std::string x = pick();
    if (below(3) == 0) x = either("Add", x, pick());
    if (is_centred) x = call("Sub", {op_or_other(x), call("ReduceMean", {op_or_other(x)}, last, false)});
    const std::string mean = call("ReduceMean", {either("Mul", x, x)}, last, false);
    const std::string root = call("Sqrt", {call("Add", {mean, number(0.01)}, {}, false)}, {}, false);
    std::string normed;
    if (below(2) == 0) {
      normed = call("Div", {op_or_other(x), root});
    } else {
      normed = call("Mul", {op_or_other(x), call("Div", {number(1), root}, {}, false)});
    }
    const std::int64_t width = shape_[shape_.size() - 1];
    if (below(2) == 0) normed = either("Mul", normed, below(3) == 0 ? normed : constant(numbers({width})));
    if (below(2) == 0) either("Add", normed, below(3) == 0 ? normed : constant(numbers({width})));
  }

  Attributes turned() {
    const std::vector<std::int64_t> orders[] = {{0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}};
    return {{"perm", orders[below(std::size(orders))]}};
  }

  void add_attention() {
    std::string parts[3];
    for (std::string& part : parts) {
      part = pick();
      if (below(2) == 0) part = call("Transpose", {part}, turned());
    }
    std::string scores = call("MatMul", {parts[0], parts[1]});
    if (below(2) == 0) scores = with(below(2) == 0 ? "Div" : "Mul", scores, 2);
    if (below(2) == 0) scores = either("Add", scores, below(2) == 0 ? scores : pick());
    const std::string softmax = call("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
    const std::string mixed = call("MatMul", {op_or_other(softmax), below(4) == 0 ? pick() : parts[2]});
    if (below(2) == 0) call("Transpose", {op_or_other(mixed)}, turned());
  }

  void add_convolution() {
    std::vector<std::string> inputs = {pick(), constant(numbers({4, 4, 3, 3}))};
    if (below(2) == 0) inputs.push_back(constant(numbers({4})));
    std::string image = call("Conv", inputs, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
    if (below(2) == 0) {
      image = call("BatchNormalization", {op_or_other(image), constant(numbers({4})), constant(numbers({4})),
                                          constant(numbers({4})), constant(numbers({4}, 0.5f))});
    }
    if (below(2) == 0) image = either("Mul", image, below(3) == 0 ? image : constant(numbers({4, 1, 1})));
    if (below(2) == 0) either("Add", image, below(3) == 0 ? image : constant(numbers({1, 4, 1, 1})));
  }

  std::mt19937 random_;
  Dims shape_ = {};
  Model model_ = {};
  std::vector<Tensor> tensors_ = {};
  std::vector<std::string> values_ = {};
};

/// The largest difference, as a part of the largest number.
double difference(const Tensor& found, const Tensor& expected) {
  double largest = 1, off = 0;
  for (std::int64_t i = 0; i < element_count(expected.spec()); ++i) {
    const double a = static_cast<double>(found.as<const float>()[i]);
    const double b = static_cast<double>(expected.as<const float>()[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    off = std::isfinite(a - b) ? std::max(off, std::fabs(a - b)) : INFINITY;
    largest = std::max(largest, std::fabs(b));
  }
  return off / largest;
}

/// The fake device's memory is the host's.
Tensor on_host(const Tensor& tensor) {
  return {tensor.data(), tensor.spec(), Device{}, tensor.byte_offset(), tensor.owner()};
}

/// What is wrong with a session's results; empty: nothing.
std::string flaw(const RandomGraph& graph, const Session& session, const std::vector<Tensor>& expected) try {
  std::vector<Tensor> found;
  for (const Tensor& result : session.run(graph.tensors())) found.push_back(on_host(result));
  if (found.size() != expected.size()) return "another number of results";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string& name = graph.outputs()[i].name;
    if (found[i].shape() != expected[i].shape()) return name + " is " + to_string(found[i].spec());
    const double off = difference(found[i], expected[i]);
    if (off > 1e-3) return name + " is off by " + std::to_string(off);
  }
  return {};
} catch (const std::exception& error) {
  return error.what();
}

/// What the passes made, besides what the operators are by themselves.
void add_fused(const RandomGraph& graph, std::set<std::string>& made) {
  for (const SessionStep& step : graph.session(2).explain(graph.tensors())) {
    if (step.decision && !step.fused.empty()) made.emplace(to_string(step.decision->problem.op));
  }
}

TEST(RandomGraphs, GiveTheSameNumbersAtEveryLevel) {
  std::set<std::string> made;
  for (unsigned seed = 0; seed < graphs(); ++seed) {
    const RandomGraph graph(seed);
    const std::vector<Tensor> expected = graph.session(0).run(graph.tensors());
    add_fused(graph, made);
    for (const int level : {1, 2, 3}) {
      EXPECT_EQ(flaw(graph, graph.session(level), expected), "") << "seed " << seed << ", level " << level << ", of\n"
                                                                 << graph.text();
    }
  }
  EXPECT_EQ(made, (std::set<std::string>{"add_rms_norm", "attention", "conv2d", "gelu", "hard_sigmoid", "hard_swish",
                                         "layer_norm", "linear", "rms_norm", "silu", "silu_mul"}));
}

/// Those that a graph calls at a level, most of them.
std::vector<OpId> most_ops(const RandomGraph& graph, int level, std::mt19937& random) {
  std::set<OpId> ops = {OpId::copy};
  for (const SessionStep& step : graph.session(level).explain(graph.tensors())) {
    if (step.decision && random() % 3 != 0) ops.insert(step.decision->problem.op);
  }
  return {ops.begin(), ops.end()};
}

TEST(RandomGraphs, GiveTheSameNumbersOnADeviceThatLacksSomeOps) {
  std::size_t moved = 0, copies = 0;
  for (unsigned seed = 0; seed < graphs(); ++seed) {
    const RandomGraph graph(seed);
    const std::vector<Tensor> expected = graph.session(0).run(graph.tensors());
    std::mt19937 random(seed);
    for (const int level : {0, 2}) {
      testing::PartialDevice device(most_ops(graph, level, random));
      const Session session = graph.session(level, device.runtime, DeviceType::npu);
      EXPECT_EQ(flaw(graph, session, expected), "") << "seed " << seed << ", level " << level << ", of\n"
                                                    << graph.text();
      moved += session.record().on_fallback.size();
      for (const SessionStep& step : session.explain(graph.tensors())) copies += step.kind == StepKind::transfer;
    }
  }
  EXPECT_GT(moved, graphs() / 2);
  EXPECT_GT(copies, graphs());
}

}  // namespace
}  // namespace xpuruntime
