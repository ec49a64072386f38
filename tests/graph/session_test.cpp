#include "xpuruntime/graph/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "xpuruntime/core/error.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

ModelValue value(const std::string& name, std::vector<ModelExtent> shape, DataType dtype = DataType::float32) {
  return {.name = name, .type = "float", .dtype = dtype, .shape = std::move(shape)};
}

Tensor random_tensor(const Dims& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) tensor.as<float>()[i] = numbers(random);
  return tensor;
}

Tensor integers(const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::empty(DataType::int64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<std::int64_t>());
  return tensor;
}

ModelNode node(const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  return {.name = "the " + outputs[0], .op = op, .inputs = std::move(inputs), .outputs = std::move(outputs)};
}

/// x[batch, 8] through two layers of a perceptron; the rows of the result add up to 1.
Model perceptron() {
  Model model;
  model.opsets[""] = 17;
  model.graph.inputs = {value("x", {{.name = "batch"}, {.size = 8}})};
  model.graph.outputs = {value("y", {{.name = "batch"}, {.size = 4}})};
  model.graph.constants = {
      {"w1", random_tensor({16, 8}, 1)}, {"b1", random_tensor({16}, 2)}, {"w2", random_tensor({16, 4}, 3)}};
  ModelNode first = node("Gemm", {"x", "w1", "b1"}, {"hidden"});
  first.attributes["transB"] = std::int64_t{1};
  model.graph.nodes = {first, node("Relu", {"hidden"}, {"active"}), node("MatMul", {"active", "w2"}, {"scores"}),
                       node("Softmax", {"scores"}, {"y"})};
  return model;
}

std::vector<double> perceptron_in_double(const Model& model, const Tensor& x) {
  const auto at = [&](const std::string& name) { return model.graph.constants.at(name).as<const float>(); };
  std::vector<double> results;
  for (std::int64_t row = 0; row < x.shape()[0]; ++row) {
    double hidden[16], scores[4] = {}, sum = 0;
    for (int j = 0; j < 16; ++j) {
      hidden[j] = static_cast<double>(at("b1")[j]);
      for (int k = 0; k < 8; ++k) {
        hidden[j] += static_cast<double>(x.as<const float>()[row * 8 + k]) * static_cast<double>(at("w1")[j * 8 + k]);
      }
      hidden[j] = std::max(hidden[j], 0.0);
      for (int c = 0; c < 4; ++c) scores[c] += hidden[j] * static_cast<double>(at("w2")[j * 4 + c]);
    }
    for (const double score : scores) sum += std::exp(score);
    for (const double score : scores) results.push_back(std::exp(score) / sum);
  }
  return results;
}

Runtime& runtime() { return Runtime::global(); }
Session session_of(Model model, const SessionOptions& options = {}) {
  return {std::move(model), runtime().dispatcher(), runtime().devices(), options};
}

void expect_error(ErrorCode code, const std::string& text, const std::function<void()>& call) {
  try {
    call();
    FAIL() << "no error: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

void expect_perceptron(const Session& session, std::int64_t batch, unsigned seed) {
  const Tensor x = random_tensor({batch, 8}, seed);
  const std::vector<Tensor> results = session.run({&x, 1});
  ASSERT_EQ(results.size(), 1u);
  ASSERT_EQ(results[0].shape(), (Dims{batch, 4}));
  const std::vector<double> expected = perceptron_in_double(session.model(), x);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(results[0].as<const float>()[i]), expected[i], 1e-6);
  }
}

TEST(Session, RunsAPerceptronForEveryBatchAndOptimizeLevel) {
  for (const int level : {0, 1, 2, 3}) {
    ExecutionPolicy execution;
    execution.target = DeviceType::cpu;
    execution.optimize_level = level;
    const Session session = session_of(perceptron(), {.execution = execution});
    for (const std::int64_t batch : {1, 7, 64, 7}) expect_perceptron(session, batch, static_cast<unsigned>(batch));
  }
}

