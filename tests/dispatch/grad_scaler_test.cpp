#include "xpuruntime/dispatch/grad_scaler.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "device/fake_driver.h"
#include "dispatch/fixture.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Tensor floats(std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty(DataType::float32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

Tensor halves(std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty(DataType::float16, {static_cast<std::int64_t>(values.size())});
  std::transform(values.begin(), values.end(), tensor.as<std::uint16_t>(), [](float v) { return encode_float16(v); });
  return tensor;
}

Tensor like(const Tensor& tensor) { return Tensor::empty(DataType::float32, tensor.shape()); }

class GradScalerTest : public DispatchTest {
 protected:
  bool unscale_in_place(std::vector<Tensor> gradients) { return scaler.unscale(gradients, gradients); }
  /// A step that finds what `gradient` holds; returns whether it was taken.
  bool whole_step(float gradient) {
    unscale_in_place({floats({gradient})});
    const bool taken = scaler.step([] {});
    scaler.update();
    return taken;
  }

  GradScaler scaler{dispatcher(), {.growth_interval = 3}};
};

TEST_F(GradScalerTest, ScalesALossInPlaceAndOutOfPlace) {
  const Tensor loss = Tensor::empty(DataType::float32, {});
  *loss.as<float>() = 1.5f;
  const Tensor scaled = Tensor::empty(DataType::float32, {});
  scaler.scale(loss, scaled);
  EXPECT_EQ(*scaled.as<float>(), 98304);
  EXPECT_EQ(*loss.as<float>(), 1.5f);
  scaler.scale(loss, loss);
  EXPECT_EQ(*loss.as<float>(), 98304);
  EXPECT_EQ(scaler.factor(), 65536);
}

TEST_F(GradScalerTest, ScalesInF32WhateverAutocastMakesOfProducts) {
  const ScopedAutocast scope(dispatcher(), runtime.amp(), true, DataType::float16);
  const Tensor loss = floats({1.0001f});
  scaler.scale(loss, loss);
  EXPECT_EQ(*loss.as<float>(), 1.0001f * 65536);
  EXPECT_FALSE(unscale_in_place({loss}));
  EXPECT_EQ(*loss.as<float>(), 1.0001f);
}

TEST_F(GradScalerTest, ScalesByTheScaleOfTheDay) {
  whole_step(nan);
  const Tensor loss = floats({1});
  scaler.scale(loss, loss);
  EXPECT_EQ(loss.as<float>()[0], 32768);
}

TEST_F(GradScalerTest, BringsGradientsBackInF32WithoutLosingADigit) {
  const float small = 0x1p-30f;  // vanishes in f16, whose least value is 2^-24
  const Tensor gradient = halves({small * 65536, -3, 0});
  const Tensor out = like(gradient);
  EXPECT_FALSE(scaler.unscale({&gradient, 1}, {&out, 1}));
  EXPECT_FALSE(scaler.found_inf());
  EXPECT_EQ(out.as<float>()[0], small);
  EXPECT_EQ(out.as<float>()[1], -3.0f / 65536);
  EXPECT_EQ(out.as<float>()[2], 0);
}

TEST_F(GradScalerTest, UnscalesF32InPlaceAndF64InF64) {
  const Tensor single = floats({65536, 1});
  const Tensor wide = Tensor::empty(DataType::float64, {1});
  *wide.as<double>() = 1 + 0x1p-40;
  EXPECT_FALSE(unscale_in_place({single, wide}));
  EXPECT_EQ(single.as<float>()[0], 1);
  EXPECT_EQ(single.as<float>()[1], 0x1p-16f);
  EXPECT_EQ(*wide.as<double>(), (1 + 0x1p-40) * 0x1p-16);
}

