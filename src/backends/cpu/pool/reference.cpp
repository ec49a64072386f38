#include <algorithm>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/scalar_extremes.h"
#include "backends/cpu/pool/kernels.h"
#include "backends/cpu/pool/shape.h"

namespace xpuruntime::cpu {
namespace {

/// Any dtype and layout. Floats in double, integers in 64 bits.
template <class Value, class Load, class Store>
class ReferencePlan final : public Plan {
 public:
  ReferencePlan(const Problem& problem, Load load, Store store)
      : shape_(pool_shape(problem)), in_(problem.inputs[0]), out_(problem.outputs[0]), load_(load), store_(store) {
    for (std::size_t i = 0; i < 3 && shape_.average; ++i) counts_[i] = shape_.counts(i);
  }

  Status run(const RunArguments& arguments) const override {
    const void* in = arguments.inputs[0]->template as<const std::byte>();
    void* out = arguments.outputs[0]->template as<std::byte>();
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        for_each_position(shape_.out, [&](const Extents& at) {
          store_(out, out_.offset(n, c, at), shape_.average ? average(in, n, c, at) : highest(in, n, c, at));
        });
      }
    }
    return {};
  }

 private:
  /// Calls body with the values under the window that lie in the input. Its taps in the padding, which may be nearly
  /// all, are not visited.
  template <class Body>
  void for_window(const void* in, std::int64_t n, std::int64_t c, const Extents& at, const Body& body) const {
    Extents first, taps;  // along each dim: what the first tap in the input lies on, and how many there are
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t begin = at[i] * shape_.stride[i] - shape_.padding[i], step = shape_.dilation[i];
      // Rounded up, so that the largest dilation does not overflow.
      const auto steps = [&](std::int64_t length) { return length > 0 ? (length - 1) / step + 1 : 0; };
      const std::int64_t skipped = begin < 0 ? steps(-begin) : 0;
      first[i] = begin + skipped * step;
      taps[i] = std::min(shape_.kernel[i] - skipped, steps(shape_.in[i] - first[i]));
    }
    for_each_position(taps, [&](const Extents& tap) {
      Extents from;
      for (std::size_t i = 0; i < 3; ++i) from[i] = first[i] + tap[i] * shape_.dilation[i];
      body(load_(in, in_.offset(n, c, from)));
    });
  }

  Value highest(const void* in, std::int64_t n, std::int64_t c, const Extents& at) const {
    using Limits = std::numeric_limits<Value>;
    Value most = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    for_window(in, n, c, at, [&](Value value) { most = maximum(most, value); });
    return most;
  }

  Value average(const void* in, std::int64_t n, std::int64_t c, const Extents& at) const {
    Value sum = 0;
    for_window(in, n, c, at, [&](Value value) { sum += value; });
    return sum / static_cast<Value>(counts_[0][at[0]] * counts_[1][at[1]] * counts_[2][at[2]]);
  }

  PoolShape shape_;
  Layout in_, out_;
  Load load_;
  Store store_;
  std::vector<std::int64_t> counts_[3];
};

}  // namespace

std::unique_ptr<const Plan> prepare_pool_reference(const Problem& problem, const PrepareContext&) {
  const DataType in = problem.inputs[0].dtype, out = problem.outputs[0].dtype;
  if (is_floating(in) || is_floating(out)) {
    return std::make_unique<ReferencePlan<double, LoadElement, StoreElement>>(problem, loader_of(in), storer_of(out));
  }
  return std::make_unique<ReferencePlan<std::int64_t, LoadInteger, StoreInteger>>(problem, integer_loader_of(in),
                                                                                  integer_storer_of(out));
}

}  // namespace xpuruntime::cpu
