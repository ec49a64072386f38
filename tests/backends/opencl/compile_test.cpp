#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "backends/opencl/build_log.h"
#include "backends/opencl/device_fixture.h"
#include "backends/opencl/disk_cache.h"
#include "backends/opencl/own_folder.h"
#include "backends/opencl/programs.h"
#include "backends/opencl/worker.h"
#include "core/in_child.h"

namespace xpuruntime::opencl {
namespace {

using CompileTest = OpenClTest;

BuildRequest request_of(DeviceContext& device, std::string_view source, std::string options = {}) {
  return {device.context(), device.device(), "", source, std::move(options)};
}

std::string error_of(const BuildRequest& request) {
  try {
    build_program(request);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_error);
    return error.what();
  }
  return "nothing failed";
}

/// A source that no run before has compiled.
std::string fresh_source() {
  return "__kernel void fresh(void) {}  // " + std::to_string(std::random_device{}()) + "\n";
}

bool is_pocl(const DeviceProfile& profile) { return profile.vendor == "pocl"; }

TEST_F(CompileTest, ASecondProcessCompilesNothing) {
  const OwnFolder folder;
  const std::string source = fresh_source();
  const BuildCounts before = build_counts();
  build_program(request_of(driver().context(0), source));
  EXPECT_EQ(build_counts().compiled, before.compiled + 1);
  // build_program itself remembers nothing: this is what another process does.
  build_program(request_of(driver().context(0), source));
  EXPECT_EQ(build_counts().compiled, before.compiled + 1);
  EXPECT_EQ(build_counts().loaded, before.loaded + 1);
  build_program(request_of(driver().context(0), source, "-D OTHER"));
  EXPECT_EQ(build_counts().compiled, before.compiled + 2) << "other options are another program";
}

TEST_F(CompileTest, ADamagedEntryIsBuiltAgain) {
  const OwnFolder folder;
  const std::string source = fresh_source();
  build_program(request_of(driver().context(0), source));
  const BuildCounts before = build_counts();
  for (const std::string& file : folder.files()) {
    const auto bytes = std::filesystem::file_size(file);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<long>(bytes) - 1).put('?');
  }
  build_program(request_of(driver().context(0), source));
  EXPECT_EQ(build_counts().compiled, before.compiled + 1);
  build_program(request_of(driver().context(0), source));
  EXPECT_EQ(build_counts().loaded, before.loaded + 1);
}

TEST_F(CompileTest, ABinaryIsKeptAndRuns) {
  const OwnFolder folder;
  const std::string source = "__kernel void five(__global int* x) { x[0] = 5; }  // " + fresh_source();
  DeviceContext& device = driver().context(0);
  BuildRequest request = request_of(device, source, "-cl-std=CL1.2");
  request.always_binary = true;
  build_program(request);
  ASSERT_EQ(folder.files().size(), 1u);
  EXPECT_GT(std::filesystem::file_size(folder.files()[0]), 200u) << "more than a note";
  const BuildCounts before = build_counts();
  const Program program = build_program(request);
  EXPECT_EQ(build_counts().loaded, before.loaded + 1);
  const KernelHandle kernel(clCreateKernel(program.get(), "five", nullptr));
  ASSERT_NE(kernel, nullptr);
  void* memory = driver().allocate(0, 4);
  auto* buffer = static_cast<cl_mem>(memory);
  ASSERT_EQ(clSetKernelArg(kernel.get(), 0, sizeof buffer, &buffer), CL_SUCCESS);
  const std::size_t one = 1;
  ASSERT_EQ(clEnqueueNDRangeKernel(device.use({}), kernel.get(), 1, nullptr, &one, &one, 0, nullptr, nullptr),
            CL_SUCCESS);
  int got = 0;
  ASSERT_TRUE(driver().copy_to_host(0, &got, memory, 0, 4, {}).ok());
  EXPECT_EQ(got, 5);
  driver().deallocate(0, memory);
}

TEST_F(CompileTest, AProgramThatIncludesFilesIsNotKept) {
  const OwnFolder folder;
  std::ofstream(folder.path() + "/five.h") << "#define FIVE 5\n";
  const std::string source = "# include \"five.h\"\n__kernel void five(__global int* x) { x[0] = FIVE; }\n";
  BuildRequest request = request_of(driver().context(0), source, "-I " + folder.path());
  request.always_binary = true;
  const BuildCounts before = build_counts();
  build_program(request);
  std::ofstream(folder.path() + "/five.h") << "#define FIVE nowhere\n";
  EXPECT_NE(error_of(request).find("nowhere"), std::string::npos);
  EXPECT_GE(build_counts().compiled, before.compiled + 2);
}