TEST_F(GradScalerTest, AnyGradientThatIsNotFiniteSkipsTheStepAndShrinksTheScale) {
  for (const float bad : {infinity, -infinity, nan}) {
    GradScaler own(dispatcher());
    float parameter = 1;
    const std::vector<Tensor> gradients = {floats({1, 2}), floats({0, 0, 0, 0, 0, 0, 0, 0, bad, 0}), floats({3})};
    EXPECT_TRUE(own.unscale(gradients, gradients));
    EXPECT_TRUE(own.found_inf());
    EXPECT_FALSE(own.step([&] { parameter = 2; }));
    EXPECT_EQ(parameter, 1);
    EXPECT_EQ(own.factor(), 65536) << "before update";
    own.update();
    EXPECT_EQ(own.factor(), 32768);
    EXPECT_EQ(own.scaler().statistics().skipped_steps, 1);
  }
}

TEST_F(GradScalerTest, AnOverflowIsForgottenInTheNextStep) {
  EXPECT_FALSE(whole_step(nan));
  EXPECT_TRUE(whole_step(1));
  EXPECT_EQ(scaler.factor(), 32768);
  EXPECT_TRUE(whole_step(1));
  EXPECT_TRUE(whole_step(1));
  EXPECT_EQ(scaler.factor(), 65536);
  EXPECT_EQ(scaler.scaler().statistics().steps, 4);
}

TEST_F(GradScalerTest, ManyGradientsOfManySizesAreAllLookedAt) {
  constexpr std::size_t count = 300;
  for (const std::size_t bad : {std::size_t{0}, std::size_t{137}, count - 1, count}) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = 1 + i % 40;
      const Tensor tensor = Tensor::empty(DataType::float32, {static_cast<std::int64_t>(size)});
      std::fill_n(tensor.as<float>(), size, 65536.0f);
      if (i == bad) tensor.as<float>()[size - 1] = infinity;
      gradients.push_back(tensor);
    }
    GradScaler own(dispatcher());
    EXPECT_EQ(own.unscale(gradients, gradients), bad != count) << bad;
    EXPECT_EQ(gradients[39].as<float>()[38], 1);
  }
}

TEST_F(GradScalerTest, GradientsWithoutElementsAndNoGradientsAtAllAreFine) {
  EXPECT_FALSE(unscale_in_place({Tensor::empty(DataType::float32, {0}), Tensor::empty(DataType::float32, {3, 0})}));
  EXPECT_TRUE(scaler.step([] {}));
  scaler.update();
  EXPECT_FALSE(unscale_in_place({}));
  int calls = 0;
  EXPECT_TRUE(scaler.step([&] { ++calls; }));
  scaler.update();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(scaler.scaler().statistics().steps, 2);
}

// ---- the order of calls ----

TEST_F(GradScalerTest, CallsOutOfOrderSayWhatToCallFirst) {
  constexpr auto wrong = ErrorCode::invalid_argument;
  const Tensor loss = floats({1});
  EXPECT_HAS(error_text(wrong, [&] { scaler.step([] {}); }), "call unscale first");
  EXPECT_HAS(error_text(wrong, [&] { scaler.update(); }), "call unscale and step first");
  unscale_in_place({loss});
  EXPECT_EQ(loss.as<float>()[0], 1.0f / 65536);
  EXPECT_HAS(error_text(wrong, [&] { unscale_in_place({loss}); }), "call step and update");
  EXPECT_EQ(loss.as<float>()[0], 1.0f / 65536) << "it was unscaled twice";
  EXPECT_HAS(error_text(wrong, [&] { scaler.scale(loss, loss); }), "call step and update");
  EXPECT_HAS(error_text(wrong, [&] { scaler.update(); }), "call step first");
  scaler.step([] {});
  EXPECT_HAS(error_text(wrong, [&] { scaler.step([] {}); }), "call update");
  EXPECT_HAS(error_text(wrong, [&] { unscale_in_place({loss}); }), "call step and update");
  EXPECT_EQ(scaler.scaler().statistics().steps, 0);
  scaler.update();
  EXPECT_HAS(error_text(wrong, [&] { scaler.update(); }), "call unscale and step first");
  EXPECT_EQ(scaler.scaler().statistics().steps, 1);
}

