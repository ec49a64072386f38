// Ops inside an autocast scope run at the registry's precision, with casts that the dispatcher makes. The oracle is the
// same work with every cast made by hand.

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "dispatch/fixture.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

constexpr DataType f16 = DataType::float16;
constexpr DataType bf16 = DataType::bfloat16;
constexpr DataType f32 = DataType::float32;

Tensor random_tensor(const Dims& shape, unsigned seed) {
  const Tensor tensor = Tensor::empty(f32, shape);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) tensor.as<float>()[i] = values(random);
  return tensor;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.as<void>(), b.as<void>(), a.span()) == 0;
}

class AutocastTest : public DispatchTest {
 protected:
  void run(OpId op, std::vector<const Tensor*> inputs, const Tensor& out, Direction direction = Direction::forward) {
    const Tensor* outputs[] = {&out};
    dispatcher().dispatch({.op = op, .inputs = inputs, .outputs = outputs, .direction = direction});
  }
  const Decision& decide(OpId op, std::vector<const Tensor*> inputs, const Tensor& out) {
    const Tensor* outputs[] = {&out};
    return dispatcher().decide({.op = op, .inputs = inputs, .outputs = outputs});
  }
  Tensor cast(const Tensor& from, DataType to) {
    const Tensor out = Tensor::empty(to, from.shape());
    const Attributes attributes = Attributes(OpId::cast).parse("dtype", to_string(to));
    const Tensor* inputs[] = {&from};
    const Tensor* outputs[] = {&out};
    dispatcher().dispatch({.op = OpId::cast, .inputs = inputs, .outputs = outputs, .attributes = &attributes});
    return out;
  }
  /// Calls of one op in the log.
  std::vector<LogEntry> logged(std::string_view op) {
    std::vector<LogEntry> out;
    for (const LogEntry& entry : dispatcher().logs()) {
      if (entry.op_name() == op) out.push_back(entry);
    }
    return out;
  }

  Tensor a = random_tensor({17, 33}, 1), b = random_tensor({33, 9}, 2);
  Tensor out = Tensor::empty(f32, {17, 9});
};

TEST_F(AutocastTest, GivesWhatCastsByHandGive) {
  for (const DataType dtype : {bf16, f16}) {
    const Tensor low_a = cast(a, dtype), low_b = cast(b, dtype), low = Tensor::empty(dtype, {17, 9});
    run(OpId::matmul, {&low_a, &low_b}, low);
    const Tensor by_hand = cast(low, f32);

    const ScopedAutocast scope(dispatcher(), runtime.amp(), true, dtype);
    run(OpId::matmul, {&a, &b}, out);
    EXPECT_TRUE(same_bytes(out, by_hand)) << to_string(dtype);
    const Tensor low_out = Tensor::empty(dtype, {17, 9});
    run(OpId::matmul, {&a, &b}, low_out);
    EXPECT_TRUE(same_bytes(low_out, low)) << "an output that is already " << to_string(dtype);
  }
}

TEST_F(AutocastTest, WidensWhatTheRulesWantWide) {
  const Tensor low = cast(a, bf16), by_hand = Tensor::empty(f32, {17, 33}), wide = Tensor::empty(f32, {17, 33});
  run(OpId::softmax, {&low}, by_hand);  // computes in f32 from 16 bit all the same
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  run(OpId::softmax, {&low}, wide);
  EXPECT_EQ(decide(OpId::softmax, {&low}, wide).precision.forward, f32);
  const Tensor exact = Tensor::empty(f32, {17, 33}), widened = cast(low, f32);
  run(OpId::softmax, {&widened}, exact);
  EXPECT_TRUE(same_bytes(wide, exact));
}

TEST_F(AutocastTest, TheDecisionShowsItsCasts) {
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Decision& decision = decide(OpId::matmul, {&a, &b}, out);
  EXPECT_EQ(to_string(decision.problem), "matmul(bf16[17,33], bf16[33,9]) @cpu:0");
  EXPECT_EQ(decision.precision.forward, bf16);
  EXPECT_EQ(decision.precision.because, "autocast, by the default rule for matmul, asks for lower");
  ASSERT_EQ(decision.casts.size(), 3u);
  EXPECT_EQ(decision.casts[0], (CastStep{false, 0, f32, bf16, "simd"}));
  EXPECT_EQ(decision.casts[1], (CastStep{false, 1, f32, bf16, "simd"}));
  EXPECT_EQ(decision.casts[2], (CastStep{true, 0, bf16, f32, "simd"}));
  EXPECT_HAS(decision.to_text(), "cast input 1 f32 -> bf16 by simd");
  EXPECT_HAS(decision.to_json(-1), R"({"tensor":"output 0","from":"bf16","to":"f32","kernel":"simd"})");
  const Decision explained = dispatcher().explain(parse_problem("matmul(f32[17,33], f32[33,9])"));
  EXPECT_EQ(explained.casts, decision.casts);
}

