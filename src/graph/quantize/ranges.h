#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/graph/quantize.h"

namespace xpuruntime::quantization {

/// What the values of a tensor lie between, 0 included.
struct Range {
  float least = 0;
  float most = 0;
};

/// Of the values that runs with these inputs give to names of the graph.
std::map<std::string, Range> ranges_of(const Model& model, const std::vector<std::string>& names,
                                       std::span<const std::vector<Tensor>> inputs, Dispatcher& dispatcher,
                                       const DeviceManager& devices, double percentile);

/// How far one model's outputs are from the other's.
std::vector<QuantizationError> errors_of(const Model& model, const Model& quantized,
                                         std::span<const std::vector<Tensor>> inputs, Dispatcher& dispatcher,
                                         const DeviceManager& devices);

}  // namespace xpuruntime::quantization
