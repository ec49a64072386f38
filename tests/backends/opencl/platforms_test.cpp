#include "backends/opencl/platforms.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "backends/opencl/device_fixture.h"
#include "backends/opencl/own_folder.h"
#include "core/in_child.h"

// Drivers that crash or hang. What starts OpenCL runs in processes of their own: loaders look for drivers once.

namespace xpuruntime::opencl {
namespace {

class PlatformsTest : public OpenClTest {
 protected:
  /// A folder of drivers: the installed ones, and those that `libraries` names.
  std::string vendors(const std::vector<std::string>& libraries, bool installed = true) {
    const std::string folder = own_.path() + "/vendors" + std::to_string(count_++) + "/";
    std::filesystem::create_directories(folder);
    std::error_code ignored;
    if (installed)
      for (const auto& file : std::filesystem::directory_iterator("/etc/OpenCL/vendors", ignored))
        std::filesystem::copy(file.path(), folder + file.path().filename().string());
    for (std::size_t i = 0; i < libraries.size(); ++i)
      std::ofstream(folder + "bad" + std::to_string(i) + ".icd") << libraries[i] << "\n";
    return folder;
  }

  /// What a process finds that starts with these variables.
  static std::string report(const std::string& variables, const std::string& test = "Platforms.DISABLED_Report",
                            const std::string& self = std::filesystem::read_symlink("/proc/self/exe")) {
    const std::string command = variables + " /usr/bin/timeout 60 '" + self + "' --gtest_filter=" + test +
                                " --gtest_also_run_disabled_tests 2>&1";
    std::FILE* child = popen(command.c_str(), "r");
    std::string output;
    for (char line[512]; child != nullptr && std::fgets(line, sizeof line, child) != nullptr;) output += line;
    if (child != nullptr) pclose(child);
    return output;
  }

  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  OwnFolder own_;
  int count_ = 0;
};

TEST(Platforms, DISABLED_Report) {
  const OpenClDriver driver;
  std::cout << "devices: " << driver.devices().size() << "; why: " << driver.why_absent() << "\n";
  for (const std::string& reason : driver.left_out()) std::cout << "left out: " << reason << "\n";
  if (driver.devices().empty()) return;
  OpenClDriver runs;
  runs.deallocate(0, runs.allocate(0, 64));
  std::cout << "built: " << (runs.context(0).program("__kernel void k(void) {}", "") != nullptr) << std::endl;
}

TEST_F(PlatformsTest, ADriverThatCrashesIsLeftOut) {
  const std::string text = report("OCL_ICD_VENDORS='" + vendors({XRT_CRASHING_ICD}) + "'");
  EXPECT_TRUE(has(text, "left out: bad0.icd: ") && has(text, "crashed with signal 6")) << text;
  EXPECT_FALSE(has(text, "devices: 0")) << text;
  EXPECT_TRUE(has(text, "built: 1")) << text;
}

TEST_F(PlatformsTest, ADriverThatCrashesIsLeftOutWhereTheTemporaryFolderCannotBeWritten) {
  const std::string variables = "TMPDIR=/proc OCL_ICD_VENDORS='" + vendors({XRT_CRASHING_ICD}) + "'";
  for (const char* round : {"tried", "known"}) {
    const std::string text = report(variables);
    EXPECT_TRUE(has(text, "left out: bad0.icd: ") && has(text, "crashed with signal 6")) << round << "\n" << text;
    EXPECT_TRUE(has(text, "built: 1")) << round << "\n" << text;
  }
}

/// As on a full disk: files can be made, and nothing can be written to them.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_ = {};
};

TEST_F(PlatformsTest, CopiesOfIcdFilesGoToTheFirstFolderThatTakesThem) {
  const std::string file = vendors({"libAny.so"}, false) + "bad0.icd", place = own_.path() + "/place";
  {
    const OnlyThese only({file}, {"/proc", place});
    EXPECT_EQ(only.why_not(), "");
    const std::string folder = only.environment().at("OCL_ICD_VENDORS");
    EXPECT_EQ(folder.find(place), 0u) << folder;
    EXPECT_TRUE(std::filesystem::exists(folder + "bad0.icd"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(place)) << "it goes with its user";
  const OnlyThese nowhere({file}, {"/proc", "/proc/version"});
  EXPECT_TRUE(has(nowhere.why_not(), "tried /proc, /proc/version): set TMPDIR to one that can be written"))
      << nowhere.why_not();
  std::string why;
  {
    const FullDisk full;
    why = OnlyThese({file}, {place}).why_not();
  }
  EXPECT_TRUE(has(why, "no folder takes copies")) << why;
  EXPECT_TRUE(std::filesystem::is_empty(place));
}

TEST_F(PlatformsTest, DriversThatCannotBeTriedOneByOneAreLeftOut) {
  const std::string variables = "OCL_ICD_VENDORS='" + vendors({XRT_CRASHING_ICD}) + "'";
  const std::string full = "trap '' XFSZ; ulimit -f 0; " + variables;
  const std::string text = report(full);
  EXPECT_TRUE(has(text, "devices: 0") && has(text, "all drivers together: ") && has(text, "crashed with signal 6") &&
              has(text, "they cannot be tried one by one: no folder takes copies"))
      << text;
  EXPECT_TRUE(has(report(variables), "built: 1")) << "nothing of it was kept";
  const std::string known = report(full);
  EXPECT_TRUE(has(known, "devices: 0") && has(known, "left out: bad0.icd: ") &&
              has(known, "left out: the other drivers: no folder takes copies"))
      << known;
}

TEST_F(PlatformsTest, ADriverThatNoIcdFileNamesIsTriedToo) {
  const std::string text = report("OCL_ICD_VENDORS='" XRT_CRASHING_ICD "'");
  if (has(text, "no OpenCL platform")) GTEST_SKIP() << "this OpenCL loader takes only folders";
  EXPECT_TRUE(has(text, "devices: 0") && has(text, "a driver that no .icd file names: crashed with signal 6")) << text;
}

TEST_F(PlatformsTest, AnIcdFileWithoutAFolderIsOneOfTheUsualFolder) {
  std::string file;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/etc/OpenCL/vendors", ignored))
    file = entry.path().filename();
  if (file.empty()) GTEST_SKIP() << "no driver is installed in /etc/OpenCL/vendors";
  const std::string text = report("OCL_ICD_VENDORS='" + file + "'");
  EXPECT_FALSE(has(text, "left out: ")) << text;
}

TEST_F(PlatformsTest, WhereNoWorkerCanBeStartedNowNothingIsKept) {
  const auto before = own_.files();
  const auto is_absent = [] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    const TriedPlatforms tried = try_platforms(DiskCache());
    return tried.devices.empty() && has(tried.absent, "cannot be started now: Too many open files");
  };
  EXPECT_EQ(in_child(is_absent), 0);
  EXPECT_EQ(own_.files(), before);
}

TEST_F(PlatformsTest, WithoutPoclsCacheFolderTheReasonNamesIt) {
  if (profile().vendor != "pocl") GTEST_SKIP() << "needs PoCL";
  const std::string text = report("POCL_CACHE_DIR=/proc/no_such_folder");
  EXPECT_TRUE(has(text, "as its cache folder '/proc/no_such_folder' cannot be written: set POCL_CACHE_DIR")) << text;
  EXPECT_FALSE(has(text, "repair or remove")) << text;
}

TEST_F(PlatformsTest, DISABLED_Prepare) {
  const TensorSpec spec = make_spec(DataType::float32, {64});
  const Problem problem = problem_of(OpId::relu, {spec}, Attributes(OpId::relu));
  try {
    prepare("ELEMENTWISE_DIRECT", problem);
    std::cout << "prepared" << std::endl;
  } catch (const Error& error) {
    std::cout << "error: " << error.what() << std::endl;
  }
}

TEST_F(PlatformsTest, WhatADamagedCacheOfPoclBreaksNamesItAndTheCure) {
  if (profile().vendor != "pocl") GTEST_SKIP() << "needs PoCL";
  const std::string cache = own_.path() + "/pocl", variables = "POCL_CACHE_DIR='" + cache + "'";
  const char* test = "PlatformsTest.DISABLED_Prepare";
  const std::string before = report(variables, test);
  EXPECT_TRUE(has(before, "prepared")) << before;
  for (const std::uintmax_t kept : {0u, 100u}) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(cache))
      if (file.path().filename() == "program.bc") std::filesystem::resize_file(file.path(), kept);
    const std::string text = report(variables, test);
    EXPECT_TRUE(has(text, "error: ") && has(text, "PoCL's own cache may be damaged: delete '" + cache + "'")) << text;
  }
}

