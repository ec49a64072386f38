#include "graph/quantize/prepare.h"

#include "xpuruntime/core/error.h"

namespace xpuruntime::quantization {

Prepared prepared(Model model, Dispatcher& dispatcher, const DeviceManager& devices, const SessionOptions& options) {
  const bool in_integers = options.execution && options.execution->precision == DataType::int8;
  if (!in_integers && !options.calibration.empty()) {
    fail(ErrorCode::invalid_argument, "Session",
         "calibration inputs are for precision int8; set that, or leave them out");
  }
  if (!in_integers || is_quantized(model)) return {std::move(model)};
  if (options.calibration.empty()) {
    fail(ErrorCode::invalid_argument, "Session",
         "precision int8: the model is one of floats; pass calibration, a list of a few typical inputs, or load what "
         "quantize has made of it");
  }
  QuantizedModel made = quantize(model, options.calibration, dispatcher, devices);
  return {std::move(made.model), std::move(made.report)};
}

}  // namespace xpuruntime::quantization
