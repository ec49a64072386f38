#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/expect_error.h"
#include "select/dtype_kernels.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

using D = DataType;
using K = KernelDtype;
constexpr Device npu0{DeviceType::npu, 0};

/// A device that runs matmul in FP32 and FP16, but not mixed, and add in any mixture of FP32 and BF16.
class KernelDtypes : public ::testing::Test {
 protected:
  KernelDtypes() {
    devices.add_driver(std::make_shared<testing::FakeDriver>());
    registry.register_kernel(testing::kernel_for(OpId::matmul, "full", {D::float32}));
    registry.register_kernel(testing::kernel_for(OpId::matmul, "half", {D::float16}));
    registry.register_kernel(testing::kernel_for(OpId::add, "both", {D::float32, D::bfloat16}));
    selector = registry.get_or_create_selector(npu0);
  }

  static Tensor tensor(D dtype) { return Tensor::empty(dtype, {2}); }
  K dtype_of(const std::vector<D>& dtypes) const {
    std::vector<Tensor> tensors;
    for (const D dtype : dtypes) tensors.push_back(tensor(dtype));
    return selector->get_kernel_dtype(tensors);
  }
  void offer(const char* op, K dtype, bool available = true) {
    selector->register_kernel_capability(op, {.dtype = dtype, .is_available = available});
  }

  DeviceManager devices;
  KernelRegistry registry{devices};
  std::shared_ptr<KernelSelector> selector;
};

// Of tensors.

TEST_F(KernelDtypes, GiveTheKernelDtypeOfATensor) {
  EXPECT_EQ(selector->get_kernel_dtype(tensor(D::float32)), K::float32);
  EXPECT_EQ(selector->get_kernel_dtype(tensor(D::float16)), K::float16);
  EXPECT_EQ(selector->get_kernel_dtype(tensor(D::bfloat16)), K::bfloat16);
  for (const D other : {D::float64, D::int64, D::int8, D::boolean}) {
    EXPECT_EQ(selector->get_kernel_dtype(tensor(other)), K::float32) << to_string(other);
  }
}

TEST_F(KernelDtypes, GiveTheOneThatAllTensorsHave) {
  EXPECT_EQ(dtype_of({D::float16}), K::float16);
  EXPECT_EQ(dtype_of({D::bfloat16, D::bfloat16, D::bfloat16}), K::bfloat16);
  EXPECT_EQ(dtype_of({D::float64, D::float64}), K::float32);
}

TEST_F(KernelDtypes, GiveFloat32ForNoTensorAtAll) { EXPECT_EQ(dtype_of({}), K::float32); }

TEST_F(KernelDtypes, CallTensorsOfSeveralDtypesMixed) {
  EXPECT_EQ(dtype_of({D::float16, D::float32}), K::mixed);
  EXPECT_EQ(dtype_of({D::float16, D::float16, D::bfloat16}), K::mixed);
  // Both map to float32, but they are not the same.
  EXPECT_EQ(dtype_of({D::float32, D::float64}), K::mixed);
  EXPECT_EQ(dtype_of({D::float32, D::int64}), K::mixed);
}

// Of an op: what the dispatcher resolves its inputs to.

TEST_F(KernelDtypes, ResolveInputsAsTheDispatcherDoes) {
  const auto resolved = [&](std::initializer_list<D> dtypes) { return selector->get_kernel_dtype("matmul", dtypes); };
  EXPECT_EQ(resolved({D::float16, D::float16}), K::float16);
  EXPECT_EQ(resolved({D::bfloat16}), K::bfloat16);
  EXPECT_EQ(resolved({D::float16, D::bfloat16}), K::float32);
  EXPECT_EQ(resolved({D::float32, D::float16}), K::float32);
  EXPECT_EQ(resolved({D::int64, D::float16}), K::float16);  // integers do not vote
  EXPECT_EQ(resolved({D::bfloat16, D::boolean}), K::bfloat16);
  EXPECT_EQ(resolved({D::float64, D::float16}), K::float32);  // never the narrow one
  EXPECT_EQ(resolved({D::float64}), K::float32);
  EXPECT_EQ(resolved({D::int8, D::int8}), K::float32);
  EXPECT_EQ(resolved({}), K::float32);
}