TEST_F(CompileTest, AnEntryThatIsNoBinaryIsBuiltAgain) {
  const OwnFolder folder;
  const std::string source = fresh_source();
  BuildRequest request = request_of(driver().context(0), source);
  request.always_binary = true;
  build_program(request);
  const DiskCache cache;
  const BuildCounts before = build_counts();
  for (const std::string& file : folder.files())
    cache.put(std::filesystem::path(file).stem().string(), "not a binary of any driver");
  EXPECT_NE(build_program(request), nullptr);
  EXPECT_EQ(build_counts().compiled, before.compiled + 1);
  EXPECT_NE(build_program(request), nullptr);
  EXPECT_EQ(build_counts().loaded, before.loaded + 1);
}

TEST_F(CompileTest, AFolderThatCannotBeWrittenIsNoError) {
  const OwnFolder folder("/proc/no_such_folder");
  EXPECT_NE(build_program(request_of(driver().context(0), fresh_source())), nullptr);
}

TEST_F(CompileTest, AnErrorShowsTheLineOfTheSource) {
  const std::string text = error_of(request_of(driver().context(0), "\n\n__kernel void k(void) { undeclared = 1; }\n"));
  EXPECT_NE(text.find("CL_BUILD_PROGRAM_FAILURE"), std::string::npos) << text;
  EXPECT_NE(text.find("  line 3: __kernel void k(void) { undeclared = 1; }"), std::string::npos) << text;
}

TEST_F(CompileTest, LinesOfTheCommonTextAreNotCounted) {
  BuildRequest request = request_of(driver().context(0), "\n__kernel void k(void) { undeclared = 1; }\n");
  request.common = "// one\n// two\n";
  const std::string text = error_of(request);
  EXPECT_NE(text.find("  line 2: __kernel void k"), std::string::npos) << text;
}

TEST_F(CompileTest, ACompilerThatCrashesIsAnErrorAndTheNextProgramIsBuilt) {
  if (!is_pocl(profile())) GTEST_SKIP() << "the source crashes clang";
  const OwnFolder folder;
  const std::string text = error_of(request_of(driver().context(0), "#pragma clang __debug crash\n" + fresh_source()));
  EXPECT_NE(text.find("crashed with signal"), std::string::npos) << text;
  EXPECT_NE(build_program(request_of(driver().context(0), fresh_source())), nullptr);
}

TEST_F(CompileTest, ACompilerThatHangsIsKilledAndTheNextProgramIsBuilt) {
  if (!is_pocl(profile())) GTEST_SKIP() << "the source hangs clang";
  const OwnFolder folder;
  // Opening a pipe waits for somebody who writes to it.
  const std::string pipe = folder.path() + "/pipe.h";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  setenv("XPURUNTIME_OPENCL_TIMEOUT", "2", 1);
  const std::string text = error_of(request_of(driver().context(0), "#include \"" + pipe + "\"\n" + fresh_source()));
  unsetenv("XPURUNTIME_OPENCL_TIMEOUT");
  EXPECT_NE(text.find("gave no answer within 2 s"), std::string::npos) << text;
  EXPECT_NE(build_program(request_of(driver().context(0), fresh_source())), nullptr);
}

/// Processes that this one has started.
std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "children");
    for (pid_t child = 0; file >> child;) all.push_back(child);
  }
  return all;
}

// The system does it where memory runs out.
TEST_F(CompileTest, ACompilerThatIsKilledIsNoFaultOfTheDriver) {
  if (!is_pocl(profile())) GTEST_SKIP() << "the source hangs clang";
  const OwnFolder folder;
  const std::string pipe = folder.path() + "/pipe.h";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::atomic<bool> built = false;
  std::thread killer([&] {
    while (!built) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      for (const pid_t child : children()) kill(child, SIGKILL);
    }
  });
  try {
    build_program(request_of(driver().context(0), "#include \"" + pipe + "\"\n" + fresh_source()));
    ADD_FAILURE() << "it was built";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    const std::string text = error.what();
    EXPECT_NE(text.find("was killed (signal 9), perhaps because memory ran out"), std::string::npos) << text;
    EXPECT_NE(text.find("free memory and try again"), std::string::npos) << text;
    EXPECT_EQ(text.find("update the OpenCL driver"), std::string::npos) << text;
  }
  built = true;
  killer.join();
  EXPECT_NE(build_program(request_of(driver().context(0), fresh_source())), nullptr);
}

