#include "xpuruntime/precision/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

void good_steps(LossScaler& scaler, int count) {
  for (int i = 0; i < count; ++i) scaler.update(false);
}

TEST(LossScaler, StartsAsItIsUsuallyWanted) {
  const LossScaler scaler;
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_EQ(scaler.inverse_scale(), 1.0f / 65536);
  EXPECT_EQ(scaler.config().growth_factor, 2);
  EXPECT_EQ(scaler.config().backoff_factor, 0.5f);
  EXPECT_EQ(scaler.config().growth_interval, 2000);
  EXPECT_EQ(scaler.config().min_scale, 1);
  EXPECT_EQ(scaler.config().max_scale, 16777216);
  EXPECT_TRUE(scaler.config().dynamic);
}

TEST(LossScaler, GrowsAfterAnIntervalOfGoodStepsAndNotBefore) {
  LossScaler scaler;
  good_steps(scaler, 1999);
  EXPECT_EQ(scaler.scale(), 65536);
  EXPECT_TRUE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 131072);
  good_steps(scaler, 1999);
  EXPECT_EQ(scaler.scale(), 131072);
  good_steps(scaler, 1);
  EXPECT_EQ(scaler.scale(), 262144);
  EXPECT_EQ(scaler.inverse_scale(), 1.0f / 262144);
}

TEST(LossScaler, AnOverflowHalvesTheScaleAndBeginsTheIntervalAnew) {
  LossScaler scaler({.growth_interval = 3});
  good_steps(scaler, 2);
  EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 32768);
  good_steps(scaler, 2);
  EXPECT_EQ(scaler.scale(), 32768);
  good_steps(scaler, 1);
  EXPECT_EQ(scaler.scale(), 65536);
}

TEST(LossScaler, NeverLeavesItsBounds) {
  LossScaler scaler({.initial_scale = 3, .growth_interval = 1, .min_scale = 2, .max_scale = 10});
  EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_FALSE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 2);
  good_steps(scaler, 3);
  EXPECT_EQ(scaler.scale(), 10);  // 4, 8, and not 16
  EXPECT_FALSE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 10);
  EXPECT_EQ(scaler.statistics().backoffs, 1);
  EXPECT_EQ(scaler.statistics().growths, 3);
}

TEST(LossScaler, AStaticScaleStaysAndCountsItsOverflows) {
  LossScaler scaler({.initial_scale = 1024, .growth_interval = 1, .dynamic = false});
  good_steps(scaler, 5);
  EXPECT_FALSE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 1024);
  EXPECT_EQ(scaler.statistics().steps, 6);
  EXPECT_EQ(scaler.statistics().skipped_steps, 1);
  EXPECT_EQ(scaler.statistics().growths, 0);
  EXPECT_EQ(scaler.statistics().backoffs, 0);
}

TEST(LossScaler, CountsWhatHappened) {
  LossScaler scaler({.growth_interval = 2});
  for (const bool overflow : {false, false, false, true, true, true, false}) scaler.update(overflow);
  const LossScalerStatistics expected = {.steps = 7,
                                         .skipped_steps = 3,
                                         .growths = 1,
                                         .backoffs = 3,
                                         .streak = 1,
                                         .min_scale_seen = 16384,
                                         .max_scale_seen = 131072};
  EXPECT_EQ(scaler.statistics(), expected);
  EXPECT_EQ(scaler.scale(), 16384);
}

