#include "xpuruntime/precision/loss_scaler.h"

#include <algorithm>

#include "precision/loss_scaler_check.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

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

bool LossScaler::move_to(double wish) {
  const double inside = std::clamp(wish, double{state_.config.min_scale}, double{state_.config.max_scale});
  const auto scale = static_cast<float>(inside);
  if (scale == state_.scale) return false;
  state_.scale = scale;
  state_.statistics.min_scale_seen = std::min(state_.statistics.min_scale_seen, scale);
  state_.statistics.max_scale_seen = std::max(state_.statistics.max_scale_seen, scale);
  return true;
}

}  // namespace xpuruntime
