#include "graph/quantize/ranges.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "core/printable.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::quantization {
namespace {

Session session_of(const Model& model, Dispatcher& dispatcher, const DeviceManager& devices) {
  ExecutionPolicy execution;
  execution.target = DeviceType::cpu;
  return Session(model, dispatcher, devices, {.execution = execution});
}

/// The values between which so much of them lies, the same share cut off at both ends.
Range range_of(const Tensor& tensor, const std::string& name, double percentile) {
  if (tensor.dtype() != DataType::float32) return {};
  const float* from = tensor.as<const float>();
  std::vector<float> values(from, from + element_count(tensor.spec()));
  if (values.empty()) return {};
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) {
    fail(ErrorCode::invalid_argument, "quantize",
         "a calibration input gives '" + printable(name) + "' values that are not finite; give others");
  }
  const double cut = (100 - percentile) / 200 * static_cast<double>(values.size() - 1);
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(std::floor(cut));
  const auto last = values.end() - 1 - (first - values.begin());
  std::nth_element(values.begin(), first, values.end());
  const float least = *first;
  std::nth_element(values.begin(), last, values.end());
  return {std::min(least, 0.0f), std::max(*last, 0.0f)};
}

/// Nothing is learnt of a tensor that all inputs leave at 0, or without elements.
void check_range(const std::string& name, const Range& range, bool has_elements) {
  if (has_elements && range.least < range.most) return;
  fail(
      ErrorCode::invalid_argument, "quantize",
      "the calibration inputs leave '" + printable(name) + "' " +
          (has_elements ? "at 0 everywhere" : "without elements") +
          ", which tells nothing of its range; give inputs that are typical of the model's work, or keep what reads it "
          "in floats with keep");
}

}  // namespace

std::map<std::string, Range> ranges_of(const Model& model, const std::vector<std::string>& names,
                                       std::span<const std::vector<Tensor>> inputs, Dispatcher& dispatcher,
                                       const DeviceManager& devices, double percentile) {
  std::map<std::string, Range> ranges;
  if (names.empty()) return ranges;
  Model watched = model;
  watched.graph.outputs.clear();
  for (const std::string& name : names) watched.graph.outputs.push_back({.name = name});
  const Session session = session_of(watched, dispatcher, devices);
  std::vector<bool> has_elements(names.size(), false);
  for (const std::vector<Tensor>& input : inputs) {
    const std::vector<Tensor> results = session.run(input);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (element_count(results[i].spec()) > 0) has_elements[i] = true;
      const Range found = range_of(results[i], names[i], percentile);
      Range& range = ranges[names[i]];
      range = {std::min(range.least, found.least), std::max(range.most, found.most)};
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) check_range(names[i], ranges[names[i]], has_elements[i]);
  return ranges;
}

std::vector<QuantizationError> errors_of(const Model& model, const Model& quantized,
                                         std::span<const std::vector<Tensor>> inputs, Dispatcher& dispatcher,
                                         const DeviceManager& devices) {
  const Session floats = session_of(model, dispatcher, devices), codes = session_of(quantized, dispatcher, devices);
  std::vector<QuantizationError> errors(model.graph.outputs.size());
  std::vector<double> largest(errors.size(), 0);
  for (const std::vector<Tensor>& input : inputs) {
    const std::vector<Tensor> expected = floats.run(input), got = codes.run(input);
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const LoadElement load = loader_of(expected[i].dtype());
      for (std::int64_t e = 0; e < element_count(expected[i].spec()); ++e) {
        const double want = load(expected[i].as<const void>(), e), found = load(got[i].as<const void>(), e);
        const double error = std::fabs(found - want);
        errors[i].max_error = std::isfinite(error) ? std::max(errors[i].max_error, error) : error;
        largest[i] = std::max(largest[i], std::fabs(want));
      }
    }
  }
  for (std::size_t i = 0; i < errors.size(); ++i) {
    errors[i].output = model.graph.outputs[i].name;
    errors[i].relative_error = errors[i].max_error / (largest[i] > 0 ? largest[i] : 1);
  }
  return errors;
}

}  // namespace xpuruntime::quantization