TEST_F(PlatformsTest, WithoutAWorkerThisProcessDoesItsWorkAndSaysSo) {
  // It is looked for beside the library, by the name that this was opened with.
  const std::filesystem::path parts = std::filesystem::path(Worker::default_program()).parent_path();
  for (const auto& file : std::filesystem::directory_iterator(parts.parent_path()))
    if (has(file.path().filename(), "libxpuruntime.so"))
      std::filesystem::create_symlink(file.path(), own_.path() + "/" + file.path().filename().string());
  const std::string text = report("LD_LIBRARY_PATH='" + own_.path() + "'");
  EXPECT_TRUE(has(text, "left out: protection from drivers that crash or hang: its worker '" + own_.path())) << text;
  EXPECT_TRUE(has(text, "built: 1")) << text;
}

TEST_F(PlatformsTest, ADriverThatHangsIsLeftOut) {
  const std::string text = report("XPURUNTIME_OPENCL_TIMEOUT=5 OCL_ICD_VENDORS='" + vendors({XRT_HANGING_ICD}) + "'");
  EXPECT_TRUE(has(text, "left out: bad0.icd: ") && has(text, "gave no answer within 5 s")) << text;
  EXPECT_TRUE(has(text, "built: 1")) << text;
}

TEST_F(PlatformsTest, DriversThatHangCostOneLimitAndAQuarterAndAreNotAskedAgainSoon) {
  const std::string program = own_.path() + "/worker", asked = own_.path() + "/asked";
  std::ofstream(program) << "#!/bin/sh\ndd bs=4096 count=1 2>/dev/null | tr -c '[:alnum:]' '[ *]' >> '" << asked
                         << "'\nsleep 100\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string folder = vendors({"libA.so", "libB.so", "libC.so"}, false);
  const auto hang = [&] {
    setenv("OCL_ICD_VENDORS", folder.c_str(), 1);
    setenv("XPURUNTIME_OPENCL_TIMEOUT", "4", 1);
    const auto start = std::chrono::steady_clock::now();
    const TriedPlatforms tried = try_platforms(DiskCache(own_.path() + "/cache"), program);
    const auto took = std::chrono::steady_clock::now() - start;
    for (const std::string& reason : tried.left_out) std::cout << reason << "\n";
    return tried.left_out.size() == 3 && has(tried.left_out[2], "bad2.icd: gave no answer within 4 s") &&
           tried.usable.empty() && took < std::chrono::seconds(12);  // one after the other they take 13
  };
  EXPECT_EQ(in_child(hang), 0);
  std::ifstream file(asked);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  EXPECT_EQ(words, (std::vector<std::string>{"probe", "1", "probe", "4", "probe", "4", "probe", "4"}));
  const auto entry = std::filesystem::directory_iterator(own_.path() + "/cache")->path();
  const std::string kept = DiskCache(own_.path() + "/cache").get(entry.stem().string()).value_or("");
  const std::size_t until = kept.find("until ");
  ASSERT_NE(until, std::string::npos) << kept;
  EXPECT_GT(std::stol(kept.substr(until + 6)), std::time(nullptr) + 3000);
}

