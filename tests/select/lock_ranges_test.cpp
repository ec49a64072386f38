#include "select/lock_ranges.h"

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
  const KernelLock linear = lock_of({{"linear(f32[m,64], f32[32,64]) where m=1..8", "packed"},
                                     {"linear(f32[m,64], f32[64,64]) where m=1..8", "packed"}});
  const std::string with_bias = linear.why_missing(parse_problem("linear(f32[3,64], f32[64,64], f32[64])"));
  EXPECT_NE(with_bias.find("f32[64,64]) @cpu:0 where m=1..8, which differs in the number of inputs (2 there, 3 here);"),
            std::string::npos)
      << with_bias;
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

TEST(LockRanges, InAFileOfAnOlderVersionAreRefused) {
  const std::string text = lock_of({{"relu(f32[n]) where n=1..8", "simd"}}).to_json();
  for (const char* version : {"1", "2"}) {
    std::string older = text;
    older.replace(older.find("\"version\": 3") + 11, 1, version);
    expect_invalid("'decisions[0]' is of a range, which locks have from version 3 on, and this one says version " +
                       std::string(version),
                   [&] { KernelLock::from_json(older); });
  }
  KernelLock versioned = lock_of({{"relu(f32[8])", "mine"}});
  const LockEntry entry = versioned.entries().begin()->second;
  versioned.add(entry, machine()).kernel_version = "1.2";  // the entry that is there
  std::string first = versioned.to_json();
  first.replace(first.find("\"version\": 2") + 11, 1, "1");
  expect_invalid("'decisions[0]' has a kernel_version, which locks have from version 2 on",
                 [&] { KernelLock::from_json(first); });
}

TEST(LockRanges, AreFoundWhateverTheirSizesAreCalled) {
  const KernelLock lock = lock_of({{"matmul(f32[m,8], f32[8,n]) where m=1..8, n=1..4", "simd"}});
  const auto found = [&](const char* text) { return lock.find(parse_problem_range(text)); };
  const LockEntry* const entry = &lock.entries().begin()->second;
  EXPECT_EQ(found("matmul(f32[m,8], f32[8,n]) where m=1..8, n=1..4"), entry);
  EXPECT_EQ(found("matmul(f32[rows,8], f32[8,m]) where m=1..4, rows=1..8"), entry);
  for (const char* other :
       {"matmul(f32[a,8], f32[8,b]) where a=1..4, b=1..8", "matmul(f32[a,8], f32[8,b]) where a=1..8, b=1..3",
        "matmul(f32[a,8], f32[8,b]) threads=2 where a=1..8, b=1..4", "relu(f32[a,b]) where a=1..8, b=1..4"}) {
    EXPECT_EQ(found(other), nullptr) << other;
  }
}

