#include "xpuruntime/dispatch/grad_scaler.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <exception>
#include <stdexcept>

#include "python/arguments.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/results.h"
#include "python/scopes.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

const auto scaler_signature = nb::sig(
    "def __init__(self, *, initial_scale: float = 65536.0, growth_factor: float = 2.0, "
    "backoff_factor: float = 0.5, growth_interval: int = 2000, min_scale: float = 1.0, "
    "max_scale: float = 16777216.0, dynamic: bool = True) -> None");

LossScalerConfig config_from(const nb::kwargs& fields) {
  LossScalerConfig config;
  constexpr const char* function = "LossScaler";
  const auto real = [&](nb::handle value, const char* name) {
    return static_cast<float>(real_from(value, function, name));
  };
  for (const auto [key, value] : fields) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "initial_scale") {
      config.initial_scale = real(value, "initial_scale");
    } else if (name == "growth_factor") {
      config.growth_factor = real(value, "growth_factor");
    } else if (name == "backoff_factor") {
      config.backoff_factor = real(value, "backoff_factor");
    } else if (name == "growth_interval") {
      config.growth_interval = integer_from(value, function, "growth_interval");
    } else if (name == "min_scale") {
      config.min_scale = real(value, "min_scale");
    } else if (name == "max_scale") {
      config.max_scale = real(value, "max_scale");
    } else if (name == "dynamic") {
      config.dynamic = boolean_from(value, function, "dynamic");
    } else {
      constexpr std::string_view known[] = {"initial_scale", "growth_factor", "backoff_factor", "growth_interval",
                                            "min_scale",     "max_scale",     "dynamic"};
      fail_unknown(function, "field", name, known);
    }
  }
  return config;
}

LossScalerState state_from(nb::handle state) {
  if (!nb::isinstance<nb::dict>(state)) {
    raise_type_error("[load_state_dict] state is " + a_python_type(state) + "; pass what state_dict() returned");
  }
  return LossScalerState::from_json(to_json_text(state, "load_state_dict"));
}

std::vector<Tensor> tensors_from(nb::handle arrays, Access access, const char* what) {
  if (!nb::isinstance<nb::list>(arrays) && !nb::isinstance<nb::tuple>(arrays)) {
    raise_type_error("[GradScaler.unscale] " + std::string(what) + " is " + a_python_type(arrays) +
                     "; pass a list of arrays");
  }
  std::vector<Tensor> tensors;
  for (const nb::handle array : arrays) tensors.push_back(tensor_from(array, access, what));
  return tensors;
}

/// GradScaler with a guard: threads that meet in it get an error instead of each other's state.
class OwnScaler {
 public:
  explicit OwnScaler(const LossScalerConfig& config) : scaler_(Runtime::global().dispatcher(), config) {}

  /// What is read needs no turn: it is a number.
  const GradScaler& read() const { return scaler_; }

  template <class Function>
  auto in_turn(Function&& function) {
    if (busy_.exchange(true)) {
      fail(ErrorCode::invalid_argument, "GradScaler",
           "it is at work on another thread or in a step; call it when that is over, or use one scaler a thread");
    }
    const Turn turn{busy_};
    return function(scaler_);
  }

 private:
  struct Turn {
    std::atomic<bool>& busy;
    ~Turn() { busy.store(false); }
  };

  std::atomic<bool> busy_{false};
  GradScaler scaler_;
};

nb::object scale(OwnScaler& self, nb::handle loss, nb::handle out) {
  if (out.is_none() && (PyFloat_Check(loss.ptr()) || PyLong_Check(loss.ptr()))) {
    return nb::float_(real_from(loss, "GradScaler.scale", "loss") * self.read().factor());
  }
  // Its own package multiplies a loss that backward starts from: the gradients are that one's.
  if (out.is_none() && nb::getattr(loss, "requires_grad", nb::none()).is(nb::bool_(true))) {
    return loss * nb::float_(self.read().factor());
  }
  const Where where{"GradScaler.scale", "loss"};
  BoundArray bound;
  bound.bind(loss.ptr(), Access::read, where);
  const Tensor from = bound.tensor();
  Result scaled;
  if (out.is_none()) {
    scaled.make(bound, make_spec(from.dtype(), from.shape()), from.device());
  } else {
    scaled.use(out.ptr(), {"GradScaler.scale", "out"});
  }
  sync_scope();
  {
    const WithoutGil release;
    self.in_turn([&](GradScaler& scaler) { scaler.scale(from, scaled.tensor()); });
  }
  return scaled.finish();
}

bool unscale(OwnScaler& self, nb::handle gradients, nb::handle outputs) {
  const bool in_place = outputs.is_none();
  const std::vector<Tensor> from = tensors_from(gradients, in_place ? Access::write : Access::read, "gradients");
  const std::vector<Tensor> to = in_place ? from : tensors_from(outputs, Access::write, "outputs");
  sync_scope();
  const WithoutGil release;
  return self.in_turn([&](GradScaler& scaler) { return scaler.unscale(from, to); });
}