TEST(Session, LoadsAFile) {
  const std::string path = (std::filesystem::temp_directory_path() / "session_test_loads.onnx").string();
  Model model = perceptron();
  model.ir_version = 8;
  save_onnx(model, path);
  ExecutionPolicy execution;
  execution.optimize_level = 0;
  execution.target = DeviceType::cpu;
  const Session session = Session::load(path, runtime().dispatcher(), runtime().devices(), {.execution = execution});
  std::filesystem::remove(path);
  EXPECT_EQ(session.model().path, path);
  expect_perceptron(session, 3, 1);
  expect_error(ErrorCode::io_error, path, [&] { Session::load(path, runtime().dispatcher(), runtime().devices()); });
}

Model negation() {
  Model model;
  model.opsets[""] = 17;
  model.graph.inputs = {value("x", {{.name = "n"}})};
  model.graph.outputs = {value("y", {{.name = "n"}})};
  model.graph.nodes = {node("Neg", {"x"}, {"y"})};
  return model;
}

TEST(Session, WritesOverResultsThatNobodyHas) {
  const Session session = session_of(negation());
  const Tensor x = random_tensor({1 << 18}, 5), other = random_tensor({1 << 18}, 6),
               longer = random_tensor({300000}, 7);
  const auto run = [&](const Tensor& input) { return session.run({&input, 1})[0]; };
  const auto expect_negative = [](const Tensor& result, const Tensor& input) {
    for (std::int64_t i = 0; i < element_count(input.spec()); ++i) {
      ASSERT_EQ(result.as<const float>()[i], -input.as<const float>()[i]) << i;
    }
  };
  const Tensor kept = run(x);
  const void* freed = run(other).data();
  const Tensor again = run(other);
  EXPECT_EQ(again.data(), freed);
  EXPECT_NE(again.data(), kept.data());
  expect_negative(kept, x);
  expect_negative(again, other);
  // Of what is kept, a part may be seen: it is still somebody's.
  std::optional<Tensor> whole = run(x);
  const Tensor part(whole->data(), make_spec(DataType::float32, {16}), {}, 0, whole->owner());
  whole.reset();
  EXPECT_NE(run(other).data(), part.data());
  EXPECT_EQ(part.as<const float>()[3], -x.as<const float>()[3]);
  expect_negative(run(longer), longer);
}

TEST(Session, ResultsOfManyThreadsAreTheirOwn) {
  const Session session = session_of(negation());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = random_tensor({100000}, t);
      Tensor before = session.run({&x, 1})[0];
      for (int i = 0; i < 20; ++i) {
        const Tensor now = session.run({&x, 1})[0];
        for (const Tensor& result : {now, before}) {
          ASSERT_EQ(result.as<const float>()[99999], -x.as<const float>()[99999]);
        }
        before = now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Session, NamesTheKernelOfEachNodeAndWhy) {
  KernelPolicy policy;
  policy.preferences[OpId::relu] = {.kernels = {"reference"}, .force = true};
  const Session session = session_of(perceptron(), {.policy = policy});
  const TensorSpec spec = make_spec(DataType::float32, {3, 8});
  const std::vector<SessionStep> steps = session.explain({&spec, 1});
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].node, "the hidden");
  EXPECT_EQ(steps[0].op, "Gemm");
  EXPECT_EQ(steps[0].decision->problem.op, OpId::linear);
  EXPECT_EQ(steps[1].decision->kernel, "reference");
  EXPECT_EQ(steps[1].decision->level, Level::force);
  EXPECT_EQ(steps[3].output_name, "y");
  EXPECT_GT(session.memory_bytes({&spec, 1}), 0u);
}

