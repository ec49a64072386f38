#include "cpu_bench_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/elements.h"
#include "timing.h"

namespace xpuruntime::bench {
namespace {

double tolerance(DataType dtype) {
  if (dtype == DataType::bfloat16) return 2e-2;
  if (dtype == DataType::float16) return 4e-3;
  return is_floating(dtype) ? 2e-4 : 0;
}

std::string difference_of_dropouts(const Problem& problem, const Tensor& ours, const Tensor& input) {
  const double rate = problem.attributes.real("p");
  const std::int64_t count = element_count(ours.spec());
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i) * size_of(ours.dtype());
    const double y = load_element(ours.dtype(), ours.as<std::byte>() + at);
    const double x = load_element(input.dtype(), input.as<std::byte>() + at) / (1 - rate);
    if (y == 0) ++zeros;
    if (y != 0 && std::abs(y - x) > tolerance(ours.dtype()) * std::abs(x)) return "a kept element has another value";
  }
  const double share = static_cast<double>(zeros) / static_cast<double>(count);
  return std::abs(share - rate) < 0.02 ? "" : "the share of zeros is " + number(share, 3);
}

std::int64_t extent(const TensorSpec& spec, std::size_t dim) { return spec.shape[dim]; }

double matmul_depth(const Problem& problem) {
  const TensorSpec& a = problem.inputs[0];
  const bool turned = problem.attributes.boolean("transpose_a") && a.shape.size() > 1;
  return static_cast<double>(turned ? a.shape[a.shape.size() - 2] : a.shape.back());
}

double attention_flops(const Problem& problem) {
  const TensorSpec& q = problem.inputs[0];
  const TensorSpec& v = problem.inputs[2];
  const auto keys = static_cast<double>(extent(v, 2));
  const auto queries = static_cast<double>(extent(q, 2));
  // Under the causal mask query i sees keys 0 to i.
  const double pairs =
      problem.attributes.boolean("causal") && keys >= queries ? queries * (queries + 1) / 2 : queries * keys;
  return 2 * static_cast<double>(extent(q, 0) * extent(q, 1)) * pairs *
         static_cast<double>(extent(q, 3) + extent(v, 3));
}

}  // namespace

Tensor copy_of(const Tensor& tensor) {
  const Tensor copy = Tensor::empty(tensor.dtype(), tensor.shape());
  std::memcpy(copy.data(), tensor.as<void>(), span_bytes(tensor.spec()));
  return copy;
}

std::string difference(const Problem& problem, const Tensor& ours, const Tensor& theirs, const Tensor& input) {
  if (problem.op == OpId::dropout) return difference_of_dropouts(problem, ours, input);
  double error = 0, norm = 0;
  const std::int64_t count = element_count(ours.spec());
  if (count != element_count(theirs.spec()) || ours.dtype() != theirs.dtype()) return "the outputs differ in kind";
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i) * size_of(ours.dtype());
    const double a = load_element(ours.dtype(), ours.as<std::byte>() + at);
    const double b = load_element(theirs.dtype(), theirs.as<std::byte>() + at);
    error += (a - b) * (a - b);
    norm += b * b;
  }
  const double relative = std::sqrt(error / std::max(norm, 1e-30));
  // NaN is no agreement.
  return relative <= tolerance(ours.dtype()) ? "" : "the results differ by " + number(relative, 6) + " of their norm";
}

double flops_of(const Problem& problem) {
  const auto outputs = static_cast<double>(element_count(problem.outputs[0]));
  switch (problem.op) {
    case OpId::matmul:
      return 2 * outputs * matmul_depth(problem);
    case OpId::linear:
      return 2 * outputs * static_cast<double>(problem.inputs[1].shape[1]);
    case OpId::conv2d:
    case OpId::conv3d:
      return 2 * outputs * static_cast<double>(element_count(problem.inputs[1])) /
             static_cast<double>(problem.inputs[1].shape[0]);
    case OpId::attention:
      return attention_flops(problem);
    default:
      return 0;
  }
}

double bytes_of(const Problem& problem) {
  double bytes = 0;
  const auto add = [&](const TensorSpec& spec) {
    bytes += static_cast<double>(element_count(spec)) * static_cast<double>(size_of(spec.dtype));
  };
  for (const TensorSpec& spec : problem.outputs) add(spec);
  if (problem.op == OpId::slice || problem.op == OpId::embedding) bytes *= 2;  // what is read is what is written
  if (problem.op == OpId::slice) return bytes;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (problem.op == OpId::embedding && i == 1) continue;
    add(problem.inputs[i]);
  }
  return bytes;
}

}  // namespace xpuruntime::bench
