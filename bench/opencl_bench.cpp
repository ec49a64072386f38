// What an OpenCL device does with each op, against the CPU's kernels, the device's own copy (clEnqueueCopyBuffer) and,
// for products, CLBlast tuned for the device, in turn within one run. Times are of the host's clock, a few calls queued
// at a time.
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "clblast_peer.h"
#include "cpu_bench_data.h"
#include "timing.h"
#include "xpuruntime/core/float_formats.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  int device = 0;
  std::int64_t elements = std::int64_t{1} << 24;  // of what is bound by memory
  double seconds = 0.2;                           // for each side of a row
  int clblast_trials = 40;
  std::string only = {};
  std::vector<std::string> problems = {};
};

// N: the elements; R: rows of 1024 of them.
constexpr const char* all_problems[] = {
    "copy(f32[N])",
    "add(f32[N], f32[N])",
    "add(bf16[N], bf16[N])",
    "add(f32[R,1024], f32[1024])",
    "div(f32[N], f32[N])",
    "relu(f32[N])",
    "gelu(f32[N])",
    "gelu(f16[N])",
    "gelu(bf16[N])",
    "silu(f32[N])",
    "silu(bf16[N])",
    "tanh(f32[N])",
    "tanh(bf16[N])",
    "exp(f32[N])",
    "silu_mul(f32[R,1024])",
    "cast(f32[N]; dtype=bf16)",
    "cast(f16[N]; dtype=f32)",
    "dropout(f32[N]; p=0.1 seed=1)",
    "transpose(f32[R,1024])",
    "transpose(f16[R,1024])",
    "concat(f32[R,1024], f32[R,1024]; dim=1)",
    "slice(f32[R,1024]; dim=1 start=3 end=1000)",
    "embedding(i64[R], f32[1024,1024])",
    "rope(f32[R,16,64], i64[R], f32[1024,32], f32[1024,32])",
    "kv_append(f32[8,8,1024,64], f32[8,8,1024,64], f32[8,8,64,64], f32[8,8,64,64], i64[8])",
    "softmax(f32[R,1024])",
    "softmax(f16[R,1024])",
    "softmax(bf16[R,1024])",
    "layer_norm(f32[R,1024], f32[1024], f32[1024])",
    "layer_norm(bf16[R,1024], bf16[1024], bf16[1024])",
    "rms_norm(f32[R,1024], f32[1024])",
    "rms_norm(f16[R,1024], f16[1024])",
    "reduce_sum(f32[R,1024]; dim=1)",
    "max_pool2d(f32[8,64,112,112]; kernel_size=2,2)",
    "matmul(f32[256,256], f32[256,256])",
    "matmul(f32[512,512], f32[512,512])",
    "matmul(f32[1024,1024], f32[1024,1024])",
    "matmul(f32[4096,64], f32[64,4096])",
    "matmul(f32[64,4096], f32[4096,64])",
    "matmul(f32[1,4096], f32[4096,4096])",
    "linear(f32[128,768], f32[3072,768], f32[3072]; activation=gelu)",
    "conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)",
    "conv2d(f32[1,256,56,56], f32[64,256,1,1])",
    "conv2d(f32[1,128,28,28], f32[128,1,3,3]; padding=1,1 groups=128)",
    "attention(f32[1,12,256,64], f32[1,12,256,64], f32[1,12,256,64]; causal=true)",
};
constexpr const char* long_problems[] = {
    // not with --quick
    "matmul(f32[4096,4096], f32[4096,4096])",
    "attention(f32[1,32,2048,128], f32[1,32,2048,128], f32[1,32,2048,128]; causal=true)",
    "attention(f32[8,32,1,128], f32[8,32,4096,128], f32[8,32,4096,128])",
};

std::string with_sizes(std::string_view text, const Settings& settings) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool stands_alone = i > 0 && (text[i - 1] == '[' || text[i - 1] == ',');
    if (stands_alone && (text[i] == 'N' || text[i] == 'R'))
      out += std::to_string(text[i] == 'N' ? settings.elements : settings.elements / 1024);
    else
      out += text[i];
  }
  return out;
}