TEST_F(AutocastTest, CastsAreCallsOfTheirOwnInTheLog) {
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  dispatcher().enable_logging();
  run(OpId::matmul, {&a, &b}, out);
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].op_name(), "cast");
  EXPECT_EQ(entries[1].op_name(), "cast");
  EXPECT_EQ(entries[2].op_name(), "matmul");
  EXPECT_EQ(entries[2].dtype(), bf16);
  EXPECT_EQ(entries[3].op_name(), "cast");
}

TEST_F(AutocastTest, AWeightIsCastOncePerScopeUntilItChanges) {
  b.set_version(Tensor::new_version());
  dispatcher().enable_logging();
  const auto casts_of_b = [&] {
    std::size_t count = 0;
    for (const LogEntry& entry : logged("cast")) count += entry.input_shape() == b.shape();
    return count;
  };
  {
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    for (int i = 0; i < 5; ++i) run(OpId::matmul, {&a, &b}, out);
    EXPECT_EQ(casts_of_b(), 1u);
    {
      const ScopedAutocast inner(dispatcher(), runtime.amp());
      run(OpId::matmul, {&a, &b}, out);
      EXPECT_EQ(casts_of_b(), 1u) << "an inner scope shares the outer one's casts";
    }
    const Tensor before = cast(out, f32);
    b.as<float>()[0] = 7;
    b.set_version(Tensor::new_version());
    run(OpId::matmul, {&a, &b}, out);
    EXPECT_EQ(casts_of_b(), 2u);
    EXPECT_FALSE(same_bytes(out, before)) << "the new value counts";
    const Tensor moved = random_tensor({33, 9}, 3);
    run(OpId::matmul, {&a, &moved}, out);
    EXPECT_EQ(casts_of_b(), 3u) << "other memory, no version";
    run(OpId::matmul, {&a, &moved}, out);
    EXPECT_EQ(casts_of_b(), 4u);
  }
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  run(OpId::matmul, {&a, &b}, out);
  EXPECT_EQ(casts_of_b(), 5u) << "a new scope starts afresh";
}

TEST_F(AutocastTest, TwoVersionsOfOneMemoryMayMeetInOneCall) {
  Tensor w = random_tensor({16, 16}, 8);
  const Tensor expected = Tensor::empty(f32, {16, 16}), got = Tensor::empty(f32, {16, 16});
  Tensor transposed(w.data(), make_spec(f32, {16, 16}, {1, 16}), {}, 0, w.owner());
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  run(OpId::matmul, {&w, &transposed}, expected);
  w.set_version(Tensor::new_version());
  transposed.set_version(Tensor::new_version());
  for (int i = 0; i < 3; ++i) {
    run(OpId::matmul, {&w, &transposed}, got);
    EXPECT_TRUE(same_bytes(got, expected)) << i;
  }
}

TEST_F(AutocastTest, HugeBf16NextToF32SurvivesAnF16Scope) {
  for (int i = 0; i < 17 * 33; ++i) a.as<float>()[i] = 1e6f;
  const Tensor huge = cast(a, bf16), exact = Tensor::empty(f32, {17, 9}), wide = cast(huge, f32);
  run(OpId::matmul, {&wide, &b}, exact);
  const ScopedAutocast scope(dispatcher(), runtime.amp(), true, f16);
  run(OpId::matmul, {&huge, &b}, out);
  EXPECT_TRUE(same_bytes(out, exact));
}

TEST_F(AutocastTest, ACastKernelThatFailsIsReplacedInTheRecordToo) {
  FunctionKernel bad;
  bad.op = OpId::cast;
  bad.name = "bad_cast";
  bad.run = [](const Problem&, const RunArguments&) { return Status(ErrorCode::device_error, "no luck"); };
  runtime.registry().register_kernel(make_kernel(std::move(bad)));
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  EXPECT_EQ(decide(OpId::matmul, {&a, &b}, out).casts[0].kernel, "bad_cast");
  run(OpId::matmul, {&a, &b}, out);
  run(OpId::matmul, {&a, &b}, out);
  for (const CastStep& step : decide(OpId::matmul, {&a, &b}, out).casts) EXPECT_EQ(step.kernel, "simd");
}

