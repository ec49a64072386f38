#include "xpuruntime/select/lock.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <sstream>

#include "core/expect_error.h"
#include "select/select_fixture.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

Environment machine(const std::string& driver = "1.0", const std::string& name = "cpu test machine") {
  return {name, {{"cores", "2"}}, {{"driver", driver}}};
}

Decision decision_of(const std::string& problem, const std::string& kernel, const std::string& plan = "") {
  Decision decision;
  decision.problem = parse_problem(problem);
  decision.kernel = kernel;
  decision.plan = plan;
  decision.workspace_bytes = 64;
  return decision;
}

KernelLock small_lock() {
  KernelLock lock;
  lock.add(decision_of("relu(f32[8])", "simd"), machine());
  LockEntry& hashed = lock.add(decision_of("matmul(f32[8,8], f32[8,8])", "packed", "tile=6x16"), machine("2.0"));
  hashed.outputs = "sha256:00ff";
  hashed.seed = 7;
  return lock;
}

std::string refusal_of(const std::string& text) {
  try {
    KernelLock::from_json(text);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(KernelLock, ReadsBackWhatItWrote) {
  const KernelLock lock = small_lock();
  const std::string text = lock.to_json();
  EXPECT_EQ(KernelLock::from_json(text), lock);
  EXPECT_EQ(KernelLock::from_json(text).to_json(), text);
  EXPECT_EQ(KernelLock::from_json(KernelLock().to_json()), KernelLock());
}

TEST(KernelLock, HasOneDecisionALineSortedByProblemWhateverTheOrderOfRecording) {
  KernelLock backwards;
  std::vector<std::string> problems = {"relu(f32[8])", "add(f32[8], f32[8])", "matmul(f32[8,8], f32[8,8])"};
  for (const std::string& problem : problems) backwards.add(decision_of(problem, "reference"), machine());
  KernelLock forwards;
  for (auto at = problems.rbegin(); at != problems.rend(); ++at) forwards.add(decision_of(*at, "reference"), machine());
  EXPECT_EQ(backwards.to_json(), forwards.to_json());

  std::istringstream lines(backwards.to_json());
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("{\"problem\":")) found.push_back(line);
  }
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
}

TEST(KernelLock, ProblemsAreFoundByTheirWholeText) {
  const KernelLock lock = small_lock();
  ASSERT_NE(lock.find("relu(f32[8]) @cpu:0"), nullptr);
  EXPECT_EQ(lock.find("relu(f32[8]) @cpu:0")->kernel, "simd");
  EXPECT_EQ(lock.find("relu(f32[9]) @cpu:0"), nullptr);
}

TEST(KernelLock, TheSameAgainChangesNothingAndAnotherChoiceIsAnError) {
  KernelLock lock = small_lock();
  const KernelLock before = lock;
  lock.add(decision_of("relu(f32[8])", "simd"), machine());
  EXPECT_EQ(lock, before);
  EXPECT_THROW(lock.add(decision_of("relu(f32[8])", "reference"), machine()), Error);
  EXPECT_THROW(lock.add(decision_of("relu(f32[8])", "simd", "other=1"), machine()), Error);
  EXPECT_THROW(lock.add(decision_of("relu(f32[8])", "simd"), machine("3.0")), Error);
  EXPECT_THROW(lock.add(decision_of("relu(f32[1])", ""), machine()), Error);  // nothing was chosen
  EXPECT_EQ(lock, before);
}

TEST(KernelLock, EveryFlippedBitIsReportedOrChangesNothing) {
  const KernelLock lock = small_lock();
  const std::string text = lock.to_json();
  int refused = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ 1 << bit);
      try {
        EXPECT_EQ(KernelLock::from_json(flipped), lock) << "byte " << i << ", bit " << bit;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(text.size()) * 7);  // only white space may turn into other white space
}

TEST(KernelLock, ATruncatedFileIsAnErrorAtEveryLength) {
  const std::string text = small_lock().to_json();
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_FALSE(refusal_of(text.substr(0, length)).empty()) << length;
  }
}

TEST(KernelLock, AnEditedEntryIsNamed) {
  std::string text = small_lock().to_json();
  text.replace(text.find("packed"), 6, "skinny");
  EXPECT_NE(refusal_of(text).find("matmul(f32[8,8], f32[8,8]) @cpu:0 does not fit its checksum"), std::string::npos)
      << refusal_of(text);
}

