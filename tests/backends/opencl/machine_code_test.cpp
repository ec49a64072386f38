#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "backends/opencl/device_fixture.h"
#include "backends/opencl/own_folder.h"
#include "backends/opencl/pocl_files.h"
#include "core/expect_error.h"

// PoCL links a kernel's machine code when it first runs. Here its linker is a script that notes who called it, and
// that fails or hangs when it is told to. PoCL looks for one once: each test runs in a process of its own.

namespace xpuruntime::opencl {
namespace {

std::string folder_of_linker() { return std::getenv("XRT_TEST_LINKER"); }

/// How often this process has linked, and all have.
struct Links {
  int here = 0;
  int all = 0;
};
std::ostream& operator<<(std::ostream& out, const Links& links) {
  return out << links.here << " of " << (links.all > 0 ? "some" : "none");
}
Links links() {
  Links found;
  std::ifstream file(folder_of_linker() + "/linked");
  for (pid_t parent = 0; file >> parent; ++found.all) found.here += parent == getpid();
  return found;
}

void tell_linker(const std::string& what) { std::ofstream(folder_of_linker() + "/does") << what; }

std::string children() {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(entry.path() / "children");
    for (std::string child; file >> child;) all += child + " ";
  }
  return all;
}

class Launches : public OpenClTest {
 protected:
  static constexpr const char* source =
      "typedef struct { int a[5]; float b; } Five;\n"
      "__kernel void fill(__global float* x, Five five, __local float* part, char3 c, ulong to) {\n"
      "  part[get_local_id(0)] = five.b;\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  x[get_global_id(0)] = part[0] + (float)(c.y + to);\n"
      "}\n";
  struct Five {
    int a[5] = {};
    float b = 3;
  };

  template <class T>
  static FunctionArgument value(const T& of) {
    FunctionArgument argument;
    argument.value.resize(sizeof of);
    std::memcpy(argument.value.data(), &of, sizeof of);
    return argument;
  }

  /// "ok", or what went wrong.
  std::string fill(SourceFunction& function, std::size_t count, const WorkSize& local) {
    const Tensor x = upload(HostTensor(make_spec(DataType::float32, {static_cast<std::int64_t>(count)})), 0);
    FunctionArgument memory, part;
    memory.tensor = x;
    part.local_bytes = 4096;
    const FunctionArgument arguments[] = {memory, value(Five{}), part, value(std::array<char, 4>{0, 4, 0, 0}),
                                          value(std::uint64_t{5})};
    const Status status = function.run({arguments, {count, 1, 1}, local}, {});
    if (!status.ok()) return status.message();
    return download(x).get(count - 1) == 12 ? "ok" : "wrong numbers";
  }
  static std::shared_ptr<SourceFunction> function() { return driver().compile(0, {source, "fill", ""}); }

