#include "backends/oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::oracle {
namespace {

/// Bytes of one value in a dtype, by the conversions that tests/core proves against a brute-force search.
void encode(DataType dtype, double value, std::byte* to) {
  const auto put = [&](auto bits) { std::memcpy(to, &bits, sizeof bits); };
  switch (dtype) {
    case DataType::float64:
      return put(value);
    case DataType::float32:
      return put(static_cast<float>(value));
    case DataType::float16:
      return put(encode_float16(value));
    case DataType::bfloat16:
      return put(encode_bfloat16(value));
    case DataType::int32:
      return put(static_cast<std::int32_t>(value));
    case DataType::int8:
      return put(static_cast<std::int8_t>(value));
    default:
      FAIL() << "the oracle knows no " << to_string(dtype);
  }
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double decode(DataType dtype, const std::byte* from) {
  switch (dtype) {
    case DataType::float64:
      return read<double>(from);
    case DataType::float32:
      return static_cast<double>(read<float>(from));
    case DataType::float16:
      return decode_float16(read<std::uint16_t>(from));
    case DataType::bfloat16:
      return decode_bfloat16(read<std::uint16_t>(from));
    case DataType::int32:
      return read<std::int32_t>(from);
    case DataType::int8:
      return read<std::int8_t>(from);
    default:
      ADD_FAILURE() << "the oracle knows no " << to_string(dtype);
      return 0;
  }
}

/// Half a unit in the last place, relative; 0 for integers, which must be exact.
double rounding(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return 0x1p-53;
    case DataType::float32:
      return 0x1p-24;
    case DataType::float16:
      return 0x1p-11;
    case DataType::bfloat16:
      return 0x1p-8;
    default:
      return 0;
  }
}

/// Where values this small are spaced evenly, half that spacing.
double smallest(DataType dtype) { return dtype == DataType::float16 ? 0x1p-25 : 0; }

std::vector<std::int64_t> position_of(std::int64_t linear, const Dims& shape) {
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    position[i] = linear % shape[i];
    linear /= shape[i];
  }
  return position;
}

std::int64_t offset_of(const std::vector<std::int64_t>& position, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < position.size(); ++i) offset += position[i] * strides[i];
  return offset;
}

/// Row-major index into a tensor that is broadcast to `position`.
std::int64_t broadcast_index(const std::vector<std::int64_t>& position, const Dims& shape) {
  std::int64_t index = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t p = position[position.size() - shape.size() + i];
    index = index * shape[i] + (shape[i] == 1 ? 0 : p);
  }
  return index;
}

/// The tensor's bytes, strides and all; what lies between the elements is poison.
std::vector<std::byte> layout(const TensorSpec& spec, const std::vector<double>& values) {
  std::vector<std::byte> bytes(span_bytes(spec), std::byte{0x5a});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto position = position_of(static_cast<std::int64_t>(i), spec.shape);
    encode(spec.dtype, values[i],
           bytes.data() + static_cast<std::size_t>(offset_of(position, spec.strides)) * size_of(spec.dtype));
  }
  return bytes;
}

Tensor upload(Runtime& runtime, const TensorSpec& spec, const std::vector<std::byte>& bytes, Device device) {
  const auto count = static_cast<std::int64_t>(bytes.size());
  Tensor host = Tensor::empty(DataType::uint8, {count});
  std::copy(bytes.begin(), bytes.end(), host.as<std::byte>());
  const Tensor memory = runtime.devices().copy_to(host, device);
  return Tensor(memory.data(), spec, device, memory.byte_offset(), memory.owner());
}

struct Sums {
  std::vector<double> value, magnitude;
  std::int64_t terms = 1;
};