TEST(Session, RunsFromManyThreadsAtOnce) {
  const Session session = session_of(perceptron());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&session, t] {
      for (unsigned i = 0; i < 20; ++i) expect_perceptron(session, 1 + (t + i) % 5, t * 100 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Session, ListsEveryOperatorThatIsMissing) {
  Model model = perceptron();
  model.graph.nodes.push_back(node("Det", {"y"}, {"z"}));
  model.graph.nodes.push_back(node("NoSuchOp", {"z"}, {"i"}));
  model.graph.nodes.push_back(node("Erf", {"z"}, {"u"}));
  model.graph.nodes.back().domain = "com.example";
  ASSERT_EQ(missing_ops(model).size(), 3u);
  EXPECT_EQ(missing_ops(model)[2].op, "com.example::Erf");
  expect_error(ErrorCode::not_supported, "Det (1), NoSuchOp (1), com.example::Erf (1)", [&] { session_of(model); });
}

TEST(Session, RefusesInputsThatDoNotFitAndSaysWhatItTakes) {
  const Session session = session_of(perceptron());
  const Tensor narrow = random_tensor({3, 7}, 1), flat = random_tensor({8}, 1);
  const Tensor whole = Tensor::empty(DataType::int64, {3, 8});
  const std::string takes = "the model takes 'x' f32[batch,8]";
  for (const Tensor* wrong : {&narrow, &flat, &whole}) {
    expect_error(ErrorCode::invalid_argument, takes, [&] { session.run({wrong, 1}); });
  }
  expect_error(ErrorCode::invalid_argument, "0 inputs; " + takes, [&] { session.run({}); });
}

TEST(Session, ANameStandsForOneSize) {
  Model model;
  model.opsets[""] = 17;
  model.graph.inputs = {value("a", {{.name = "n"}}), value("b", {{.name = "n"}})};
  model.graph.outputs = {value("c", {{.name = "n"}})};
  model.graph.nodes = {node("Add", {"a", "b"}, {"c"})};
  const Session session = session_of(model);
  const std::vector<Tensor> fit = {random_tensor({5}, 1), random_tensor({5}, 2)};
  EXPECT_EQ(session.run(fit)[0].as<const float>()[4], fit[0].as<float>()[4] + fit[1].as<float>()[4]);
  const std::vector<Tensor> differ = {random_tensor({5}, 1), random_tensor({1}, 2)};
  expect_error(ErrorCode::invalid_argument, "input 'b'", [&] { session.run(differ); });
}

TEST(Session, ComputesShapesBeforeARun) {  // Reshape to Concat(Shape(x)[0], -1)
  Model model;
  model.opsets[""] = 17;
  model.graph.inputs = {value("x", {{}, {}, {}})};
  model.graph.outputs = {value("y", {{}, {}})};
  model.graph.constants = {{"zero", integers({0})}, {"rest", integers({-1})}};
  model.graph.nodes = {node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "zero"}, {"first"}),
                       node("Concat", {"first", "rest"}, {"to"}), node("Reshape", {"x", "to"}, {"flat"}),
                       node("Tanh", {"flat"}, {"y"})};
  model.graph.nodes[1].attributes["axis"] = std::int64_t{0};
  const Session session = session_of(model);
  const Tensor x = random_tensor({2, 3, 4}, 5);
  EXPECT_EQ(session.run({&x, 1})[0].shape(), (Dims{2, 12}));
  const TensorSpec spec = x.spec();
  const std::vector<SessionStep> steps = session.explain({&spec, 1});
  ASSERT_EQ(steps.size(), 2u);  // the constants feed no call
  EXPECT_EQ(steps[0].kind, StepKind::view);
  EXPECT_EQ(steps[1].kind, StepKind::kernel);
}

TEST(Session, OutputsAreNewMemoryEvenWhereTheyAreInputsConstantsOrTwice) {
  Model model = perceptron();
  model.graph.nodes.push_back(node("Identity", {"x"}, {"same"}));
  model.graph.outputs = {value("same", {{}, {}}), value("w2", {{}, {}}), value("y", {{}, {}}), value("y", {{}, {}})};
  const Session session = session_of(model);
  const Tensor x = random_tensor({3, 8}, 1);
  const std::vector<Tensor> results = session.run({&x, 1});
  EXPECT_NE(results[0].data(), x.data());
  EXPECT_EQ(results[0].as<const float>()[23], x.as<float>()[23]);
  EXPECT_EQ(results[1].as<const float>()[5], model.graph.constants.at("w2").as<float>()[5]);
  EXPECT_NE(results[2].data(), results[3].data());
  EXPECT_EQ(results[2].as<const float>()[7], results[3].as<const float>()[7]);
  EXPECT_FALSE(results[1].read_only());
}

