#pragma once

#include <span>
#include <string>
#include <vector>

#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {

struct QuantizeOptions {
  /// How much of a tensor's values the codes reach in each calibration input, the rest is cut off; 100: all.
  double percentile = 100;
  /// Nodes that stay in floats, by name.
  std::vector<std::string> keep = {};
};

/// What became of a Conv, Gemm or MatMul.
struct QuantizedNode {
  std::string node = {};  // its name, or "MatMul #3"
  std::string op = {};
  std::string kept = {};  // why it stays in floats; empty: it is quantized
};

/// How far a quantized model's output is from the float model's on the calibration inputs.
struct QuantizationError {
  std::string output = {};
  double max_error = 0;
  double relative_error = 0;  // max_error by the largest magnitude that the float model gives
};

struct QuantizationReport {
  std::vector<QuantizedNode> nodes = {};
  std::vector<QuantizationError> errors = {};  // of each output
  std::size_t inputs = 0;                      // for calibration
};

struct QuantizedModel {
  Model model = {};
  QuantizationReport report = {};
};

/// Whether it computes with integers of its own: Q and DQ, or QLinear operators.
bool is_quantized(const Model& model);

/// A copy in which Conv, Gemm and MatMul with constant weights multiply 8-bit integers: weights symmetric for each
/// output channel, inputs u8 with one scale, which comes from running the calibration inputs (each as Session::run
/// takes them). Fails where there are none, or where the model is quantized already.
QuantizedModel quantize(const Model& model, std::span<const std::vector<Tensor>> calibration, Dispatcher& dispatcher,
                        const DeviceManager& devices, const QuantizeOptions& options = {});

}  // namespace xpuruntime