TEST_F(KernelDtypes, AgreeWithTheProblemThatIsDispatched) {
  for (const char* text : {"add(f16[4], bf16[4])", "add(f16[4], f32[4])", "add(f16[4], f16[4])", "add(f64[4], bf16[4])",
                           "matmul(i8[4,4], i8[4,4])", "embedding(i64[2], bf16[4,4])"}) {
    const Problem problem = parse_problem(text);
    std::vector<D> dtypes;
    for (const TensorSpec& spec : problem.inputs) dtypes.push_back(spec.dtype);
    EXPECT_EQ(selector->get_kernel_dtype(problem.op, dtypes), to_kernel_dtype(promoted_dtype(problem))) << text;
  }
}

// Availability.

TEST_F(KernelDtypes, AreThereWhereAKernelTakesThem) {
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::float32));
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::float16));
  EXPECT_FALSE(selector->is_kernel_available("matmul", K::bfloat16));
  EXPECT_TRUE(selector->is_kernel_available(OpId::matmul, K::float16));
  EXPECT_FALSE(selector->is_kernel_available(OpId::relu, K::float32));
}

TEST_F(KernelDtypes, AreNotThereByDefaultWhereNoKernelIs) {
  // The default rows say what the device computes in; that alone runs nothing.
  ASSERT_TRUE(selector->find_kernel_capability("conv2d", K::float32));
  EXPECT_FALSE(selector->is_kernel_available("conv2d", K::float32));
}

TEST_F(KernelDtypes, AreMixedOnlyWhereAKernelTakesTheMixture) {
  EXPECT_FALSE(selector->is_kernel_available("matmul", K::mixed));
  EXPECT_TRUE(selector->is_kernel_available("add", K::mixed));
  registry.register_kernel(testing::kernel_for(OpId::relu, "all", {D::float32, D::float16, D::bfloat16}));
  EXPECT_FALSE(selector->is_kernel_available("relu", K::mixed)) << "one input is no mixture";
}

TEST_F(KernelDtypes, AreThereInAnyWayForAuto) {
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::auto_select));
  EXPECT_FALSE(selector->is_kernel_available("relu", K::auto_select));
}

TEST_F(KernelDtypes, ComeAndGoWithTheKernels) {
  EXPECT_FALSE(selector->is_kernel_available("matmul", K::bfloat16));
  registry.register_kernel(testing::kernel_for(OpId::matmul, "brain", {D::bfloat16}));
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::bfloat16));
  registry.unregister_kernel(OpId::matmul, DeviceType::npu, "brain");
  EXPECT_FALSE(selector->is_kernel_available("matmul", K::bfloat16));
}

TEST_F(KernelDtypes, AreNotThereWhereTheKernelThrows) {
  FunctionKernel throwing{.op = OpId::relu, .name = "throwing", .device_type = DeviceType::npu};
  throwing.supports = [](const Problem&, const DeviceProfile&) -> Verdict { throw 1; };
  throwing.run = [](const Problem&, const RunArguments&) { return Status(); };
  registry.register_kernel(make_kernel(throwing));
  EXPECT_FALSE(selector->is_kernel_available("relu", K::float32));
}

TEST_F(KernelDtypes, AreThereOrNotAsSomebodyRegistered) {
  offer("matmul", K::bfloat16);
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::bfloat16));
  offer("matmul", K::float16, false);
  EXPECT_FALSE(selector->is_kernel_available("matmul", K::float16)) << "a kernel takes it, but it was turned off";
  registry.register_default_capabilities(npu0, *selector);
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::float16)) << "the default row says nothing against it";
  EXPECT_TRUE(selector->is_kernel_available("matmul", K::bfloat16)) << "there is no default row in its place";
}

