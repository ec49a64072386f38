// Kernels that refuse a layout run on contiguous copies, and everything around a call knows of them.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "dispatch/fixture.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime {
namespace {

/// softmax over the rows of a transposed matrix, which `simd` refuses.
struct Transposed {
  explicit Transposed(std::int64_t rows = 5, std::int64_t columns = 7, std::size_t shift = 0)
      : memory(Tensor::empty(DataType::uint8, {rows * columns * 4 + 16})),
        in(memory.data(), make_spec(DataType::float32, {rows, columns}, {1, rows}), {}, shift),
        out(Tensor::empty(DataType::float32, {rows, columns})) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const float value = static_cast<float>(i) - 0.25f * static_cast<float>(j);
        std::memcpy(in.as<std::byte>() + 4 * (i + j * rows), &value, 4);
      }
    }
  }
  Call call() const { return {OpId::softmax, inputs, outputs}; }
  /// The largest difference from the sums in double.
  double error() const {
    const std::int64_t rows = in.shape()[0], columns = in.shape()[1];
    double most = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < columns; ++j) sum += std::exp(-0.25 * static_cast<double>(j));
      for (std::int64_t j = 0; j < columns; ++j) {
        const double expected = std::exp(-0.25 * static_cast<double>(j)) / sum;
        most = std::max(most, std::abs(expected - static_cast<double>(out.as<float>()[i * columns + j])));
      }
    }
    return most;
  }

  Tensor memory, in, out;
  std::array<const Tensor*, 1> inputs = {&in};
  std::array<const Tensor*, 1> outputs = {&out};
};

using Copies = DispatchTest;

TEST_F(Copies, AreInTheDecisionItsTextAndItsJson) {
  const Transposed softmax;
  dispatcher().dispatch(softmax.call());
  EXPECT_LT(softmax.error(), 1e-6);
  const Decision decision = dispatcher().decide(softmax.call());
  EXPECT_EQ(decision.kernel, "simd");
  EXPECT_EQ(to_string(decision.problem), "softmax(f32[5,7]{1,5}) @cpu:0");
  ASSERT_EQ(decision.copies.size(), 1u);
  EXPECT_EQ(decision.copies[0],
            (CopyStep{false, 0, softmax.in.spec(), make_spec(DataType::float32, {5, 7}), "blocked"}));
  EXPECT_EQ(decision.plan, "copies=input0:blocked");
  EXPECT_EQ(decision.workspace_bytes, 192u);  // 140 bytes in whole lines
  EXPECT_EQ(decision.candidates[0].copied_bytes, 140u);
  EXPECT_HAS(decision.because, "on contiguous copies, 140 bytes");
  EXPECT_HAS(decision.to_text(), "  copy input 0 f32[5,7]{1,5} -> f32[5,7] by blocked\n");
  EXPECT_HAS(decision.to_json(-1),
             R"("copies":[{"tensor":"input 0","from":"f32[5,7]{1,5}","to":"f32[5,7]","kernel":"blocked"}])");
  EXPECT_HAS(decision.to_json(-1), R"("copied_bytes":140)");
}

TEST_F(Copies, AreInTheLogAndTheTimesOfTheStatistics) {
  const Transposed softmax;
  dispatcher().enable_logging();
  for (int i = 0; i < 3; ++i) dispatcher().dispatch(softmax.call());
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 3u);  // a call is one entry, with all that it took
  EXPECT_EQ(entries[0].decision->copies.size(), 1u);
  dispatcher().collect_statistics();
  const auto stats = dispatcher().statistics().freeze()->known(entries[0].decision->problem);
  EXPECT_TRUE(stats.time_us("simd", "").has_value());
}

TEST_F(Copies, AMisalignedTensorIsTaken) {
  for (const std::size_t shift : {1, 2, 4}) {
    const Transposed softmax(5, 7, shift);
    dispatcher().dispatch(softmax.call());
    EXPECT_EQ(dispatcher().decide(softmax.call()).kernel, "simd");
    EXPECT_LT(softmax.error(), 1e-6) << shift;
  }
}

