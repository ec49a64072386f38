#include "tune/operands.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/elements.h"
#include "tune/checksum.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

/// SplitMix64: four lines, and the same numbers under every standard library.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in [-1, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }
  /// Uniform in [from, to].
  double integer(std::int64_t from, std::int64_t to) {
    return static_cast<double>(from + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(to - from + 1)));
  }

 private:
  std::uint64_t state_;
};

/// The integers an input may hold.
struct Range {
  std::int64_t from = -4;
  std::int64_t to = 4;
  bool in_turn = false;  // from 0 on, so that no two are alike
  std::int64_t next = 0;
};

/// The gradient of the output is drawn as the first input is.
InputSpec spec_of(const Problem& problem, std::size_t input) {
  const bool gradient = problem.direction == Direction::backward && input + 1 == problem.inputs.size();
  return input_spec(op_info(problem.op), gradient ? 0 : input);
}

bool must_be_positive(const Problem& problem, std::size_t input) {
  const InputSpec spec = spec_of(problem, input);
  if (spec.values == InputValues::any) return false;
  return spec.logarithm.empty() || !problem.attributes.boolean(spec.logarithm);
}

Range range_of(const Problem& problem, std::size_t input) {
  const DataType dtype = problem.inputs[input].dtype;
  if (dtype == DataType::boolean) return {0, 1};
  const OpCategory category = op_info(problem.op).category;
  const InputSpec spec = spec_of(problem, input);
  if (spec.values == InputValues::count) return {0, 4};
  if (spec.bound != nullptr) {
    return {0, std::max<std::int64_t>(spec.bound(problem), 1) - 1, spec.values == InputValues::place};
  }
  if (category == OpCategory::lookup || category == OpCategory::loss) {
    // Integers are indices there: every extent of every table or float input bounds them, so one of them is the right
    // bound.
    std::int64_t bound = 1 << 16;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      const TensorSpec& other = problem.inputs[i];
      const bool table = category == OpCategory::lookup && i == 1;  // of any dtype
      if (!is_floating(other.dtype) && !table) continue;
      for (const std::int64_t extent : other.shape) bound = std::min(bound, extent);
    }
    return {0, std::max<std::int64_t>(bound, 1) - 1};
  }
  return dtype == DataType::uint8 ? Range{0, 4} : Range{};
}

/// The next number of an input.
double drawn(bool real, Range& range, bool positive, RandomNumbers& random) {
  if (range.in_turn) return static_cast<double>(range.next++ % (range.to + 1));
  const double value = real ? random.real() : random.integer(range.from, range.to);
  return real && positive ? 0.625 + value / 2 : value;  // in [0.125, 1.125)
}

/// A million numbers, over and over: drawing and rounding each one of a large tensor would take longer than all that is
/// done with it. A prime number of them, so that no two rows of a tensor are alike.
void fill_contiguous(std::byte* memory, const TensorSpec& spec, Range range, bool positive, RandomNumbers& random) {
  constexpr std::size_t period = 1'000'003;
  const std::size_t size = size_of(spec.dtype);
  const auto count = static_cast<std::size_t>(element_count(spec));
  const std::size_t own = std::min(count, period);
  for (std::size_t i = 0; i < own; ++i) {
    store_element(spec.dtype, memory + i * size, drawn(is_floating(spec.dtype), range, positive, random));
  }
  for (std::size_t i = own; i < count; i += period) {
    std::memcpy(memory + i * size, memory, std::min(period, count - i) * size);
  }
}

void fill(std::byte* memory, const TensorSpec& spec, Range range, bool positive, RandomNumbers& random) {
  if (spec.contiguous) return fill_contiguous(memory, spec, range, positive, random);
  const std::size_t size = size_of(spec.dtype);
  const bool real = is_floating(spec.dtype);
  Dims position = Dims::filled(spec.shape.size(), 0);
  for (std::int64_t left = element_count(spec); left > 0; --left) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < position.size(); ++i) offset += position[i] * spec.strides[i];
    store_element(spec.dtype, memory + static_cast<std::size_t>(offset) * size, drawn(real, range, positive, random));
    for (std::size_t i = position.size(); i-- > 0 && ++position[i] == spec.shape[i];) position[i] = 0;
  }
}

void copy_bytes(const DeviceManager& devices, Device device, void* memory, std::size_t offset,
                std::span<const std::byte> bytes) {
  const Stream stream = current_stream(device);
  DeviceDriver& driver = devices.driver(device);
  Status status = driver.copy_from_host(device.index, memory, offset, bytes.data(), bytes.size(), stream);
  if (status.ok()) status = driver.synchronize(device.index, stream);
  if (!status.ok()) {
    fail(status.code(), "random_operands",
         "copying a tensor to " + to_string(device) + " failed: " + status.message() +
             "; check whether it still responds");
  }
}