// Names.

TEST_F(KernelDtypes, AreNamedByTheOpAndADtypeBehindIt) {
  selector->register_kernel_capability("conv2d_bf16", KernelCapability::create_bfloat16());
  for (const char* name : {"conv2d", "Conv2D", "conv", "conv2d_bf16", "Conv2d_BFloat16", "CONV_BF16"}) {
    EXPECT_TRUE(selector->is_kernel_available(name, K::bfloat16)) << name;
    EXPECT_EQ(selector->find_kernel_capability(name, K::bfloat16), KernelCapability::create_bfloat16()) << name;
  }
  EXPECT_FALSE(selector->is_kernel_available("conv2d", K::float16));
  EXPECT_TRUE(selector->is_kernel_available("matmul_fp16", K::float16));
}

TEST_F(KernelDtypes, AreMeantByTheNameWhereAutoIsAskedFor) {
  EXPECT_TRUE(selector->is_kernel_available("matmul_fp16", K::auto_select));
  EXPECT_FALSE(selector->is_kernel_available("matmul_bf16", K::auto_select));
}

TEST_F(KernelDtypes, AreAnErrorWhereNameAndDtypeContradictEachOther) {
  const std::string text = "the name says matmul in f16, the dtype is f32";
  expect_invalid(text, [&] { selector->is_kernel_available("matmul_fp16", K::float32); });
  expect_invalid(text,
                 [&] { selector->register_kernel_capability("matmul_fp16", KernelCapability::create_float32()); });
  expect_invalid(text, [&] { selector->find_kernel_capability("matmul_fp16", K::float32); });
  expect_invalid(text, [&] { selector->select_best_kernel("matmul_fp16", {D::float16}, K::float32); });
  expect_invalid(text, [&] { selector->update_performance_stats("matmul_fp16", K::float32, 1); });
  expect_invalid(text, [&] { selector->get_performance_stats("matmul_fp16", K::float32); });
  expect_invalid(text, [&] { selector->get_kernel_dtype("matmul_fp16", {D::float16, D::float32}); });
  EXPECT_EQ(selector->get_kernel_dtype("matmul_fp16", {D::float16, D::float16}), K::float16);
}

TEST_F(KernelDtypes, MayBelongToAnOpOfTheCallersOwn) {
  selector->register_kernel_capability("custom_op", KernelCapability::create_float16());
  EXPECT_TRUE(selector->is_kernel_available("custom_op", K::float16));
  EXPECT_TRUE(selector->is_kernel_available("CustomOp", K::float16));
  EXPECT_TRUE(selector->is_kernel_available("custom_op_fp16", K::float16));
  EXPECT_FALSE(selector->is_kernel_available("custom_op", K::float32));
  EXPECT_EQ(selector->select_best_kernel("custom_op", {D::bfloat16, D::float16}), K::float16);
  EXPECT_EQ(selector->get_kernel_dtype("custom_op", {D::bfloat16}), K::bfloat16);
  // Each selector has its own.
  const auto other = registry.get_or_create_selector({DeviceType::npu, 1});
  expect_error(ErrorCode::unknown_name, "unknown op 'custom_op'",
               [&] { other->is_kernel_available("custom_op", K::float16); });
}

TEST_F(KernelDtypes, StartAnOwnOpByItsNameWithADtype) {
  selector->register_kernel_capability("my_scan_bf16", KernelCapability::create_bfloat16());
  EXPECT_TRUE(selector->is_kernel_available("my_scan", K::bfloat16));
  // Written in letters, it is no dtype but a part of the name.
  selector->register_kernel_capability("split_half", KernelCapability::create_float32());
  EXPECT_TRUE(selector->is_kernel_available("split_half", K::float32));
  expect_error(ErrorCode::unknown_name, "unknown op 'split'",
               [&] { selector->is_kernel_available("split", K::float32); });
}

