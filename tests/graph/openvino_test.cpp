#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/expect_error.h"
#include "graph/openvino/engine.h"
#include "graph/openvino/find_library.h"
#include "graph/openvino/worker.h"

namespace xpuruntime {
namespace {

using std::chrono::milliseconds;

/// y = exp(x)
Model exp_model() {
  Model model;
  model.opsets[""] = 17;
  const auto value = [](const std::string& name) {
    return ModelValue{
        .name = name, .type = "float", .dtype = DataType::float32, .shape = std::vector<ModelExtent>{{.size = 2}}};
  };
  model.graph.inputs = {value("x")};
  model.graph.outputs = {value("y")};
  model.graph.nodes = {{.name = "exp", .op = "Exp", .inputs = {"x"}, .outputs = {"y"}}};
  return model;
}

/// The engine with a library that does what files say.
class OpenVino : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  EngineRequest request(const std::string& compiles, const std::string& runs = "double") const {
    auto model = std::make_shared<Model>();
    model->path = folder / (compiles + runs);
    for (const char* name : {"unread", "x"}) model->graph.inputs.push_back({.name = name});
    std::ofstream(model->path) << compiles << '\n' << runs;
    EngineRequest asked{.model = model};
    asked.execution.target = DeviceType::cpu;
    return asked;
  }