TEST_F(CompileTest, ManyThreadsShareTheWorker) {
  const OwnFolder folder;
  std::vector<std::thread> threads;
  std::atomic<int> built = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { built += build_program(request_of(driver().context(0), fresh_source())) != nullptr; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(built, 4);
}

TEST(Worker, ThatIsMissingIsUnavailable) {
  Worker worker({}, "/no/such/program");
  const Answer answer = worker.ask({"probe"}, 5);
  EXPECT_EQ(answer.state, Answer::State::unavailable);
  EXPECT_NE(answer.why.find("/no/such/program"), std::string::npos);
}

TEST(Worker, ThatEndsIsStartedAgain) {
  Worker worker({}, "/bin/false");
  for (int round = 0; round < 2; ++round) {
    const Answer answer = worker.ask({"probe"}, 5);
    EXPECT_EQ(answer.state, Answer::State::crashed);
    EXPECT_EQ(answer.why, "ended with exit code 1");
  }
}

constexpr const char* reads_a_request = "dd bs=4096 count=1 of=/dev/null 2>/dev/null\n";
// "ok", as a message on the wire.
const std::string answers_once =
    std::string(reads_a_request) + "printf '\\012\\0\\0\\0\\0\\0\\0\\0\\002\\0\\0\\0\\0\\0\\0\\0ok' >&0\n";

/// A worker that is a script.
std::string program_in(const OwnFolder& folder, const std::string& script) {
  const std::string program = folder.path() + "/worker";
  std::ofstream(program) << "#!/bin/sh\nulimit -c 0\n" << script;
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  return program;
}

bool answers_again(const std::string& program) {
  Worker worker({}, program);
  for (int round = 0; round < 2; ++round) {
    const Answer answer = worker.ask({"anything"}, 10);
    if (answer.message != Message{"ok"}) return std::cerr << answer.why << "\n", false;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it goes
  }
  return true;
}

// Nobody is told then how a child ended.
TEST(Worker, ThatWentIsStartedAgainWhereSigchldIsIgnored) {
  const OwnFolder folder;
  const std::string program = program_in(folder, answers_once);
  EXPECT_EQ(in_child([&] { return std::signal(SIGCHLD, SIG_IGN) != SIG_ERR && answers_again(program); }), 0);
}

TEST(Worker, ThatFailedOrWasKilledAfterItsRequestIsStartedAgain) {
  for (const char* end : {"exit 3\n", "kill -9 $$\n", "kill -6 $$\n"}) {
    const OwnFolder folder;
    EXPECT_TRUE(answers_again(program_in(folder, answers_once + end))) << end;
  }
}

TEST(Worker, ThatIsKilledSaysSoAndOneThatCrashesTheSignal) {
  const OwnFolder folder;
  Worker killed({}, program_in(folder, reads_a_request + std::string("kill -9 $$\n")));
  Answer answer = killed.ask({"anything"}, 10);
  EXPECT_EQ(answer.state, Answer::State::killed);
  EXPECT_EQ(answer.why, "was killed (signal 9), perhaps because memory ran out");
  Worker crashing({}, program_in(folder, reads_a_request + std::string("kill -6 $$\n")));
  answer = crashing.ask({"anything"}, 10);
  EXPECT_EQ(answer.state, Answer::State::crashed);
  EXPECT_EQ(answer.why, "crashed with signal 6");
}

/// This process can open no more files.
class NoFiles {
 public:
  NoFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(Worker, ThatCannotBeStartedNowIsAskedTheNextTime) {
  const OwnFolder folder;
  Worker worker({}, program_in(folder, answers_once));
  {
    const NoFiles none;
    const Answer answer = worker.ask({"anything"}, 10);
    EXPECT_EQ(answer.state, Answer::State::shortage);
    EXPECT_EQ(answer.why, "cannot be started now: Too many open files");
  }
  EXPECT_EQ(worker.ask({"anything"}, 10).message, Message{"ok"});
}

TEST_F(CompileTest, WithoutFilesToOpenTheErrorIsNoLastingOne) {
  const OwnFolder folder;
  const auto code_of = [&](const std::string& source) {
    try {
      const NoFiles none;
      build_program(request_of(driver().context(0), source));
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  for (const char* round : {"the worker cannot be started", "the worker is there, and this process cannot load"}) {
    const std::string source = fresh_source();
    driver().context(0).context();
    EXPECT_EQ(code_of(source), ErrorCode::out_of_memory) << round;
    EXPECT_NE(build_program(request_of(driver().context(0), source)), nullptr) << round;
  }
}

/// Processes of this one that have ended and were not waited for.
int zombies() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text)) continue;
    std::istringstream after_name(text.substr(text.rfind(')') + 1));
    char state = '\0';
    pid_t parent = 0;
    after_name >> state >> parent;
    count += parent == getpid() && state == 'Z';
  }
  return count;
}