TEST(KernelLock, WhatIsNoLockIsRefusedWithTheReason) {
  EXPECT_NE(refusal_of("[]").find("a lock is a JSON object"), std::string::npos);
  EXPECT_NE(refusal_of("{\"version\": 1}").find("'environments' is missing"), std::string::npos);
  EXPECT_NE(refusal_of("{\"version\": 5, \"environments\": {}, \"decisions\": []}").find("must be 1, 2, 3 or 4"),
            std::string::npos);
  EXPECT_NE(refusal_of("{\"version\": 1, \"environments\": {}, \"decisions\": [], \"more\": 1}").find("'more'"),
            std::string::npos);
  EXPECT_NE(refusal_of("{\"version\": 1, \"environments\": {}, \"decisions\": [1]}").find("decisions[0]"),
            std::string::npos);
}

TEST(KernelLock, AWrongEnvironmentIsRefusedByItsField) {
  const auto refusal_with = [](const std::string& environment) {
    return refusal_of("{\"version\": 1, \"environments\": {\"ab\": " + environment + "}, \"decisions\": []}");
  };
  EXPECT_NE(refusal_with("1").find("'environments.ab' must be an object"), std::string::npos) << refusal_with("1");
  const std::string missing = refusal_with(R"({"device": "cpu", "traits": {}})");
  EXPECT_NE(missing.find("'environments.ab.versions' is missing; record the lock again"), std::string::npos) << missing;
  const std::string typed = refusal_with(R"({"device": "cpu", "traits": {"cores": 2}, "versions": {}})");
  EXPECT_NE(typed.find("'environments.ab.traits.cores' must be a string"), std::string::npos) << typed;
  const std::string large = refusal_with(Environment{std::string(65536, 'x')}.to_json());
  EXPECT_NE(large.find("'environments.ab' is larger than any environment"), std::string::npos) << large.substr(0, 200);
}

TEST(KernelLock, SavesOverAnOldFileOrLeavesItAlone) {
  const std::string folder = ::testing::TempDir() + "lock_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/kernels.lock";
  small_lock().save(path);
  EXPECT_EQ(KernelLock::load(path), small_lock());
  EXPECT_THROW(small_lock().save(folder + "/no/such/folder/kernels.lock"), Error);
  EXPECT_EQ(KernelLock::load(path), small_lock());
  EXPECT_THROW(KernelLock::load(folder + "/missing.lock"), Error);
  std::filesystem::remove_all(folder);
}

TEST(KernelLock, LoadsMoreDecisionsThanAPolicyMayHaveBytes) {
  KernelLock lock;
  for (int i = 1; i <= 9000; ++i) lock.add(decision_of("relu(f32[" + std::to_string(i) + "])", "simd"), machine());
  const std::string path = ::testing::TempDir() + "large.lock";
  lock.save(path);
  EXPECT_GT(std::filesystem::file_size(path), 1u << 20);
  EXPECT_EQ(KernelLock::load(path), lock);
  std::filesystem::remove(path);
}

TEST(LockDiff, FindsNothingBetweenEqualLocks) { EXPECT_TRUE(diff(small_lock(), small_lock()).empty()); }

TEST(LockDiff, NamesWhatWasAddedRemovedAndChanged) {
  KernelLock before;
  before.add(decision_of("relu(f32[1])", "simd"), machine());
  before.add(decision_of("relu(f32[2])", "simd"), machine());
  before.add(decision_of("relu(f32[3])", "simd", "unroll=2"), machine());
  KernelLock after;
  after.add(decision_of("relu(f32[2])", "reference"), machine());
  after.add(decision_of("relu(f32[3])", "simd", "unroll=4"), machine("2.0"));
  after.add(decision_of("relu(f32[4])", "simd"), machine());
  const std::vector<LockDifference> expected = {{"relu(f32[1]) @cpu:0", "entry", "simd", ""},
                                                {"relu(f32[2]) @cpu:0", "kernel", "simd", "reference"},
                                                {"relu(f32[3]) @cpu:0", "plan", "unroll=2", "unroll=4"},
                                                {"relu(f32[3]) @cpu:0", "environment.driver", "1.0", "2.0"},
                                                {"relu(f32[4]) @cpu:0", "entry", "", "simd"}};
  EXPECT_EQ(diff(before, after), expected);
}