TEST_F(GradScalerTest, AStepThatThrowsCanBeTakenAgainOrAbandoned) {
  const auto fails = [] { throw std::runtime_error("the optimizer failed"); };
  unscale_in_place({floats({1})});
  EXPECT_THROW(scaler.step(fails), std::runtime_error);
  EXPECT_TRUE(scaler.step([] {}));
  scaler.update();
  unscale_in_place({floats({1})});
  EXPECT_THROW(scaler.step(fails), std::runtime_error);
  scaler.abandon_step();
  EXPECT_EQ(scaler.scaler().statistics().steps, 1);
  EXPECT_FALSE(unscale_in_place({floats({1})}));
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { scaler.step({}); }), "pass one");
}

// ---- gradients that cannot be unscaled ----

TEST_F(GradScalerTest, WrongGradientsAreRefusedBeforeAnyIsWritten) {
  const Tensor good = floats({65536});
  const auto refusal = [&](const Tensor& gradient, const Tensor& output) {
    const std::vector<Tensor> gradients = {good, gradient}, outputs = {good, output};
    const std::string text = error_text(ErrorCode::invalid_argument, [&] { scaler.unscale(gradients, outputs); });
    EXPECT_EQ(good.as<float>()[0], 65536);
    return text;
  };
  const Tensor integers = Tensor::empty(DataType::int32, {4});
  EXPECT_HAS(refusal(integers, like(integers)), "not floating");
  EXPECT_HAS(refusal(floats({1, 2}), floats({1, 2, 3})), "give the shape");
  EXPECT_HAS(refusal(halves({1}), halves({1})), "give it in f32");
  EXPECT_HAS(refusal(good, good), "share memory");
  EXPECT_HAS(refusal(good, floats({1})), "share memory");
  EXPECT_HAS(refusal(Tensor(), Tensor()), "empty Tensor");
  const Tensor row = floats({1, 2, 3, 4});
  const Tensor shifted = Tensor::view(row.as<float>() + 1, DataType::float32, {3});
  EXPECT_HAS(refusal(Tensor::view(row.data(), DataType::float32, {3}), shifted), "overlaps");
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { scaler.unscale({&good, 1}, {}); }), "one output for each");
  EXPECT_FALSE(unscale_in_place({good})) << "the step could not begin after the refusals";
  EXPECT_EQ(good.as<float>()[0], 1);
}

TEST_F(GradScalerTest, GradientsThatOverlapInPartAreRefused) {
  const Tensor memory = floats({1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor first = Tensor::view(memory.as<float>(), DataType::float32, {5});
  const Tensor second = Tensor::view(memory.as<float>() + 3, DataType::float32, {5});
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { unscale_in_place({first, second}); }), "share memory");
  EXPECT_EQ(memory.as<float>()[3], 4);
  const Tensor rows[] = {Tensor(memory.data(), make_spec(DataType::float32, {4}, {2})),
                         Tensor(memory.data(), make_spec(DataType::float32, {4}, {2}), {}, 4)};
  EXPECT_FALSE(scaler.unscale(rows, rows)) << "columns side by side share nothing";
}

TEST_F(GradScalerTest, OneTensorReadTwiceIntoTwoOutputsIsFine) {
  const Tensor shared = floats({65536});
  const std::vector<Tensor> gradients = {shared, shared}, outputs = {floats({0}), floats({0})};
  EXPECT_FALSE(scaler.unscale(gradients, outputs));
  EXPECT_EQ(outputs[0].as<float>()[0], 1);
  EXPECT_EQ(outputs[1].as<float>()[0], 1);
}