bool step(OwnScaler& self, nb::handle apply) {
  check_callable(apply, "GradScaler.step", "apply");
  std::exception_ptr raised;
  // Python's exception waits here while the library learns that the step is not over.
  const auto call = [&] {
    try {
      apply();
    } catch (const nb::python_error&) {
      raised = std::current_exception();
      throw std::runtime_error("apply raised");
    }
  };
  try {
    return self.in_turn([&](GradScaler& scaler) { return scaler.step(call); });
  } catch (const std::runtime_error&) {
    if (raised) std::rethrow_exception(raised);
    throw;
  }
}

void load_state(OwnScaler& self, nb::handle state) {
  const LossScalerState restored = state_from(state);
  self.in_turn([&](GradScaler& scaler) { scaler.restore(restored); });
}

void bind_loss_scaler(nb::module_& module) {
  nb::class_<LossScaler>(module, "LossScaler", "The scale of a loss from step to step: a number and its rule.")
      .def(
          "__init__", [](LossScaler* self, const nb::kwargs& fields) { new (self) LossScaler(config_from(fields)); },
          scaler_signature)
      .def_prop_ro("scale", &LossScaler::scale)
      .def_prop_ro("inverse_scale", &LossScaler::inverse_scale)
      .def(
          "update",
          [](LossScaler& self, nb::handle found) { return self.update(boolean_from(found, "update", "found_inf")); },
          nb::arg("found_inf").none(), nb::sig("def update(self, found_inf: bool) -> bool"),
          "Once after each step; returns whether the scale changed.")
      .def(
          "state_dict", [](const LossScaler& self) { return from_json_text(self.state().to_json()); },
          nb::sig("def state_dict(self) -> dict[str, Any]"))
      .def(
          "load_state_dict", [](LossScaler& self, nb::handle state) { self.restore(state_from(state)); },
          nb::arg("state").none(), nb::sig("def load_state_dict(self, state: dict[str, Any]) -> None"));
}

}  // namespace

void bind_grad_scaler(nb::module_& module) {
  bind_loss_scaler(module);
  nb::class_<OwnScaler>(module, "GradScaler",
                        "Takes gradients in 16 bits through a training step.\n\n"
                        "Each step goes scale, backward, unscale, step, update; any other order is an error that says "
                        "what to call.\nThe fields are those of LossScaler.")
      .def(
          "__init__", [](OwnScaler* self, const nb::kwargs& fields) { new (self) OwnScaler(config_from(fields)); },
          scaler_signature)
      .def_prop_ro(
          "factor", [](const OwnScaler& self) { return self.read().factor(); },
          "What the loss is multiplied by in this step.")
      .def_prop_ro(
          "found_inf", [](const OwnScaler& self) { return self.read().found_inf(); },
          "What unscale found in this step.")
      .def("scale", scale, nb::arg("loss").none(), nb::arg("out").none() = nb::none(),
           nb::sig("def scale(self, loss: Any, out: Any = None) -> Any"),
           "The loss times factor: a number, an array like the loss, or `out`. Hold it in f32 or bf16.")
      .def("unscale", unscale, nb::arg("gradients").none(), nb::arg("outputs").none() = nb::none(),
           nb::sig("def unscale(self, gradients: Sequence[Any], outputs: Sequence[Any] | None = None) -> bool"),
           "Divides the gradients by factor; returns whether a value was not finite.\n\n"
           "f32 gradients are changed in place where no outputs are given; others need outputs in f32 or f64.")
      .def("step", step, nb::arg("apply").none(), nb::sig("def step(self, apply: Callable[[], object]) -> bool"),
           "Calls `apply`, which changes the parameters, unless the gradients overflowed; returns whether it did.")
      .def(
          "update", [](OwnScaler& self) { self.in_turn([](GradScaler& scaler) { scaler.update(); }); },
          "Ends the step and brings the scale up to date.")
      .def(
          "abandon_step", [](OwnScaler& self) { self.in_turn([](GradScaler& scaler) { scaler.abandon_step(); }); },
          "Forgets the step that was begun: nothing is counted, the scale stays.")
      .def(
          "state_dict", [](const OwnScaler& self) { return from_json_text(self.read().state().to_json()); },
          nb::sig("def state_dict(self) -> dict[str, Any]"), "All that a training run needs to go on.")
      .def("load_state_dict", load_state, nb::arg("state").none(),
           nb::sig("def load_state_dict(self, state: dict[str, Any]) -> None"),
           "Takes up what state_dict returned; also abandons the step that was begun.");
}

}  // namespace xpuruntime::python