TEST(LockDiff, TheSameProblemsUnderOtherLimitsAreOnesWhoseLimitsDiffer) {
  KernelLock before, after;
  for (const char* problem : {"relu(f32[1])", "relu(f32[2])"}) {
    before.add(decision_of(problem, "simd"), machine());
    after.add(decision_of(std::string(problem) + " deterministic threads=2", "simd"), machine());
  }
  after.add(decision_of("relu(f32[3]) threads=2", "simd"), machine());
  const std::vector<LockDifference> expected = {{"relu(f32[1]) @cpu:0", "limits", "", "deterministic threads=2"},
                                                {"relu(f32[2]) @cpu:0", "limits", "", "deterministic threads=2"},
                                                {"relu(f32[3]) @cpu:0 threads=2", "entry", "", "simd"}};
  EXPECT_EQ(diff(before, after), expected);
  // Where it is not clear which belongs to which, each is one of its own.
  after.add(decision_of("relu(f32[1]) threads=4", "simd"), machine());
  const auto found = diff(before, after);
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](const auto& d) { return d.field == "entry"; }), 4);
}

TEST(LockDiff, LeavesOutWhatTheKernelsDoNotDependOn) {
  const auto recorded = [](const std::string& openblas, const std::string& cores) {
    const Environment there = {"cpu test machine", {{"cores", cores}}, {{"openblas", openblas}}};
    KernelLock lock;
    lock.add(decision_of("add(f32[8], f32[8])", "simd"), there);
    lock.add(decision_of("matmul(f32[8,8], f32[8,8])", "openblas"), there);
    return lock;
  };
  const std::vector<LockDifference> expected = {
      {"matmul(f32[8,8], f32[8,8]) @cpu:0", "environment.openblas", "0.3.21", "0.3.28"}};
  EXPECT_EQ(diff(recorded("0.3.21", "2"), recorded("0.3.28", "4")), expected);
}

TEST(LockDiff, ComparesHashesOnlyWhereBothWereMadeFromTheSameInputs) {
  const auto hashed = [](const std::string& hash, std::uint64_t seed) {
    KernelLock lock;
    LockEntry& entry = lock.add(decision_of("relu(f32[1])", "simd"), machine());
    entry.outputs = hash;
    entry.seed = seed;
    return lock;
  };
  EXPECT_EQ(diff(hashed("sha256:1", 1), hashed("sha256:2", 1)).size(), 1u);
  EXPECT_TRUE(diff(hashed("sha256:1", 1), hashed("sha256:2", 2)).empty());
  EXPECT_TRUE(diff(hashed("sha256:1", 1), hashed("", 0)).empty());
}

/// A choice under a lock.
class LockedChoice : public testing::SelectFixture {
 protected:
  LockedChoice() {
    profile.name = "test machine";
    profile.driver_version = "1.0";
  }
  Decision decide_locked(LockMode mode = LockMode::strict) {
    const LockUse use{std::make_shared<const KernelLock>(lock), mode};
    return xpuruntime::select({problem, profile, kernels, policy, rules, builtin, nullptr, exclusions, true, &use})
        .decision;
  }
  void lock_to(const std::string& kernel, DeviceProfile where) {
    lock.add(decision_of("matmul(f32[8,8], f32[8,8])", kernel), environment_of(where));
  }
  KernelLock lock;
};

TEST(KernelLock, WritesTheVersionsOfKernelsThatSomebodyBrought) {
  KernelLock lock = small_lock();
  EXPECT_EQ(lock.to_json().find("kernel_version"), std::string::npos);  // as before there were any
  EXPECT_TRUE(lock.to_json().starts_with("{\n\"version\": 1,"));
  Decision mine = decision_of("relu(f32[9])", "mine");
  mine.kernel_version = "1.2";
  EXPECT_EQ(lock.add(mine, machine()).kernel_version, "1.2");
  Decision unversioned = decision_of("relu(f32[10])", "mine");
  unversioned.kernel_version = testing::MadeUpKernel("mine").Kernel::version();
  EXPECT_EQ(lock.add(unversioned, machine()).kernel_version, "unversioned");
  const std::string text = lock.to_json();
  EXPECT_TRUE(text.starts_with("{\n\"version\": 2,")) << text;
  EXPECT_NE(text.find("\"kernel_version\":\"1.2\""), std::string::npos) << text;
  EXPECT_EQ(KernelLock::from_json(text), lock);
  std::string edited = text;
  edited.replace(edited.find("\"1.2\""), 5, "\"1.3\"");
  EXPECT_NE(refusal_of(edited).find("does not fit its checksum"), std::string::npos);

  mine.kernel_version = "1.3";
  EXPECT_THROW(lock.add(mine, machine()), Error);  // other code
  KernelLock other = small_lock();
  other.add(mine, machine());
  other.add(unversioned, machine());
  EXPECT_EQ(diff(lock, other), (std::vector<LockDifference>{{"relu(f32[9]) @cpu:0", "kernel_version", "1.2", "1.3"}}));
}