Sums matmul(const Problem& problem, const std::vector<double>& a, const std::vector<double>& b) {
  // Vectors become matrices with one row or column; the flags speak of the last two extents of matrices.
  const auto matrix = [](const Dims& shape, bool left) {
    std::vector<std::int64_t> dims(shape.begin(), shape.end());
    if (dims.size() == 1) dims.insert(left ? dims.begin() : dims.end(), 1);
    return dims;
  };
  const auto da = matrix(problem.inputs[0].shape, true);
  const auto db = matrix(problem.inputs[1].shape, false);
  const bool ta = problem.attributes.boolean("transpose_a") && problem.inputs[0].shape.size() > 1;
  const bool tb = problem.attributes.boolean("transpose_b") && problem.inputs[1].shape.size() > 1;
  const std::int64_t a0 = da[da.size() - 2], a1 = da.back(), b0 = db[db.size() - 2], b1 = db.back();
  const std::int64_t m = ta ? a1 : a0, k = ta ? a0 : a1, n = tb ? b0 : b1;
  const Dims batch_a(std::span(da.data(), da.size() - 2)), batch_b(std::span(db.data(), db.size() - 2));
  const Dims batch = broadcast_shapes(batch_a, batch_b);
  std::int64_t batches = 1;
  for (const std::int64_t extent : batch) batches *= extent;

  Sums out;
  out.terms = std::max<std::int64_t>(k, 1);
  for (std::int64_t g = 0; g < batches; ++g) {
    const auto position = position_of(g, batch);
    const std::int64_t at = broadcast_index(position, batch_a) * a0 * a1;
    const std::int64_t bt = broadcast_index(position, batch_b) * b0 * b1;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, magnitude = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          const double x = a[static_cast<std::size_t>(at + (ta ? p * a1 + i : i * a1 + p))];
          const double y = b[static_cast<std::size_t>(bt + (tb ? j * b1 + p : p * b1 + j))];
          sum += x * y;
          magnitude += std::fabs(x * y);
        }
        out.value.push_back(sum);
        out.magnitude.push_back(magnitude);
      }
    }
  }
  return out;
}

Sums add(const Problem& problem, const std::vector<double>& a, const std::vector<double>& b) {
  Sums out;
  const Dims& shape = problem.outputs[0].shape;
  for (std::int64_t i = 0; i < element_count(problem.outputs[0]); ++i) {
    const auto position = position_of(i, shape);
    const double x = a[static_cast<std::size_t>(broadcast_index(position, problem.inputs[0].shape))];
    const double y = b[static_cast<std::size_t>(broadcast_index(position, problem.inputs[1].shape))];
    out.value.push_back(x + y);
    out.magnitude.push_back(std::fabs(x) + std::fabs(y));
  }
  return out;
}

Sums unary(const std::vector<double>& a, double (*function)(double)) {
  Sums out;
  for (const double x : a) {
    out.value.push_back(function(x));
    out.magnitude.push_back(std::fabs(out.value.back()));
  }
  return out;
}

Sums softmax(const Problem& problem, const std::vector<double>& a) {
  const Dims& shape = problem.inputs[0].shape;
  const std::int64_t dim = problem.attributes.integer("dim");
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim);
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  Sums out;
  out.terms = shape[axis];
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t start = index - (index / inner) % shape[axis] * inner;
    double sum = 0;
    for (std::int64_t p = 0; p < shape[axis]; ++p)
      sum += std::exp(a[static_cast<std::size_t>(start + p * inner)] - a[i]);
    out.value.push_back(1 / sum);
    out.magnitude.push_back(1 / sum);
  }
  return out;
}

Sums solve(const Problem& problem, const std::vector<std::vector<double>>& in) {
  switch (problem.op) {
    case OpId::matmul:
      return matmul(problem, in[0], in[1]);
    case OpId::add:
      return add(problem, in[0], in[1]);
    case OpId::relu:
      return unary(in[0], [](double x) { return x > 0 ? x : 0; });
    case OpId::cast:
      return unary(in[0], [](double x) { return x; });
    case OpId::softmax:
      return softmax(problem, in[0]);
    default:
      ADD_FAILURE() << "the oracle knows no " << to_string(problem.op);
      return {};
  }
}

}  // namespace

