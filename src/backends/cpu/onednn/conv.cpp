#include <algorithm>
#include <cmath>
#include <string>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/channels_last.h"
#include "backends/cpu/matmul/split.h"
#include "backends/cpu/onednn/conv_programs.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/onednn/types.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

Verdict supports_types(const Problem& problem) {
  const DataType in = problem.inputs[0].dtype, out = problem.outputs[0].dtype;
  const Verdict alike = is_same_dtype("input 1", problem.inputs[1].dtype, "the input's", in);
  if (!alike.supported) return alike;
  if (out != in && out != DataType::float32) return refuse_dtype("the output", out, "what the input has, or f32");
  const bool has_bias = problem.inputs.size() > 2;
  if (has_bias && problem.inputs[2].dtype != in && problem.inputs[2].dtype != DataType::float32) {
    return refuse_dtype("the bias", problem.inputs[2].dtype, "what the input has, or f32");
  }
  return Verdict::yes();
}

Verdict supports_shape(const Problem& problem) {
  if (const Verdict verdict = supports_padding(conv_shape(problem)); !verdict.supported) return verdict;
  if (is_conv_of_pixels(problem)) {
    if (problem.inputs[0].dtype != DataType::float32) return Verdict::no("the channels are last, and that is for f32");
    return is_contiguous(problem, 2);
  }
  return is_contiguous(problem);
}

// oneDNN 2.6 reads beyond rows that a filter with gaps is wider than, and gives wrong numbers for some of them.
Verdict supports_gaps(const ConvShape& shape) {
  const std::int64_t reach = shape.dilation[2] * (shape.kernel[2] - 1);
  if (shape.dilation[2] == 1 || reach < shape.in[2]) return Verdict::yes();
  return Verdict::no("the dilated kernel is wider than the input, where oneDNN 2 may give wrong results");
}

// Converting the weight costs as much as this many pixels gain by it.
bool hardly_reuses_weight(const ConvCall& call) {
  const std::int64_t few_pixels = call.in == DataType::bfloat16 ? 85 : 38;
  return call.shape.groups == 1 && call.shape.batch * volume(call.shape.out) < few_pixels;
}

Program make_conv(const Problem& problem) {
  const ConvCall call = conv_call(problem);
  if (call.channels_last) return blocked_program(call);
  // The bias of a pointwise one is stored before the sums are added: it must be exact in the output's dtype.
  const bool exact_bias = !call.has_bias || call.out == DataType::float32 || call.bias == call.out;
  if (call.shape.groups == 1 && call.shape.pointwise() && exact_bias &&
      !breaks_onednn(call.in, call.shape.in_channels)) {
    return pointwise_program(call);
  }
  return hardly_reuses_weight(call) ? plain_program(call) : blocked_program(call);
}

}  // namespace

Verdict supports_padding(const ConvShape& shape) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape.padding[i] > shape.dilation[i] * (shape.kernel[i] - 1)) {
      return Verdict::no("a padding of " + std::to_string(shape.padding[i]) +
                         " leaves whole windows without input, which oneDNN does not take");
    }
  }
  return Verdict::yes();
}

std::int64_t most_terms_at_once(std::int64_t all) {
  return std::max<std::int64_t>(1024, static_cast<std::int64_t>(32 * std::sqrt(static_cast<double>(all))));
}

Verdict supports_window_sums(std::int64_t channels, std::int64_t taps) {
  if (std::min<std::int64_t>(channels, 16) * taps <= most_terms_at_once(channels * taps)) return Verdict::yes();
  return Verdict::no("a kernel has " + std::to_string(taps) + " taps, and oneDNN's f32 sums of so many lose digits");
}

Verdict supports_conv_onednn(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict verdict = supports_onednn(problem, profile); !verdict.supported) return verdict;
  if (const Verdict verdict = supports_gaps(conv_shape(problem)); !verdict.supported) return verdict;
  if (problem.direction == Direction::backward) return supports_conv_backward(problem);
  if (const Verdict verdict = supports_types(problem); !verdict.supported) return verdict;
  if (const Verdict verdict = supports_modest_windows(problem); !verdict.supported) return verdict;
  if (const Verdict verdict = supports_shape(problem); !verdict.supported) return verdict;
  const ConvShape shape = conv_shape(problem);
  // It adds up one term after the other: of more, too many digits are lost.
  const Verdict short_sums = is_at_most("terms of a sum", shape.depth(), 1 << 16);
  return short_sums.supported ? supports_window_sums(shape.in_channels, shape.taps()) : short_sums;
}

std::uint64_t workspace_conv_onednn(const Problem& problem, const DeviceProfile& profile) {
  if (problem.direction == Direction::backward) return conv_backward_stages(problem).workspace_bytes(profile);
  return program_workspace(problem, profile, make_conv);
}

std::unique_ptr<const Plan> prepare_conv_onednn(const Problem& problem, const PrepareContext& context) {
  if (problem.direction == Direction::backward) return conv_backward_stages(problem).prepare(context);
  return prepare_program(problem, make_conv);
}

}  // namespace xpuruntime::cpu