TEST_F(PlatformsTest, DriversThatAreOnlySlowAreAskedTogetherOnceMore) {
  const std::string program = own_.path() + "/worker", asked = own_.path() + "/asked";
  // The first time it takes longer than a quarter of the limit; then it answers {"devices"}.
  std::ofstream(program) << "#!/bin/sh\ndd bs=4096 count=1 of=/dev/null 2>/dev/null\n"
                         << "[ -e '" << asked << "' ] || { touch '" << asked << "'; sleep 100; }\n"
                         << "printf '\\017\\0\\0\\0\\0\\0\\0\\0\\007\\0\\0\\0\\0\\0\\0\\0devices' >&0\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string folder = vendors({"libA.so", "libB.so"}, false);
  const auto slow = [&] {
    setenv("OCL_ICD_VENDORS", folder.c_str(), 1);
    setenv("XPURUNTIME_OPENCL_TIMEOUT", "7", 1);
    const TriedPlatforms tried = try_platforms(DiskCache(own_.path() + "/cache"), program);
    for (const std::string& reason : tried.left_out) std::cout << reason << "\n";
    return tried == TriedPlatforms{true};
  };
  EXPECT_EQ(in_child(slow), 0);
}

TEST_F(PlatformsTest, WithNoDriverThatWorksTheReasonSaysSo) {
  const std::string text = report("OCL_ICD_VENDORS='" + vendors({XRT_CRASHING_ICD}, false) + "'");
  EXPECT_TRUE(has(text, "devices: 0; why: no usable OpenCL device: bad0.icd: ")) << text;
  EXPECT_TRUE(has(text, "repair or remove that driver")) << text;
}

TEST_F(PlatformsTest, AnIcdFileWhoseLibraryIsMissingIsReportedAndTheOthersWork) {
  const std::string text = report("OCL_ICD_VENDORS='" + vendors({"libNoSuchDriver.so.1"}) + "'");
  EXPECT_TRUE(has(text, "left out: bad0.icd: its library cannot be opened: libNoSuchDriver.so.1: ")) << text;
  EXPECT_TRUE(has(text, "built: 1")) << text;
  const std::string alone = report("OCL_ICD_VENDORS='" + vendors({"/no/such/driver.so"}, false) + "'");
  EXPECT_TRUE(has(alone, "devices: 0; why: no usable OpenCL device: bad0.icd: its library cannot be opened: "))
      << alone;
  const std::string both = report("OCL_ICD_VENDORS='" + vendors({XRT_CRASHING_ICD, "/no/such/driver.so"}) + "'");
  EXPECT_TRUE(has(both, "left out: bad0.icd: ") && has(both, "left out: bad1.icd: its library")) << both;
}

