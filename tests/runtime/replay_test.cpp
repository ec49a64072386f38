#include "xpuruntime/runtime/replay.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "core/expect_error.h"
#include "runtime/decided_parts.h"

namespace xpuruntime {
namespace {

class Replay : public ::testing::Test {
 protected:
  static std::vector<Problem> problems() {
    return {parse_problem("matmul(f32[33,65], f32[65,17])"), parse_problem("softmax(f32[9,100])"),
            parse_problem("conv2d(f32[1,8,14,14], f32[8,8,3,3]; padding=1,1)"),
            parse_problem("layer_norm(bf16[7,96], bf16[96], bf16[96])")};
  }
  KernelLock recorded(bool deterministic = true) {
    KernelPolicy policy;
    policy.deterministic = deterministic;
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    return record_lock(runtime, problems());
  }
  ReplayReport verified(const KernelLock& lock, LockMode mode = LockMode::strict) {
    return verify_lock(runtime, {std::make_shared<const KernelLock>(lock), mode});
  }
  /// The lock as if it had been recorded elsewhere.
  static KernelLock moved(const KernelLock& lock, const std::function<void(LockEntry&, Environment&)>& change) {
    KernelLock out;
    for (const auto& [text, entry] : lock.entries()) {
      LockEntry copy = entry;
      Environment environment = lock.environment_of(entry);
      change(copy, environment);
      out.add(copy, environment);
    }
    return out;
  }

  Runtime runtime{{false, false, {}}};
};

TEST_F(Replay, GivesEqualOutputsUnderADeterministicPolicy) {
  const KernelLock lock = recorded();
  ASSERT_EQ(lock.entries().size(), 4u);
  for (const auto& [text, entry] : lock.entries()) EXPECT_TRUE(entry.outputs.starts_with("sha256:")) << text;
  EXPECT_EQ(recorded(), lock);
  const ReplayReport report = verified(lock);
  EXPECT_TRUE(report.fine());
  EXPECT_TRUE(report.ran);
  for (const ReplayResult& result : report.results) {
    EXPECT_EQ(result.outcome, ReplayOutcome::same) << result.problem << ": " << result.reason;
    EXPECT_TRUE(result.outputs_compared) << result.problem;
  }
}

TEST_F(Replay, GivesEqualOutputsInAnotherRuntimeFromTheFile) {
  const KernelLock read = KernelLock::from_json(recorded().to_json());
  Runtime other({false, false, {}});
  EXPECT_TRUE(verify_lock(other, {std::make_shared<const KernelLock>(read)}).fine());
}

TEST_F(Replay, HashesNothingThatMayComeOutOtherwise) {
  const KernelLock lock = recorded(false);
  for (const auto& [text, entry] : lock.entries()) EXPECT_EQ(entry.outputs, "") << text;
}

TEST_F(Replay, OtherSeedsGiveOtherOutputs) {
  const KernelLock lock = recorded();
  for (const auto& [text, entry] : lock.entries()) {
    const LockUse use{std::make_shared<const KernelLock>(lock)};
    EXPECT_EQ(output_hash(runtime, use, parse_problem(text), 1), entry.outputs) << text;
    EXPECT_NE(output_hash(runtime, use, parse_problem(text), 2), entry.outputs) << text;
  }
}

TEST_F(Replay, AHashThatDoesNotFitFailsAndNamesTheProblem) {
  const KernelLock lock = moved(recorded(), [](LockEntry& entry, Environment&) {
    if (entry.problem.starts_with("softmax")) entry.outputs = "sha256:0";
  });
  const ReplayReport report = verified(lock);
  EXPECT_FALSE(report.fine());
  for (const ReplayResult& result : report.results) {
    EXPECT_EQ(result.outcome == ReplayOutcome::failed, result.problem.starts_with("softmax")) << result.reason;
  }
}

TEST_F(Replay, NothingRunsWhereOneEntryIsImpossible) {
  int runs = 0;
  FunctionKernel counting;
  counting.op = OpId::relu;
  counting.name = "counting";
  counting.run = [&](const Problem&, const RunArguments&) {
    ++runs;
    return Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(counting)));
  KernelLock lock = moved(recorded(), [](LockEntry& entry, Environment&) {
    if (entry.problem.starts_with("matmul")) entry.kernel = "cublasLt";
  });
  LockEntry entry;
  entry.problem = "relu(f32[8]) @cpu:0";
  entry.kernel = "counting";
  entry.outputs = "sha256:0";
  lock.add(entry, environment_at(runtime, {}));
  const ReplayReport report = verified(lock);
  EXPECT_FALSE(report.fine());
  EXPECT_FALSE(report.ran);
  EXPECT_EQ(runs, 0);
}

TEST_F(Replay, ADeviceThatIsNotHereIsSaid) {
  KernelLock lock;
  LockEntry entry;
  entry.problem = "relu(f32[8]) @cuda:0";
  entry.kernel = "elementwise";
  lock.add(entry, environment_at(runtime, {}));
  const ReplayReport report = verified(lock);
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_NE(report.results.front().reason.find("cuda:0 is not here"), std::string::npos)
      << report.results.front().reason;
}

TEST_F(Replay, OtherSoftwareFailsStrictlyAndIsRevalidatedOnDemand) {
  const KernelLock lock =
      moved(recorded(), [](LockEntry&, Environment& environment) { environment.versions["xpuruntime"] = "0.0.1"; });
  EXPECT_FALSE(verified(lock).fine());
  const ReplayReport report = verified(lock, LockMode::revalidate);
  EXPECT_TRUE(report.fine());
  for (const ReplayResult& result : report.results) {
    EXPECT_EQ(result.outcome, ReplayOutcome::revalidated) << result.reason;
    EXPECT_NE(result.reason.find("xpuruntime 0.0.1 there"), std::string::npos) << result.reason;
  }
  const KernelLock fresh = refreshed(runtime, lock, report);
  EXPECT_TRUE(verified(fresh).fine());
  EXPECT_EQ(fresh, recorded());
}

TEST_F(Replay, RevalidationCatchesAKernelWhoseNumbersAreWrongNow) {
  FunctionKernel wrong;
  wrong.op = OpId::relu;
  wrong.name = "wrong_now";
  wrong.run = [](const Problem&, const RunArguments& arguments) {
    arguments.outputs[0]->as<float>()[0] = 17;
    return Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(wrong)));
  KernelLock lock;
  LockEntry entry;
  entry.problem = "relu(f32[8]) @cpu:0";
  entry.kernel = "wrong_now";
  Environment there = environment_at(runtime, {});
  there.versions["xpuruntime"] = "0.0.1";
  lock.add(entry, there);
  const ReplayReport report = verified(lock, LockMode::revalidate);
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_EQ(report.results.front().outcome, ReplayOutcome::failed);
  EXPECT_NE(report.results.front().reason.find("failed revalidation"), std::string::npos)
      << report.results.front().reason;
  EXPECT_THROW(refreshed(runtime, lock, report), Error);
}

