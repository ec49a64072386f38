#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/precision/loss_scaler.h"

namespace xpuruntime {

/// Takes gradients in 16 bits through a training step: the loss is scaled up so that small ones do not vanish, the
/// gradients are brought back in f32, and a step that overflowed is skipped. Each step goes
///
///   scale (as often as there are losses) -> backward -> unscale -> step -> update
///
/// and any other order is an error that says what to call. Not for several threads at once.
class GradScaler {
 public:
  /// The dispatcher must outlive the scaler.
  explicit GradScaler(Dispatcher& dispatcher, const LossScalerConfig& config = {});

  /// What the loss is multiplied by in this step: where there is no loss tensor to scale, the gradient that backward
  /// starts from is this. Hold it in f32 or bf16: 65536 is past the largest f16.
  float factor() const { return scaler_.scale(); }

  /// scaled = loss * factor(), by the op `mul`. The two may be one tensor. Before unscale.
  void scale(const Tensor& loss, const Tensor& scaled);

  /// outputs[i] = gradients[i] / factor(), by the op `unscale`, and a look at every value; returns whether one was NaN
  /// or infinite, and waits for it. Outputs are f32 or f64 tensors on their gradient's device; an f32 gradient may be
  /// its own output. Gradients may be on different devices, of no elements, or none at all. All of them at once: a
  /// second call in one step is an error. Whatever is wrong with one of them is found before any is written.
  bool unscale(std::span<const Tensor> gradients, std::span<const Tensor> outputs);

  /// What unscale found in this step.
  bool found_inf() const { return found_inf_; }

  /// Calls `apply`, which changes the parameters, unless the gradients overflowed; returns whether it was called. If
  /// it throws, the step is not over: call step again, or abandon_step.
  bool step(const std::function<void()>& apply);

  /// Ends the step and brings the scale up to date.
  void update();

  /// Forgets the step that was begun, after an error say: nothing is counted, the scale stays. The gradients are lost.
  void abandon_step();

  const LossScaler& scaler() const { return scaler_; }
  /// As of the last update.
  LossScalerState state() const { return scaler_.state(); }
  /// Also abandons the step that was begun; a state that cannot be is an error and changes nothing.
  void restore(const LossScalerState& state);

 private:
  enum class Phase { scaling, broken, unscaled, stepped };

  /// The scaler's own memory on one device.
  struct Place {
    Device device = {};
    Tensor scale = {};         // f32[], factor() when it was made
    Tensor inverse = {};       // f32[1]
    float uploaded_scale = 0;  // 0: not yet
    Tensor found = {};         // one flag for each gradient of this device
    std::size_t gradients = 0;
  };

  void need(bool in_order, const char* function, const char* what_to_do) const;
  Place& place_on(Device device);
  void plan_gradients(std::span<const Tensor> gradients);
  void run(std::span<const Tensor> gradients, std::span<const Tensor> outputs, bool dry);
  bool any_found() const;

  Dispatcher& dispatcher_;
  LossScaler scaler_;
  Phase phase_ = Phase::scaling;
  bool found_inf_ = false;
  std::vector<Place> places_;
};

}  // namespace xpuruntime