TEST_F(AutocastTest, AnOutputThatNoKernelWritesIsCastBehindIt) {
  KernelPolicy policy;
  policy.force("matmul", "openblas").set_precision("matmul", "f32");
  const ScopedPolicy scope(dispatcher(), policy);
  const Tensor low = Tensor::empty(bf16, {17, 9});
  const Decision& decision = decide(OpId::matmul, {&a, &b}, low);
  EXPECT_EQ(decision.precision.forward, f32);
  ASSERT_EQ(decision.casts.size(), 1u);
  EXPECT_EQ(decision.casts[0], (CastStep{true, 0, f32, bf16, "simd"}));
}

TEST_F(AutocastTest, WhatToAllocateFollowsADowngrade) {
  KernelPolicy policy;
  policy.force("matmul", "openblas");
  const ScopedPolicy forced(dispatcher(), policy);
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Tensor* inputs[] = {&a, &b};
  EXPECT_EQ(dispatcher().output_specs({.op = OpId::matmul, .inputs = inputs}).front().dtype, f32);
  const Tensor indices = Tensor::empty(DataType::int64, {3}), table = cast(a, bf16);
  const Tensor* lookup[] = {&indices, &table};
  const Call call{.op = OpId::embedding, .inputs = lookup};
  EXPECT_EQ(dispatcher().output_specs(call).front().dtype, bf16) << "the default rule widens no lookup";
  AmpRegistry higher;
  higher.register_blacklist("embedding");
  const ScopedAutocast wider(dispatcher(), higher);
  EXPECT_EQ(dispatcher().output_specs(call).front().dtype, f32) << "a user's rule does";
}

TEST_F(AutocastTest, TheScopeOfAnotherDispatcherIsRefused) {
  Runtime other({false, false, {}});
  const ScopePtr scope = other.dispatcher().current_scope();
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().enter_scope(scope); }), "another dispatcher's");
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { ScopedPolicy(dispatcher(), scope); }),
             "another dispatcher's");
}

TEST_F(AutocastTest, KeptCastsGoBackWhenTheScopeEnds) {
  b.set_version(Tensor::new_version());
  WorkspacePool& pool = runtime.devices().workspace({});
  const std::uint64_t before = pool.stats().bytes_in_use;
  {
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    run(OpId::matmul, {&a, &b}, out);
    EXPECT_GT(pool.stats().bytes_in_use, before);
  }
  EXPECT_EQ(pool.stats().bytes_in_use, before);
}

TEST_F(AutocastTest, ScopesNestAndAreTheirThreadsOwn) {
  const auto precision = [&] { return decide(OpId::matmul, {&a, &b}, out).precision.forward; };
  EXPECT_EQ(precision(), f32);
  {
    const ScopedAutocast outer(dispatcher(), runtime.amp());
    EXPECT_EQ(precision(), bf16);
    {
      const ScopedAutocast inner(dispatcher(), runtime.amp(), true, f16);
      EXPECT_EQ(precision(), f16);
      const ScopedAutocast off(dispatcher(), runtime.amp(), false);
      EXPECT_EQ(precision(), f32);
      EXPECT_FALSE(dispatcher().autocast_enabled());
    }
    EXPECT_EQ(precision(), bf16);
    std::thread([&] { EXPECT_EQ(precision(), f32); }).join();
    const ScopePtr captured = dispatcher().current_scope();
    std::thread([&] {
      const ScopedPolicy same(dispatcher(), captured);
      EXPECT_EQ(precision(), bf16);
    }).join();
    EXPECT_THROW(
        {
          const ScopedAutocast inner(dispatcher(), runtime.amp(), true, f16);
          throw std::runtime_error("out");
        },
        std::runtime_error);
    EXPECT_EQ(precision(), bf16);
  }
  EXPECT_EQ(precision(), f32);
}

