#include <cmath>

#include "core/elements.h"
#include "graph/passes/match.h"
#include "graph/passes/passes.h"

// A convolution with constants, and what scales or moves its channels after it: batch_norm with known statistics, and
// products and sums with one number for each channel.

namespace xpuruntime::native {
namespace {

/// y = scale x + shift, by channel.
struct ChannelScale {
  std::vector<double> scale, shift;
};

/// One number for each channel of an image: of a constant with one element, or one for each in dim 1. Empty: it is
/// none.
std::vector<double> by_channel(const Rewriter& program, int slot, const Dims& image) {
  const TensorSpec& spec = program.spec(slot);
  if (!program.is_constant(slot) || !spec.contiguous || spec.dtype != DataType::float32) return {};
  const Dims& shape = spec.shape;
  if (shape.size() > image.size()) return {};
  const std::size_t missing = image.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool is_channel = d + missing == 1 && shape[d] == image[1];
    if (shape[d] != 1 && !is_channel) return {};
  }
  const float* from = program.constant(slot).as<const float>();
  const auto count = static_cast<std::size_t>(element_count(spec));
  std::vector<double> numbers(static_cast<std::size_t>(image[1]));
  for (std::size_t c = 0; c < numbers.size(); ++c) numbers[c] = static_cast<double>(from[count == 1 ? 0 : c]);
  return numbers;
}

/// The same of a constant that is a list of one number for each channel.
std::vector<double> list_of(const Rewriter& program, int slot, std::int64_t channels) {
  return by_channel(program, slot, {1, channels}).size() == static_cast<std::size_t>(channels) &&
                 program.shape(slot) == Dims{channels}
             ? by_channel(program, slot, {1, channels})
             : std::vector<double>{};
}

std::optional<ChannelScale> scale_of_batch_norm(const Rewriter& program, const Step& step) {
  if (step.attributes.boolean("training") || step.inputs.size() < 3) return {};
  const std::int64_t channels = program.shape(step.inputs[0])[1];
  const auto count = static_cast<std::size_t>(channels);
  std::vector<double> lists[4];
  for (std::size_t i = 0; i < 4; ++i) {
    lists[i] = i + 1 < step.inputs.size() ? list_of(program, step.inputs[i + 1], channels)
                                          : std::vector<double>(count, i == 2 ? 1 : 0);
    if (lists[i].size() != count) return {};
  }
  const auto& [mean, variance, weight, bias] = lists;
  ChannelScale found{std::vector<double>(count), std::vector<double>(count)};
  for (std::size_t c = 0; c < count; ++c) {
    found.scale[c] = weight[c] / std::sqrt(variance[c] + step.attributes.real("eps"));
    found.shift[c] = bias[c] - mean[c] * found.scale[c];
  }
  return found;
}

std::optional<ChannelScale> scale_of_arithmetic(const Rewriter& program, const Step& step, int constant) {
  const Dims& image = program.shape(step.outputs[0]);
  std::vector<double> numbers = by_channel(program, constant, image);
  if (numbers.empty()) return {};
  const std::size_t count = numbers.size();
  if (step.op == OpId::mul) return ChannelScale{std::move(numbers), std::vector<double>(count, 0)};
  if (step.op == OpId::sub) {
    for (double& number : numbers) number = -number;
  }
  return ChannelScale{std::vector<double>(count, 1), std::move(numbers)};
}

/// What a step does to the convolution in its input `of`.
std::optional<ChannelScale> scale_after(const Rewriter& program, const Step& step, std::size_t of) {
  switch (step.op) {
    case OpId::batch_norm2d:
    case OpId::batch_norm3d:
      return of == 0 ? scale_of_batch_norm(program, step) : std::nullopt;
    case OpId::sub:
      return of == 0 ? scale_of_arithmetic(program, step, step.inputs[1]) : std::nullopt;
    case OpId::mul:
    case OpId::add:
      return scale_of_arithmetic(program, step, step.inputs[1 - of]);
    default:
      return {};
  }
}

Tensor scaled_weight(const Tensor& weight, const std::vector<double>& scale) {
  const Tensor result = Tensor::empty(weight.dtype(), weight.shape());
  const std::int64_t width = element_count(weight.spec()) / weight.shape()[0];
  for (std::int64_t i = 0; i < element_count(weight.spec()); ++i) {
    result.as<float>()[i] = static_cast<float>(static_cast<double>(weight.as<const float>()[i]) *
                                               scale[static_cast<std::size_t>(i / width)]);
  }
  return result;
}

Tensor moved_bias(const std::vector<double>& bias, const ChannelScale& by) {
  const Tensor result = Tensor::empty(DataType::float32, {static_cast<std::int64_t>(bias.size())});
  for (std::size_t c = 0; c < bias.size(); ++c) {
    result.as<float>()[c] = static_cast<float>(bias[c] * by.scale[c] + by.shift[c]);
  }
  return result;
}

bool is_finite(const ChannelScale& by) {
  const auto finite = [](double number) { return std::isfinite(number); };
  return std::all_of(by.scale.begin(), by.scale.end(), finite) && std::all_of(by.shift.begin(), by.shift.end(), finite);
}

bool fold_after(Rewriter& program, std::size_t root, std::size_t of) {
  const std::size_t conv = program.maker(program.step(root).inputs[of]);
  if (!program.is(conv, OpId::conv2d) && !program.is(conv, OpId::conv3d)) return false;
  Step with = program.step(conv);
  const int weight = with.inputs[1];
  if (!program.is_constant(weight) || !program.spec(weight).contiguous ||
      program.spec(weight).dtype != DataType::float32 || program.reads(program.step(root).inputs[of]) != 1) {
    return false;
  }
  const std::int64_t channels = program.shape(weight)[0];
  std::vector<double> bias(static_cast<std::size_t>(channels), 0);
  if (with.inputs.size() > 2) bias = list_of(program, with.inputs[2], channels);
  const auto by = scale_after(program, program.step(root), of);
  if (!by || bias.empty() || !is_finite(*by)) return false;
  const bool scales = std::any_of(by->scale.begin(), by->scale.end(), [](double number) { return number != 1; });
  if (scales) with.inputs[1] = program.add_constant(scaled_weight(program.constant(weight), by->scale));
  with.inputs.resize(2);
  with.inputs.push_back(program.add_constant(moved_bias(bias, *by)));
  with.outputs = program.step(root).outputs;
  const Steps steps = {conv, root};
  return program.replace(steps, conv, with);
}

}  // namespace

void fold_channel_scales(Rewriter& program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!program.is_alive(i)) continue;
    const std::size_t inputs = program.step(i).inputs.size();
    if (inputs > 0 && !fold_after(program, i, 0) && inputs == 2) fold_after(program, i, 1);
  }
}

}  // namespace xpuruntime::native
