#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <thread>

#include "backends/opencl/device_fixture.h"
#include "backends/opencl/own_folder.h"
#include "backends/opencl/platforms.h"
#include "backends/opencl/programs.h"

// Several processes that compile at once, and some that are killed: each is this program again, with a test that is
// disabled otherwise. Caches are fresh, the driver's own too.

namespace xpuruntime::opencl {
namespace {

using RunTest = OpenClTest;

TEST_F(RunTest, DISABLED_Add) {
  const TensorSpec spec = make_spec(DataType::float32, {999});
  const auto plan = prepare("ADD_DIRECT", problem_of(OpId::add, {spec, spec}, Attributes(OpId::add)));
  const HostTensor host = random_tensor(spec);
  const Tensor input = upload(host), output = upload(HostTensor(spec));
  run(*plan, {input, input}, output);
  const HostTensor got = download(output);
  for (std::size_t i = 0; i < 999; ++i) ASSERT_EQ(got.get(i), 2 * host.get(i));
  std::cout << "compiled " << build_counts().compiled << ", loaded " << build_counts().loaded << std::endl;
}

class ProcessesTest : public OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    setenv("POCL_CACHE_DIR", (own_.path() + "/pocl").c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? unsetenv("POCL_CACHE_DIR") : setenv("POCL_CACHE_DIR", before_.c_str(), 1);
  }

  /// A process that runs an addition, with its output in a file.
  pid_t start(const std::string& output) const {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command = "exec '" + self + "' --gtest_filter=RunTest.DISABLED_Add " +
                                "--gtest_also_run_disabled_tests >'" + output + "' 2>&1";
    char* arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(command.c_str()), nullptr};
    pid_t child = 0;
    return posix_spawn(&child, "/bin/sh", nullptr, nullptr, arguments, environ) == 0 ? child : 0;
  }
  static int end_of(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }
  static std::string text_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  OwnFolder own_;
  std::string before_ = std::getenv("POCL_CACHE_DIR") == nullptr ? "" : std::getenv("POCL_CACHE_DIR");
};

TEST_F(ProcessesTest, EightThatCompileAtOnceShareOneFolder) {
  const auto output = [&](std::size_t i) { return own_.path() + "/output" + std::to_string(i); };
  try_platforms(DiskCache());  // the drivers are not what is tried here
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < 8; ++i) children.push_back(start(output(i)));
  for (std::size_t i = 0; i < children.size(); ++i) EXPECT_EQ(end_of(children[i]), 0) << text_of(output(i));
  EXPECT_EQ(end_of(start(output(8))), 0);
  EXPECT_NE(text_of(output(8)).find("compiled 0, loaded 1"), std::string::npos) << text_of(output(8));
}

TEST_F(ProcessesTest, OneThatIsKilledAtWorkLeavesNothingThatBreaksTheNext) {
  const std::string output = own_.path() + "/output";
  for (const int after_ms : {200, 600, 1200}) {
    const pid_t child = start(output);
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));  // in the drivers, the compiler or the launch
    kill(child, SIGKILL);
    end_of(child);
    EXPECT_EQ(end_of(start(output)), 0) << after_ms << text_of(output);
    // For the next round all is new.
    for (const std::string& file : own_.files()) std::filesystem::remove_all(file);
  }
}

}  // namespace
}  // namespace xpuruntime::opencl