TEST_F(LockedChoice, OtherCodeUnderTheNameIsRefusedStrictlyAndTakenWithRevalidation) {
  struct Case {
    const char *locked, *here, *reason;
  };
  for (const Case& c : {Case{"1", "2", "b is version 1 in the lock, version 2 here"},
                        Case{"", "2", "b is the library's own in the lock, version 2 here"},
                        Case{"1", "", "b is version 1 in the lock, the library's own here"},
                        Case{"unversioned", "2", "b is unversioned in the lock, version 2 here"},
                        Case{"1", "unversioned 0-1", "b has no version here"},
                        Case{"unversioned", "unversioned 0-1", "give it a version where it is registered"}}) {
    lock = {};
    b->code = c.locked;
    Decision made = decision_of("matmul(f32[8,8], f32[8,8])", "b");
    made.kernel_version = b->version();
    lock.add(made, environment_of(profile));
    b->code = c.here;
    const Decision strict = decide_locked();
    expect_chosen(strict, "", Level::lock);
    EXPECT_NE(strict.because.find(c.reason), std::string::npos) << strict.because;
    expect_chosen(decide_locked(LockMode::revalidate), "b", Level::lock);
  }
  b->code = "1";
  lock = {};
  Decision made = decision_of("matmul(f32[8,8], f32[8,8])", "b");
  made.kernel_version = "1";
  lock.add(made, environment_of(profile));
  expect_chosen(decide_locked(), "b", Level::lock);
  EXPECT_EQ(decide_locked().kernel_version, "1");
}

TEST_F(LockedChoice, BeatsWhatThePolicyForces) {
  lock_to("b", profile);
  force("c");
  expect_chosen(decide_locked(), "b", Level::lock);
}

TEST_F(LockedChoice, FailsClosedWhereTheLockHasNoEntry) {
  const Decision decision = decide_locked();
  expect_chosen(decision, "", Level::lock);
  EXPECT_EQ(decision.because,
            "the lock has no entry for it, nor any other of matmul; record it too (xrt lock record, record_lock)");
}

TEST(KernelLock, AMissNamesTheNearestEntryAndWhatDiffers) {
  KernelLock lock;
  for (const char* problem :
       {"conv2d(f32[1,8,14,14], f32[8,8,3,3]; padding=1,1)", "log_softmax(f32[4,8])", "matmul(f32[8,64], f32[64,8])",
        "matmul(f32[8,65], f32[65,8])", "matmul(f32[8,1024], f32[1024,8])", "matmul(f16[8,66], f16[66,8])"}) {
    lock.add(decision_of(problem, "reference"), machine());
  }
  const auto reason = [&](const char* problem) { return lock.why_missing(parse_problem(problem)); };
  const auto expect_has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_has(reason("matmul(f32[8,66], f32[66,8])"),
             "the nearest is matmul(f32[8,65], f32[65,8]) @cpu:0, which differs in the shape of input 0 (f32[8,65] "
             "there, f32[8,66] here), the shape of input 1 (f32[65,8] there, f32[66,8] here); record it too");
  expect_has(reason("matmul(f16[8,64], f16[64,8])"), "the nearest is matmul(f16[8,66], f16[66,8]) @cpu:0");
  expect_has(reason("matmul(bf16[8,64], bf16[64,8])"),
             "matmul(f32[8,64], f32[64,8]) @cpu:0, which differs in the dtype of input 0 (f32[8,64] there, "
             "bf16[8,64] here), the dtype of input 1");
  expect_has(reason("matmul(f32[8,64]{1,8}, f32[64,8])"),
             "differs in the layout of input 0 (f32[8,64] there, f32[8,64]{1,8} here);");
  expect_has(reason("matmul(f32[8,64]/1, f32[64,8])"),
             "differs in the alignment of input 0 (f32[8,64] there, f32[8,64]/1 here);");
  expect_has(reason("matmul(f32[8,64]{1,8}/4, f32[64,8])"), "differs in the layout of input 0 (f32[8,64] there,");
  expect_has(
      reason("matmul(f32[8,64], f32[64,8]) deterministic threads=2"),
      "matmul(f32[8,64], f32[64,8]) @cpu:0, which differs in the limits (none there, deterministic threads=2 here); "
      "drop these limits from the call, the policy and the environment, or record it too");
  expect_has(reason("matmul(f32[8,64], f32[64,8]) @cuda:1"), "differs in the device (cpu:0 there, cuda:1 here)");
  expect_has(reason("conv2d(f32[1,8,14,14], f32[8,8,3,3]; stride=2,2 padding=1,1)"), "differs in the attributes (");
  expect_has(reason("matmul:backward(f32[8,64], f32[64,8], f32[8,8])"),
             "differs in the direction (forward there, backward here)");
  expect_has(reason("log(f32[4,8])"), "nor any other of log;");
}