TEST(Session, AModelWithoutNodesCopiesItsInputsAndConstants) {
  for (const int level : {0, 2, 3}) {
    Model model;
    model.opsets[""] = 17;
    model.graph.inputs = {value("x", {{.name = "n"}})};
    model.graph.constants = {{"w", random_tensor({4}, 1)}};
    model.graph.outputs = {value("x", {{}}), value("w", {{}}), value("x", {{}})};
    ExecutionPolicy execution;
    execution.target = DeviceType::cpu;
    execution.optimize_level = level;
    const Session session = session_of(model, {.execution = execution});
    const Tensor x = random_tensor({3}, 2);
    const std::vector<Tensor> results = session.run({&x, 1});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].as<const float>()[2], x.as<float>()[2]);
    EXPECT_EQ(results[1].as<const float>()[3], model.graph.constants.at("w").as<float>()[3]);
    EXPECT_NE(results[0].data(), x.data());
    EXPECT_NE(results[0].data(), results[2].data());
    const TensorSpec spec = x.spec();
    const std::vector<SessionStep> steps = session.explain({&spec, 1});
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].node + " " + steps[0].op, "outputs Identity");
    EXPECT_EQ(session.profile({&x, 1}, 2).calls.size(), 3u);
  }
}

TEST(Session, WritesIntoTheCallersMemoryOrNothing) {
  Model model = perceptron();
  model.graph.outputs = {value("y", {{}, {}}), value("hidden", {{}, {.size = 16}})};
  const Session session = session_of(model);
  const Tensor x = random_tensor({3, 8}, 1);
  const std::span<const Tensor> inputs(&x, 1);
  const std::vector<Tensor> expected = session.run(inputs);
  const auto zeros = [](const Dims& shape) {
    const Tensor tensor = Tensor::empty(DataType::float32, shape);
    std::fill_n(tensor.as<float>(), element_count(tensor.spec()), 0.0F);
    return tensor;
  };
  std::vector<std::optional<Tensor>> outputs = {zeros({3, 4}), std::nullopt};
  const std::vector<Tensor> results = session.run(inputs, outputs);
  EXPECT_EQ(results[0].data(), outputs[0]->data());
  EXPECT_EQ(results[1].as<const float>()[47], expected[1].as<const float>()[47]);
  EXPECT_TRUE(
      std::equal(expected[0].as<const float>(), expected[0].as<const float>() + 12, outputs[0]->as<const float>()));
  const auto refused = [&](const std::string& text, std::optional<Tensor> hidden) {
    const Tensor y = zeros({3, 4});
    outputs = {y, std::move(hidden)};
    expect_error(ErrorCode::invalid_argument, text, [&] { session.run(inputs, outputs); });
    EXPECT_TRUE(std::all_of(y.as<float>(), y.as<float>() + 12, [](float one) { return one == 0; })) << "written";
  };
  refused("output 'hidden' is f32[3,15], and the model gives f32[?,16]", zeros({3, 15}));
  refused("output 1 is f32[4,16], and the run gives f32[3,16]", zeros({4, 16}));
  refused("output 'hidden' is read-only", zeros({3, 16}).as_read_only());
  outputs.pop_back();
  expect_error(ErrorCode::invalid_argument, "1 outputs are given, and the model has 2",
               [&] { session.run(inputs, outputs); });
}

TEST(Session, AnErrorNamesTheNode) {
  Model model = perceptron();
  model.graph.nodes[2].inputs = {"active", "w1"};  // [n,16] x [16,8] fits; [n,8] x ... in Softmax does not matter
  model.graph.nodes[2].inputs[1] = "b1";
  model.graph.nodes.insert(model.graph.nodes.begin() + 2, node("Squeeze", {"active"}, {"thin"}));
  model.graph.nodes[2].attributes["axes"] = std::vector<std::int64_t>{0};
  const Session session = session_of(model);
  const Tensor x = random_tensor({3, 8}, 1);
  expect_error(ErrorCode::invalid_argument, "node 'the thin' (Squeeze): dim 0 of [3,16] is not 1", [&] {
    session.run({&x, 1});
  });
}