Case::Case(Problem problem, std::uint64_t seed) : problem_(std::move(problem)) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const TensorSpec& spec : problem_.inputs) {
    std::vector<double> values(static_cast<std::size_t>(element_count(spec)));
    std::byte bytes[8];
    for (double& value : values) {
      encode(spec.dtype, is_floating(spec.dtype) ? uniform(random) : std::floor(uniform(random) * 100), bytes);
      value = decode(spec.dtype, bytes);  // the oracle sees exactly what the kernel sees
    }
    inputs_.push_back(std::move(values));
  }
  Sums sums = solve(problem_, inputs_);
  expected_ = std::move(sums.value);
  magnitude_ = std::move(sums.magnitude);
  terms_ = sums.terms;
}

Result Case::through(Runtime& runtime, const std::function<void()>& after_launch) const {
  const Device device = problem_.device;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    tensors.push_back(upload(runtime, problem_.inputs[i], layout(problem_.inputs[i], inputs_[i]), device));
  }
  const TensorSpec& spec = problem_.outputs[0];
  Tensor out = upload(runtime, spec, std::vector<std::byte>(span_bytes(spec), std::byte{0xff}), device);  // NaN, mostly
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(&tensor);
  const std::array<const Tensor*, 1> outputs = {&out};
  const Call call{problem_.op, inputs, outputs, &problem_.attributes};
  runtime.dispatcher().dispatch(call);
  Result result{runtime.dispatcher().decide(call).kernel, {}};
  if (after_launch) after_launch();
  DeviceDriver& driver = runtime.devices().driver(device);
  const Status done = driver.synchronize(device.index, {});
  EXPECT_TRUE(done.ok()) << done.message();
  std::vector<std::byte> bytes(span_bytes(spec));
  if (!bytes.empty()) {
    const Status copied =
        driver.copy_to_host(device.index, bytes.data(), out.data(), out.byte_offset(), bytes.size(), {});
    EXPECT_TRUE(copied.ok()) << copied.message();
  }
  for (std::int64_t i = 0; i < element_count(spec); ++i) {
    const std::int64_t at = offset_of(position_of(i, spec.shape), spec.strides);
    result.values.push_back(decode(spec.dtype, bytes.data() + static_cast<std::size_t>(at) * size_of(spec.dtype)));
  }
  return result;
}

// A sum of n terms rounded after each addition is off by at most n u times the sum of the terms' sizes (u: half a unit
// of what it is summed in: f32, or f64 for f64); storing adds half a unit of the output. exp and division in f32 get 4
// u.
std::string Case::compare(const Result& result) const {
  if (result.values.size() != expected_.size()) return "wrong number of values";
  const DataType out = problem_.outputs[0].dtype;
  const bool wide = out == DataType::float64;
  const bool exact = !is_floating(out) || problem_.op == OpId::cast || problem_.op == OpId::relu;
  const double per_term = exact ? 0 : wide ? 0x1p-53 : 0x1p-24;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const double extra = problem_.op == OpId::softmax ? 8 : 1;
    const double bound = rounding(out) * std::fabs(expected_[i]) * (1 + 0x1p-10) + smallest(out) +
                         (static_cast<double>(terms_) + extra) * per_term * magnitude_[i];
    if (!(std::fabs(result.values[i] - expected_[i]) <= bound)) {
      return "value " + std::to_string(i) + " is " + std::to_string(result.values[i]) + ", not " +
             std::to_string(expected_[i]) + " (bound " + std::to_string(bound) + ")";
    }
  }
  return {};
}

TEST(Oracle, FindsAWrongValueAndAnUnwrittenOne) {
  const Case run(parse_problem("add(f32[4], f32[4])"), 1);
  Result result = run.through(Runtime::global());
  EXPECT_EQ(run.compare(result), "");
  Result wrong = result;
  wrong.values[2] += 1e-5;
  EXPECT_NE(run.compare(wrong), "");
  wrong.values[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(run.compare(wrong), "");
}

}  // namespace xpuruntime::oracle