TEST(Worker, ThatGoesByItselfLeavesNoZombie) {
  const int before = zombies();
  const OwnFolder folder;
  Worker worker({}, program_in(folder, answers_once));
  for (int round = 0; round < 2; ++round) {
    const Answer answer = worker.ask({"anything"}, 20);
    ASSERT_EQ(answer.message, Message{"ok"}) << answer.why;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it goes
    EXPECT_EQ(zombies(), before);
  }
}

TEST(Worker, KnowsNoSecondsThatAreNone) {
  setenv("XPURUNTIME_OPENCL_TIMEOUT", "soon", 1);
  EXPECT_THROW(worker_seconds(), Error);
  setenv("XPURUNTIME_OPENCL_TIMEOUT", "7", 1);
  EXPECT_EQ(worker_seconds(), 7);
  unsetenv("XPURUNTIME_OPENCL_TIMEOUT");
  EXPECT_EQ(worker_seconds(), 60);
}

TEST(BuildLog, FindsTheLineWhateverTheLogStartsWith) {
  const std::string source = "one\ntwo\nthree\nfour\n";
  const char* logs[] = {"error: /root/.cache/pocl/kcache/tempfile_1.cl:3:20: use of undeclared identifier 'x'\n",
                        "<kernel>:3:20: error: use of undeclared identifier 'x'\n",
                        "1:3:20: error: use of undeclared identifier 'x'\n",
                        ":3:20: error: use of undeclared identifier 'x'\n",
                        "/tmp/comgr-12/input/CompileSource:3:20: error: use of undeclared identifier 'x'\n",
                        "\"/tmp/OCL1T2.cl\", line 3: error: identifier \"x\" is undefined\n",
                        "program.cl(3) : error C3861: identifier not found\n",
                        "input.cl:3: Error: bad\n",
                        "<kernel>:1:2: warning: unused\n<kernel>:3:20: error: expected 4:5: here\n"};
  for (const char* log : logs) {
    const std::string text = explain_log(log, source);
    EXPECT_NE(text.find("\n  line 3: three"), std::string::npos) << log << "->\n" << text;
  }
}

TEST(BuildLog, ShowsTheLineOfAnIncludedFile) {
  const OwnFolder folder;
  const std::string header = folder.path() + "/a header.h", itself = folder.path() + "/tempfile.cl";
  const std::string source = "#include \"a header.h\"\nthe second line\n";
  std::ofstream(header) << "first\nnot of the source\nthird\n";
  std::ofstream(itself) << source;
  const auto shown = [&](const std::string& log) { return explain_log(log, source); };
  EXPECT_EQ(shown("error: " + header + ":2:9: bad\n"),
            "error: " + header + ":2:9: bad\n  line 2 of " + header + ": not of the source");
  EXPECT_EQ(shown("In file included from <kernel>:1:\n" + header + ":3:9: error: bad\n"),
            header + ":3:9: error: bad\n  line 3 of " + header + ": third")
      << "past the end of the source";
  EXPECT_EQ(shown(itself + ":2:9: error: bad\n"), itself + ":2:9: error: bad\n  line 2: the second line");
}

TEST(BuildLog, ShowsTheLineThatUsesAMacroAndNotWhereTheMacroIs) {
  const std::string source = "one\ntwo\nthree\nfour\nfive\n", place = "error: /tmp/tempfile.cl:4:26 <Spelling=";
  for (const char* macro : {"<command line>:5:12>", "/tmp/tempfile.cl:2:12>"}) {
    const std::string log = place + macro + ": use of undeclared identifier 'nope'";
    EXPECT_EQ(explain_log(log + "\n", source), log + "\n  line 4: four");
  }
  const std::string option = "<command line>:2:9: error: macro name must be an identifier";
  EXPECT_EQ(explain_log(option, source), option);
}

TEST(BuildLog, OfASourceThatNumbersItsLinesItselfIsShownAsItIs) {
  const std::string source = "#line 1 \"foo.cl\"\nfirst\nsecond\n", error = "error: foo.cl:2:3: bad";
  EXPECT_EQ(explain_log("warning: foo.cl:1:1: unused\n" + error + "\n", source), error);
}

TEST(BuildLog, WithoutALineIsShownAsItIs) {
  EXPECT_EQ(explain_log("error: the linker failed\n", "one\n"), "error: the linker failed");
  EXPECT_EQ(explain_log("", "one\n"), "");
  EXPECT_EQ(explain_log("x.cl:99:1: error: past the end", "one\n"), "x.cl:99:1: error: past the end");
}

}  // namespace
}  // namespace xpuruntime::opencl
