#pragma once

#include <map>
#include <optional>
#include <string>

#include "xpuruntime/graph/model.h"

namespace xpuruntime::quantization {

/// What the names of a graph stand for where that is known without a run.
class Constants {
 public:
  explicit Constants(const ModelGraph& graph);

  /// f32, contiguous, also through Identity and Transpose; nothing: only a run knows it, or it is of another dtype.
  std::optional<Tensor> find(const std::string& name) const;

 private:
  const ModelGraph& graph_;
  std::map<std::string, const ModelNode*> makers_ = {};
};

/// How often each name is read, the bodies of nodes and the graph's outputs included.
std::map<std::string, std::size_t> reads_of(const ModelGraph& graph);

/// A weight in 8 bits, symmetric, with a scale for each slice of an axis.
struct Codes {
  Tensor codes = {};
  Tensor scales = {};
};
Codes codes_of(const Tensor& weight, std::size_t axis);

/// Puts BatchNormalization into the constants of the convolutions before it.
void fold_batch_norms(ModelGraph& graph);

}  // namespace xpuruntime::quantization
