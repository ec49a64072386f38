// Times the CUDA backend's matmul kernels on the shapes of linear layers, with device events and a cold L2.
//
//   cuda_bench [path of libxpuruntime_cuda.so]
//
// Prints one line a measurement, tab-separated: m n k layout kernel microseconds token. Layout `nt` has b stored as
// [n,k], as a linear layer's weight is; `nn` as [k,n]. tools/linear_table.py makes a table of such lines.

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "xpuruntime/core/float_formats.h"
#include "xpuruntime/registry/backend.h"

namespace xpuruntime {
namespace {

constexpr Device gpu{DeviceType::nvidia, 0};
constexpr int repeats = 200;

struct Shape {
  std::int64_t m, n, k;
  bool weight_is_nk;
};

constexpr Shape shapes[] = {
    {1, 4096, 4096, true},    {1, 4096, 4096, false},  {4, 4096, 4096, true},   {4, 4096, 4096, false},
    {16, 4096, 4096, true},   {16, 4096, 4096, false}, {1, 11008, 4096, false}, {1, 1000, 2048, false},
    {1, 2048, 2048, true},    {8, 2048, 2048, true},   {16, 1000, 2048, true},  {1, 11008, 4096, true},
    {1, 1000, 2048, true},    {17, 4097, 1023, true},  {333, 777, 555, true},   {128, 128, 65536, true},
    {4096, 4096, 4096, true},
};

std::unique_ptr<Backend> open_backend(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto* info = static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin"));
  if (info == nullptr) throw std::runtime_error("no xpuruntime_plugin in it");
  return std::unique_ptr<Backend>(info->create());
}

/// Device memory of one tensor.
class Buffer {
 public:
  Buffer(DeviceDriver& driver, const TensorSpec& spec)
      : driver_(driver), memory_(driver.allocate(0, span_bytes(spec))), tensor_(memory_, spec, gpu) {}
  ~Buffer() { driver_.deallocate(0, memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const Tensor& tensor() const { return tensor_; }

  /// Never zeros: they run faster than real data.
  void fill_bf16(std::mt19937& random) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(element_count(tensor_.spec())));
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<std::uint16_t> few(8191);  // a prime number of values, repeated: making each anew takes seconds
    for (std::uint16_t& value : few) value = encode_bfloat16(uniform(random));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = few[i % few.size()];
    if (!driver_.copy_from_host(0, memory_, 0, values.data(), values.size() * 2, {}).ok()) {
      throw std::runtime_error("copy failed");
    }
  }

