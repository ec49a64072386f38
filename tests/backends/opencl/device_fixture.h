#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/backend.h"
#include "backends/oracle_data.h"

namespace xpuruntime::opencl {

/// One backend for all tests: what has been built stays built.
inline OpenClBackend& shared_backend() {
  static OpenClBackend backend;
  return backend;
}

/// A tensor in host memory, of any layout, read and written as numbers.
struct HostTensor {
  TensorSpec spec = {};
  std::vector<std::byte> bytes = {};

  explicit HostTensor(const TensorSpec& layout) : spec(layout), bytes(span_bytes(layout), std::byte{0xa5}) {}

  double get(std::size_t element) const { return oracle::decode(spec.dtype, bytes.data() + element * width()); }
  void set(std::size_t element, double value) { oracle::encode(spec.dtype, value, bytes.data() + element * width()); }
  std::size_t width() const { return size_of(spec.dtype); }
};

/// Steps through all positions of a shape, last extent fastest; false past the last.
inline bool step(Dims& position, const Dims& shape) {
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (++position[d] < shape[d]) return true;
    position[d] = 0;
  }
  return false;
}

/// The element at `position` of a larger shape that the tensor is broadcast to.
inline std::size_t element_at(const TensorSpec& spec, const Dims& position) {
  std::int64_t element = 0;
  const std::size_t missing = position.size() - spec.shape.size();
  for (std::size_t d = 0; d < spec.shape.size(); ++d)
    if (spec.shape[d] != 1) element += position[missing + d] * spec.strides[d];
  return static_cast<std::size_t>(element);
}

class OpenClTest : public testing::Test {
 protected:
  void SetUp() override {
    if (driver().devices().empty()) GTEST_SKIP() << driver().why_absent();
    RecordProperty("seed", std::to_string(seed_));
  }

  static OpenClDriver& driver() { return static_cast<OpenClDriver&>(*shared_backend().driver()); }
  static constexpr Device device = {DeviceType::opencl, 0};
  static const DeviceProfile& profile() { return driver().devices()[0]; }

  static const KernelSpec& kernel(std::string_view name, std::optional<OpId> op = {}) {
    for (const KernelSpec& row : table)
      if (row.name == name && (!op || row.ops.contains(*op))) return row;
    throw std::runtime_error("no kernel " + std::string(name));
  }
  static std::unique_ptr<const Plan> prepare(std::string_view name, const Problem& problem,
                                             std::string_view token = {}) {
    return make_kernel(kernel(name, problem.op), problem.op, DeviceType::opencl)
        ->prepare(problem, {device, profile(), driver()}, token);
  }
  static std::string refusal(std::string_view name, const Problem& problem, const DeviceProfile& on) {
    return kernel(name, problem.op).accepts(problem, on).reason;
  }

  /// A copy on the device, `lead` elements into its buffer, freed with the last copy of the tensor.
  static Tensor upload(const HostTensor& host, std::size_t lead = 3, Stream stream = {}) {
    const std::size_t offset = lead * host.width();
    void* memory = driver().allocate(device.index, offset + host.bytes.size());
    std::shared_ptr<void> owner(memory, [](void* held) { driver().deallocate(device.index, held); });
    const Status status =
        driver().copy_from_host(device.index, memory, offset, host.bytes.data(), host.bytes.size(), stream);
    EXPECT_TRUE(status.ok()) << status.message();
    return Tensor(memory, host.spec, device, offset, owner);
  }
  static HostTensor download(const Tensor& tensor, Stream stream = {}) {
    HostTensor host(tensor.spec());
    const Status status = driver().copy_to_host(device.index, host.bytes.data(), tensor.data(), tensor.byte_offset(),
                                                host.bytes.size(), stream);
    EXPECT_TRUE(status.ok()) << status.message();
    return host;
  }

  HostTensor random_tensor(const TensorSpec& spec) {
    HostTensor host(spec);
    std::uniform_real_distribution<double> values(-2.0, 2.0);
    for (std::size_t i = 0; i < host.bytes.size() / host.width(); ++i) host.set(i, values(random_));
    return host;
  }
  static void run(const Plan& plan, const std::vector<Tensor>& inputs, const Tensor& output, Stream stream = {}) {
    run(plan, inputs, std::vector<Tensor>{output}, stream);
  }
  static void run(const Plan& plan, const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                  Stream stream = {}) {
    std::vector<const Tensor*> pointers, outputs;
    for (const Tensor& input : inputs) pointers.push_back(&input);
    for (const Tensor& output : results) outputs.push_back(&output);
    const std::uint64_t bytes = plan.workspace_bytes().value_or(1 << 20);  // nothing: more than tests need
    void* workspace = bytes == 0 ? nullptr : driver().allocate(device.index, bytes);
    const Status status = plan.run({pointers, outputs, workspace, stream});
    if (workspace != nullptr) driver().deallocate(device.index, workspace);  // OpenCL keeps it while work uses it
    ASSERT_TRUE(status.ok()) << status.message();
  }

  unsigned seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
  testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

inline Problem problem_of(OpId op, std::vector<TensorSpec> inputs, const Attributes& attributes) {
  return make_problem(op, std::move(inputs), attributes, Device{DeviceType::opencl, 0});
}
inline Problem matmul_of(const TensorSpec& a, const TensorSpec& b, bool transpose_a = false, bool transpose_b = false) {
  Attributes attributes(OpId::matmul);
  attributes.set("transpose_a", transpose_a).set("transpose_b", transpose_b);
  return problem_of(OpId::matmul, {a, b}, attributes);
}

}  // namespace xpuruntime::opencl