/// Small positive floats; integers are 0, which every table has.
Tensor filled(const TensorSpec& spec) {
  const Tensor tensor = Tensor::empty(spec.dtype, spec.shape);
  const auto count = static_cast<std::size_t>(element_count(spec));
  auto* bytes = tensor.as<std::byte>();
  std::memset(bytes, 0, count * size_of(spec.dtype));
  if (!is_floating(spec.dtype)) return tensor;
  constexpr std::size_t period = 101;
  const std::size_t size = size_of(spec.dtype);
  std::size_t done = std::min(count, period);
  for (std::size_t i = 0; i < done; ++i) {
    const float value = 0.25f + static_cast<float>(i * 37 % period) / 128;
    const std::uint16_t narrow =
        spec.dtype == DataType::float16 ? encode_float16(value) : encode_bfloat16(static_cast<double>(value));
    std::memcpy(bytes + size * i, size == 4 ? static_cast<const void*>(&value) : &narrow, size);
  }
  for (std::size_t more = 0; done < count; done += more) {
    more = std::min(done, count - done);
    std::memcpy(bytes + size * done, bytes, size * more);
  }
  return tensor;
}

/// One problem on one device, with its tensors.
class Side {
 public:
  Side(Runtime& runtime, const Problem& problem) : runtime_(runtime), problem_(problem) {
    for (const TensorSpec& spec : problem.inputs)
      tensors_.push_back(runtime.devices().copy_to(filled(spec), problem.device));
    for (const TensorSpec& spec : problem.outputs) tensors_.push_back(runtime.devices().allocate(spec, problem.device));
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      (i < problem.inputs.size() ? inputs_ : outputs_).push_back(&tensors_[i]);
  }

  const std::vector<Tensor>& tensors() const { return tensors_; }

  void operator()(int calls) {
    Call call{problem_.op, inputs_, outputs_};
    call.attributes = &problem_.attributes;
    for (int i = 0; i < calls; ++i) runtime_.dispatcher().dispatch(call);
    const Status status = runtime_.devices().driver(problem_.device).synchronize(problem_.device.index, {});
    if (!status.ok()) fail(status.code(), "opencl_bench", status.message());
  }

 private:
  Runtime& runtime_;
  const Problem& problem_;
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> inputs_, outputs_;
};

/// The device's own copy of as many bytes as a row reads and writes.
class OwnCopy {
 public:
  OwnCopy(Runtime& runtime, Device device, std::int64_t bytes) : runtime_(runtime), device_(device), bytes_(bytes) {
    void* library = dlopen("libOpenCL.so.1", RTLD_NOW);
    if (library != nullptr) {
      copy_ = reinterpret_cast<Copy>(dlsym(library, "clEnqueueCopyBuffer"));
      finish_ = reinterpret_cast<Finish>(dlsym(library, "clFinish"));
    }
    if (copy_ == nullptr || finish_ == nullptr)
      fail(ErrorCode::not_supported, "opencl_bench", "libOpenCL.so.1 is not there; install ocl-icd-libopencl1");
    stream_ = runtime.devices().driver(device).create_stream(device.index);
    from_ = runtime.devices().allocate(DataType::uint8, {bytes}, device);
    to_ = runtime.devices().allocate(DataType::uint8, {bytes}, device);
  }
  ~OwnCopy() { runtime_.devices().driver(device_).destroy_stream(device_.index, stream_); }
  OwnCopy(const OwnCopy&) = delete;
  OwnCopy& operator=(const OwnCopy&) = delete;

  void operator()(int calls) const {
    for (int i = 0; i < calls; ++i) {
      const int code = copy_(stream_.handle, from_.data(), to_.data(), from_.byte_offset(), to_.byte_offset(),
                             static_cast<std::size_t>(bytes_), 0, nullptr, nullptr);
      if (code != 0) fail(ErrorCode::device_error, "opencl_bench", "clEnqueueCopyBuffer: " + std::to_string(code));
    }
    finish_(stream_.handle);
  }

 private:
  using Copy = int (*)(void*, void*, void*, std::size_t, std::size_t, std::size_t, unsigned, const void*, void*);
  using Finish = int (*)(void*);
  Runtime& runtime_;
  Device device_;
  std::int64_t bytes_;
  Stream stream_ = {};
  Tensor from_, to_;
  Copy copy_ = nullptr;
  Finish finish_ = nullptr;
};

using Runner = std::function<void(int)>;

double seconds_of(const Runner& run, int calls) {
  const auto start = Clock::now();
  run(calls);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds of a call: the best of several rounds, in turn, since another process can only slow them down.
std::vector<double> race(const std::vector<Runner>& runners, double seconds) {
  constexpr int rounds = 7;
  std::vector<int> calls;
  std::vector<double> best;
  for (const Runner& run : runners) {
    run(1);  // builds and warms up
    const double one = std::max(seconds_of(run, 1), 1e-7);
    calls.push_back(static_cast<int>(std::clamp(seconds / rounds / one, 1.0, 1000.0)));
    best.push_back(one);
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i)
      best[i] = std::min(best[i], seconds_of(runners[i], calls[i]) / calls[i]);
  }
  return best;
}