TEST(Session, ObeysTheExecutionPolicyOrRefuses) {
  ExecutionPolicy execution;
  execution.target = DeviceType::npu;
  expect_error(ErrorCode::not_supported, "target npu is not here",
               [&] { session_of(perceptron(), {.execution = execution}); });
  execution.allow_fallback = DeviceType::cpu;
  expect_perceptron(session_of(perceptron(), {.execution = execution}), 2, 1);
  execution.precision = DataType::int8;
  expect_error(ErrorCode::invalid_argument, "precision int8: the model is one of floats; pass calibration",
               [&] { session_of(perceptron(), {.execution = execution}); });
  execution.precision = DataType::float32;
  execution.static_shape = true;
  execution.fixed_shapes = {{2, 8}};
  const Session fixed = session_of(perceptron(), {.execution = execution});
  expect_perceptron(fixed, 2, 1);
  const Tensor three = random_tensor({3, 8}, 1);
  expect_error(ErrorCode::invalid_argument, "fixes its shape to [2,8]", [&] { fixed.run({&three, 1}); });
  execution.fixed_shapes = {{2, 8}, {1}};
  expect_error(ErrorCode::invalid_argument, "2 fixed_shapes",
               [&] { session_of(perceptron(), {.execution = execution}); });
  execution.fixed_shapes = {{2, 9}};
  expect_error(ErrorCode::invalid_argument,
               "fixes the shape of input 'x' to [2,9]; the model takes 'x' f32[batch,8]; give a shape",
               [&] { session_of(perceptron(), {.execution = execution}); });
  execution.fixed_shapes = {{8}};
  expect_error(ErrorCode::invalid_argument, "fixes the shape of input 'x' to [8]",
               [&] { session_of(perceptron(), {.execution = execution}); });
}

TEST(Session, QuantizesByCalibrationInputsAndSaysHowFarItIsOff) {
  SessionOptions options{.execution = ExecutionPolicy{.target = DeviceType::cpu, .precision = DataType::int8}};
  const Tensor x = random_tensor({4, 8}, 1);
  options.calibration = {{x}};
  const Session session = session_of(perceptron(), options);
  ASSERT_TRUE(session.quantization().has_value());
  const double most = session.quantization()->errors.at(0).max_error;
  EXPECT_GT(most, 0);
  const Tensor want = session_of(perceptron()).run({&x, 1})[0], got = session.run({&x, 1})[0];
  for (std::int64_t i = 0; i < element_count(want.spec()); ++i) {
    EXPECT_NEAR(got.as<float>()[i], want.as<float>()[i], 1.01 * most);
  }
  const TensorSpec spec = x.spec();
  const std::vector<SessionStep> steps = session.explain({&spec, 1});
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const SessionStep& step) {
    return step.decision && step.decision->problem.op == OpId::linear &&
           step.decision->problem.inputs[1].dtype == DataType::int8;
  }));
}

/// A transposed convolution whose windows tile the image, element by element.
std::vector<double> tiled_in_double(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Dims &in = x.shape(), &weight = w.shape();
  const std::size_t dims = in.size() - 2;
  Dims out = in;
  out[1] = weight[1];
  for (std::size_t d = 0; d < dims; ++d) out[d + 2] *= weight[d + 2];
  std::vector<double> results;
  for (std::int64_t i = 0; i < checked_count(out, 1); ++i) {
    std::int64_t rest = i, pixel = 0, tap = 0, pixels = 1, taps = 1;
    for (std::size_t d = dims; d-- > 0;) {
      const std::int64_t at = rest % out[d + 2];
      rest /= out[d + 2];
      pixel += at / weight[d + 2] * pixels;
      tap += at % weight[d + 2] * taps;
      pixels *= in[d + 2];
      taps *= weight[d + 2];
    }
    const std::int64_t channel = rest % out[1], image = rest / out[1];
    double sum = static_cast<double>(bias.as<const float>()[channel]);
    for (std::int64_t c = 0; c < in[1]; ++c) {
      sum += static_cast<double>(x.as<const float>()[(image * in[1] + c) * pixels + pixel]) *
             static_cast<double>(w.as<const float>()[(c * weight[1] + channel) * taps + tap]);
    }
    results.push_back(sum);
  }
  return results;
}