std::vector<TensorSpec> same_as_input(std::span<const TensorSpec> inputs, const Attributes&) { return {inputs[0]}; }

TEST_F(KernelDtypes, StayWithAnOpThatIsRegisteredLater) {
  selector->register_kernel_capability("late_op", KernelCapability::create_float16());
  const OpId id = register_op({.name = "late_op", .infer = same_as_input});
  EXPECT_TRUE(selector->is_kernel_available(id, K::float16));
  EXPECT_FALSE(selector->is_kernel_available(id, K::float32));
  registry.register_kernel(testing::kernel_for(id, "full", {D::float32}));
  EXPECT_TRUE(selector->is_kernel_available("late_op", K::float32));
}

TEST_F(KernelDtypes, AreAnErrorForAnUnknownOpThatListsTheNearOnes) {
  const auto unknown = [](const std::string& part, auto use) { expect_error(ErrorCode::unknown_name, part, use); };
  unknown("unknown op 'matmull'; did you mean matmul", [&] { selector->is_kernel_available("matmull", K::float32); });
  unknown("did you mean matmul", [&] { selector->select_best_kernel("matmull", {D::float16}); });
  unknown("did you mean matmul", [&] { selector->get_kernel_dtype("matmull", {D::float16}); });
  unknown("did you mean matmul", [&] { selector->find_kernel_capability("matmull", K::float32); });
  unknown("did you mean matmul", [&] { selector->update_performance_stats("matmull", K::float32, 1); });
  unknown("did you mean matmul", [&] { selector->get_performance_stats("matmull", K::float32); });
  unknown("unknown op 'matmull'; did you mean matmul",
          [&] { selector->is_kernel_available("matmull_fp16", K::float16); });
  selector->register_kernel_capability("custom_op", KernelCapability::create_float16());
  unknown("did you mean custom_op", [&] { selector->is_kernel_available("custom_opp", K::float16); });
  expect_invalid("there is no op of number 60000",
                 [&] { selector->is_kernel_available(static_cast<OpId>(60000), K::float32); });
  expect_invalid("there is no op of number 60000", [&] {
    selector->register_kernel_capability(static_cast<OpId>(60000), KernelCapability::create_float32());
  });
}

TEST_F(KernelDtypes, AreAnErrorWhereANameEndsInADtypeThatKernelsHaveNot) {
  for (const char* suffix : {"fp61", "int8", "f64", "f8e4m3", "bf8"}) {
    const std::string part = "unknown kernel dtype '" + std::string(suffix) + "'";
    const std::string name = "matmul_" + std::string(suffix);
    expect_error(ErrorCode::unknown_name, part, [&] { selector->is_kernel_available(name, K::float16); });
    expect_error(ErrorCode::unknown_name, part,
                 [&] { selector->register_kernel_capability(name, KernelCapability::create_float16()); });
  }
}

TEST_F(KernelDtypes, AreAnErrorForEmptyAndUnwritableNames) {
  const KernelCapability capability = KernelCapability::create_float16();
  const char* null = nullptr;
  expect_invalid("is not a name", [&] { selector->register_kernel_capability("", capability); });
  expect_invalid("is not a name", [&] { selector->register_kernel_capability(null, capability); });
  for (const char* name : {"_fp16", "2d", "a b", "a-b", "ä", "my_op_fp16_bf16", "my_op_fp16_fp16"}) {
    expect_invalid("is not a name", [&] { selector->register_kernel_capability(name, capability); });
  }
  expect_invalid("is not a name", [&] { selector->register_kernel_capability(std::string(65, 'a'), capability); });
  expect_error(ErrorCode::unknown_name, "unknown op ''", [&] { selector->is_kernel_available("", K::float16); });
  expect_error(ErrorCode::unknown_name, "unknown op ''", [&] { selector->is_kernel_available(null, K::float16); });
}