  void add(std::int64_t count) {
    const TensorSpec spec = make_spec(DataType::float32, {count});
    const auto plan = prepare("ADD_DIRECT", problem_of(OpId::add, {spec, spec}, Attributes(OpId::add)));
    const HostTensor host = random_tensor(spec);
    const Tensor input = upload(host), output = upload(HostTensor(spec));
    run(*plan, {input, input}, output);
    ASSERT_EQ(download(output).get(static_cast<std::size_t>(count) - 1),
              2 * host.get(static_cast<std::size_t>(count) - 1));
  }
};

TEST_F(Launches, DISABLED_OfAllKinds) {
  const auto filled = function();
  for (const std::size_t count : {640, 1280, 64 * 1023, 64 * 1024, 6400000})
    for (const std::size_t local : {0, 1, 64}) ASSERT_EQ(fill(*filled, count, {local, 1, 1}), "ok") << count;
  for (const std::int64_t count : {999, 65535 * 16, 65535 * 64}) add(count);
  std::cout << "linked here " << links() << "; started " << (children().empty() ? "nobody" : "a worker") << std::endl;
}

TEST_F(Launches, DISABLED_OfAGrowingSequence) {
  const auto problem = [](int keys) {
    const std::string kv = "f32[1,2," + std::to_string(keys) + ",16]";
    return parse_problem("attention(f32[1,4,1,16], " + kv + ", " + kv + ")", device);
  };
  const auto plan = prepare("ATTENTION_SINGLE_QUERY", problem(1023));
  for (const int keys : {1023, 513, 700}) {
    const Problem now = problem(keys);
    std::vector<Tensor> inputs;
    for (const TensorSpec& spec : now.inputs) inputs.push_back(upload(random_tensor(spec)));
    run(*plan, inputs, upload(HostTensor(now.outputs[0])));
  }
  ASSERT_TRUE(driver().synchronize(0, {}).ok());
  std::cout << "linked here " << links() << std::endl;
}

TEST_F(Launches, DISABLED_WithoutTheCacheThatWas) {
  const auto filled = function();
  ASSERT_EQ(fill(*filled, 640, {64, 1, 1}), "ok");
  std::filesystem::remove_all(std::getenv("POCL_CACHE_DIR"));
  ASSERT_EQ(fill(*filled, 640, {32, 1, 1}), "ok");
  ASSERT_EQ(fill(*driver().compile(0, {std::string(source) + "\n", "fill", "-DNEW"}), 640, {64, 1, 1}), "ok");
  std::cout << "linked here " << links() << std::endl;
}

TEST_F(Launches, DISABLED_WithABadLinker) {
  const auto filled = function();
  std::cout << "before: " << fill(*filled, 640, {64, 1, 1}) << "\n";
  for (const char* does : {"exit 1", "while kill -5 $PPID; do sleep 0.1; done", "sleep 100"}) {
    tell_linker(does);
    std::cout << does << ": " << fill(*filled, 640, {32, 1, 1}) << "\n";
  }
  tell_linker("");
  std::cout << "after: " << fill(*filled, 640, {32, 1, 1}) << std::endl;
}

void make_old(const std::filesystem::path& file) {
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) - std::chrono::hours(1));
}

class MachineCodeTest : public OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    if (IsSkipped()) return;
    if (profile().vendor != "pocl") GTEST_SKIP() << "needs PoCL";
    std::string linker;
    for (const char* file : {"/usr/bin/ld", "/bin/ld", "/usr/local/bin/ld"})
      if (linker.empty() && std::filesystem::exists(file)) linker = file;
    if (linker.empty()) GTEST_SKIP() << "needs a linker in a usual folder";
    const std::string script = own_.path() + "/ld";
    std::ofstream(own_.path() + "/does") << "";
    std::ofstream(script) << "#!/bin/sh\necho $PPID >>" << own_.path() << "/linked\n. " << own_.path() << "/does\nexec "
                          << linker << " \"$@\"\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  }

  std::string output_of(const std::string& test, const std::string& variables = "") const {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const std::string command = "POCL_CACHE_DIR='" + pocl_ + "' XRT_TEST_LINKER='" + own_.path() + "' PATH='" +
                                own_.path() + "':\"$PATH\" " + variables + " timeout 200 '" + self +
                                "' --gtest_filter=Launches.DISABLED_" + test + " --gtest_also_run_disabled_tests 2>&1";
    std::FILE* child = popen(command.c_str(), "r");
    std::string output;
    for (char line[512]; child != nullptr && std::fgets(line, sizeof line, child) != nullptr;) output += line;
    EXPECT_EQ(child == nullptr ? -1 : pclose(child), 0) << output;
    return output;
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  OwnFolder own_;
  std::string pocl_ = own_.path() + "/pocl";
};

TEST_F(MachineCodeTest, IsMadeByTheWorkerAndOnceAsLongAsPoclKeepsIt) {
  std::string text = output_of("OfAllKinds");
  EXPECT_TRUE(has(text, "linked here 0 of some; started a worker")) << text;
  text = output_of("OfAllKinds");
  EXPECT_TRUE(has(text, "linked here 0 of some; started nobody")) << text;
  std::filesystem::remove_all(pocl_);
  text = output_of("OfAllKinds");
  EXPECT_TRUE(has(text, "linked here 0 of some; started a worker")) << text;
}

