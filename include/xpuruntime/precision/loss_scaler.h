#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xpuruntime {

/// How a loss scale behaves. All numbers are f32, so that the scale that is reported is the one that is multiplied by;
/// while they are powers of two, scaling and unscaling change no digit of a gradient.
struct LossScalerConfig {
  float initial_scale = 65536;
  float growth_factor = 2;
  float backoff_factor = 0.5f;
  std::int64_t growth_interval = 2000;  // good steps in a row before the scale grows
  float min_scale = 1;
  float max_scale = 0x1p24f;
  bool dynamic = true;  // false: the scale stays what it is, and overflows are still counted

  bool operator==(const LossScalerConfig&) const = default;
};

/// What has happened so far.
struct LossScalerStatistics {
  std::int64_t steps = 0;          // all of them, skipped ones too
  std::int64_t skipped_steps = 0;  // those that overflowed
  std::int64_t growths = 0;        // times the scale rose
  std::int64_t backoffs = 0;       // times the scale fell; an overflow at min_scale is none
  std::int64_t streak = 0;         // good steps since the last overflow or growth
  float min_scale_seen = 65536;
  float max_scale_seen = 65536;

  bool operator==(const LossScalerStatistics&) const = default;
};

/// All that a training run needs to go on where it stopped.
struct LossScalerState {
  LossScalerConfig config = {};
  float scale = 65536;
  LossScalerStatistics statistics = {};

  /// JSON, one object; reading it gives an equal state.
  std::string to_json() const;
  /// A text with a field too many, too few, of the wrong type or out of range is an error.
  static LossScalerState from_json(std::string_view json);

  bool operator==(const LossScalerState&) const = default;
};

/// The scale of a loss from step to step: no tensors, no devices. GradScaler in the dispatch layer applies it.
/// Not for several threads at once.
class LossScaler {
 public:
  /// Numbers that do not fit together are an error that names the field and says what to set it to.
  explicit LossScaler(const LossScalerConfig& config = {});

  float scale() const { return state_.scale; }
  float inverse_scale() const { return 1 / state_.scale; }

  /// Once after each step. An overflow multiplies the scale by backoff_factor, growth_interval good steps in a row by
  /// growth_factor; it never leaves min_scale to max_scale. Returns whether the scale changed.
  bool update(bool found_inf);

  const LossScalerConfig& config() const { return state_.config; }
  const LossScalerStatistics& statistics() const { return state_.statistics; }

  LossScalerState state() const { return state_; }
  /// Takes configuration, scale and statistics over; a state that cannot be is an error and changes nothing.
  void restore(const LossScalerState& state);

 private:
  bool move_to(double target);

  LossScalerState state_;
};

}  // namespace xpuruntime
