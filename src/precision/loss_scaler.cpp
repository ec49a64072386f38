#include "xpuruntime/precision/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/json_fields.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// ---- what is wrong, and what to do; empty where all is well ----

// A scale and its inverse are both normal f32 between these.
constexpr float least_scale = 0x1p-126f;
constexpr float most_scale = 0x1p126f;

std::string text_of(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", double{value});
  return text;
}

bool is_scale(float value) { return value >= least_scale && value <= most_scale; }  // NaN is not

std::string scale_problem(const char* name, float value) {
  if (is_scale(value)) return {};
  return std::string(name) + " is " + text_of(value) + "; give a number from 2^-126 to 2^126, such as 65536";
}

bool between(std::int64_t least, std::int64_t value, std::int64_t most) { return value >= least && value <= most; }

std::string what_is_wrong(const LossScalerStatistics& s) {
  const std::string advice = "; restore a state as it was saved";
  if (s.steps < 0 || !between(0, s.skipped_steps, s.steps)) {
    return "skipped_steps is " + std::to_string(s.skipped_steps) + " of " + std::to_string(s.steps) + " steps" + advice;
  }
  if (!between(0, s.backoffs, s.skipped_steps)) {
    return "backoffs is " + std::to_string(s.backoffs) + " with " + std::to_string(s.skipped_steps) + " skipped steps" +
           advice;
  }
  const std::int64_t good = s.steps - s.skipped_steps;
  if (!between(0, s.growths, good) || !between(0, s.streak, good - s.growths)) {
    return "growths is " + std::to_string(s.growths) + " and streak " + std::to_string(s.streak) + " with " +
           std::to_string(good) + " good steps" + advice;
  }
  return {};
}

std::string what_is_wrong(const LossScalerConfig& config) {
  for (const auto& [name, value] : {std::pair("min_scale", config.min_scale),
                                    {"initial_scale", config.initial_scale},
                                    {"max_scale", config.max_scale}}) {
    if (const std::string problem = scale_problem(name, value); !problem.empty()) return problem;
  }
  if (!std::isfinite(config.growth_factor) || config.growth_factor <= 1) {
    return "growth_factor is " + text_of(config.growth_factor) + "; give a number over 1, such as 2";
  }
  if (!(config.backoff_factor > 0 && config.backoff_factor < 1)) {
    return "backoff_factor is " + text_of(config.backoff_factor) + "; give a number between 0 and 1, such as 0.5";
  }
  if (config.growth_interval < 1) {
    return "growth_interval is " + std::to_string(config.growth_interval) + "; give 1 or more, such as 2000";
  }
  if (config.min_scale <= config.initial_scale && config.initial_scale <= config.max_scale) return {};
  return "initial_scale " + text_of(config.initial_scale) + " is outside " + text_of(config.min_scale) + " to " +
         text_of(config.max_scale) + "; set min_scale <= initial_scale <= max_scale";
}

std::string what_is_wrong(const LossScalerState& state) {
  if (const std::string problem = what_is_wrong(state.config); !problem.empty()) return problem;
  if (const std::string problem = what_is_wrong(state.statistics); !problem.empty()) return problem;
  const float least = state.statistics.min_scale_seen, most = state.statistics.max_scale_seen;
  const bool seen =
      state.config.min_scale <= least && least <= state.scale && state.scale <= most && most <= state.config.max_scale;
  if (seen) return {};
  return "the scale " + text_of(state.scale) + " with " + text_of(least) + " to " + text_of(most) +
         " seen does not fit " + text_of(state.config.min_scale) + " to " + text_of(state.config.max_scale) +
         "; restore a state as it was saved";
}

LossScalerState first_state(const LossScalerConfig& config) {
  const std::string wrong = what_is_wrong(config);
  if (!wrong.empty()) fail(ErrorCode::invalid_argument, "LossScaler", wrong);
  LossScalerState state = {.config = config, .scale = config.initial_scale, .statistics = {}};
  state.statistics.min_scale_seen = state.statistics.max_scale_seen = config.initial_scale;
  return state;
}

}  // namespace

LossScaler::LossScaler(const LossScalerConfig& config) : state_(first_state(config)) {}

bool LossScaler::update(bool found_inf) {
  LossScalerStatistics& statistics = state_.statistics;
  const LossScalerConfig& config = state_.config;
  ++statistics.steps;
  if (found_inf) {
    ++statistics.skipped_steps;
    statistics.streak = 0;
    const bool fell = config.dynamic && move_to(double{state_.scale} * config.backoff_factor);
    statistics.backoffs += fell ? 1 : 0;
    return fell;
  }
  ++statistics.streak;
  const bool due = config.dynamic && statistics.streak >= config.growth_interval;
  if (!due || !move_to(double{state_.scale} * config.growth_factor)) return false;
  ++statistics.growths;
  statistics.streak = 0;
  return true;
}

void LossScaler::restore(const LossScalerState& state) {
  const std::string wrong = what_is_wrong(state);
  if (!wrong.empty()) fail(ErrorCode::invalid_argument, "LossScaler::restore", wrong);
  state_ = state;
}

bool LossScaler::move_to(double target) {
  const double inside = std::clamp(target, double{state_.config.min_scale}, double{state_.config.max_scale});
  const auto scale = static_cast<float>(inside);
  if (scale == state_.scale) return false;
  state_.scale = scale;
  state_.statistics.min_scale_seen = std::min(state_.statistics.min_scale_seen, scale);
  state_.statistics.max_scale_seen = std::max(state_.statistics.max_scale_seen, scale);
  return true;
}

// ---- as JSON ----

template <>
struct FieldsOf<LossScalerState> {
  using State = LossScalerState;
  using Config = LossScalerConfig;
  using Statistics = LossScalerStatistics;
  static constexpr FieldRow<State> rows[] = {
      version_field<State, 1>(Presence::required),
      required_field<&State::config, &Config::initial_scale>("initial_scale"),
      required_field<&State::config, &Config::growth_factor>("growth_factor"),
      required_field<&State::config, &Config::backoff_factor>("backoff_factor"),
      required_field<&State::config, &Config::growth_interval>("growth_interval"),
      required_field<&State::config, &Config::min_scale>("min_scale"),
      required_field<&State::config, &Config::max_scale>("max_scale"),
      required_field<&State::config, &Config::dynamic>("dynamic"),
      required_field<&State::scale>("scale"),
      required_field<&State::statistics, &Statistics::steps>("steps"),
      required_field<&State::statistics, &Statistics::skipped_steps>("skipped_steps"),
      required_field<&State::statistics, &Statistics::growths>("growths"),
      required_field<&State::statistics, &Statistics::backoffs>("backoffs"),
      required_field<&State::statistics, &Statistics::streak>("streak"),
      required_field<&State::statistics, &Statistics::min_scale_seen>("min_scale_seen"),
      required_field<&State::statistics, &Statistics::max_scale_seen>("max_scale_seen"),
  };
};

std::string LossScalerState::to_json() const { return dump_json(written(*this, {{"version", 1}}), 2) + "\n"; }

LossScalerState LossScalerState::from_json(std::string_view json) {
  const JsonSource source = {"LossScalerState::from_json", "loss scaler text: ", "loss scaler", 1, json,
                             "save the state again"};
  const auto state = read_document<LossScalerState>(json, source);
  if (const std::string wrong = what_is_wrong(state); !wrong.empty()) source.refuse(ErrorCode::invalid_argument, wrong);
  return state;
}

}  // namespace xpuruntime