TEST_F(AutocastTest, TheRulesAreThoseOfTheMomentOfEntry) {
  const auto precision = [&] { return decide(OpId::matmul, {&a, &b}, out).precision.forward; };
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  EXPECT_EQ(precision(), bf16);
  runtime.amp().register_blacklist("matmul");
  EXPECT_EQ(precision(), bf16);
  const ScopedAutocast later(dispatcher(), runtime.amp());
  EXPECT_EQ(precision(), f32);
}

TEST_F(AutocastTest, LayersWithPolicies) {
  KernelPolicy policy;
  policy.set("matmul", "reference").set_precision("matmul", "f16", "f32");
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const ScopedPolicy layer(dispatcher(), policy);
  const Decision& decision = decide(OpId::matmul, {&a, &b}, out);
  EXPECT_EQ(decision.kernel, "reference");
  EXPECT_EQ(decision.precision.forward, f16) << "the policy's rule is stronger";
  EXPECT_EQ(decision.precision.backward, f32);
  EXPECT_EQ(decide(OpId::relu, {&out}, out).precision.forward, bf16) << "autocast is still on";
}

TEST_F(AutocastTest, APolicysPrecisionHoldsWithoutAutocast) {
  KernelPolicy policy;
  policy.set_precision("matmul", "bf16");
  const ScopedPolicy layer(dispatcher(), policy);
  const Decision& decision = decide(OpId::matmul, {&a, &b}, out);
  EXPECT_EQ(decision.precision.forward, bf16);
  EXPECT_EQ(decision.casts.size(), 3u);
  EXPECT_EQ(decide(OpId::relu, {&out}, out).precision.forward, f32);
}

TEST_F(AutocastTest, TheCallsOwnPrecisionIsStrongest) {
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Tensor* inputs[] = {&a, &b};
  const Tensor* outputs[] = {&out};
  Call call{.op = OpId::matmul, .inputs = inputs, .outputs = outputs, .precision = f32};
  EXPECT_EQ(dispatcher().decide(call).precision.forward, f32);
  call.precision = f16;
  EXPECT_EQ(dispatcher().decide(call).precision.forward, f16);
  call.precision.reset();
  EXPECT_EQ(dispatcher().decide(call).precision.forward, bf16);
  call.precision = DataType::int8;
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().dispatch(call); }), "not a float type");
}

TEST_F(AutocastTest, SaysWhatToAllocate) {
  const Tensor* inputs[] = {&a, &b};
  const Call call{.op = OpId::matmul, .inputs = inputs};
  EXPECT_EQ(dispatcher().output_specs(call).front(), make_spec(f32, {17, 9}));
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  EXPECT_EQ(dispatcher().output_specs(call).front(), make_spec(bf16, {17, 9}));
}

TEST_F(AutocastTest, WhatToAllocateFollowsAPolicyThatCameMeanwhile) {
  const Tensor* inputs[] = {&a, &b};
  const Call call{.op = OpId::matmul, .inputs = inputs};
  KernelPolicy narrow;
  narrow.default_precision = bf16;
  std::atomic<bool> once = true;
  dispatcher().set_precision_hook([&](const Problem&) -> std::optional<DataType> {
    if (once.exchange(false)) std::thread([&] { dispatcher().set_policy(narrow); }).join();
    return {};
  });
  dispatcher().output_specs(call);  // under either policy, but not kept for the other
  EXPECT_EQ(dispatcher().output_specs(call).front(), make_spec(bf16, {17, 9}));
  dispatcher().set_precision_hook({});
}

TEST_F(AutocastTest, WhatToAllocateIsRememberedForEachSignatureAndScope) {
  const Tensor wide = Tensor::empty(f32, {17, 40}), taller = Tensor::empty(f32, {40, 5});
  const Tensor *first[] = {&a, &b}, *second[] = {&wide, &taller}, *missing[] = {&a, nullptr};
  const Call one{.op = OpId::matmul, .inputs = first}, other{.op = OpId::matmul, .inputs = second};
  Attributes turned(OpId::matmul);
  turned.set("transpose_a", 1).set("transpose_b", 1);
  EXPECT_EQ(dispatcher().known_output_specs(one), nullptr) << "nobody asked yet";
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(dispatcher().output_specs(one).front(), make_spec(f32, {17, 9}));
    EXPECT_EQ(dispatcher().output_specs(other).front(), make_spec(f32, {17, 5}));
    ASSERT_NE(dispatcher().known_output_specs(one), nullptr);
    EXPECT_EQ(dispatcher().known_output_specs(one)->front(), make_spec(f32, {17, 9}));
    const ScopedAutocast scope(dispatcher(), runtime.amp());
    EXPECT_EQ(dispatcher().output_specs(one).front(), make_spec(bf16, {17, 9}));
  }
  const Tensor* square[] = {&taller, &wide};
  EXPECT_EQ(dispatcher().output_specs({OpId::matmul, square, {}, &turned}).front(), make_spec(f32, {5, 17}));
  // Outputs that the call has do not count.
  const Tensor given = Tensor::empty(bf16, {17, 9});
  const Tensor* outputs[] = {&given};
  EXPECT_EQ(dispatcher().output_specs({OpId::matmul, first, outputs}).front(), make_spec(f32, {17, 9}));
  EXPECT_HAS(error_text(ErrorCode::invalid_argument,
                        [&] { dispatcher().output_specs({.op = OpId::matmul, .inputs = missing}); }),
             "null pointer");
  EXPECT_EQ(dispatcher().known_output_specs({.op = OpId::matmul, .inputs = missing}), nullptr);
}