void measure(Runtime& runtime, const std::string& text, Device device, const Settings& settings, Table& table) {
  const Problem there = parse_problem(text, device), here = parse_problem(text, Device{});
  const Decision decision = runtime.dispatcher().explain(there);
  if (decision.kernel.empty()) std::fprintf(stderr, "%s\n", decision.to_text().c_str());
  if (decision.kernel.empty()) return table.add({text, "none", "", "", "", "", "", "", "", ""});
  Side opencl(runtime, there), cpu(runtime, here);
  const double bytes = bytes_of(there), flops = flops_of(there);
  const OwnCopy copy(runtime, device, std::max(static_cast<std::int64_t>(bytes / 2), std::int64_t{4}));
  const auto clblast = ClBlastPeer::make(runtime, there, opencl.tensors());
  std::vector<Runner> runners = {[&](int calls) { opencl(calls); }, [&](int calls) { cpu(calls); },
                                 [&](int calls) { copy(calls); }};
  if (clblast) runners.emplace_back([&](int calls) { (*clblast)(calls); });
  const std::vector<double> s = race(runners, settings.seconds);
  table.add({text, decision.kernel, number(s[0] * 1e6, 1), number(bytes / s[0] / 1e9, 2),
             flops > 0 ? number(flops / s[0] / 1e9, 1) : "", number(s[1] * 1e6, 1), number(s[0] / s[1], 2),
             number(s[2] / s[0], 2), clblast ? number(s[3] * 1e6, 1) : "", clblast ? number(s[3] / s[0], 2) : ""});
  if (!clblast) return;
  const auto on_host = [&](const Tensor& tensor) { return runtime.devices().copy_to(tensor, Device{}); };
  const std::string different = difference(there, on_host(opencl.tensors()[2]), on_host(clblast->result()), {});
  if (!different.empty()) std::printf("%s, CLBlast: %s\n", text.c_str(), different.c_str());
}

int run(const Settings& settings) {
  Runtime runtime;
  const Device device{DeviceType::opencl, static_cast<std::uint8_t>(settings.device)};
  if (!runtime.devices().has(device)) {
    std::printf("no OpenCL device: %s\n", runtime.devices().why_absent(DeviceType::opencl).c_str());
    return 0;
  }
  const DeviceProfile& profile = runtime.devices().profile(device);
  std::printf("%s, driver %s, %lld elements\n\n", profile.name.c_str(), profile.driver_version.c_str(),
              static_cast<long long>(settings.elements));
  if (settings.clblast_trials >= 0) ClBlastPeer::tune(runtime, device, settings.clblast_trials);
  Table table({"problem", "kernel", "us", "GB/s", "GFLOP/s", "CPU us", "of CPU's time", "of the copy's speed",
               "CLBlast us", "of CLBlast's speed"});
  for (const std::string& text : settings.problems) {
    const std::string sized = with_sizes(text, settings);
    if (text.find(settings.only) == std::string::npos) continue;
    std::fprintf(stderr, "%s\n", sized.c_str());
    measure(runtime, sized, device, settings, table);
  }
  table.print();
  return 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main(int argc, char** argv) {
  xpuruntime::bench::Settings settings;
  bool quick = false;
  CLI::App app("Compares an OpenCL device's kernels with the CPU's and with its own copy");
  app.add_flag("--quick", quick, "small tensors, short races");
  app.add_option("--device", settings.device, "number of the OpenCL device")->check(CLI::NonNegativeNumber);
  app.add_option("--elements", settings.elements, "of rows that memory bounds")->check(CLI::PositiveNumber);
  app.add_option("--only", settings.only, "problems that have this in their text");
  app.add_option("--problem", settings.problems,
                 "only this one; may be repeated; N and R stand for the elements and rows");
  app.add_option("--clblast-trials", settings.clblast_trials,
                 "sets of parameters that CLBlast is tuned with for this device; -1 leaves it its own");
  CLI11_PARSE(app, argc, argv);
  if (quick && app.count("--elements") == 0) settings.elements = 1 << 20;
  if (quick) settings.seconds = 0.05;
  if (quick && app.count("--clblast-trials") == 0) settings.clblast_trials = 0;
  if (settings.problems.empty()) {
    settings.problems.assign(std::begin(xpuruntime::bench::all_problems), std::end(xpuruntime::bench::all_problems));
    for (const char* text : xpuruntime::bench::long_problems)
      if (!quick) settings.problems.emplace_back(text);
  }
  return xpuruntime::bench::guarded("opencl_bench", [&] { return xpuruntime::bench::run(settings); });
}