  static Tensor numbers(std::int64_t count) {
    Tensor tensor = Tensor::empty(DataType::float32, {count});
    for (std::int64_t i = 0; i < count; ++i) tensor.as<float>()[i] = static_cast<float>(i) + 1;
    return tensor;
  }
  /// The first input is one that the library does not have.
  static std::vector<Tensor> run(CompiledModel& model, const Tensor& input, int limit_ms = 1000) {
    const Tensor inputs[] = {numbers(1), input};
    return model.run(inputs, milliseconds(limit_ms));
  }
  static float last_of(const std::vector<Tensor>& results) {
    return results.at(0).as<float>()[results[0].shape()[0] - 1];
  }

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("openvino_test" + std::to_string(getpid()));
  const std::shared_ptr<const Engine> engine = openvino::make_engine(XRT_FAKE_OPENVINO, [] { return 1; });
};

TEST_F(OpenVino, CompilesInAProcessAndRunsHere) {
  EXPECT_EQ(engine->why_absent(), "");
  EXPECT_EQ(engine->version(), "2026.1.0");
  EXPECT_EQ(engine->devices(), (std::vector{DeviceType::cpu, DeviceType::opencl}));
  const auto model = engine->compile(request("fine"));
  const Tensor one = numbers(5), other = numbers(0);
  EXPECT_EQ(last_of(run(*model, one)), 10);
  EXPECT_EQ(run(*model, other).at(0).shape(), Dims({0}));
  const Tensor scalar = Tensor::view(one.data(), DataType::float32, {});
  EXPECT_EQ(run(*model, scalar).at(0).shape(), Dims({}));
  EXPECT_EQ(model->to_cache(), "double");
}

TEST_F(OpenVino, TakesWhatWasKeptWithoutCompiling) {
  EngineRequest asked = request("crash");
  asked.cached = std::make_shared<const std::string>("double");
  const auto model = engine->compile(asked);
  const Tensor input = numbers(3);
  EXPECT_EQ(last_of(run(*model, input)), 6);
  EXPECT_EQ(model->to_cache(), "") << "it is kept already";
}

TEST_F(OpenVino, WhatCannotBeSavedIsCompiledHereOnceMore) {
  const auto model = engine->compile(request("unsaved"));
  const Tensor input = numbers(3);
  EXPECT_EQ(last_of(run(*model, input)), 6);
  EXPECT_EQ(model->to_cache(), "");
}

TEST_F(OpenVino, ACrashOrAHangWhileItCompilesIsAnError) {
  expect_error(ErrorCode::device_error, "crashed with signal 9", [&] { engine->compile(request("crash")); });
  EngineRequest hanging = request("hang");
  hanging.execution.compile_timeout_ms = 300;
  expect_error(ErrorCode::timeout, "took too long", [&] { engine->compile(hanging); });
  expect_error(ErrorCode::not_supported, "openvino: it cannot convert the model: it saw an OpConversionFailure",
               [&] { engine->compile(request("refuse")); });
}

TEST_F(OpenVino, ARunThatTakesTooLongIsLeftBehind) {
  const auto model = engine->compile(request("fine", "late"));
  const Tensor input = numbers(4);
  expect_error(ErrorCode::timeout, "execution_timeout_ms of 20 ms is over", [&] { run(*model, input, 20); });
  expect_error(ErrorCode::timeout, "20 ms", [&] { run(*model, input, 20); });
  EXPECT_EQ(last_of(run(*model, input, 10'000)), 8);
}

TEST_F(OpenVino, ManyThreadsRunOneModel) {
  const auto model = engine->compile(request("fine"));
  std::vector<std::thread> threads;
  for (std::int64_t t = 1; t <= 8; ++t) {
    threads.emplace_back([&, t] {
      const Tensor input = numbers(t);
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(last_of(run(*model, input, 10'000)), 2 * static_cast<float>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OpenVino, StepsOfInputsAreFollowed) {
  const auto model = engine->compile(request("fine"));
  const Tensor all = numbers(8);
  const Tensor every_other(all.data(), make_spec(DataType::float32, {4}, {2}));
  EXPECT_EQ(last_of(run(*model, every_other)), 14);
}

TEST_F(OpenVino, RefusesWhatItDoesNotDo) {
  EngineRequest asked = request("fine");
  asked.execution.precision = DataType::int8;
  EXPECT_HAS(engine->check(asked).reason, "precision int8 is not done");
  asked.execution.precision = DataType::bfloat16;
  EXPECT_TRUE(engine->check(asked).ok());
  asked.model = std::make_shared<Model>();
  EXPECT_HAS(engine->check(asked).reason, "save it first");
  const Tensor input = Tensor::empty(DataType::float8_e4m3, {2});
  const auto model = engine->compile(request("fine"));
  expect_error(ErrorCode::not_supported, "takes no f8e4m3", [&] { run(*model, input); });
}

TEST_F(OpenVino, WhatItWouldComputeInFewerBitsIsRefused) {
  EngineRequest asked = request("fine");
  auto doubles = std::make_shared<Model>(*asked.model);
  doubles->graph.inputs[1].dtype = DataType::float64;
  asked.model = doubles;
  EXPECT_HAS(engine->check(asked).reason, "computes f64 in f32");
  const auto model = engine->compile(request("fine"));
  Tensor wide = Tensor::empty(DataType::int64, {2});
  wide.as<std::int64_t>()[0] = 5;
  wide.as<std::int64_t>()[1] = std::int64_t{1} << 40;
  EXPECT_THROW(run(*model, wide), EngineLacks);
}

TEST_F(OpenVino, ARunThatWasLeftBehindOutlivesItsEngine) {
  auto mine = openvino::make_engine(XRT_FAKE_OPENVINO, [] { return 1; });
  auto model = mine->compile(request("fine", "late"));
  expect_error(ErrorCode::timeout, "20 ms", [&] { run(*model, numbers(4), 20); });
  model.reset();
  mine.reset();
}

TEST_F(OpenVino, AForkedChildIsToldToLoadAnew) {
  const auto model = engine->compile(request("fine"));
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = error_text(ErrorCode::not_supported, [&] { run(*model, numbers(2)); });
    _exit(text.find("load it in the child") != std::string::npos ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(last_of(run(*model, numbers(3))), 6);
}

TEST_F(OpenVino, OldOrMissingLibrariesAreAbsentWithTheReason) {
  EXPECT_HAS(openvino::make_engine(XRT_OLD_OPENVINO, [] { return 1; })->why_absent(),
             "is not of OpenVINO 2025 or later");
  EXPECT_HAS(openvino::make_engine(folder / "nothing.so", [] { return 1; })->why_absent(), "nothing.so");
}

/// The one that is installed for the Python of this build.
TEST(OpenVinoLibrary, ComputesInThePrecisionThatIsAskedForAlsoWhenTakenInAgain) {
  if (std::string_view(XRT_TEST_PYTHON).empty()) GTEST_SKIP() << "not with sanitizers";
  setenv("XRT_PYTHON", XRT_TEST_PYTHON, 1);
  const std::string file = openvino::find_library();
  unsetenv("XRT_PYTHON");
  if (file.find('/') == file.npos) GTEST_SKIP() << "the Python package openvino is not installed";
  const openvino::Library library(file);
  const std::string path = std::filesystem::temp_directory_path() / ("openvino" + std::to_string(getpid()) + ".onnx");
  save_onnx(exp_model(), path);
  for (const std::string precision : {"f32", "bf16"}) {
    const openvino::Settings settings{"CPU", precision, 1};
    const auto hint = [&](const openvino::Compiled& compiled) {
      char* value = nullptr;
      library.check(library.functions().get(&compiled, "INFERENCE_PRECISION_HINT", &value));
      const std::string text = value;
      library.functions().free_text(value);
      return text;
    };
    const auto compiled = library.compile(path, settings);
    EXPECT_EQ(hint(*compiled.get()), precision);
    library.save_compiled(*compiled.get(), path + ".compiled");
    std::ifstream saved(path + ".compiled", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(saved), {}};
    EXPECT_EQ(hint(*library.import(bytes, settings).get()), precision);
  }
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".compiled");
}

TEST(OpenVinoSettings, AreReadAsTheyWereWritten) {
  const openvino::Settings settings{"GPU", "bf16", 3, {{1, 3, 224, 224}, {}, {7}}};
  const std::vector<std::string> words = openvino::words_of(settings);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  ASSERT_EQ(words.size(), static_cast<std::size_t>(openvino::words_of_settings));
  const openvino::Settings read = openvino::settings_of(pointers.data());
  EXPECT_EQ(read.device, settings.device);
  EXPECT_EQ(read.precision, settings.precision);
  EXPECT_EQ(read.threads, settings.threads);
  EXPECT_EQ(read.shapes, settings.shapes);
}

}  // namespace
}  // namespace xpuruntime
