#pragma once

#include <string>

#include "backends/cpu/base/stages.h"
#include "backends/cpu/conv/shape.h"
#include "backends/cpu/onednn/program.h"

namespace xpuruntime::cpu {

/// A convolution of tensors that are contiguous, or all with dense channels last, as the programs below need it.
struct ConvCall {
  ConvShape shape = {};
  std::size_t axis = 0;  // the first spatial dim of Extents: 0 for conv3d, 1 for conv2d
  DataType in = DataType::float32;
  DataType out = DataType::float32;
  bool has_bias = false;
  DataType bias = DataType::float32;
  int threads = 1;
  std::int64_t parts = 1;  // tasks; under a deterministic policy not those of this machine
  bool fixed_parts = false;
  bool channels_last = false;  // of input and output
  bool weight_last = false;    // of the weight too
  bool large = false;          // enough for several threads, were there any

  /// "tasks=2", and whether they follow the number of threads.
  std::string tasks_text(std::size_t tasks) const;
};

ConvCall conv_call(const Problem& problem);
/// Whether input and output have their channels last, and the weight has too or is contiguous.
bool is_conv_of_pixels(const Problem& problem);

/// Padding that oneDNN takes.
Verdict supports_padding(const ConvShape& shape);

/// Of a sum of `all` terms, how many may go into one f32 without a break: errors of equal terms do not cancel, and may
/// be a quarter of the terms in units of 2^-24.
std::int64_t most_terms_at_once(std::int64_t all);
/// Refuses windows over which oneDNN's sums, of 16 channels without a break, are too long.
Verdict supports_window_sums(std::int64_t channels, std::int64_t taps);

/// A 1x1 convolution as the product weight times input: no tensor changes its layout.
Program pointwise_program(const ConvCall& call);

/// On the tensors as they are, where converting a large weight for a few pixels would not pay.
Program plain_program(const ConvCall& call);

/// In the layouts that oneDNN likes best, which each task converts its part to and from. Where the channels are last,
/// only the weight is converted.
Program blocked_program(const ConvCall& call);

/// What a backward convolution asks for beyond supports_onednn.
Verdict supports_conv_backward(const Problem& problem);

/// The gradients of input and weight by oneDNN, with our own sums where its are too long: the bias's always.
Stages conv_backward_stages(const Problem& problem);

}  // namespace xpuruntime::cpu