TEST_F(MachineCodeTest, ThatIsDamagedIsMadeByTheWorkerAgainAndSoIsItsProgram) {
  for (const char* kind : {".so", ".bc"}) {
    std::string text = output_of("OfAllKinds");
    int damaged = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(pocl_)) {
      if (file.path().extension() != kind) continue;
      std::ofstream(file.path(), std::ios::binary | std::ios::in).seekp(100) << "damaged";
      make_old(file.path());
      ++damaged;
    }
    EXPECT_GT(damaged, 1) << kind;
    text = output_of("OfAllKinds");
    EXPECT_TRUE(has(text, "linked here 0 of some; started a worker")) << kind << text;
    text = output_of("OfAllKinds");
    EXPECT_TRUE(has(text, "linked here 0 of some; started nobody")) << kind << text;
  }
}

TEST(PoclFiles, AreWholeWhereSomebodyHasNotedThemAsTheyAre) {
  const OwnFolder own;
  const DiskCache notes(own.path() + "/notes");
  const std::string path = own.path() + "/a file";
  EXPECT_FALSE(is_whole(path, own.path(), notes));
  for (const char* text : {"by one", "by another"}) {
    std::ofstream(path) << text;
    note_whole(path, notes);
    EXPECT_TRUE(is_whole(path, own.path(), notes));
  }
  std::ofstream(path) << "by one";
  make_old(path);
  EXPECT_TRUE(is_whole(path, own.path(), notes));
  std::ofstream(path) << "damaged";
  EXPECT_TRUE(is_whole(path, own.path(), notes)) << "it is new, and its writer may yet note it";
  make_old(path);
  EXPECT_FALSE(is_whole(path, own.path() + "/other", notes));
  EXPECT_TRUE(std::filesystem::exists(path)) << "it is none of PoCL's";
  EXPECT_FALSE(is_whole(path, own.path(), notes));
  EXPECT_FALSE(std::filesystem::exists(path)) << "so that it is made anew";
  std::ofstream(path) << "";
  note_whole(path, notes);
  EXPECT_FALSE(is_whole(path, own.path(), notes)) << "nothing useful is empty";
}

TEST(PoclFiles, NeedRoomOnTheirDisk) {
  const OwnFolder own;
  make_room(own.path() + "/some/folder", 1);
  EXPECT_TRUE(std::filesystem::is_directory(own.path() + "/some/folder"));
  make_room("/proc/none/at/all", ~std::uint64_t{0});
  expect_error(ErrorCode::out_of_memory, "set POCL_CACHE_DIR", [&] { make_room(own.path(), ~std::uint64_t{0}); });
}

TEST_F(MachineCodeTest, IsMadeWhereTheCacheIsRemovedMeanwhile) {
  const std::string text = output_of("WithoutTheCacheThatWas");
  EXPECT_TRUE(has(text, "linked here 0 of some")) << text;
}

TEST_F(MachineCodeTest, OfPlansForAClassIsMadeByTheWorker) {
  const std::string text = output_of("OfAGrowingSequence");
  EXPECT_TRUE(has(text, "linked here 0 of some")) << text;
}

TEST_F(MachineCodeTest, ThatCannotBeMadeIsAnErrorAndIsTriedAgain) {
  const std::string text = output_of("WithABadLinker", "XPURUNTIME_OPENCL_TIMEOUT=15");
  EXPECT_TRUE(has(text, "before: ok\n")) << text;
  EXPECT_TRUE(has(text, "exit 1: [opencl::build] the compiler of ") && has(text, "crashed with signal 6")) << text;
  EXPECT_TRUE(has(text, "done: [opencl::build] the compiler of ") && has(text, "crashed with signal 5")) << text;
  EXPECT_TRUE(has(text, "sleep 100: [opencl::build] the compiler of ") && has(text, "gave no answer within 15 s"))
      << text;
  EXPECT_TRUE(has(text, ", making machine code of 'fill' for work-groups of 32: update the OpenCL driver")) << text;
  EXPECT_TRUE(has(text, "after: ok\n")) << text;
}

}  // namespace
}  // namespace xpuruntime::opencl