TEST_F(AutocastTest, ATableOfIntegersIsAllocatedInItsOwnDtype) {
  const Tensor indices = Tensor::empty(DataType::int64, {3}), table = Tensor::empty(DataType::int32, {5, 2});
  const Tensor* lookup[] = {&indices, &table};
  const Call call{.op = OpId::embedding, .inputs = lookup};
  EXPECT_EQ(dispatcher().output_specs(call).front(), make_spec(DataType::int32, {3, 2}));
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  EXPECT_EQ(dispatcher().output_specs(call).front(), make_spec(DataType::int32, {3, 2}));
}

TEST_F(AutocastTest, IntegersEmptyTensorsAndInPlaceCallsWork) {
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Tensor counts = Tensor::empty(DataType::int32, {3});
  for (int i = 0; i < 3; ++i) counts.as<std::int32_t>()[i] = 100000 + i;
  run(OpId::add, {&counts, &counts}, counts);
  EXPECT_EQ(counts.as<std::int32_t>()[2], 200004);
  const Tensor none = Tensor::empty(f32, {0, 4}), weight = Tensor::empty(f32, {4, 2}),
               empty = Tensor::empty(f32, {0, 2});
  run(OpId::matmul, {&none, &weight}, empty);
  const Tensor zero_k_a = Tensor::empty(f32, {2, 0}), zero_k_b = Tensor::empty(f32, {0, 2});
  const Tensor zeros = random_tensor({2, 2}, 4);
  run(OpId::matmul, {&zero_k_a, &zero_k_b}, zeros);
  EXPECT_EQ(zeros.as<float>()[3], 0);
  const Tensor x = random_tensor({64}, 5), expected = Tensor::empty(f32, {64});
  run(OpId::relu, {&x}, expected);
  run(OpId::relu, {&x}, x);
  EXPECT_TRUE(same_bytes(x, expected));
}

TEST_F(AutocastTest, ScopesOutOfOrderAndOutOfPlaceAreDefined) {
  const auto precision = [&] { return decide(OpId::matmul, {&a, &b}, out).precision.forward; };
  const ScopePtr low = dispatcher().layered_scope(make_autocast(runtime.amp()));
  const ScopePtr half = dispatcher().layered_scope(make_autocast(runtime.amp(), true, f16));
  const std::uint64_t first = dispatcher().enter_scope(low), second = dispatcher().enter_scope(half);
  dispatcher().leave_scope(first);
  EXPECT_EQ(precision(), f16) << "the latest one alive is in force";
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().leave_scope(first); }),
             "leave each scope once");
  std::thread([&] {
    EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().leave_scope(second); }), "on the thread");
  }).join();
  EXPECT_EQ(precision(), f16);
  dispatcher().leave_scope(second);
  EXPECT_EQ(precision(), f32);
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().leave_scope(0); }), "not in force");
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().enter_scope(nullptr); }), "null scope");
}