TEST_F(Copies, AForcedKernelGetsThemUnlessTheyPassTheWorkspaceLimit) {
  const Transposed softmax;
  KernelPolicy policy;
  policy.force("softmax", "simd");
  dispatcher().set_policy(policy);
  EXPECT_EQ(dispatcher().decide(softmax.call()).copies.size(), 1u);
  EXPECT_EQ(dispatcher().decide(softmax.call()).level, Level::force);
  policy.workspace_limit_bytes = 100;
  dispatcher().set_policy(policy);
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(softmax.call()); }),
             "it needs 192 bytes of workspace, copies of tensors included, the limit is 100");
  policy.remove("softmax");
  dispatcher().set_policy(policy);
  EXPECT_EQ(dispatcher().decide(softmax.call()).kernel, "reference");
  policy.workspace_limit_bytes = {};
  policy.auto_strategy = Strategy::lowest_memory;
  dispatcher().set_policy(policy);
  EXPECT_EQ(dispatcher().decide(softmax.call()).kernel, "reference");
}

TEST_F(Copies, TakePartInNothingWhereTheLayoutIsTaken) {
  Relu relu;
  const Tensor strided(relu.in.data(), make_spec(DataType::float32, {4}, {2}));
  const Tensor* const inputs[] = {&strided};
  const Tensor out = Tensor::empty(DataType::float32, {4});
  const Tensor* const outputs[] = {&out};
  const Decision decision = dispatcher().decide({OpId::relu, inputs, outputs});
  EXPECT_EQ(decision.kernel, "simd");
  EXPECT_TRUE(decision.copies.empty());
  EXPECT_EQ(decision.workspace_bytes, 0u);
}

// Bytes off by one: no kernel of relu takes them as they are.
TEST_F(Copies, InPlaceCallsStayInPlace) {
  const Tensor memory = Tensor::empty(DataType::uint8, {64});
  const float values[] = {-1, 2, -3, 4};
  std::memcpy(memory.as<std::byte>() + 1, values, sizeof values);
  const Tensor both(memory.data(), make_spec(DataType::float32, {4}), {}, 1);
  const Tensor* const tensors[] = {&both};
  dispatcher().dispatch({OpId::relu, tensors, tensors});
  float result[4];
  std::memcpy(result, memory.as<std::byte>() + 1, sizeof result);
  EXPECT_EQ(std::vector<float>(result, result + 4), (std::vector<float>{0, 2, 0, 4}));
  EXPECT_EQ(dispatcher().decide({OpId::relu, tensors, tensors}).copies.size(), 2u);
}

TEST_F(Copies, GoWithAutocast) {
  const Tensor memory = Tensor::empty(DataType::uint8, {4 * 64 + 16});
  std::fill_n(memory.as<std::uint8_t>(), 4 * 64 + 16, std::uint8_t{0});
  const Tensor a(memory.data(), make_spec(DataType::float32, {8, 8}, {1, 8}), {}, 1);
  const Tensor b = Tensor::empty(DataType::float32, {8, 8});
  std::fill_n(b.as<float>(), 64, 1.0f);
  const Tensor kept = Tensor::empty(DataType::uint8, {2 * 64 + 16});
  const Tensor odd(kept.data(), make_spec(DataType::bfloat16, {8, 8}), {}, 1);
  const Tensor* const inputs[] = {&a, &b};
  const Tensor* const outputs[] = {&odd};
  const ScopedAutocast scope(dispatcher(), runtime.amp(), true, DataType::bfloat16);
  const Call call{OpId::matmul, inputs, outputs};
  dispatcher().dispatch(call);
  const Decision decision = dispatcher().decide(call);
  EXPECT_EQ(decision.casts.size(), 2u) << decision.to_text();
  ASSERT_EQ(decision.copies.size(), 1u) << decision.to_text();  // the casts are contiguous already
  EXPECT_TRUE(decision.copies[0].is_output);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(kept.as<std::byte>()[1 + i], std::byte{0});
}

