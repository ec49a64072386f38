#include "backends/cpu/base/elements.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/shape.h"

namespace xpuruntime::cpu {
namespace {

/// One loop for everything. Floats are summed in double, integers in 64 bits.
template <class Sum, class Load, class Store>
class ReferencePlan final : public Plan {
 public:
  ReferencePlan(const Problem& problem, Load (*loader)(DataType), Store (*storer)(DataType))
      : shape_(conv_shape(problem)),
        in_(problem.inputs[0]),
        weight_(problem.inputs[1]),
        out_(problem.outputs[0]),
        load_in_(loader(problem.inputs[0].dtype)),
        load_weight_(loader(problem.inputs[1].dtype)),
        store_(storer(problem.outputs[0].dtype)) {
    if (problem.inputs.size() < 3) return;
    load_bias_ = loader(problem.inputs[2].dtype);
    bias_stride_ = problem.inputs[2].strides[0];
  }

  Status run(const RunArguments& arguments) const override {
    void* out = arguments.outputs[0]->template as<std::byte>();
    const std::int64_t channels = shape_.groups * shape_.out_channels;
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const Sum start = bias(arguments, channel);
        for_each_position(shape_.out, [&](const Extents& at) {
          store_(out, out_.offset(n, channel, at), element(arguments, start, n, channel, at));
        });
      }
    }
    return {};
  }

 private:
  Sum bias(const RunArguments& arguments, std::int64_t channel) const {
    if (load_bias_ == nullptr) return 0;
    return load_bias_(arguments.inputs[2]->template as<const std::byte>(), channel * bias_stride_);
  }

  Sum element(const RunArguments& arguments, Sum sum, std::int64_t n, std::int64_t channel, const Extents& at) const {
    const void* in = arguments.inputs[0]->template as<const std::byte>();
    const void* weight = arguments.inputs[1]->template as<const std::byte>();
    const std::int64_t first = channel / shape_.out_channels * shape_.in_channels;
    for (std::int64_t c = 0; c < shape_.in_channels; ++c) {
      for_each_position(shape_.kernel, [&](const Extents& tap) {
        const auto from = met_by(shape_, at, tap);
        // Zeros around the input are multiplied too, as our other kernels do: an infinite weight makes NaN of them.
        const Sum value = from ? load_in_(in, in_.offset(n, first + c, *from)) : Sum{0};
        sum = multiply_add(sum, value, load_weight_(weight, weight_.offset(channel, c, tap)));
      });
    }
    return sum;
  }

  ConvShape shape_;
  Layout in_, weight_, out_;
  Load load_in_, load_weight_;
  Load load_bias_ = nullptr;
  std::int64_t bias_stride_ = 0;
  Store store_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_conv_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_conv_backward_reference(problem);
  bool floating = is_floating(problem.outputs[0].dtype);
  for (const TensorSpec& spec : problem.inputs) floating = floating || is_floating(spec.dtype);
  if (floating) {
    return std::make_unique<ReferencePlan<double, LoadElement, StoreElement>>(problem, loader_of, storer_of);
  }
  return std::make_unique<ReferencePlan<std::int64_t, LoadInteger, StoreInteger>>(problem, integer_loader_of,
                                                                                  integer_storer_of);
}

}  // namespace xpuruntime::cpu
