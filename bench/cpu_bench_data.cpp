#include "cpu_bench_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "timing.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::bench {
namespace {

/// SplitMix64.
class RandomNumbers {
 public:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double real(double from, double to) { return from + (to - from) * static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_ = 1;
};

template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store(DataType dtype, std::byte* to, double value) {
  switch (dtype) {
    case DataType::float64:
      return write(to, value);
    case DataType::float16:
      return write(to, encode_float16(value));
    case DataType::bfloat16:
      return write(to, encode_bfloat16(value));
    case DataType::int64:
      return write(to, static_cast<std::int64_t>(value));
    case DataType::int32:
      return write(to, static_cast<std::int32_t>(value));
    case DataType::int8:
      return write(to, static_cast<std::int8_t>(value));
    case DataType::uint8:
    case DataType::boolean:
      return write(to, static_cast<std::uint8_t>(value));
    default:
      return write(to, static_cast<float>(value));
  }
}

double load(DataType dtype, const std::byte* from) {
  switch (dtype) {
    case DataType::float64:
      return read<double>(from);
    case DataType::float16:
      return decode_float16(read<std::uint16_t>(from));
    case DataType::bfloat16:
      return decode_bfloat16(read<std::uint16_t>(from));
    case DataType::int64:
      return static_cast<double>(read<std::int64_t>(from));
    case DataType::int32:
      return read<std::int32_t>(from);
    case DataType::int8:
      return read<std::int8_t>(from);
    case DataType::uint8:
    case DataType::boolean:
      return read<std::uint8_t>(from);
    default:
      return read<float>(from);
  }
}

struct Range {
  double from = -1;
  double to = 1;
};

Range range_of(const Problem& problem, std::size_t input) {
  const DataType dtype = problem.inputs[input].dtype;
  const InputSpec spec = input_spec(op_info(problem.op), input);
  const bool logarithms = !spec.logarithm.empty() && problem.attributes.boolean(spec.logarithm);
  if (is_floating(dtype)) return spec.values != InputValues::any && !logarithms ? Range{0.1, 2} : Range{};
  if (problem.op == OpId::embedding) return {0, static_cast<double>(problem.inputs[1].shape[0])};
  if (op_info(problem.op).category == OpCategory::loss) return {0, static_cast<double>(problem.inputs[0].shape[1])};
  if (dtype == DataType::boolean) return {0.25, 2};  // cut off: true more often than not
  return {-100, 100};
}

/// Some 64 Ki elements at random, then the same again: making hundreds of millions would take longer than timing them.
void fill(std::byte* memory, std::size_t bytes, DataType dtype, Range range, RandomNumbers& random) {
  const std::size_t size = size_of(dtype);
  const std::size_t period = std::min<std::size_t>(bytes, 65'521 * size);
  for (std::size_t at = 0; at + size <= period; at += size) {
    store(dtype, memory + at, random.real(range.from, range.to));
  }
  for (std::size_t at = period; at < bytes; at += period)
    std::memcpy(memory + at, memory, std::min(period, bytes - at));
}

Tensor allocate(const TensorSpec& spec) {
  const Tensor memory = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(span_bytes(spec))});
  std::memset(memory.data(), 0, span_bytes(spec));  // its pages are there from now on
  return Tensor(memory.data(), spec, {}, 0, memory.owner());
}

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
    const double y = load(ours.dtype(), ours.as<std::byte>() + at);
    const double x = load(input.dtype(), input.as<std::byte>() + at) / (1 - rate);
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

Operands::Operands(const Problem& problem) : problem_(problem) {
  RandomNumbers random;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const TensorSpec& spec = problem.inputs[i];
    inputs_.push_back(allocate(spec));
    fill(inputs_.back().as<std::byte>(), span_bytes(spec), spec.dtype, range_of(problem, i), random);
  }
  for (const TensorSpec& spec : problem.outputs) outputs_.push_back(allocate(spec));
  for (const Tensor& tensor : inputs_) input_pointers_.push_back(&tensor);
  for (const Tensor& tensor : outputs_) output_pointers_.push_back(&tensor);
}

Call Operands::call() const { return {problem_.op, input_pointers_, output_pointers_, &problem_.attributes}; }

void Operands::blank_outputs() const {
  for (const Tensor& tensor : outputs_) std::memset(tensor.data(), 0xff, span_bytes(tensor.spec()));
}

Tensor copy_of(const Tensor& tensor) {
  const Tensor copy = Tensor::empty(tensor.dtype(), tensor.shape());
  std::memcpy(copy.data(), tensor.data(), span_bytes(tensor.spec()));
  return copy;
}

std::string difference(const Problem& problem, const Tensor& ours, const Tensor& theirs, const Tensor& input) {
  if (problem.op == OpId::dropout) return difference_of_dropouts(problem, ours, input);
  double error = 0, norm = 0;
  const std::int64_t count = element_count(ours.spec());
  if (count != element_count(theirs.spec()) || ours.dtype() != theirs.dtype()) return "the outputs differ in kind";
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i) * size_of(ours.dtype());
    const double a = load(ours.dtype(), ours.as<std::byte>() + at);
    const double b = load(theirs.dtype(), theirs.as<std::byte>() + at);
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