TEST_F(Replay, TellsCodeFromOtherCodeUnderTheSameName) {
  const auto bring = [&](const std::string& version, float limit) {
    runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "mine");
    FunctionKernel mine{.op = OpId::relu, .name = "mine"};
    mine.run = [limit](const Problem&, const RunArguments& arguments) {
      for (int i = 0; i < 8; ++i) {
        arguments.outputs[0]->as<float>()[i] = std::max(arguments.inputs[0]->as<const float>()[i], limit);
      }
      return Status();
    };
    mine.version = version;
    runtime.registry().register_kernel(make_kernel(std::move(mine)));
  };
  const auto record = [&] {
    KernelPolicy policy;
    policy.deterministic = true;
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    return record_lock(runtime, std::vector<Problem>{parse_problem("relu(f32[8])")});
  };
  const auto reason = [&](const KernelLock& lock, LockMode mode = LockMode::strict) {
    return verified(lock, mode).results.at(0).reason;
  };
  bring("1", 0);
  const KernelLock lock = record();
  EXPECT_EQ(lock.entries().begin()->second.kernel_version, "1");
  EXPECT_TRUE(verified(lock).fine());

  bring("2", 0);
  EXPECT_NE(reason(lock).find("mine is version 1 in the lock, version 2 here"), std::string::npos) << reason(lock);
  const ReplayReport revalidated = verified(lock, LockMode::revalidate);
  EXPECT_TRUE(revalidated.fine()) << reason(lock, LockMode::revalidate);
  const KernelLock fresh = refreshed(runtime, lock, revalidated);
  EXPECT_EQ(fresh.entries().begin()->second.kernel_version, "2");
  EXPECT_TRUE(verified(fresh).fine());
  bring("3", 1);  // and its numbers are wrong
  EXPECT_NE(reason(lock, LockMode::revalidate).find("failed revalidation"), std::string::npos);

  bring("", 0);
  const KernelLock unversioned = record();
  EXPECT_EQ(unversioned.entries().begin()->second.outputs, "");  // whose would they be
  EXPECT_NE(reason(unversioned).find("give it a version"), std::string::npos) << reason(unversioned);
  EXPECT_TRUE(verified(unversioned, LockMode::revalidate).fine());
  const KernelLock kept = refreshed(runtime, lock, verified(lock, LockMode::revalidate));
  EXPECT_EQ(kept.entries().begin()->second.kernel_version, "unversioned");
  EXPECT_EQ(kept.entries().begin()->second.outputs, "");
}