TEST(LockRanges, AreJoinedWhereOneSizeGoesOn) {
  const auto joined_text = [](const char* a, const char* b) {
    const auto both = joined(parse_problem_range(a), parse_problem_range(b));
    return both ? to_string(*both) : "";
  };
  EXPECT_EQ(joined_text("relu(f32[n]) where n=1..8", "relu(f32[m]) where m=9..20"),
            "relu(f32[n]) @cpu:0 where n=1..20");
  EXPECT_EQ(joined_text("relu(f32[n]) where n=5..8", "relu(f32[n]) where n=1..6"), "relu(f32[n]) @cpu:0 where n=1..8");
  EXPECT_EQ(joined_text("relu(f32[a,b]) where a=1..2, b=3..4", "relu(f32[n,m]) where n=1..2, m=5..5"),
            "relu(f32[a,b]) @cpu:0 where a=1..2, b=3..5");
  for (const char* apart : {"relu(f32[n]) where n=10..20", "relu(f64[n]) where n=9..20", "exp(f32[n]) where n=9..20",
                            "relu(f32[n]) threads=2 where n=9..20", "relu(f32[n,4]) where n=9..20"}) {
    EXPECT_EQ(joined_text("relu(f32[n]) where n=1..8", apart), "") << apart;
  }
  EXPECT_EQ(joined_text("relu(f32[a,b]) where a=1..2, b=3..4", "relu(f32[a,b]) where a=3..4, b=5..5"), "");
  EXPECT_EQ(joined_text("relu(f32[n]) where n=1..1048576", "relu(f32[n]) where n=1048577..1048578"), "");
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

TEST(LockRanges, AreComparedSizeBySizeHoweverTheyAreCut) {
  const auto whole = lock_of({{"relu(f32[n]) where n=1..64", "simd"}});
  const auto halves = lock_of({{"relu(f32[m]) where m=1..32", "simd"}, {"relu(f32[m]) where m=33..64", "simd"}});
  EXPECT_TRUE(diff(whole, halves).empty());
  EXPECT_TRUE(diff(halves, whole).empty());

  const auto other = lock_of({{"relu(f32[n]) where n=1..40", "simd"}, {"relu(f32[n]) where n=41..80", "reference"}});
  const std::vector<LockDifference> expected = {
      {"relu(f32[n]) @cpu:0 where n=41..64", "kernel", "simd", "reference"},
      {"relu(f32[n]) @cpu:0 where n=65..80", "entry", "", "reference"},
  };
  EXPECT_EQ(diff(whole, other), expected);
}

TEST(LockRanges, WithTwoNamesAreComparedSizeBySize) {
  const auto text = [](int m, int n_low, int n_high) {
    return "matmul(f32[m,8], f32[8,n]) where m=1.." + std::to_string(m) + ", n=" + std::to_string(n_low) + ".." +
           std::to_string(n_high);
  };
  const auto whole = lock_of({{text(4, 1, 9), "simd"}});
  EXPECT_TRUE(diff(whole, lock_of({{text(4, 1, 2), "simd"}, {text(4, 3, 9), "simd"}})).empty());
  const std::vector<LockDifference> expected = {
      {"matmul(f32[m,8], f32[8,n]) @cpu:0 where m=1..2, n=1..2", "entry", "simd", ""},
      {"matmul(f32[m,8], f32[8,n]) @cpu:0 where m=3..4, n=1..9", "entry", "simd", ""},
  };
  EXPECT_EQ(diff(whole, lock_of({{text(2, 3, 9), "simd"}})), expected);
}

TEST(LockRanges, AreComparedWithTheEntriesOfSingleSizesOfTheOtherLock) {
  const auto single = lock_of({{"relu(f32[15])", "reference"}}), same = lock_of({{"relu(f32[15])", "simd"}});
  const auto range = lock_of({{"relu(f32[n]) where n=1..50", "simd"}});
  const std::vector<LockDifference> added = {
      {"relu(f32[15]) @cpu:0", "kernel", "reference", "simd"},
      {"relu(f32[n]) @cpu:0 where n=1..14", "entry", "", "simd"},
      {"relu(f32[n]) @cpu:0 where n=16..50", "entry", "", "simd"},
  };
  EXPECT_EQ(diff(single, range), added);
  EXPECT_EQ(diff(same, range), (std::vector<LockDifference>{added[1], added[2]}));
  EXPECT_EQ(diff(range, single), (std::vector<LockDifference>{{added[0].problem, "kernel", "simd", "reference"},
                                                              {added[1].problem, "entry", "simd", ""},
                                                              {added[2].problem, "entry", "simd", ""}}));
  // All sizes, and one that is outside.
  const auto two = lock_of({{"relu(f32[4])", "simd"}, {"relu(f32[5])", "simd"}, {"relu(f32[6])", "simd"}});
  EXPECT_EQ(diff(two, lock_of({{"relu(f32[n]) where n=4..5", "simd"}})),
            (std::vector<LockDifference>{{"relu(f32[6]) @cpu:0", "entry", "simd", ""}}));
  EXPECT_TRUE(diff(lock_of({{"relu(f32[15])", "simd"}}, "tile=2x2"),
                   lock_of({{"relu(f32[n]) where n=15..15", "simd"}}, "varies"))
                  .empty());
  EXPECT_EQ(diff(lock_of({{"relu(f32[15])", "simd"}}, "tile=2x2"),
                 lock_of({{"relu(f32[n]) where n=15..15", "simd"}}, "tile=4x4"))
                .front()
                .field,
            "plan");
}

TEST(LockRanges, ThatHoldASingleSizeUnderOtherLimitsDifferInTheseThere) {
  const auto single = lock_of({{"relu(f32[15]) deterministic", "simd"}});
  const auto range = lock_of({{"relu(f32[n]) where n=1..50", "simd"}});
  const auto around = [](const char* before, const char* after) -> std::vector<LockDifference> {
    return {{"relu(f32[n]) @cpu:0 where n=1..14", "entry", before, after},
            {"relu(f32[n]) @cpu:0 where n=16..50", "entry", before, after}};
  };
  const auto with_first = [](std::vector<LockDifference> rest, std::vector<LockDifference> first) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  };
  EXPECT_EQ(diff(single, range),
            with_first(around("", "simd"), {{"relu(f32[15]) @cpu:0 deterministic", "limits", "deterministic", ""}}));
  EXPECT_EQ(diff(range, single),
            with_first(around("simd", ""), {{"relu(f32[15]) @cpu:0", "limits", "", "deterministic"}}));
  EXPECT_EQ(diff(lock_of({{"relu(f32[15]) threads=2", "reference"}}), range),
            with_first(around("", "simd"), {{"relu(f32[15]) @cpu:0 threads=2", "limits", "threads=2", ""},
                                            {"relu(f32[15]) @cpu:0 threads=2", "kernel", "reference", "simd"}}));
  // The size has an entry under the range's limits too, so the other one is gone.
  const std::vector<LockDifference> gone = {{"relu(f32[15]) @cpu:0 deterministic", "entry", "simd", ""}};
  const std::pair<std::string, std::string> limited = {"relu(f32[15]) deterministic", "simd"};
  EXPECT_EQ(diff(lock_of({limited, {"relu(f32[n]) where n=1..50", "simd"}}), range), gone);
  EXPECT_EQ(diff(lock_of({limited, {"relu(f32[15])", "simd"}}), range), with_first(around("", "simd"), gone));
  // It is not clear under which limits.
  const auto two = lock_of({{"relu(f32[n]) where n=1..50", "simd"}, {"relu(f32[n]) threads=2 where n=1..50", "simd"}});
  const auto found = diff(single, two);
  ASSERT_EQ(found.size(), 3u);
  for (const LockDifference& difference : found) EXPECT_EQ(difference.field, "entry");
  // Ranges of the same sizes stay whole.
  EXPECT_EQ(diff(lock_of({{"relu(f32[n]) where n=1..50", "simd"}, {"relu(f32[15])", "simd"}}),
                 lock_of({{"relu(f32[n]) threads=2 where n=1..50", "simd"}})),
            (std::vector<LockDifference>{{"relu(f32[15]) @cpu:0", "limits", "", "threads=2"},
                                         {"relu(f32[n]) @cpu:0 where n=1..50", "limits", "", "threads=2"}}));
}