TEST_F(Copies, AFailingKernelIsQuarantinedAndTheNextOneRuns) {
  FunctionKernel fails{OpId::softmax, "fails"};
  fails.version = "1";
  fails.supports = [](const Problem& problem, const DeviceProfile&) {
    return problem.inputs[0].contiguous ? Verdict::yes() : Verdict::no("strided");
  };
  fails.run = [](const Problem&, const RunArguments&) { return Status(ErrorCode::device_error, "broken"); };
  runtime.registry().register_kernel(make_kernel(std::move(fails)));
  const Transposed softmax;
  dispatcher().dispatch(softmax.call());
  EXPECT_LT(softmax.error(), 1e-6);
  ASSERT_EQ(dispatcher().quarantined().size(), 1u);
  EXPECT_EQ(dispatcher().quarantined()[0].kernel, "fails");
  EXPECT_EQ(dispatcher().decide(softmax.call()).kernel, "simd");
}

// A lock's entry holds the version of one kernel: other code under the name of a copier would pass.
TEST_F(Copies, AreMadeByKernelsOfTheLibraryAlone) {
  const Transposed softmax;
  FunctionKernel own{OpId::copy, "own"};
  own.version = "1";
  own.run = [](const Problem&, const RunArguments&) { return Status(); };
  runtime.registry().register_kernel(make_kernel(std::move(own)));
  dispatcher().dispatch(softmax.call());
  EXPECT_EQ(dispatcher().decide(softmax.call()).copies[0].kernel, "blocked");
  EXPECT_LT(softmax.error(), 1e-6);
}

TEST_F(Copies, ALockHoldsThemAndOneWithoutThemToo) {
  const Transposed softmax;
  const Problem problem = parse_problem("softmax(f32[5,7]{1,5}) deterministic");
  const KernelLock with = record_lock(runtime, std::array{problem});
  ASSERT_EQ(with.entries().size(), 1u);
  EXPECT_EQ(with.entries().begin()->second.plan, "copies=input0:blocked");
  EXPECT_TRUE(verify_lock(runtime, {std::make_shared<const KernelLock>(KernelLock::from_json(with.to_json()))}).fine());

  KernelPolicy policy;
  policy.force("softmax", "reference");
  dispatcher().set_policy(policy);
  const KernelLock without = record_lock(runtime, std::array{problem});
  EXPECT_EQ(without.entries().begin()->second.plan, "");
  dispatcher().set_policy({});
  policy = {};
  policy.deterministic = true;
  const LockUse use{std::make_shared<const KernelLock>(without)};
  const ScopeGuard scope(dispatcher(), dispatcher().make_scope(policy, {}, use));
  EXPECT_EQ(dispatcher().decide(softmax.call()).kernel, "reference");
  EXPECT_TRUE(dispatcher().decide(softmax.call()).copies.empty());
}

TEST_F(Copies, TuningMeasuresTheKernelWithThem) {
  std::vector<TuneResult> results;
  TuneOptions options;
  options.problem_budget_s = 0.02;
  runtime.tune(std::array{parse_problem("softmax(f32[64,96]{1,64})")}, options,
               [&](const TuneResult& result) { results.push_back(result); });
  ASSERT_EQ(results.size(), 1u);
  const auto& rows = results[0].candidates;
  const auto simd = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.kernel == "simd"; });
  ASSERT_NE(simd, rows.end());
  EXPECT_TRUE(simd->time_us.has_value()) << simd->reason;
  EXPECT_EQ(simd->plan, "copies=input0:blocked");
  EXPECT_GE(simd->workspace_bytes.value_or(0), 64u * 96u * 4u);
}

}  // namespace
}  // namespace xpuruntime
