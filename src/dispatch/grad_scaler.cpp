#include "xpuruntime/dispatch/grad_scaler.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "dispatch/aliasing.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// A flag every 16 bytes: all are aligned alike, so that equal gradients share one decision.
constexpr std::size_t flag_bytes = 16;
constexpr std::int64_t flag_elements = flag_bytes / sizeof(float);

Tensor flag_at(const Tensor& flags, std::size_t i) {
  return Tensor(flags.data(), make_spec(DataType::float32, {1}), flags.device(), flags.byte_offset() + i * flag_bytes,
                flags.owner());
}

Tensor number_on(const DeviceManager& devices, float value, const Dims& shape, Device device) {
  return devices.copy_to(Tensor::view(&value, DataType::float32, shape), device);
}

[[noreturn]] void refuse(const std::string& message) {
  fail(ErrorCode::invalid_argument, "GradScaler::unscale", message);
}

/// The bytes that a tensor reaches over, and whose they are.
struct Range {
  Device device = {};
  std::uintptr_t memory = 0;  // the handle, on OpenCL, with which one does not calculate; else 0
  std::uintptr_t begin = 0;
  std::size_t index = 0;
  bool written = false;
  const Tensor* tensor = nullptr;

  std::uintptr_t end() const { return begin + tensor->span(); }
  auto place() const { return std::tuple(device.type, device.index, memory); }
};

void add_ranges(std::vector<Range>& ranges, std::span<const Tensor> tensors, bool written) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto memory = reinterpret_cast<std::uintptr_t>(tensors[i].data());
    const bool handle = tensors[i].device().type == DeviceType::opencl;
    if (tensors[i].span() == 0) continue;
    ranges.push_back({tensors[i].device(), handle ? memory : 0, (handle ? 0 : memory) + tensors[i].byte_offset(), i,
                      written, &tensors[i]});
  }
}

/// Fails where gradients and what they are unscaled to do not belong together: another number of them, an output that
/// is neither f32 nor f64, or memory that two of them share and would be unscaled twice. All else is the op's to check.
void check_pair(const Range& a, const Range& b) {
  if ((!a.written && !b.written) || a.index == b.index || !share_memory(*a.tensor, *b.tensor)) return;
  refuse("gradients " + std::to_string(std::min(a.index, b.index)) + " and " +
         std::to_string(std::max(a.index, b.index)) + " share memory that would be unscaled twice; pass each once");
}

// Sorted by where they begin, only those that are still open can overlap the next.
void check_shared(std::span<const Tensor> gradients, std::span<const Tensor> outputs) {
  std::vector<Range> ranges, open;
  add_ranges(ranges, gradients, false);
  add_ranges(ranges, outputs, true);
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tuple(a.place(), a.begin) < std::tuple(b.place(), b.begin);
  });
  for (const Range& range : ranges) {
    std::erase_if(open, [&](const Range& o) { return o.place() != range.place() || o.end() <= range.begin; });
    for (const Range& other : open) check_pair(other, range);
    open.push_back(range);
  }
}

void check_gradients(std::span<const Tensor> gradients, std::span<const Tensor> outputs) {
  if (gradients.size() != outputs.size()) {
    refuse(std::to_string(gradients.size()) + " gradients and " + std::to_string(outputs.size()) +
           " outputs; give one output for each gradient");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DataType dtype = outputs[i].dtype();
    if (dtype == DataType::float32 || dtype == DataType::float64) continue;
    refuse("output " + std::to_string(i) + " is " + std::string(to_string(dtype)) +
           ", where unscaled gradients may vanish; give it in f32");
  }
  check_shared(gradients, outputs);
}

}  // namespace

GradScaler::GradScaler(Dispatcher& dispatcher, const LossScalerConfig& config)
    : dispatcher_(dispatcher), scaler_(config) {}

void GradScaler::need(bool in_order, const char* function, const char* what_to_do) const {
  if (in_order) return;
  const char* const reason =
      phase_ == Phase::broken
          ? "unscale failed half way, and the gradients are useless; call abandon_step and compute them again"
          : what_to_do;
  fail(ErrorCode::invalid_argument, function, reason);
}