TEST_F(KernelDtypes, AreAnErrorForANameThatDiffersInUnderscoresAlone) {
  const KernelCapability capability = KernelCapability::create_float16();
  selector->register_kernel_capability("custom_op", capability);
  for (const char* name : {"c_o_n_v2d_", "conv_2d", "mat_mul_fp16", "cus_tom_op", "custom_op_"}) {
    expect_invalid("in underscores alone", [&] { selector->register_kernel_capability(name, capability); });
    expect_error(ErrorCode::unknown_name, "unknown op", [&] { selector->is_kernel_available(name, K::float16); });
  }
}

TEST_F(KernelDtypes, RefuseACapabilityThatSaysNothingAndChangeNothing) {
  expect_invalid("dtype auto", [&] { offer("fresh_op", K::auto_select); });
  expect_invalid("performance_factor is", [&] {
    selector->register_kernel_capability("fresh_op", {.dtype = K::float16, .performance_factor = -1});
  });
  expect_invalid("outside its range", [&] { offer("fresh_op", static_cast<K>(77)); });
  expect_invalid("outside its range", [&] { selector->is_kernel_available("matmul", static_cast<K>(77)); });
  expect_error(ErrorCode::unknown_name, "unknown op 'fresh_op'",
               [&] { selector->is_kernel_available("fresh_op", K::float16); });
}

// The best one.

TEST_F(KernelDtypes, AreChosenAsPreferredWhereThatIsThere) {
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::float32}, K::float16), K::float16);
  EXPECT_EQ(selector->select_best_kernel("add", {D::float32}, K::mixed), K::mixed);
}

TEST_F(KernelDtypes, AreElseChosenByTheFirstInputThatIsThere) {
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::float16, D::float32}, K::bfloat16), K::float16);
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::float32, D::float16}), K::float32);
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::bfloat16, D::float16}), K::float16);
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::float64, D::float16}), K::float32);
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::int64, D::float16}), K::float16) << "integers do not vote";
}

TEST_F(KernelDtypes, AreElseFloat32) {
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::bfloat16}, K::bfloat16), K::float32);
  EXPECT_EQ(selector->select_best_kernel("relu", {D::float16}, K::bfloat16), K::float32) << "even where nothing is";
  EXPECT_EQ(selector->select_best_kernel("matmul", {}), K::float32);
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::int32}), K::float32);
}

TEST_F(KernelDtypes, AreChosenWithoutAPreferenceForAuto) {
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::float16}, K::auto_select), K::float16);
  EXPECT_EQ(selector->select_best_kernel("matmul", {D::float32}, K::auto_select), K::float32);
}

TEST_F(KernelDtypes, AreChosenByTheNameAsByAPreference) {
  EXPECT_EQ(selector->select_best_kernel("matmul_fp16", {D::float32}), K::float16);
  EXPECT_EQ(selector->select_best_kernel("matmul_bf16", {D::float16}), K::float16);
}

TEST_F(KernelDtypes, AreAskedForByManyThreadsWhileCapabilitiesAndKernelsChange) {
  std::atomic<bool> running = true;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      while (running) {
        if (!selector->is_kernel_available("matmul", K::float32)) ++wrong;
        const K best = selector->select_best_kernel(OpId::matmul, {D::bfloat16, D::float16});
        if (best != K::float16 && best != K::bfloat16) ++wrong;
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 200; ++i) {
      offer("matmul_bf16", K::bfloat16, i % 2 == 0);
      offer(("own_op" + std::to_string(i)).c_str(), K::float16);
    }
  });
  for (int i = 0; i < 100; ++i) {
    registry.register_kernel(testing::kernel_for(OpId::matmul, "brain", {D::bfloat16}));
    registry.unregister_kernel(OpId::matmul, DeviceType::npu, "brain");
  }
  threads.back().join();
  threads.pop_back();
  running = false;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(selector->is_kernel_available("own_op" + std::to_string(i), K::float16));
  }
  EXPECT_FALSE(selector->is_kernel_available("matmul", K::bfloat16));
}

}  // namespace
}  // namespace xpuruntime