TEST_F(PlatformsTest, ADriverThatWasLeftOutIsAskedAgainWhereItsCacheIsMoved) {
  const DiskCache cache;
  const std::string elsewhere = own_.path() + "_elsewhere";
  const auto new_entries = [&] {
    const auto before = own_.files();
    try_platforms(cache);
    return own_.files().size() - before.size();
  };
  try_platforms(cache);
  EXPECT_EQ(new_entries(), 0u) << "known";
  for (const char* name : {"POCL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
    const char* old = std::getenv(name);
    const std::string before = old == nullptr ? "" : old;
    setenv(name, elsewhere.c_str(), 1);
    EXPECT_EQ(new_entries(), 1u) << name;
    old == nullptr ? unsetenv(name) : setenv(name, before.c_str(), 1);
  }
  std::filesystem::remove_all(elsewhere);
}

TEST_F(PlatformsTest, ADriverThatEndsTheProcessWithoutALinkerIsLeftOut) {
  if (profile().vendor != "pocl") GTEST_SKIP() << "needs PoCL";
  const std::string text = report("POCL_CACHE_DIR='" + own_.path() + "/pocl' PATH=/no/such/folder");
  EXPECT_TRUE(has(text, "devices: 0") && has(text, "crashed with signal 6: ") && has(text, "\"ld\"")) << text;
}

TEST_F(PlatformsTest, ALinkerThatWasRemovedSinceIsFoundBeforeItEndsTheProcess) {
  if (profile().vendor != "pocl") GTEST_SKIP() << "needs PoCL";
  const std::string tools = own_.path() + "/tools";
  std::filesystem::create_directory(tools);
  std::string linker;
  for (const char* folder : {"/usr/bin/ld", "/bin/ld", "/usr/local/bin/ld"})
    if (linker.empty() && std::filesystem::exists(folder)) linker = folder;
  if (linker.empty()) GTEST_SKIP() << "needs a linker in a usual folder";
  std::filesystem::create_symlink(linker, tools + "/ld");
  const std::string variables = "POCL_CACHE_DIR='" + own_.path() + "/pocl' PATH='" + tools + "'";
  const std::string with = report(variables);
  EXPECT_TRUE(has(with, "built: 1")) << with;
  std::filesystem::remove(tools + "/ld");
  std::filesystem::remove_all(own_.path() + "/pocl");
  const std::string without = report(variables);
  EXPECT_TRUE(has(without, "devices: 0") && has(without, "crashed with signal 6: ")) << without;
}

TEST_F(PlatformsTest, ASecondProcessNeedsNoWorker) {
  const DiskCache cache;
  const TriedPlatforms first = try_platforms(cache);
  ASSERT_TRUE(first.tried);
  EXPECT_FALSE(first.devices.empty());
  EXPECT_TRUE(first.left_out.empty());
  const auto entries = own_.files();
  ASSERT_EQ(entries.size(), 1u);
  const std::string key = std::filesystem::path(entries[0]).stem().string();
  cache.put(key, "device 77 1 A Platform\tA Device\n");
  EXPECT_EQ(try_platforms(cache).devices, (std::vector<TriedDevice>{{"A Platform", "A Device", 77, true}}))
      << "nothing was asked";
  cache.put(key, "left_out something\nuntil 1000\n");
  EXPECT_EQ(try_platforms(cache), first) << "bad news that are old are asked about again";
  std::ofstream(entries[0]) << "damaged";
  EXPECT_EQ(try_platforms(cache), first);
}

TEST_F(PlatformsTest, WithoutAWorkerNothingIsKnown) {
  const auto before = own_.files();  // of this process's own discovery, where it comes first
  const TriedPlatforms tried = try_platforms(DiskCache(), "/no/such/program");
  EXPECT_FALSE(tried.tried);
  EXPECT_TRUE(has(tried.unprotected, "/no/such/program' could not be started: No such file")) << tried.unprotected;
  EXPECT_EQ(own_.files(), before);
}

TEST(Loader, ThatIsMissingIsReportedWithWhatToInstall) {
  // The real one stays as it is.
  const std::string text = load_opencl("libNoSuchOpenCL.so.1");
  EXPECT_NE(text.find("libNoSuchOpenCL.so.1"), std::string::npos) << text;
  EXPECT_NE(text.find("install ocl-icd-libopencl1"), std::string::npos) << text;
}

}  // namespace
}  // namespace xpuruntime::opencl