TEST_F(GradScalerTest, AfterALaunchThatFailedHalfWayTheStepMustBeAbandoned) {
  int calls = 0;
  FunctionKernel kernel;
  kernel.op = OpId::unscale;
  kernel.name = "failing";
  kernel.run = [&calls](const Problem&, const RunArguments& arguments) {
    *arguments.outputs[1]->as<float>() = 0;
    return ++calls == 2 ? Status(ErrorCode::device_error, "it broke") : Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  KernelPolicy policy;
  policy.force("unscale", "failing");
  const ScopedPolicy scope(dispatcher(), policy);
  const auto use = [&] { unscale_in_place({floats({1}), floats({2}), floats({3})}); };
  EXPECT_HAS(error_text(ErrorCode::device_error, use), "it broke");
  for (const std::function<void()>& next :
       std::initializer_list<std::function<void()>>{use, [&] { scaler.step([] {}); }, [&] { scaler.update(); }}) {
    EXPECT_HAS(error_text(ErrorCode::invalid_argument, next), "call abandon_step");
  }
  scaler.abandon_step();
  EXPECT_EQ(scaler.scaler().statistics().steps, 0);
  dispatcher().clear_quarantine();
  EXPECT_FALSE(unscale_in_place({floats({1})}));
}

// ---- devices ----

/// A kernel for a device that is made of host memory.
void add_npu_unscale(KernelRegistry& registry) {
  FunctionKernel kernel;
  kernel.op = OpId::unscale;
  kernel.name = "npu_unscale";
  kernel.device_type = DeviceType::npu;
  kernel.run = [](const Problem&, const RunArguments& arguments) {
    const float product = *arguments.inputs[0]->as<float>() * *arguments.inputs[1]->as<float>();
    *arguments.outputs[0]->as<float>() = product;
    *arguments.outputs[1]->as<float>() = std::isfinite(product) ? 0 : 1;
    return Status();
  };
  registry.register_kernel(make_kernel(std::move(kernel)));
}

TEST_F(GradScalerTest, GradientsOnSeveralDevicesAreOneStep) {
  runtime.devices().add_driver(std::make_shared<testing::FakeDriver>());
  const Device npu_0 = {DeviceType::npu, 0}, npu_1 = {DeviceType::npu, 1};
  const auto on = [&](Device device, float value) { return runtime.devices().copy_to(floats({value}), device); };
  const std::vector<Tensor> alone = {on(npu_0, 1)};
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { scaler.unscale(alone, alone); }), "unscale");

  add_npu_unscale(runtime.registry());
  for (const float bad : {1.0f, infinity}) {
    const std::vector<Tensor> gradients = {on(npu_0, 65536), floats({2}), on(npu_1, bad), on(npu_0, 3)};
    EXPECT_EQ(scaler.unscale(gradients, gradients), std::isinf(bad));
    EXPECT_EQ(*runtime.devices().copy_to(gradients[0], {}).as<float>(), 1);
    EXPECT_EQ(*gradients[1].as<float>(), 2.0f / 65536);
    EXPECT_EQ(*runtime.devices().copy_to(gradients[3], {}).as<float>(), 3.0f / 65536);
    scaler.step([] {});
    scaler.update();
  }
  EXPECT_EQ(scaler.factor(), 32768);
  const std::vector<Tensor> after = {on(npu_1, 32768)};
  EXPECT_FALSE(scaler.unscale(after, after));
  EXPECT_EQ(*runtime.devices().copy_to(after[0], {}).as<float>(), 1) << "the new scale did not reach the device";
}

TEST_F(GradScalerTest, AnOutputOnAnotherDeviceIsRefused) {
  runtime.devices().add_driver(std::make_shared<testing::FakeDriver>());
  const Tensor gradient = floats({1});
  const Tensor elsewhere = runtime.devices().copy_to(gradient, {DeviceType::npu, 0});
  EXPECT_HAS(error_text(ErrorCode::invalid_argument,
                        [&] {
                          scaler.unscale({&gradient, 1}, {&elsewhere, 1});
                        }),
             "tensors are on");
}

// ---- state ----

TEST_F(GradScalerTest, GoesOnFromASavedText) {
  whole_step(nan);
  whole_step(1);
  const std::string saved = scaler.state().to_json();
  GradScaler other(dispatcher());
  const Tensor gradient = floats({1});
  other.unscale({&gradient, 1}, {&gradient, 1});  // a step that is begun does not outlive restore
  other.restore(LossScalerState::from_json(saved));
  EXPECT_EQ(other.state(), scaler.state());
  EXPECT_EQ(other.factor(), 32768);
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { other.update(); }), "call unscale");
  LossScalerState broken = scaler.state();
  broken.scale = 0;
  error_text(ErrorCode::invalid_argument, [&] { other.restore(broken); });
  EXPECT_EQ(other.state(), scaler.state());
}