TEST(LockRanges, WithStridesOrTwoNamesAreComparedWithSingleEntries) {
  const auto strided = lock_of({{"relu(f32[n,4]{8,1}) where n=2..3", "simd"}});
  EXPECT_EQ(diff(lock_of({{"relu(f32[2,4]{8,1})", "reference"}, {"relu(f32[3,4]{8,1})", "simd"}}), strided),
            (std::vector<LockDifference>{{"relu(f32[2,4]{8,1}) @cpu:0", "kernel", "reference", "simd"}}));
  EXPECT_EQ(diff(lock_of({{"relu(f32[2,4])", "simd"}}), strided).size(), 2u);
  // At its largest it is contiguous.
  const auto columns = lock_of({{"relu(f32[4,n]{8,1}) where n=7..8", "simd"}});
  EXPECT_TRUE(diff(columns, lock_of({{"relu(f32[4,7]{8,1})", "simd"}, {"relu(f32[4,8])", "simd"}})).empty());

  const auto grid = lock_of({{"matmul(f32[m,8], f32[8,n]) where m=1..3, n=1..4", "simd"}});
  const std::vector<LockDifference> expected = {
      {"matmul(f32[2,8], f32[8,3]) @cpu:0", "kernel", "simd", "reference"},
      {"matmul(f32[m,8], f32[8,n]) @cpu:0 where m=1..1, n=1..4", "entry", "simd", ""},
      {"matmul(f32[m,8], f32[8,n]) @cpu:0 where m=2..2, n=1..2", "entry", "simd", ""},
      {"matmul(f32[m,8], f32[8,n]) @cpu:0 where m=2..2, n=4..4", "entry", "simd", ""},
      {"matmul(f32[m,8], f32[8,n]) @cpu:0 where m=3..3, n=1..4", "entry", "simd", ""},
  };
  EXPECT_EQ(diff(grid, lock_of({{"matmul(f32[2,8], f32[8,3])", "reference"}})), expected);
}

