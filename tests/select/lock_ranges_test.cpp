#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "select/lock_needs.h"
#include "xpuruntime/select/lock.h"

namespace xpuruntime {
namespace {

Environment machine() { return {"cpu test machine", {{"cores", "2"}}, {{"driver", "1.0"}, {"openblas", "0.3"}}}; }

KernelLock lock_of(const std::vector<std::pair<std::string, std::string>>& choices, const std::string& plan = "") {
  KernelLock lock;
  for (const auto& [problem, kernel] : choices) {
    LockEntry entry;
    entry.plan = plan;
    entry.problem = has_ranges(problem) ? to_string(parse_problem_range(problem)) : to_string(parse_problem(problem));
    entry.kernel = kernel;
    lock.add(entry, machine());
  }
  return lock;
}

std::string kernel_for(const KernelLock& lock, const char* problem) {
  const LockEntry* entry = lock.find_for(parse_problem(problem));
  return entry == nullptr ? "" : entry->kernel;
}

TEST(LockRanges, AProblemsOwnEntryComesBeforeTheRangeThatHoldsIt) {
  const KernelLock lock = lock_of({{"relu(f32[n]) where n=1..8", "simd"},
                                   {"relu(f32[n]) where n=9..20", "reference"},
                                   {"relu(f32[5])", "reference"}});
  EXPECT_EQ(kernel_for(lock, "relu(f32[4])"), "simd");
  EXPECT_EQ(kernel_for(lock, "relu(f32[5])"), "reference");
  EXPECT_EQ(kernel_for(lock, "relu(f32[20])"), "reference");
  EXPECT_EQ(kernel_for(lock, "relu(f32[4]/8)"), "simd");
  EXPECT_EQ(kernel_for(lock, "relu(f32[5]/8)"), "reference");
  for (const char* outside : {"relu(f32[21])", "relu(f32[4]) threads=1", "relu(f64[4])", "exp(f32[4])"}) {
    EXPECT_EQ(kernel_for(lock, outside), "") << outside;
  }
}

TEST(LockRanges, AMissNamesTheNearestRange) {
  const KernelLock lock = lock_of({{"relu(f32[n]) where n=1..8", "simd"}, {"relu(f32[n]) where n=9..20", "simd"}});
  const std::string why = lock.why_missing(parse_problem("relu(f32[23])"));
  EXPECT_NE(why.find("the nearest is relu(f32[n]) @cpu:0 where n=9..20, which differs in the shape of input 0 "
                     "(f32[20] there, f32[23] here)"),
            std::string::npos)
      << why;
}

TEST(LockRanges, AreWrittenAndReadBackAsVersion3) {
  const KernelLock lock = lock_of({{"relu(f32[n]) @cpu:0 threads=2 where n=1..8", "simd"}, {"exp(f32[5])", "simd"}});
  const std::string text = lock.to_json();
  EXPECT_NE(text.find("\"version\": 3,"), std::string::npos) << text;
  const KernelLock read = KernelLock::from_json(text);
  EXPECT_EQ(read, lock);
  EXPECT_EQ(kernel_for(read, "relu(f32[7]) threads=2"), "simd");
  EXPECT_EQ(lock_of({{"exp(f32[5])", "simd"}}).to_json().find("\"version\": 3"), std::string::npos);
}

TEST(LockRanges, DifferByEntryAndByLimits) {
  const KernelLock before = lock_of({{"relu(f32[n]) where n=1..8", "simd"}});
  EXPECT_TRUE(diff(before, before).empty());
  const auto kernels = diff(before, lock_of({{"relu(f32[n]) where n=1..8", "reference"}}));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].field, "kernel");
  const auto limits = diff(before, lock_of({{"relu(f32[n]) @cpu:0 threads=2 where n=1..8", "simd"}}));
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0], (LockDifference{"relu(f32[n]) @cpu:0 where n=1..8", "limits", "", "threads=2"}));
}

TEST(LockRanges, DependOnTheMachinesTraitsOnlyWherePlansVary) {
  Environment libraries = machine(), cores = machine();
  libraries.versions["openblas"] = "0.4";
  cores.traits["cores"] = "4";
  for (const char* plan : {"", "tile=2x2", "varies"}) {
    const KernelLock lock = lock_of({{"relu(f32[n]) where n=1..8", "simd"}}, plan);
    const LockEntry& entry = lock.entries().begin()->second;
    EXPECT_EQ(lock.match(entry, libraries, "").verdict, EntryVerdict::same) << plan;
    // No plan is there to tell that a kernel cut its work otherwise for other threads.
    const bool varies = plan == varying_plans;
    EXPECT_EQ(lock.match(entry, cores, "").verdict, varies ? EntryVerdict::revalidate : EntryVerdict::same) << plan;
  }
}

TEST(LockRanges, ServeProblemsThatDifferInDeterministicAloneWhereThePlanCanTell) {
  const char* const range = "relu(f32[n]) deterministic where n=1..8";
  EXPECT_EQ(kernel_for(lock_of({{range, "simd"}}), "relu(f32[4])"), "simd");
  EXPECT_EQ(kernel_for(lock_of({{range, "simd"}}), "relu(f32[4]/8)"), "simd");
  EXPECT_EQ(kernel_for(lock_of({{"relu(f32[n]) where n=1..8", "simd"}}), "relu(f32[4]) deterministic"), "simd");
  EXPECT_EQ(kernel_for(lock_of({{range, "simd"}}, "varies"), "relu(f32[4])"), "");
  EXPECT_EQ(kernel_for(lock_of({{range, "simd"}}), "relu(f32[4]) threads=1"), "");
}

TEST(LockRanges, APlanThatEverySizeHasIsKeptInTheFile) {
  for (const char* plan : {"", "lanes=rows", "varies"}) {
    const KernelLock lock = lock_of({{"relu(f32[n]) where n=1..8", "simd"}}, plan);
    EXPECT_EQ(KernelLock::from_json(lock.to_json()), lock);
  }
}

}  // namespace
}  // namespace xpuruntime