TEST_F(GradScalerTest, RefusesAConfigurationThatCannotBe) {
  error_text(ErrorCode::invalid_argument, [&] { GradScaler bad(dispatcher(), {.growth_factor = 1}); });
}

// ---- as in docs/precision.md ----

// Fits y = x w by least squares: weights and update in f32, both products in f16.
void fit(Dispatcher& dispatcher, GradScaler& scaler, const Tensor& x, const Tensor& y, const Tensor& weight,
         int steps) {
  const auto run = [&](OpId op, std::vector<const Tensor*> in, std::vector<const Tensor*> out, Attributes attributes) {
    dispatcher.dispatch({op, in, out, &attributes});
  };
  const Tensor half_weight = Tensor::empty(DataType::float16, weight.shape());
  const Tensor error = Tensor::empty(DataType::float16, y.shape());
  const Tensor half_gradient = Tensor::empty(DataType::float16, weight.shape());
  const Tensor gradient = Tensor::empty(DataType::float32, weight.shape());
  for (int i = 0; i < steps; ++i) {
    run(OpId::cast, {&weight}, {&half_weight}, Attributes(OpId::cast).parse("dtype", "f16"));
    run(OpId::matmul, {&x, &half_weight}, {&error}, Attributes(OpId::matmul));
    run(OpId::sub, {&error, &y}, {&error}, Attributes(OpId::sub));
    scaler.scale(error, error);  // where backward begins, so that all gradients come out scaled
    run(OpId::matmul, {&x, &error}, {&half_gradient}, Attributes(OpId::matmul).set("transpose_a", true));
    scaler.unscale({&half_gradient, 1}, {&gradient, 1});  // once, all gradients together
    scaler.step([&] {                                     // not called if one of them is NaN or infinite
      for (std::int64_t j = 0; j < element_count(weight.spec()); ++j) {
        weight.as<float>()[j] -= 0x1p26f * gradient.as<float>()[j];
      }
    });
    scaler.update();  // last: a new scale is for new gradients
  }
}

/// What the weights are after some steps; (1, -2) is right.
std::vector<float> fitted(Dispatcher& dispatcher, GradScaler& scaler, int steps) {
  const float a = 0x1p-14f;  // gradients of the size of its square are zero in f16
  Tensor x = halves({a, 0, 0, a, a, a, a, -a}), y = halves({a, -2 * a, -a, 3 * a}), weight = floats({0, 0});
  x = Tensor(x.data(), make_spec(DataType::float16, {4, 2}), {}, 0, x.owner());
  y = Tensor(y.data(), make_spec(DataType::float16, {4, 1}), {}, 0, y.owner());
  weight = Tensor(weight.data(), make_spec(DataType::float32, {2, 1}), {}, 0, weight.owner());
  fit(dispatcher, scaler, x, y, weight, steps);
  return {weight.as<float>(), weight.as<float>() + 2};
}

TEST_F(GradScalerTest, FitsAsTheManualShowsAndNotWithoutAScale) {
  GradScaler scaled(dispatcher());
  const std::vector<float> right = fitted(dispatcher(), scaled, 20);
  EXPECT_NEAR(right[0], 1, 1e-3);
  EXPECT_NEAR(right[1], -2, 2e-3);
  EXPECT_EQ(scaled.scaler().statistics().skipped_steps, 0);
  GradScaler unscaled(dispatcher(), {.initial_scale = 1, .dynamic = false});
  EXPECT_EQ(fitted(dispatcher(), unscaled, 20), (std::vector<float>{0, 0}));
}

TEST_F(GradScalerTest, FindsAScaleThatFitsFromOneThatIsTooLarge) {
  GradScaler eager(dispatcher(), {.initial_scale = 0x1p40f, .max_scale = 0x1p40f});
  const std::vector<float> right = fitted(dispatcher(), eager, 40);
  EXPECT_NEAR(right[0], 1, 1e-3);
  EXPECT_NEAR(right[1], -2, 2e-3);
  EXPECT_GT(eager.scaler().statistics().skipped_steps, 5);
  EXPECT_EQ(eager.scaler().statistics().backoffs, eager.scaler().statistics().skipped_steps);
}

}  // namespace
}  // namespace xpuruntime
