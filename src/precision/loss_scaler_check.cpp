#include "precision/loss_scaler_check.h"

#include <cmath>
#include <cstdio>
#include <utility>

namespace xpuruntime {
namespace {

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

}  // namespace

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

}  // namespace xpuruntime