TEST(Session, TransposedConvolutionsWhoseWindowsTileTheImageAreProducts) {
  for (const std::vector<std::int64_t>& kernel : {std::vector<std::int64_t>{3}, {2, 3}, {2, 1, 3}}) {
    Dims in = Dims::filled(kernel.size() + 2, 4), weight = Dims::filled(kernel.size() + 2, 5);
    in[0] = 2, in[1] = weight[0] = 3;
    for (std::size_t d = 0; d < kernel.size(); ++d) weight[d + 2] = kernel[d];
    Model model;
    model.opsets[""] = 17;
    std::vector<ModelExtent> extents;
    for (const std::int64_t extent : in) extents.push_back({.size = extent});
    model.graph.inputs = {value("x", extents)};
    model.graph.outputs = {{.name = "y", .type = "float", .dtype = DataType::float32}};
    model.graph.constants = {{"w", random_tensor(weight, 4)}, {"b", random_tensor({5}, 5)}};
    ModelNode made = node("ConvTranspose", {"x", "w", "b"}, {"y"});
    made.attributes["strides"] = kernel;
    model.graph.nodes = {made};
    const Tensor x = random_tensor(in, 6);
    const std::vector<double> expected =
        tiled_in_double(x, model.graph.constants.at("w"), model.graph.constants.at("b"));
    const Session session = session_of(model);
    const Tensor y = session.run({&x, 1})[0];
    ASSERT_EQ(element_count(y.spec()), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(y.as<const float>()[i]), expected[i], 1e-5) << kernel.size() << " dims, at " << i;
    }
    for (const SessionStep& step : session.explain(std::span<const Tensor>(&x, 1))) {  // no zeros between elements
      if (!step.decision) continue;
      EXPECT_NE(step.decision->problem.op, OpId::pad);
    }
  }
}

TEST(Session, ALockIsReplayedAndWhatItLacksIsAnError) {
  const SessionOptions locked = {.lock = LockUse{std::make_shared<const KernelLock>()}};
  const Session session = session_of(perceptron(), locked);
  const Tensor x = random_tensor({2, 8}, 1);
  expect_error(ErrorCode::not_supported, "lock", [&] { session.run({&x, 1}); });
}

TEST(Session, ResultsThatNothingReadsAreLeftOut) {
  Model model;
  model.opsets[""] = 17;
  model.graph.inputs = {value("x", {{.size = 4}, {.size = 3}})};
  model.graph.outputs = {value("y", {{}, {}})};
  model.graph.nodes = {node("Relu", {"x"}, {"y"}), node("Exp", {"x"}, {"unused"})};
  const Session session = session_of(model);
  const Tensor x = random_tensor({4, 3}, 1);
  EXPECT_EQ(session.run({&x, 1})[0].as<const float>()[0], std::max(0.0f, x.as<float>()[0]));
}

TEST(Session, FixedShapesAndFoldersThatWouldCountForNothingAreErrors) {
  ExecutionPolicy execution;
  execution.target = DeviceType::cpu;
  execution.fixed_shapes = {{2, 8}};
  expect_error(ErrorCode::invalid_argument, "has fixed_shapes, and its static_shape is false",
               [&] { session_of(perceptron(), {.execution = execution}); });
  execution.fixed_shapes.clear();
  for (const std::string folder : {"/proc/x", "/proc/self/status"}) {
    execution.cache_dir = folder;
    expect_error(ErrorCode::io_error, "cache_dir of the execution policy: '" + folder + "'",
                 [&] { session_of(perceptron(), {.execution = execution}); });
  }
  execution.cache_compiled = false;
  session_of(perceptron(), {.execution = execution});
}