TEST_F(Replay, WhatIsNotDependedOnDoesNotInvalidate) {
  const KernelLock lock = moved(recorded(), [](LockEntry&, Environment& environment) {
    environment.versions["onednn"] = environment.versions["openblas"] = "another";
    environment.traits["cores"] = "99";
    environment.traits["threads"] = "2";
    environment.traits["l2_bytes"] = "1";
  });
  for (const ReplayResult& result : verified(lock).results) {
    const bool calls_one = result.kernel == "onednn" || result.kernel == "openblas";
    EXPECT_EQ(result.outcome == ReplayOutcome::failed, calls_one) << result.problem << ": " << result.reason;
  }
}

TEST_F(Replay, AnEntryHoldsWithAndWithoutDeterministicWhereThePlanIsTheSame) {
  const auto lock_of = [&](const char* problem, const char* kernel, bool deterministic) {
    KernelPolicy policy;
    policy.deterministic = deterministic;
    policy.force(to_string(parse_problem(problem).op), kernel);
    policy.threads = 2;
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    return LockUse{std::make_shared<const KernelLock>(record_lock(runtime, std::vector{parse_problem(problem)}))};
  };
  const auto decide = [&](const LockUse& lock, const char* problem, bool deterministic) {
    KernelPolicy policy;
    policy.deterministic = deterministic;
    policy.threads = 2;
    const ScopedLock locked(runtime.dispatcher(), lock);
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    return runtime.dispatcher().explain(parse_problem(problem));
  };
  constexpr const char* add = "add(f32[64], f32[64])";
  constexpr const char* large = "matmul(f32[256,256], f32[256,256])";  // cut by threads, or by its extents
  for (const bool deterministic : {false, true}) {
    EXPECT_EQ(decide(lock_of(add, "simd", deterministic), add, !deterministic).kernel, "simd");
    const LockUse lock = lock_of(large, "openblas", deterministic);
    EXPECT_EQ(decide(lock, large, deterministic).kernel, "openblas");
    const Decision other = decide(lock, large, !deterministic);
    EXPECT_EQ(other.kernel, "");
    EXPECT_NE(other.because.find("which differs in the limits ("), std::string::npos) << other.because;
  }
}

TEST_F(Replay, ARangeDependsOnNoMoreThanAProblemAlone) {
  const auto recorded_range = [&](const char* text, const char* kernel, bool deterministic) {
    KernelPolicy policy;
    policy.deterministic = deterministic;
    policy.force(to_string(least_problem(text).op), kernel);
    policy.threads = 2;
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    KernelLock lock;
    record_ranges(lock, runtime, std::vector{parse_problem_range(text)});
    EXPECT_EQ(lock.entries().size(), 1u) << text;
    return lock;
  };
  const auto elsewhere = [](LockEntry&, Environment& environment) {
    environment.traits["cores"] = environment.traits["threads"] = environment.traits["l3_bytes"] = "99";
  };
  const KernelLock sums = recorded_range("add(f32[n,64], f32[n,64]) where n=1..512", "simd", true);
  EXPECT_EQ(sums.entries().begin()->second.plan, "");
  EXPECT_TRUE(verified(moved(sums, elsewhere)).fine());
  const KernelLock products = recorded_range("matmul(f32[m,256], f32[256,256]) where m=1..300", "openblas", false);
  EXPECT_TRUE(products.entries().begin()->second.plans_vary());
  EXPECT_TRUE(verified(products).fine());
  EXPECT_FALSE(verified(moved(products, elsewhere)).fine());

  const auto kernel_for = [&](const KernelLock& lock, const char* problem, std::uint32_t threads) {
    const ScopedLock locked(runtime.dispatcher(), {std::make_shared<const KernelLock>(lock)});
    KernelPolicy policy;
    policy.threads = threads;
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    return runtime.dispatcher().explain(parse_problem(problem));
  };
  EXPECT_EQ(kernel_for(sums, "add(f32[17,64], f32[17,64])", 2).kernel, "simd");  // recorded under deterministic
  EXPECT_EQ(kernel_for(products, "matmul(f32[17,256], f32[256,256])", 2).kernel, "openblas");

  // A plan that every size had is held to, as a problem's own is.
  const KernelLock other = moved(sums, [](LockEntry& entry, Environment&) { entry.plan = "tile=4x4"; });
  EXPECT_NE(verified(other).results.front().reason.find("the lock holds the plan 'tile=4x4' of simd"),
            std::string::npos)
      << verified(other).results.front().reason;
}

