#pragma once

#include <optional>

#include "xpuruntime/graph/quantize.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::quantization {

struct Prepared {
  Model model = {};
  std::optional<QuantizationReport> report = {};  // where it was quantized now
};

/// The model that a session runs: with precision int8 one of integers. Fails where that needs calibration inputs and
/// there are none, or there are some that nothing reads.
Prepared prepared(Model model, Dispatcher& dispatcher, const DeviceManager& devices, const SessionOptions& options);

}  // namespace xpuruntime::quantization
