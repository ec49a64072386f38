#include "graph/session/file_content.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/expect_error.h"
#include "core/sha256.h"
#include "xpuruntime/graph/engine.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

class FileContentTest : public ::testing::Test {
 protected:
  FileContentTest() { fs::create_directories(folder_); }
  ~FileContentTest() override { fs::remove_all(folder_); }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string content() const { return content_of_file(path_, kept_); }
  /// Until what was written may count as settled.
  static void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }

  const std::string folder_ =
      (fs::temp_directory_path() / ("file_content_test_" + std::to_string(::getpid()))).string();
  const std::string path_ = folder_ + "/model.onnx";
  const DiskCache kept_{folder_ + "/kept", 1 << 20};
};

TEST_F(FileContentTest, AFileThatIsWrittenAtThisMomentIsReadEachTime) {
  write("one");
  EXPECT_EQ(content(), Sha256().add("one").finish());
  EXPECT_TRUE(kept_.entries().empty());
  write("two");
  EXPECT_EQ(content(), Sha256().add("two").finish());
}

TEST_F(FileContentTest, OneThatNobodyTouchesIsReadOnceAndEveryChangeIsSeen) {
  write("one");
  wait();
  EXPECT_EQ(content(), Sha256().add("one").finish());
  ASSERT_EQ(kept_.entries().size(), 1u);
  // That it is not read again shows in what is kept being believed.
  kept_.put(kept_.entries()[0].key, "what was kept");
  EXPECT_EQ(content(), "what was kept");

  // As many bytes, with the times of the file before: what counts is when it was changed.
  struct stat before = {};
  ASSERT_EQ(stat(path_.c_str(), &before), 0);
  write("two");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), times, 0), 0);
  EXPECT_EQ(content(), Sha256().add("two").finish());
  wait();
  EXPECT_EQ(content(), Sha256().add("two").finish());

  // Another file in its place.
  std::ofstream(folder_ + "/new", std::ios::binary) << "six";
  fs::rename(folder_ + "/new", path_);
  EXPECT_EQ(content(), Sha256().add("six").finish());
}

TEST_F(FileContentTest, WhatCannotBeReadIsAnError) {
  expect_error(ErrorCode::io_error, "no_such_file", [&] { content_of_file(folder_ + "/no_such_file", kept_); });
  expect_error(ErrorCode::io_error, "no regular file", [&] { content_of_file(folder_, kept_); });
}

Model model_of(const std::string& op) {
  Model model;
  model.ir_version = 8;
  model.opsets[""] = 17;
  const std::vector<ModelExtent> shape = {{.size = 3}};
  model.graph.inputs = {{.name = "x", .type = "float", .dtype = DataType::float32, .shape = shape}};
  model.graph.outputs = {{.name = "y", .type = "float", .dtype = DataType::float32, .shape = shape}};
  model.graph.nodes = {{.name = "node", .op = op, .inputs = {"x"}, .outputs = {"y"}}};
  return model;
}

TEST_F(FileContentTest, AModelsFileMayBeTouchedAndNotBeAnother) {
  save_onnx(model_of("Exp"), path_);
  const Model model = load_onnx(path_);
  check_unchanged(model);
  ASSERT_EQ(utimensat(AT_FDCWD, path_.c_str(), nullptr, 0), 0);
  check_unchanged(model);
  save_onnx(model_of("Exp"), path_);
  check_unchanged(model);
  check_unchanged(model_of("Exp"));  // of no file
  save_onnx(model_of("Abs"), path_);
  expect_error(ErrorCode::io_error, "is another than when it was loaded; load it again",
               [&] { check_unchanged(model); });
  fs::remove(path_);
  expect_error(ErrorCode::io_error, "cannot be read", [&] { check_unchanged(model); });
}

/// Its results are its input, and while it compiles somebody may replace the file.
class ReadingEngine : public Engine {
 public:
  class Echo : public CompiledModel {
   public:
    std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds) override {
      return {inputs.begin(), inputs.end()};
    }
    std::string to_cache() override { return "kept"; }
  };
  std::string name() const override { return "reading"; }
  std::string version() const override { return "1"; }
  std::string why_absent() const override { return {}; }
  std::vector<DeviceType> devices() const override { return {DeviceType::cpu}; }
  EngineVerdict check(const EngineRequest&) const override { return EngineVerdict::yes(); }
  bool caches() const override { return true; }
  std::unique_ptr<CompiledModel> compile(const EngineRequest&) const override {
    meanwhile();
    return std::make_unique<Echo>();
  }
  std::function<void()> meanwhile = [] {};
};

TEST_F(FileContentTest, NothingIsKeptOfAFileThatIsReplacedWhileAnEngineReadsIt) {
  const auto engine = std::make_shared<ReadingEngine>();
  EngineRegistry engines;
  engines.add(engine);
  ExecutionPolicy policy;
  policy.target = DeviceType::cpu;
  policy.engine = "reading";
  policy.cache_dir = folder_ + "/cache";
  Runtime& runtime = Runtime::global();
  const auto load = [&] {
    return Session::load(path_, runtime.dispatcher(), runtime.devices(), {.execution = policy, .engines = &engines});
  };
  save_onnx(model_of("Exp"), path_);
  engine->meanwhile = [&] { save_onnx(model_of("Abs"), path_); };
  expect_error(ErrorCode::io_error, "load it again", load);
  EXPECT_TRUE(DiskCache(policy.cache_dir, 1 << 20).entries().empty());
  engine->meanwhile = [] {};
  load();
  EXPECT_EQ(DiskCache(policy.cache_dir, 1 << 20).entries().size(), 1u);
}

}  // namespace
}  // namespace xpuruntime
