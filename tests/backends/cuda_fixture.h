#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cases.h"
#include "xpuruntime/registry/backend.h"

// Drives the CUDA module as the registry does: through its one exported symbol.

namespace xpuruntime::cuda_tests {

inline Backend& backend() {
  static const std::unique_ptr<Backend> opened = [] {
    void* library = dlopen(XRT_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto* info = static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin"));
    if (info == nullptr) throw std::runtime_error("no xpuruntime_plugin in " XRT_CUDA_MODULE);
    return std::unique_ptr<Backend>(info->create());
  }();
  return *opened;
}

inline DeviceDriver& driver() { return *backend().driver(); }

inline const KernelSpec& kernel(OpId op, const std::string& name) {
  for (const KernelSpec& spec : backend().kernels()) {
    if (spec.ops.contains(op) && spec.name == name) return spec;
  }
  throw std::runtime_error("no kernel " + name);
}

/// Skips where there is no GPU, with the driver's own reason.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (driver().devices().empty()) GTEST_SKIP() << driver().why_absent();
    seed_ = std::random_device()();
    random_.seed(seed_);
    RecordProperty("seed", std::to_string(seed_));
  }

  const DeviceProfile& profile() const { return driver().devices()[0]; }
  std::mt19937_64& random() { return random_; }
  std::string seed_text() const { return "seed " + std::to_string(seed_); }

 private:
  unsigned seed_ = 0;
  std::mt19937_64 random_;
};

/// Calls `use` with each multi-index of a shape in row-major order.
inline void for_each_index(const Dims& shape, const std::function<void(const Dims&)>& use) {
  for (const std::int64_t extent : shape) {
    if (extent == 0) return;
  }
  Dims index = Dims::filled(shape.size(), 0);
  while (true) {
    use(index);
    std::size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1]) index[--dim] = 0;
    if (dim == 0) return;
  }
}

inline std::int64_t offset_of(const TensorSpec& spec, const Dims& index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * spec.strides[i];
  return offset;
}

inline constexpr std::byte poison{0xff};  // a NaN in every float type

/// A tensor on the device with a host copy of its memory. Starts on exactly the alignment that its spec claims, between
/// margins that nothing may write.
class DeviceTensor {
 public:
  static constexpr std::size_t margin = 256;

  explicit DeviceTensor(const TensorSpec& spec, int index = 0)
      : index_(index),
        offset_(margin + (spec.alignment >= 16 ? 0 : spec.alignment)),
        bytes_(offset_ + span_bytes(spec) + margin, poison),
        memory_(driver().allocate(index, bytes_.size())),
        tensor_(memory_, spec, Device{DeviceType::nvidia, static_cast<std::uint8_t>(index)}, offset_) {}
  ~DeviceTensor() { driver().deallocate(index_, memory_); }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  const Tensor& tensor() const { return tensor_; }
  const TensorSpec& spec() const { return tensor_.spec(); }
  double at(const Dims& index) const { return oracle::decode(spec().dtype, bytes_.data() + byte_of(index)); }
  void set(const Dims& index, double value) { oracle::encode(spec().dtype, value, bytes_.data() + byte_of(index)); }
  /// Of an integer type; a double does not hold all of 64 bits.
  void set_integer(const Dims& index, std::int64_t value) {
    std::memcpy(bytes_.data() + byte_of(index), &value, size_of(spec().dtype));
  }
  oracle::Values values() const { return oracle::elements(spec(), bytes_.data() + offset_); }
  void fill(std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    const double scale = is_floating(spec().dtype) ? 1 : spec().dtype == DataType::int8 ? 128 : 1000;
    for_each_index(spec().shape, [&](const Dims& index) { set(index, scale * uniform(random)); });
  }
  Status upload() { return driver().copy_from_host(index_, memory_, 0, bytes_.data(), bytes_.size(), {}); }
  Status download() { return driver().copy_to_host(index_, bytes_.data(), memory_, 0, bytes_.size(), {}); }