/// Kernels of an op of its own that say in which dtypes they can compute.
class Downgrade : public DispatchTest {
 protected:
  static std::vector<TensorSpec> like_first(std::span<const TensorSpec> inputs, const Attributes&) {
    return {make_spec(inputs[0].dtype, inputs[0].shape)};
  }
  static OpId op() {
    static const OpId id = register_op({.name = "downgrade_test", .category = OpCategory::matrix, .infer = like_first});
    return id;
  }
  void add(const std::string& name, std::vector<DataType> dtypes, Status status = {}) {
    FunctionKernel kernel;
    kernel.op = op();
    kernel.name = name;
    kernel.supports = [dtypes](const Problem& problem, const DeviceProfile&) {
      for (const DataType dtype : dtypes) {
        if (problem.inputs[0].dtype == dtype) return Verdict::yes();
      }
      return Verdict::no("no " + std::string(to_string(problem.inputs[0].dtype)) + " here");
    };
    kernel.run = [status](const Problem&, const RunArguments&) { return status; };
    runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  }
};

TEST_F(Downgrade, TakesTheNextDtypeWithoutLossAndSaysSo) {
  add("wide", {f32});
  add("widest", {DataType::float64});
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Decision wide = dispatcher().explain(parse_problem("downgrade_test(f32[4])"));
  EXPECT_EQ(wide.kernel, "wide");
  EXPECT_EQ(wide.precision.forward, f32);
  EXPECT_TRUE(wide.casts.empty());
  EXPECT_HAS(wide.precision.because, "bf16 has no kernel here");
  EXPECT_HAS(wide.precision.because, "so f32, the next without loss");
  const Decision from_half = dispatcher().explain(parse_problem("downgrade_test(f16[4])"));
  EXPECT_EQ(from_half.kernel, "wide");
  EXPECT_EQ(from_half.casts.size(), 2u) << "there and back";
}

TEST_F(Downgrade, HappensOnlyWhereAPrecisionIsRequested) {
  add("wide", {f32});
  const Decision decision = dispatcher().explain(parse_problem("downgrade_test(f16[4])"));
  EXPECT_EQ(decision.kernel, "");
  EXPECT_HAS(decision.to_text(), "no f16 here");
}

TEST_F(Downgrade, GoesAsFarAsItMust) {
  add("widest", {DataType::float64});
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  Call call{.op = op()};
  const Tensor x = Tensor::empty(f32, {4}), y = Tensor::empty(f32, {4});
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  call.inputs = inputs;
  call.outputs = outputs;
  call.precision = f16;
  const Decision& decision = dispatcher().decide(call);
  EXPECT_EQ(decision.kernel, "widest");
  EXPECT_EQ(decision.precision.forward, DataType::float64);
  EXPECT_HAS(decision.precision.because, "the call asks for f16; f16 has no kernel here");
  EXPECT_HAS(decision.precision.because, "so f64, the next without loss");
}

TEST_F(Downgrade, AKernelThatFailsIsReplacedAtTheNextPrecision) {
  add("wide", {f32});
  add("low", {bf16}, Status(ErrorCode::device_error, "no luck"));
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Tensor x = Tensor::empty(f32, {4}), y = Tensor::empty(f32, {4});
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  const Call call{.op = op(), .inputs = inputs, .outputs = outputs};
  EXPECT_EQ(dispatcher().decide(call).kernel, "low");
  dispatcher().dispatch(call);
  EXPECT_EQ(dispatcher().decide(call).kernel, "wide");
  ASSERT_EQ(dispatcher().quarantined().size(), 1u);
  EXPECT_EQ(to_string(dispatcher().quarantined()[0].problem), "downgrade_test(bf16[4]) @cpu:0");
}

TEST_F(Downgrade, TheOnlyKernelMayFailInOnePrecisionAndRunInTheNext) {
  FunctionKernel kernel;
  kernel.op = op();
  kernel.name = "only";
  kernel.run = [](const Problem& problem, const RunArguments&) {
    return problem.inputs[0].dtype == bf16 ? Status(ErrorCode::device_error, "no luck") : Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Tensor x = Tensor::empty(f32, {4}), y = Tensor::empty(f32, {4});
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  const Call call{.op = op(), .inputs = inputs, .outputs = outputs};
  dispatcher().dispatch(call);
  EXPECT_EQ(dispatcher().decide(call).precision.forward, f32);
}

TEST_F(Downgrade, ThatFindsNothingIsAnErrorAboutWhatWasAsked) {
  add("integers", {DataType::int32});
  const ScopedAutocast scope(dispatcher(), runtime.amp());
  const Tensor x = Tensor::empty(f32, {4}), y = Tensor::empty(f32, {4});
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&y};
  const Call call{.op = op(), .inputs = inputs, .outputs = outputs};
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(call); }), "downgrade_test(f32[4])");
}

}  // namespace
}  // namespace xpuruntime