TEST(KernelLock, AMissInTheOtherDirectionNamesTheEntryThatDiffersLeastInAllElse) {
  KernelLock lock;
  for (const char* problem :
       {"relu(f32[3])", "relu(f32[64,64])", "relu(bf16[9,9])", "linear:backward(f32[3,64], f32[64,64], f32[3,64])"}) {
    lock.add(decision_of(problem, "reference"), machine());
  }
  const auto expect_has = [&](const char* problem, const std::string& part) {
    const std::string text = lock.why_missing(parse_problem(problem));
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const std::string direction = "which differs in the direction (forward there, backward here)";
  expect_has("relu:backward(f32[64,64], f32[64,64])", "the nearest is relu(f32[64,64]) @cpu:0, " + direction + ";");
  expect_has(
      "relu:backward(f32[64,63], f32[64,63]) threads=2",
      "the nearest is relu(f32[64,64]) @cpu:0, " + direction +
          ", the shape of input 0 (f32[64,64] there, f32[64,63] here), the limits (none there, threads=2 here);");
  expect_has("linear(f32[4,64], f32[64,64])",
             "which differs in the direction (backward there, forward here), the shape of input 0 (f32[3,64] there, "
             "f32[4,64] here);");
}

TEST(KernelLock, AMissWithAnotherNumberOfInputsComparesThoseThatBothHave) {
  KernelLock lock;
  for (const char* problem :
       {"linear(f32[1,64], f32[32,64])", "linear(f32[3,64], f32[64,64])",
        "linear:backward(f32[1,64], f32[64,64], f32[1,64])", "linear:backward(f32[3,64], f32[64,64], f32[3,64])"}) {
    lock.add(decision_of(problem, "reference"), machine());
  }
  const auto expect_has = [&](const char* problem, const std::string& part) {
    const std::string text = lock.why_missing(parse_problem(problem));
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_has("linear(f32[3,64], f32[64,64], f32[64])",
             "the nearest is linear(f32[3,64], f32[64,64]) @cpu:0, which differs in the number of inputs (2 there, 3 "
             "here); record it too");
  expect_has("linear(f32[4,64], f32[64,64], f32[64])",
             "the nearest is linear(f32[3,64], f32[64,64]) @cpu:0, which differs in the number of inputs (2 there, 3 "
             "here), the shape of input 0 (f32[3,64] there, f32[4,64] here); record it too");
  expect_has("linear:backward(f32[3,64], f32[64,64], f32[64], f32[3,64])",
             "the nearest is linear:backward(f32[3,64], f32[64,64], f32[3,64]) @cpu:0, which differs in the number of "
             "inputs (3 there, 4 here); record it too");
}

TEST_F(LockedChoice, DependsOnWhatTheKernelDependsOnAndOnNothingElse) {
  struct Case {
    const char *op, *kernel;
    bool calls_openblas;
  };
  for (const Case& c :
       {Case{"add(f32[8], f32[8])", "simd", false}, Case{"matmul(f32[8,8], f32[8,8])", "openblas", true},
        Case{"matmul(f32[8,8], f32[8,8])", "packed", false}}) {
    profile.cpu_features = {"avx2"};
    profile.library_versions = {{"openblas", "0.3.21"}, {"onednn", "3.1"}};
    profile.compute_units = 2;
    lock = {};
    const LockEntry& entry = lock.add(decision_of(c.op, c.kernel), environment_of(profile));
    const auto verdict = [&](const std::function<void(DeviceProfile&)>& change) {
      DeviceProfile here = profile;
      change(here);
      return lock.match(entry, environment_of(here), "").verdict;
    };
    EXPECT_EQ(verdict([](DeviceProfile& here) { here.compute_units = 64; }), EntryVerdict::same) << c.kernel;
    EXPECT_EQ(verdict([](DeviceProfile& here) { here.l2_bytes = 1 << 20; }), EntryVerdict::same) << c.kernel;
    EXPECT_EQ(verdict([](DeviceProfile& here) { here.library_versions["onednn"] = "4.0"; }), EntryVerdict::same);
    EXPECT_EQ(verdict([](DeviceProfile& here) { here.library_versions["openblas"] = "0.3.28"; }),
              c.calls_openblas ? EntryVerdict::revalidate : EntryVerdict::same)
        << c.kernel;
    EXPECT_EQ(verdict([](DeviceProfile& here) { here.cpu_features.push_back("avx512f"); }), EntryVerdict::revalidate);
    EXPECT_EQ(verdict([](DeviceProfile& here) { here.name = "another"; }), EntryVerdict::refuse);
    Environment older = environment_of(profile);
    older.versions["xpuruntime"] = "0.0.1";  // whose code the kernel is
    EXPECT_EQ(lock.match(entry, older, "").verdict, EntryVerdict::revalidate);
  }
}

TEST_F(LockedChoice, AKernelThatSomebodyBroughtDependsOnEverything) {
  profile.library_versions = {{"openblas", "0.3.21"}};
  Decision made = decision_of("matmul(f32[8,8], f32[8,8])", "b");
  made.kernel_version = b->code = "1";
  lock.add(made, environment_of(profile));
  expect_chosen(decide_locked(), "b", Level::lock);
  profile.library_versions["openblas"] = "0.3.28";
  expect_chosen(decide_locked(), "", Level::lock);
}

TEST_F(LockedChoice, TakesTheEntryThatDiffersInDeterministicAlone) {
  lock_to("b", profile);
  problem.limits.deterministic = true;
  expect_chosen(decide_locked(), "b", Level::lock);
  b->same_bits = false;  // so it refuses what the lock has without that limit
  expect_chosen(decide_locked(), "", Level::lock);
  EXPECT_HAS(decide_locked().because,
             "which differs in the limits (none there, deterministic here); drop these limits");
  exclusions = {{"b", "quarantined: it failed"}};
  EXPECT_HAS(decide_locked().because, "the lock says b, which cannot run: quarantined: it failed");
  exclusions = {};
  problem.limits = {};
  problem.limits.threads = 2;
  expect_chosen(decide_locked(), "", Level::lock);
}

TEST_F(LockedChoice, FailsClosedWhereTheLockedKernelCannotRun) {
  lock_to("b", profile);
  refuse(*b, "k is odd");
  const Decision decision = decide_locked();
  expect_chosen(decision, "", Level::lock);
  EXPECT_EQ(decision.because,
            "the lock says b, which cannot run: k is odd; record the lock again, or replay it where it was made");
}

TEST_F(LockedChoice, FailsClosedWhereTheLockedKernelDoesNotExist) {
  lock_to("gone", profile);
  expect_chosen(decide_locked(), "", Level::lock);
}

TEST_F(LockedChoice, OtherSoftwareIsRefusedStrictlyAndTakenWithRevalidation) {
  DeviceProfile older = profile;
  older.driver_version = "0.9";
  lock_to("b", older);
  const Decision strict = decide_locked();
  expect_chosen(strict, "", Level::lock);
  EXPECT_NE(
      strict.because.find("environment: driver 0.9 there, 1.0 here; check it with xrt lock verify --revalidate --out "
                          "(in Python verify_lock(lock, 'revalidate') and refreshed)"),
      std::string::npos)
      << strict.because;
  expect_chosen(decide_locked(LockMode::revalidate), "b", Level::lock);
}

TEST_F(LockedChoice, AnotherDeviceIsRefusedInEveryMode) {
  DeviceProfile other = profile;
  other.name = "another machine";
  lock_to("b", other);
  for (const LockMode mode : {LockMode::strict, LockMode::revalidate}) {
    expect_chosen(decide_locked(mode), "", Level::lock);
  }
}

}  // namespace
}  // namespace xpuruntime