  /// True when every byte that belongs to no element still holds the poison.
  bool margins_untouched() const {
    std::vector<bool> ours(bytes_.size(), false);
    const std::size_t size = size_of(spec().dtype);
    for_each_index(spec().shape, [&](const Dims& index) {
      for (std::size_t i = 0; i < size; ++i) ours[byte_of(index) + i] = true;
    });
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (!ours[i] && bytes_[i] != poison) return false;
    }
    return true;
  }

 private:
  std::size_t byte_of(const Dims& index) const {
    return offset_ + static_cast<std::size_t>(offset_of(spec(), index)) * size_of(spec().dtype);
  }

  int index_;
  std::size_t offset_;
  std::vector<std::byte> bytes_;
  void* memory_;
  Tensor tensor_;
};

/// One problem with its tensors and the plan of one kernel, ready to be launched.
class Launch {
 public:
  Launch(const Problem& problem, const std::string& name, int index = 0, const std::string& token = {})
      : problem_(problem), spec_(kernel(problem.op, name)), index_(index) {
    for (const TensorSpec& input : problem.inputs) inputs_.push_back(std::make_unique<DeviceTensor>(input, index));
    for (const TensorSpec& output : problem.outputs) outputs_.push_back(std::make_unique<DeviceTensor>(output, index));
    const DeviceProfile& profile = driver().devices()[static_cast<std::size_t>(index)];
    verdict_ = spec_.accepts(problem, profile);
    if (!verdict_.supported) return;
    const PrepareContext context{Device{DeviceType::nvidia, static_cast<std::uint8_t>(index)}, profile, driver()};
    plan_ = make_kernel(spec_, problem.op, DeviceType::nvidia)->prepare(problem, context, token);
    workspace_bytes_ = spec_.workspace_bytes ? spec_.workspace_bytes(problem, profile) : 0;
    workspace_bytes_ = std::max(workspace_bytes_, plan_->workspace_bytes().value_or(0));
    if (workspace_bytes_ > 0) workspace_ = driver().allocate(index, workspace_bytes_);
  }
  ~Launch() {
    if (workspace_ != nullptr) driver().deallocate(index_, workspace_);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  const Verdict& verdict() const { return verdict_; }
  const Plan& plan() const { return *plan_; }
  void drop_plan() { plan_.reset(); }
  void* workspace() const { return workspace_; }
  DeviceTensor& input(std::size_t i) { return *inputs_[i]; }
  DeviceTensor& output(std::size_t i = 0) { return *outputs_[i]; }
  void fill(std::mt19937_64& random) {
    for (auto& input : inputs_) input->fill(random);
  }
  Status upload() {
    for (auto* tensors : {&inputs_, &outputs_}) {
      for (auto& tensor : *tensors) {
        if (Status status = tensor->upload(); !status.ok()) return status;
      }
    }
    return {};
  }
  /// Queues the work and does not wait.
  Status queue(Stream stream = {}) {
    std::vector<const Tensor*> inputs, outputs;
    for (auto& input : inputs_) inputs.push_back(&input->tensor());
    for (auto& output : outputs_) outputs.push_back(&output->tensor());
    return plan_->run({inputs, outputs, workspace_, stream});
  }
  /// Uploads, runs, waits and brings the outputs back.
  Status run(Stream stream = {}) {
    if (Status status = upload(); !status.ok()) return status;
    if (Status status = queue(stream); !status.ok()) return status;
    const Status done = driver().synchronize(index_, stream);
    for (auto& output : outputs_) {
      if (Status status = output->download(); !status.ok()) return status;
    }
    return done;
  }

 private:
  Problem problem_;
  const KernelSpec& spec_;
  int index_;
  std::vector<std::unique_ptr<DeviceTensor>> inputs_;
  std::vector<std::unique_ptr<DeviceTensor>> outputs_;
  Verdict verdict_;
  std::unique_ptr<const Plan> plan_;
  std::uint64_t workspace_bytes_ = 0;
  void* workspace_ = nullptr;
};

inline std::string with_dtype(std::string_view text, std::string_view dtype) {
  return cases::replaced(text, "T", dtype);
}

inline Problem problem_of(const std::string& text) { return parse_problem(text, Device{DeviceType::nvidia, 0}); }

}  // namespace xpuruntime::cuda_tests