TEST(LockRanges, ASizesOwnEntryIsComparedAndNotTheRangeThatHoldsItToo) {
  const std::pair<std::string, std::string> whole = {"relu(f32[n]) where n=1..8", "simd"};
  const std::pair<std::string, std::string> slow = {"relu(f32[n]) where n=1..8", "reference"};
  // The size 3 runs the same kernel in both.
  const std::vector<LockDifference> around = {
      {"relu(f32[n]) @cpu:0 where n=1..2", "kernel", "simd", "reference"},
      {"relu(f32[n]) @cpu:0 where n=4..8", "kernel", "simd", "reference"},
  };
  EXPECT_EQ(diff(lock_of({whole}), lock_of({slow, {"relu(f32[3])", "simd"}})), around);
  EXPECT_EQ(diff(lock_of({whole}), lock_of({{"relu(f32[n]) where n=1..6", "reference"},
                                            {"relu(f32[n]) where n=7..8", "reference"},
                                            {"relu(f32[3])", "simd"}}))
                .size(),
            3u);
  EXPECT_TRUE(diff(lock_of({whole}), lock_of({whole, {"relu(f32[3])", "simd"}})).empty());
  // Of two ranges the first decides.
  const std::pair<std::string, std::string> later = {"relu(f32[n]) where n=2..9", "reference"};
  EXPECT_TRUE(diff(lock_of({whole, later}), lock_of({whole, later, {"relu(f32[3])", "simd"}})).empty());
  // What the other lock lacks wholly stays in one part.
  const auto limited =
      diff(lock_of({whole, {"relu(f32[3])", "simd"}}),
           lock_of({{"relu(f32[n]) threads=2 where n=1..8", "simd"}, {"relu(f32[3]) threads=2", "simd"}}));
  ASSERT_EQ(limited.size(), 2u);
  for (const LockDifference& difference : limited) EXPECT_EQ(difference.field, "limits");
}

TEST(LockRanges, ManyAreComparedWithManySinglesAgainstTryingEach) {
  // Parts of three, one in four missing, beside ranges of other extents.
  std::vector<std::pair<std::string, std::string>> ranges, singles;
  std::vector<LockDifference> kernels;
  for (int low = 1; low < 400; low += 4) {
    const std::string part = " where n=" + std::to_string(low) + ".." + std::to_string(low + 2);
    for (const char* spec : {"f32[n]", "f32[n,3]", "f32[3,n]"}) {
      ranges.push_back({"relu(" + std::string(spec) + ")" + part, low % 8 == 1 ? "simd" : "reference"});
    }
  }
  for (int n = 1; n <= 400; ++n) singles.push_back({"relu(f32[" + std::to_string(n) + ",3])", "simd"});
  const KernelLock before = lock_of(singles), after = lock_of(ranges);
  for (const auto& [problem, entry] : before.entries()) {
    const LockEntry* other = after.find_for(parse_problem(problem));
    if (other == nullptr) kernels.push_back({problem, "entry", "simd", ""});
    if (other != nullptr && other->kernel != "simd") kernels.push_back({problem, "kernel", "simd", other->kernel});
  }
  auto found = diff(before, after);
  std::erase_if(found, [](const LockDifference& difference) { return difference.before.empty(); });
  EXPECT_EQ(kernels.size(), 100u + 150u);
  EXPECT_EQ(found, kernels);
}

TEST(LockRanges, PlansAreComparedWhereBothHoldOne) {
  const std::pair<std::string, std::string> whole = {"relu(f32[n]) where n=1..64", "simd"};
  const std::pair<std::string, std::string> half = {"relu(f32[n]) where n=1..32", "simd"};
  const auto field_of_first = [&](const char* before, const char* after) {
    return diff(lock_of({whole}, before), lock_of({half}, after)).front().field;
  };
  EXPECT_EQ(field_of_first("tile=2x2", "tile=4x4"), "plan");
  EXPECT_EQ(field_of_first("varies", "tile=4x4"), "entry");  // of 33..64 alone
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