void GradScaler::scale(const Tensor& loss, const Tensor& scaled) {
  need(phase_ == Phase::scaling, "GradScaler::scale",
       "the gradients of this step are unscaled already; call step and update first");
  const Place& place = place_on(loss.device());
  const std::array<const Tensor*, 2> inputs = {&loss, &place.scale};
  const std::array<const Tensor*, 1> outputs = {&scaled};
  // Whatever autocast makes of products: 65536 is past the largest f16.
  const DataType precision = loss.dtype() == DataType::float64 ? DataType::float64 : DataType::float32;
  dispatcher_.dispatch({.op = OpId::mul, .inputs = inputs, .outputs = outputs, .precision = precision});
}

bool GradScaler::unscale(std::span<const Tensor> gradients, std::span<const Tensor> outputs) {
  need(phase_ == Phase::scaling, "GradScaler::unscale",
       "the gradients of this step are unscaled already, and a second time would shrink them; call step and update, "
       "and pass all gradients at once");
  check_gradients(gradients, outputs);
  plan_gradients(gradients);
  run(gradients, outputs, true);
  phase_ = Phase::broken;  // from here on an error leaves some gradients scaled and some not
  run(gradients, outputs, false);
  found_inf_ = any_found();
  phase_ = Phase::unscaled;
  return found_inf_;
}

bool GradScaler::step(const std::function<void()>& apply) {
  need(phase_ != Phase::scaling, "GradScaler::step", "the gradients are still scaled; call unscale first");
  need(phase_ == Phase::unscaled, "GradScaler::step", "this step was taken; call update, then begin the next");
  if (!apply) fail(ErrorCode::invalid_argument, "GradScaler::step", "the function is empty; pass one to call");
  if (!found_inf_) apply();
  phase_ = Phase::stepped;
  return !found_inf_;
}

void GradScaler::update() {
  need(phase_ != Phase::scaling, "GradScaler::update",
       "no gradients were unscaled, and with another scale they would come out wrong; call unscale and step first");
  need(phase_ == Phase::stepped, "GradScaler::update", "the step was not taken; call step first");
  scaler_.update(found_inf_);
  abandon_step();
}

void GradScaler::abandon_step() {
  phase_ = Phase::scaling;
  found_inf_ = false;
}

void GradScaler::restore(const LossScalerState& state) {
  scaler_.restore(state);
  abandon_step();
}

GradScaler::Place& GradScaler::place_on(Device device) {
  const auto same = [device](const Place& place) { return place.device == device; };
  auto found = std::find_if(places_.begin(), places_.end(), same);
  if (found == places_.end()) {
    Place place;
    place.device = device;
    found = places_.insert(places_.end(), std::move(place));
  }
  if (found->uploaded_scale != scaler_.scale()) {
    const DeviceManager& devices = dispatcher_.registry().devices();
    found->uploaded_scale = 0;
    found->scale = number_on(devices, scaler_.scale(), {}, device);
    found->inverse = number_on(devices, scaler_.inverse_scale(), {1}, device);
    found->uploaded_scale = scaler_.scale();
  }
  return *found;
}

void GradScaler::plan_gradients(std::span<const Tensor> gradients) {
  for (Place& place : places_) place.gradients = 0;
  for (const Tensor& gradient : gradients) ++place_on(gradient.device()).gradients;
  for (Place& place : places_) {
    const auto elements = static_cast<std::int64_t>(place.gradients) * flag_elements;
    if (place.found.span() >= place.gradients * flag_bytes) continue;
    place.found = dispatcher_.registry().devices().allocate(DataType::float32, {elements}, place.device);
  }
}

/// Dry: decides and checks, so that what is wrong with the last gradient shows before the first is written.
void GradScaler::run(std::span<const Tensor> gradients, std::span<const Tensor> outputs, bool dry) {
  for (Place& place : places_) place.gradients = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Place& place = place_on(gradients[i].device());
    const Tensor flag = flag_at(place.found, place.gradients++);
    const std::array<const Tensor*, 2> to_read = {&gradients[i], &place.inverse};
    const std::array<const Tensor*, 2> to_write = {&outputs[i], &flag};
    const Call call = {OpId::unscale, to_read, to_write};
    if (dry) {
      dispatcher_.decide(call);
      check_overlaps(call);
    } else {
      dispatcher_.dispatch(call);
    }
  }
}

bool GradScaler::any_found() const {
  for (const Place& place : places_) {
    if (place.gradients == 0) continue;
    const Tensor flags = dispatcher_.registry().devices().copy_to(place.found, Device{});
    for (std::size_t i = 0; i < place.gradients; ++i) {
      if (flags.as<const float>()[i * flag_elements] != 0) return true;
    }
  }
  return false;
}

}  // namespace xpuruntime