TEST_F(Replay, ARangeHasThePlanThatItsOwnSizesShare) {
  const ScopedPolicy scope(runtime.dispatcher(), KernelPolicy::from_json(R"({"threads": 2, "rules": [
    {"op": "matmul", "when": {"m": {">=": 4, "<=": 24}}, "use": "reference"}, {"op": "matmul", "use": "openblas"}]})"));
  KernelLock lock;
  record_ranges(lock, runtime,
                std::vector{parse_problem_range("matmul(f32[m,256], f32[256,n]) where m=1..28, n=250..256")});
  EXPECT_EQ(lock.entries().size(), 3u);
  std::set<std::string> plans;
  for (const auto& [text, entry] : lock.entries()) {
    const ProblemRange range = parse_problem_range(text);
    for (std::size_t i = 0; i < range.count(); ++i) {
      const Decision decision = runtime.dispatcher().explain(range.at(i));
      EXPECT_EQ(decision.kernel, entry.kernel) << text;
      EXPECT_EQ(decision.plan, entry.plan) << text;  // whole or split among threads, but not both in one part
    }
    plans.insert(entry.plan);
  }
  EXPECT_EQ(plans.size(), 2u);
}

TEST_F(Replay, ARangeOfThousandsOfLengthsIsRecordedAndCompared) {
  const ProblemRange range = parse_problem_range("relu(f32[n]) where n=1..5000");
  KernelPolicy policy;
  policy.force("relu", "reference");
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  KernelLock lock;
  record_ranges(lock, runtime, std::vector{range});
  ASSERT_EQ(lock.entries().size(), 1u);
  EXPECT_EQ(lock.entries().begin()->first, to_string(range));
  EXPECT_TRUE(range_differences(runtime, lock, range).empty());
  expect_invalid("holds 131073 problems, and at most 131072 are decided one by one", [&] {
    record_ranges(lock, runtime, std::vector{parse_problem_range("relu(f32[n]) where n=1..131073")});
  });
}

TEST_F(Replay, ARangeWhoseSizesTakeTurnsIsNotRecordedAsThousandsOfEntries) {
  const ScopedPolicy scope(runtime.dispatcher(), KernelPolicy::from_json(R"({"rules": [
    {"op": "relu", "when": {"elements": {"multiple_of": 2}}, "use": "reference"}, {"op": "relu", "use": "simd"}]})"));
  KernelLock lock;
  expect_error(ErrorCode::not_supported, "falls into 4100 parts of one kernel each, and at most 4096",
               [&] { record_ranges(lock, runtime, std::vector{parse_problem_range("relu(f32[n]) where n=1..4100")}); });
  EXPECT_TRUE(lock.entries().empty());
}

TEST_F(Replay, ARangeAskedWithOtherAlignmentSaysSoWhereThatGivesAnotherPlan) {
  KernelPolicy policy;
  policy.force("relu", "simd");
  KernelLock lock;
  {
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    record_ranges(lock, runtime, std::vector{parse_problem_range("relu(f32[n]) where n=1..100")});
  }
  const ScopedLock locked(runtime.dispatcher(), {std::make_shared<const KernelLock>(lock)});
  EXPECT_EQ(runtime.dispatcher().explain(parse_problem("relu(f32[50]/4)")).kernel, "simd");
  const Decision copied = runtime.dispatcher().explain(parse_problem("relu(f32[50]/1)"));
  EXPECT_EQ(copied.kernel, "");
  EXPECT_HAS(copied.because, "which differs in the alignment of input 0 (f32[50] there, f32[50]/1 here)");
}