 private:
  DeviceDriver& driver_;
  void* memory_;
  Tensor tensor_;
};

/// A problem's plan by one kernel, with its tensors. The plan is null where the kernel refuses.
class Job {
 public:
  Job(Backend& backend, const Problem& problem, std::string_view name, std::mt19937* random)
      : driver_(*backend.driver()) {
    const KernelSpec* spec = nullptr;
    for (const KernelSpec& row : backend.kernels()) {
      if (row.op == problem.op && row.name == name) spec = &row;
    }
    const DeviceProfile& profile = driver_.devices()[0];
    if (spec == nullptr || !spec->supports(problem, profile).supported) return;
    for (const TensorSpec& input : problem.inputs) {
      buffers_.push_back(std::make_unique<Buffer>(driver_, input));
      if (random != nullptr) buffers_.back()->fill_bf16(*random);
      inputs_.push_back(&buffers_.back()->tensor());
    }
    buffers_.push_back(std::make_unique<Buffer>(driver_, problem.outputs[0]));
    outputs_.push_back(&buffers_.back()->tensor());
    plan_ = spec->prepare(problem, {gpu, profile, driver_});
    const std::uint64_t bytes = spec->workspace_bytes ? spec->workspace_bytes(problem, profile) : 0;
    if (bytes > 0) workspace_ = driver_.allocate(0, bytes);
  }
  ~Job() { driver_.deallocate(0, workspace_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  bool runs() const { return plan_ != nullptr; }
  std::string token() const { return plan_->token(); }
  void queue(Stream stream) const {
    const Status status = plan_->run({inputs_, outputs_, workspace_, stream});
    if (!status.ok()) throw std::runtime_error(status.message());
  }

 private:
  DeviceDriver& driver_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<const Tensor*> inputs_;
  std::vector<const Tensor*> outputs_;
  std::unique_ptr<const Plan> plan_;
  void* workspace_ = nullptr;
};

void need(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

/// Median microseconds on the device, the L2 overwritten before each run. The overwriting is long enough to hide the
/// launches behind it.
double time_cold(DeviceDriver& driver, const Job& job, const Job& flush, Stream stream) {
  for (int i = 0; i < 10; ++i) job.queue(stream);
  std::vector<Event> begins(repeats);
  std::vector<Event> ends(repeats);
  for (int i = 0; i < repeats; ++i) {
    const auto at = static_cast<std::size_t>(i);
    begins[at] = driver.create_event(0);
    ends[at] = driver.create_event(0);
    flush.queue(stream);
    need(driver.record_event(0, begins[at], stream));
    job.queue(stream);
    need(driver.record_event(0, ends[at], stream));
  }
  need(driver.synchronize(0, stream));
  std::vector<double> times;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    times.push_back(driver.elapsed_us(0, begins[i], ends[i]));
    driver.destroy_event(0, begins[i]);
    driver.destroy_event(0, ends[i]);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[repeats / 2];
}

/// Nanoseconds of the host for one launch.
double time_host(DeviceDriver& driver, const Job& job, Stream stream) {
  constexpr int launches = 500;
  job.queue(stream);
  need(driver.synchronize(0, stream));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < launches; ++i) job.queue(stream);
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  need(driver.synchronize(0, stream));
  return spent.count() / launches;
}

Problem problem_of(const Shape& shape) {
  const TensorSpec a = make_spec(DataType::bfloat16, {shape.m, shape.k});
  const Dims b = shape.weight_is_nk ? Dims{shape.n, shape.k} : Dims{shape.k, shape.n};
  Attributes attributes(OpId::matmul);
  attributes.set("transpose_b", shape.weight_is_nk ? 1 : 0);
  return make_problem(OpId::matmul, {a, make_spec(DataType::bfloat16, b)}, attributes, gpu);
}

int run(const char* path) {
  const std::unique_ptr<Backend> backend = open_backend(path);
  DeviceDriver& driver = *backend->driver();
  if (driver.devices().empty()) {
    std::fprintf(stderr, "cuda_bench: nothing to time: %s\n", driver.why_absent().c_str());
    return 0;
  }
  std::mt19937 random(std::random_device{}());
  const TensorSpec large = make_spec(DataType::float32, {std::int64_t{64} << 20});  // 256 MB
  Attributes to_f32(OpId::cast);
  to_f32.parse("dtype", "f32");
  const Job flush(*backend, make_problem(OpId::cast, {large}, to_f32, gpu), "elementwise", nullptr);
  const Stream stream = driver.create_stream(0);
  for (const Shape& shape : shapes) {
    for (const char* name : {"skinny", "cublasLt"}) {
      const Job job(*backend, problem_of(shape), name, &random);
      if (!job.runs()) continue;
      std::printf("%lld\t%lld\t%lld\t%s\t%s\t%.2f\t%s\n", static_cast<long long>(shape.m),
                  static_cast<long long>(shape.n), static_cast<long long>(shape.k), shape.weight_is_nk ? "nt" : "nn",
                  name, time_cold(driver, job, flush, stream), job.token().c_str());
    }
  }
  for (const char* name : {"skinny", "cublasLt"}) {
    const Job job(*backend, problem_of({1, 64, 64, true}), name, &random);
    if (job.runs()) std::printf("# host cost of one launch, %s: %.0f ns\n", name, time_host(driver, job, stream));
  }
  driver.destroy_stream(0, stream);
  return 0;
}

}  // namespace
}  // namespace xpuruntime

int main(int argc, char** argv) {
  try {
    return xpuruntime::run(argc > 1 ? argv[1] : XRT_CUDA_MODULE);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_bench: %s\n", error.what());
    return 1;
  }
}
