#include "backends/cpu/base/elements.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/shape.h"
#include "core/backward.h"

namespace xpuruntime::cpu {
namespace {

/// Each gradient element by element, summed in double.
class ConvBackwardPlan final : public Plan {
 public:
  explicit ConvBackwardPlan(const Problem& problem)
      : problem_(problem),
        shape_(conv_shape(forward_of(problem))),
        in_(problem.inputs[0]),
        weight_(problem.inputs[1]),
        gradient_(problem.inputs.back()) {}

  Status run(const RunArguments& arguments) const override {
    if (const auto output = gradient_of(problem_, 0)) write_input(arguments, *output);
    if (const auto output = gradient_of(problem_, 1)) write_weight(arguments, *output);
    if (problem_.inputs.size() < 4) return {};
    if (const auto output = gradient_of(problem_, 2)) write_bias(arguments, *output);
    return {};
  }

 private:
  double load(const RunArguments& arguments, std::size_t input, std::int64_t offset) const {
    return loader_of(problem_.inputs[input].dtype)(arguments.inputs[input]->as<const std::byte>(), offset);
  }
  double gradient(const RunArguments& arguments, std::int64_t n, std::int64_t channel, const Extents& at) const {
    return load(arguments, problem_.inputs.size() - 1, gradient_.offset(n, channel, at));
  }
  void store(const RunArguments& arguments, std::size_t output, std::int64_t offset, double value) const {
    storer_of(problem_.outputs[output].dtype)(arguments.outputs[output]->as<std::byte>(), offset, value);
  }

  /// The output that meets `from` with this tap; false where none does.
  bool meets(const Extents& from, const Extents& tap, Extents& at) const {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t steps = from[i] + shape_.padding[i] - tap[i] * shape_.dilation[i];
      if (steps < 0 || steps % shape_.stride[i] != 0 || steps / shape_.stride[i] >= shape_.out[i]) return false;
      at[i] = steps / shape_.stride[i];
    }
    return true;
  }

  void write_input(const RunArguments& arguments, std::size_t output) const {
    const Layout out(problem_.outputs[output]);
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      for (std::int64_t c = 0; c < shape_.groups * shape_.in_channels; ++c) {
        for_each_position(shape_.in, [&](const Extents& from) {
          store(arguments, output, out.offset(n, c, from), input_element(arguments, n, c, from));
        });
      }
    }
  }

  double input_element(const RunArguments& arguments, std::int64_t n, std::int64_t c, const Extents& from) const {
    const std::int64_t first = c / shape_.in_channels * shape_.out_channels;
    double sum = 0;
    for_each_position(shape_.kernel, [&](const Extents& tap) {
      Extents at;
      if (!meets(from, tap, at)) return;
      for (std::int64_t o = first; o < first + shape_.out_channels; ++o) {
        sum += gradient(arguments, n, o, at) * load(arguments, 1, weight_.offset(o, c % shape_.in_channels, tap));
      }
    });
    return sum;
  }

  void write_weight(const RunArguments& arguments, std::size_t output) const {
    const Layout out(problem_.outputs[output]);
    for (std::int64_t o = 0; o < shape_.groups * shape_.out_channels; ++o) {
      for (std::int64_t c = 0; c < shape_.in_channels; ++c) {
        for_each_position(shape_.kernel, [&](const Extents& tap) {
          store(arguments, output, out.offset(o, c, tap), weight_element(arguments, o, c, tap));
        });
      }
    }
  }

  double weight_element(const RunArguments& arguments, std::int64_t o, std::int64_t c, const Extents& tap) const {
    const std::int64_t channel = o / shape_.out_channels * shape_.in_channels + c;
    double sum = 0;
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      for_each_position(shape_.out, [&](const Extents& at) {
        const auto from = met_by(shape_, at, tap);
        sum += gradient(arguments, n, o, at) * (from ? load(arguments, 0, in_.offset(n, channel, *from)) : 0);
      });
    }
    return sum;
  }

  void write_bias(const RunArguments& arguments, std::size_t output) const {
    for (std::int64_t o = 0; o < shape_.groups * shape_.out_channels; ++o) {
      double sum = 0;
      for (std::int64_t n = 0; n < shape_.batch; ++n) {
        for_each_position(shape_.out, [&](const Extents& at) { sum += gradient(arguments, n, o, at); });
      }
      store(arguments, output, o * problem_.outputs[output].strides[0], sum);
    }
  }

  Problem problem_;
  ConvShape shape_;
  Layout in_, weight_, gradient_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_conv_backward_reference(const Problem& problem) {
  return std::make_unique<ConvBackwardPlan>(problem);
}

}  // namespace xpuruntime::cpu