TEST_F(Replay, VerifyingALockDoesNotDisturbOtherThreads) {
  FunctionKernel asking{.op = OpId::relu, .name = "asking"};
  asking.version = "1";
  std::string elsewhere;
  asking.run = [&](const Problem&, const RunArguments& arguments) {
    std::thread([&] { elsewhere = runtime.dispatcher().explain(parse_problem("add(f32[8], f32[8])")).kernel; }).join();
    std::fill_n(arguments.outputs[0]->as<float>(), 8, 0.0f);
    return Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(asking)));
  KernelPolicy policy;
  policy.deterministic = true;
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const KernelLock lock = record_lock(runtime, std::vector<Problem>{parse_problem("relu(f32[8])")});
  elsewhere.clear();
  EXPECT_TRUE(verified(lock).fine());
  EXPECT_EQ(elsewhere, "simd");
}

TEST_F(Replay, RecordsTheCastsThatAPolicyCauses) {
  KernelPolicy policy;
  policy.set_precision("matmul", "bf16");
  policy.deterministic = true;
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const KernelLock lock = record_lock(runtime, std::vector<Problem>{parse_problem("matmul(f32[16,16], f32[16,16])")});
  std::size_t casts = 0;
  for (const auto& [text, entry] : lock.entries()) casts += text.starts_with("cast(") ? 1 : 0;
  EXPECT_EQ(casts, 2u) << lock.to_json();  // both inputs alike, and the output back
  EXPECT_EQ(lock.entries().size(), 3u) << lock.to_json();

  const Tensor a = Tensor::empty(DataType::float32, {16, 16}), b = Tensor::empty(DataType::float32, {16, 16});
  const Decision free = runtime.dispatcher().explain(parse_problem("matmul(f32[16,16], f32[16,16])"));
  const Tensor out = Tensor::empty(free.problem.outputs[0].dtype, {16, 16});
  std::fill_n(a.as<float>(), 256, 1.0f);
  std::fill_n(b.as<float>(), 256, 1.0f);
  const std::array<const Tensor*, 2> inputs = {&a, &b};
  const std::array<const Tensor*, 1> outputs = {&out};
  const ScopedLock locked(runtime.dispatcher(), {std::make_shared<const KernelLock>(lock)});
  runtime.dispatcher().dispatch({OpId::matmul, inputs, outputs});
  EXPECT_EQ(runtime.dispatcher().decide({OpId::matmul, inputs, outputs}).level, Level::lock);
}

TEST_F(Replay, RecordsWhatARunLogged) {
  const Tensor in = Tensor::empty(DataType::float32, {64}), out = Tensor::empty(DataType::float32, {64});
  std::fill_n(in.as<float>(), 64, -1.0f);
  const std::array<const Tensor*, 1> inputs = {&in}, outputs = {&out};
  runtime.dispatcher().enable_logging();
  for (int i = 0; i < 3; ++i) runtime.dispatcher().dispatch({OpId::relu, inputs, outputs});
  const KernelLock lock = record_lock(runtime, runtime.dispatcher().logs());
  ASSERT_EQ(lock.entries().size(), 1u);
  EXPECT_EQ(lock.entries().begin()->second.kernel, runtime.dispatcher().decide({OpId::relu, inputs, outputs}).kernel);
  EXPECT_TRUE(verified(lock).fine());
}

TEST_F(Replay, WhatALockInForceLacksCanBeRecorded) {
  const std::vector problems = {parse_problem("relu(f32[24])")};
  const std::vector ranges = {parse_problem_range("exp(f32[n]) where n=1..4")};
  const KernelLock empty;
  const auto recorded = [&] {
    KernelLock lock = record_lock(runtime, problems);
    record_ranges(lock, runtime, ranges);
    return lock;
  };
  const KernelLock expected = recorded();
  {
    const ScopedLock scope(runtime.dispatcher(), {std::make_shared<const KernelLock>(empty)});
    EXPECT_EQ(recorded(), expected);
    EXPECT_NE(runtime.dispatcher().explain(problems[0]).because.find("record it too"), std::string::npos);
  }
  runtime.dispatcher().set_lock({std::make_shared<const KernelLock>(empty)});
  EXPECT_EQ(recorded(), expected);
}

TEST_F(Replay, AProblemThatNothingCanRunCannotBeLocked) {
  EXPECT_THROW(record_lock(runtime, std::vector<Problem>{parse_problem("relu(f32[8]) @cuda:0")}), Error);
  EXPECT_THROW(verify_lock(runtime, {}), Error);
}

}  // namespace
}  // namespace xpuruntime