TEST(Session, WrongNodesAreErrorsAndNoCrash) {
  Model model;
  model.opsets[""] = 17;
  model.graph.outputs = {value("y", {{}})};
  model.graph.constants = {{"w", random_tensor({3}, 1)},
                           {"n", integers({1, 2, 3})},
                           {"none", random_tensor({0}, 1)},
                           {"image", random_tensor({1, 4, 5}, 1)}};
  const std::pair<ModelNode, const char*> wrong[] = {
      {node("Equal", {"w"}, {"y"}), "input 1 is missing"},
      {node("Where", {"w"}, {"y"}), "not boolean"},
      {node("Not", {}, {"y"}), "input 0 is missing"},
      {node("If", {}, {"y"}), "input 0 is missing"},
      {node("Concat", {}, {"y"}), "input 0 is missing"},
      {node("Equal", {"w", "n"}, {"y"}), "have to be of one type"},
      {node("Div", {"n", "w"}, {"y"}), "have to be of one type"},
      {node("GroupNormalization", {"image", "none", "none"}, {"y"}), "groups"},
      {node("InstanceNormalization", {"image", "none", "none"}, {"y"}), "scale of another length"},
      {node("NonMaxSuppression", {"image", "image"}, {"y"}), "boxes [1,4,5] with scores"},
      {node("GridSample", {"image", "image"}, {"y"}), "with a grid"},
      {node("AffineGrid", {"image", "n"}, {"y"}), "a matrix"},
      {node("RoiAlign", {"image", "image", "n"}, {"y"}), "with boxes"},
      {node("Col2Im", {"image", "n", "n"}, {"y"}), "blocks [1,4,5] for 6 elements"},
      {node("MaxUnpool", {"image", "image"}, {"y"}), "a kernel or indices"},
      {node("DFT", {"image"}, {"y"}), "its last dim is 1, or 2"},
      {node("LinearAttention", {"image", "image", "image"}, {"y"}), "queries [1,4,5]"},
      {node("CausalConvWithState", {"image", "image"}, {"y"}), "with a filter"},
      {node("TensorScatter", {"image", "w"}, {"y"}), "a cache"},
      {node("CumProd", {"w", "w"}, {"y"}), "input 1 is not one number"},
      {node("CenterCropPad", {"w", "n"}, {"y"}), "another number of sizes"},
      {node("BitCast", {"w"}, {"y"}), "not one of ours"},
      {node("EyeLike", {"w"}, {"y"}), "no matrix"},
  };
  for (const auto& [bad, why] : wrong) {
    model.graph.nodes = {bad};
    try {
      session_of(model).run({});
      ADD_FAILURE() << "no error: " << bad.op;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

TEST(Session, AnAttributeOfAnotherTypeIsAnError) {
  Model model = perceptron();
  model.graph.nodes[3].attributes["axis"] = 1.0f;
  const Session session = session_of(model);
  const Tensor x = random_tensor({3, 8}, 1);
  expect_error(ErrorCode::corrupt_data, "attribute 'axis' is not of the type", [&] { session.run({&x, 1}); });
}

TEST(Session, WhatWouldTakeLongIsNotComputedInAdvance) {
  constexpr std::int64_t extent = 512, products = 160;  // of 2^27 multiplications each
  const Tensor zeros = Tensor::empty(DataType::float32, {extent, extent});
  std::fill_n(zeros.as<float>(), extent * extent, 0.0f);
  Model model = perceptron();
  model.graph.constants["m"] = zeros;
  std::string last = "m";
  for (std::int64_t i = 0; i < products; ++i) {
    const std::string result = "m" + std::to_string(i);
    model.graph.nodes.push_back({.name = result, .op = "MatMul", .inputs = {last, "m"}, .outputs = {result}});
    last = result;
  }
  model.graph.outputs.push_back({.name = last});
  const Session session = session_of(std::move(model));
  const TensorSpec spec = make_spec(DataType::float32, {3, 8});
  std::map<StepKind, int> kinds;
  for (const SessionStep& step : session.explain({&spec, 1})) {
    if (step.op == "MatMul") ++kinds[step.kind];
  }
  EXPECT_GT(kinds[StepKind::kernel], 30);
  EXPECT_LT(kinds[StepKind::kernel], products);  // the first ones are
}

TEST(Session, TimeoutsMayBeAsLongAsTheyCanBeWritten) {
  ExecutionPolicy execution;
  execution.target = DeviceType::cpu;
  execution.compile_timeout_ms = execution.execution_timeout_ms = std::numeric_limits<std::int64_t>::max();
  expect_perceptron(session_of(perceptron(), {.execution = execution}), 2, 1);
}

}  // namespace
}  // namespace xpuruntime
