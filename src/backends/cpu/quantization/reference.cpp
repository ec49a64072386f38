#include <algorithm>
#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/quantization/kernels.h"
#include "backends/cpu/quantization/layout.h"

namespace xpuruntime::cpu {
namespace {

/// Scales and zero points in the order of their elements, whatever their strides.
struct Parameters {
  Parameters(const Problem& problem, const RunArguments& arguments) {
    const auto collect = [&](std::size_t input, auto load, auto& to) {
      const TensorSpec& spec = problem.inputs[input];
      Walk<1> walk(spec.shape, spec);
      for (; walk.more(); walk.next()) {
        to.push_back(load(arguments.inputs[input]->template as<const void>(), walk.offset(0)));
      }
    };
    collect(1, loader_of(problem.inputs[1].dtype), scales);
    if (problem.inputs.size() > 2) {
      collect(2, integer_loader_of(problem.inputs[2].dtype), zeros);
    } else {
      zeros.assign(scales.size(), 0);
    }
  }

  std::vector<double> scales = {};
  std::vector<std::int64_t> zeros = {};
};

/// body(which scale, offset of the input, offset of the output) for each element.
template <class Body>
void for_each_element(const Problem& problem, const Body& body) {
  const QuantizedLayout layout(problem);
  Walk<2> walk(problem.outputs[0].shape, problem.inputs[0], problem.outputs[0]);
  for (std::int64_t i = 0; walk.more(); walk.next(), ++i) {
    body(static_cast<std::size_t>(layout.scale_of(i)), walk.offset(0), walk.offset(1));
  }
}

/// The quotient is one of f32, but for f64: which way a tie goes must not depend on the kernel.
double quotient(DataType dtype, double value, double scale) {
  if (dtype == DataType::float64) return value / scale;
  return static_cast<double>(static_cast<float>(value) / static_cast<float>(scale));
}

Status run_quantize(const Problem& problem, const RunArguments& arguments) {
  const Parameters parameters(problem, arguments);
  const DataType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
  const LoadElement load = loader_of(from);
  const StoreElement store = storer_of(to);
  const void* in = arguments.inputs[0]->as<const void>();
  void* out = arguments.outputs[0]->as<void>();
  for_each_element(problem, [&](std::size_t which, std::int64_t at, std::int64_t target) {
    const double value = quotient(from, load(in, at), parameters.scales[which]);
    const double rounded = std::isnan(value) ? 0 : std::nearbyint(value);
    store(out, target, rounded + static_cast<double>(parameters.zeros[which]));
  });
  return {};
}

Status run_dequantize(const Problem& problem, const RunArguments& arguments) {
  const Parameters parameters(problem, arguments);
  const LoadInteger load = integer_loader_of(problem.inputs[0].dtype);
  const StoreElement store = storer_of(problem.outputs[0].dtype);
  const void* in = arguments.inputs[0]->as<const void>();
  void* out = arguments.outputs[0]->as<void>();
  for_each_element(problem, [&](std::size_t which, std::int64_t at, std::int64_t target) {
    store(out, target, static_cast<double>(load(in, at) - parameters.zeros[which]) * parameters.scales[which]);
  });
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_quantize_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_quantize);
}

std::unique_ptr<const Plan> prepare_dequantize_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_dequantize);
}

}  // namespace xpuruntime::cpu