TEST(LossScaler, FactorsThatHardlyDifferFromOneStillMoveTheScale) {
  LossScaler scaler({.initial_scale = 3,
                     .growth_factor = std::nextafter(1.0f, 2.0f),
                     .backoff_factor = std::nextafter(1.0f, 0.0f),
                     .growth_interval = 1});
  EXPECT_TRUE(scaler.update(false));
  EXPECT_GT(scaler.scale(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scaler.update(true));
  EXPECT_LT(scaler.scale(), 3);
}

TEST(LossScaler, RefusesNumbersThatDoNotFitTogether) {
  const auto refusal = [](const LossScalerConfig& config) {
    return error_text(ErrorCode::invalid_argument, [&] { LossScaler scaler(config); });
  };
  const auto expect_named = [&](const LossScalerConfig& config, const std::string& field) {
    const std::string text = refusal(config);
    EXPECT_NE(text.find(field), std::string::npos) << text;
    EXPECT_NE(text.find("; "), std::string::npos) << text;
  };
  for (const float bad : {0.0f, -1.0f, infinity, nan}) {
    expect_named({.initial_scale = bad}, "initial_scale");
    expect_named({.growth_factor = bad}, "growth_factor");
    expect_named({.backoff_factor = bad}, "backoff_factor");
    expect_named({.min_scale = bad}, "min_scale");
    expect_named({.max_scale = bad}, "max_scale");
  }
  expect_named({.growth_factor = 1}, "growth_factor");
  expect_named({.growth_factor = 0.5f}, "growth_factor");
  expect_named({.backoff_factor = 1}, "backoff_factor");
  expect_named({.backoff_factor = 2}, "backoff_factor");
  expect_named({.growth_interval = 0}, "growth_interval");
  expect_named({.growth_interval = -5}, "growth_interval");
  expect_named({.min_scale = 131072}, "min_scale <= initial_scale");
  expect_named({.max_scale = 1024}, "min_scale <= initial_scale");
  expect_named({.max_scale = 0x1p127f}, "max_scale");  // its inverse would be subnormal
}

LossScalerState odd_state() {
  LossScaler scaler({.initial_scale = 3000.1f, .growth_factor = 1.7f, .growth_interval = 2, .max_scale = 1e6f});
  for (const bool overflow : {true, false, false, false, true, false}) scaler.update(overflow);
  return scaler.state();
}

TEST(LossScalerState, GoesOnWhereItStopped) {
  LossScaler first({.growth_interval = 5}), second;
  for (int i = 0; i < 7; ++i) first.update(i == 1);
  second.restore(first.state());
  EXPECT_EQ(second.state(), first.state());
  for (int i = 0; i < 20; ++i) {
    first.update(i % 9 == 8);
    second.update(i % 9 == 8);
    ASSERT_EQ(second.scale(), first.scale()) << i;
  }
  EXPECT_EQ(second.state(), first.state());
}

TEST(LossScalerState, ComesBackFromItsTextToTheLastBit) {
  EXPECT_EQ(LossScalerState::from_json(odd_state().to_json()), odd_state());
  EXPECT_EQ(LossScalerState::from_json(LossScaler().state().to_json()), LossScaler().state());
}

/// A saved state with one part of its text replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = LossScaler().state().to_json();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_bad(ErrorCode code, const std::string& text, const std::string& part) {
  const std::string message = error_text(code, [&] { LossScalerState::from_json(text); });
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(LossScalerState, RefusesTextsThatAreNoState) {
  constexpr auto corrupt = ErrorCode::corrupt_data, wrong = ErrorCode::invalid_argument;
  expect_bad(corrupt, "", "not JSON");
  expect_bad(corrupt, "{", "not JSON");
  expect_bad(corrupt, LossScaler().state().to_json() + "x", "not JSON");
  expect_bad(corrupt, edited("65536", "[[1]]"), "nested");
  expect_bad(wrong, "[]", "object");
  expect_bad(wrong, "{}", "version");
  expect_bad(wrong, edited("\"version\": 1", "\"version\": 2"), "version");
  expect_bad(wrong, edited("\"steps\": 0", "\"step\": 0"), "step");
  expect_bad(wrong, edited("\"steps\": 0,", ""), "missing");
  expect_bad(wrong, edited("\"steps\": 0", "\"steps\": 0, \"steps\": 0"), "a duplicate");
  expect_bad(wrong, edited("\"steps\": 0", "\"steps\": -1"), "steps");
  expect_bad(wrong, edited("\"steps\": 0", "\"steps\": 1.5"), "steps");
  expect_bad(wrong, edited("\"steps\": 0", "\"steps\": 99999999999999999999"), "steps");
  expect_bad(wrong, edited("\"dynamic\": true", "\"dynamic\": 1"), "dynamic");
  expect_bad(wrong, edited("\"growth_factor\": 2.0", "\"growth_factor\": \"2\""), "growth_factor");
  expect_bad(wrong, edited("\"growth_factor\": 2.0", "\"growth_factor\": 1e39"), "growth_factor");
  expect_bad(wrong, edited("\"growth_factor\": 2.0", "\"growth_factor\": 1e-60"), "growth_factor");
  expect_bad(wrong, edited("\"growth_factor\": 2.0", "\"growth_factor\": null"), "growth_factor");
}

TEST(LossScalerState, RefusesNumbersThatCannotBelongTogetherAndChangesNothing) {
  LossScaler scaler({.growth_interval = 2});
  good_steps(scaler, 3);
  const LossScalerState before = scaler.state();
  const auto refuse = [&](const std::function<void(LossScalerState&)>& spoil, const std::string& part) {
    LossScalerState state = odd_state();
    spoil(state);
    const std::string text = error_text(ErrorCode::invalid_argument, [&] { scaler.restore(state); });
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(scaler.state(), before);
    expect_bad(ErrorCode::invalid_argument, state.to_json(), "");
  };
  refuse([](auto& s) { s.config.growth_interval = 0; }, "growth_interval");
  refuse([](auto& s) { s.scale = 0.5f; }, "scale");
  refuse([](auto& s) { s.scale = 2e6f; }, "scale");
  refuse([](auto& s) { s.scale = nan; }, "scale");
  refuse([](auto& s) { s.statistics.min_scale_seen = 1e5f; }, "seen");
  refuse([](auto& s) { s.statistics.max_scale_seen = 2; }, "seen");
  refuse([](auto& s) { s.statistics.steps = -1; }, "steps");
  refuse([](auto& s) { s.statistics.skipped_steps = 7; }, "skipped_steps");
  refuse([](auto& s) { s.statistics.backoffs = 3; }, "backoffs");
  refuse([](auto& s) { s.statistics.growths = -1; }, "growths");
  refuse([](auto& s) { s.statistics.streak = 5; }, "streak");
}

}  // namespace
}  // namespace xpuruntime