Tensor place(const DeviceManager& devices, const TensorSpec& spec, Device device, const std::vector<std::byte>& bytes) {
  // Devices give memory at multiples of 16 and more: the wanted alignment itself is an offset that has no other.
  const std::size_t offset = spec.alignment < 16 ? spec.alignment : 0;
  const Tensor memory =
      devices.allocate(DataType::uint8, {static_cast<std::int64_t>(bytes.size() + offset + 16)}, device);
  copy_bytes(devices, device, memory.data(), offset, bytes);
  return Tensor(memory.data(), spec, device, offset, memory.owner());
}

std::vector<std::byte> blank(const TensorSpec& spec) {
  return std::vector<std::byte>(span_bytes(spec), std::byte{0xff});
}

/// Of one input after the other, from the first on.
std::vector<std::byte> random_bytes(const Problem& problem, std::size_t input, RandomNumbers& random) {
  const TensorSpec& spec = problem.inputs[input];
  std::vector<std::byte> bytes = blank(spec);
  fill(bytes.data(), spec, range_of(problem, input), must_be_positive(problem, input), random);
  return bytes;
}

std::vector<const Tensor*> pointers_to(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

std::string gib_text(double bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / (1024.0 * 1024.0 * 1024.0));
  return text;
}

std::string flaw_of_fit(double bytes, Device device, const DeviceManager& devices) {
  const auto there = static_cast<double>(devices.profile(device).global_memory_bytes);
  if (there == 0 || bytes <= there) return {};
  return "the tensors and what checks them need " + gib_text(bytes) + " on " + to_string(device) + ", which has " +
         gib_text(there) + "; use smaller shapes";
}

}  // namespace

Operands::Operands(std::vector<Tensor> inputs, std::vector<Tensor> outputs)
    : inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      input_pointers_(pointers_to(inputs_)),
      output_pointers_(pointers_to(outputs_)) {}

Operands random_operands(const DeviceManager& devices, const Problem& problem, std::uint64_t seed) {
  RandomNumbers random(seed);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    inputs.push_back(place(devices, problem.inputs[i], problem.device, random_bytes(problem, i, random)));
  }
  std::vector<Tensor> outputs;
  for (const TensorSpec& spec : problem.outputs) outputs.push_back(place(devices, spec, problem.device, blank(spec)));
  return {std::move(inputs), std::move(outputs)};
}

void blank_outputs(const DeviceManager& devices, const Operands& operands) {
  for (const Tensor& output : operands.outputs()) {
    copy_bytes(devices, output.device(), output.data(), output.byte_offset(), blank(output.spec()));
  }
}

void blank_memory(const DeviceManager& devices, Device device, void* memory, std::size_t bytes) {
  constexpr std::size_t most = 1 << 20;  // at once: a device may have more than the host
  const std::vector<std::byte> ones(std::min(bytes, most), std::byte{0xff});
  for (std::size_t at = 0; at < bytes; at += ones.size()) {
    copy_bytes(devices, device, memory, at, std::span(ones).first(std::min(ones.size(), bytes - at)));
  }
}

void refill_inputs(const DeviceManager& devices, const Problem& problem, std::uint64_t seed, const Operands& operands) {
  RandomNumbers random(seed);
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const Tensor& input = operands.inputs()[i];
    copy_bytes(devices, input.device(), input.data(), input.byte_offset(), random_bytes(problem, i, random));
  }
}

std::uint64_t hash_of_inputs(const Operands& operands) {
  Checksum sum;
  for (const Tensor& input : operands.inputs()) {
    sum.add(std::string_view(static_cast<const char*>(input.data()) + input.byte_offset(), input.span()));
  }
  return sum.value();
}

std::string flaw_of_memory(const DeviceManager& devices, const Problem& problem, bool checked) {
  double spans = 0;
  double largest = 0;
  double elements = 0;
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) {
      const auto bytes = static_cast<double>(span_bytes(spec));
      spans += bytes;
      largest = std::max(largest, bytes);
      elements += static_cast<double>(element_count(spec));
    }
  }
  // On the host: one tensor at a time on its way to the device, and copies in float64.
  const double on_host = largest + (checked ? elements * sizeof(double) : 0);
  const bool host_runs = problem.device.type == DeviceType::cpu;
  const std::string flaw = flaw_of_fit(spans + (host_runs ? on_host : 0), problem.device, devices);
  return flaw.empty() ? flaw_of_fit(on_host, Device{}, devices) : flaw;
}

void check_memory(const DeviceManager& devices, const Problem& problem, bool checked) {
  const std::string flaw = flaw_of_memory(devices, problem, checked);
  if (!flaw.empty()) fail(ErrorCode::out_of_memory, "check_memory", flaw);
}

double seconds_to_make(const Problem& problem) {
  constexpr double bytes_a_second = 5e8;  // fresh memory, filled and copied
  double bytes = 0;
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) bytes += static_cast<double>(span_bytes(spec));
  }
  return bytes / bytes_a_second;
}

}  // namespace xpuruntime
