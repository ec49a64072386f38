// Two choices on an OpenCL device, each against everything that could have been chosen, in turn within one run: the
// kernel of convolutions against all of our kernels and their variants, and tuned local sizes against fixed ones.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "opencl_choice_kernels.h"
#include "timing.h"
#include "xpuruntime/runtime/opencl_kernel.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

constexpr double most_loss = 1.1;    // of a chosen convolution over the best
constexpr double least_share = 0.8;  // of the convolutions that keep to it
constexpr double least_gain = 1.1;   // of tuned local sizes over fixed ones, geometric mean
constexpr double hopeless = 4;       // times as slow as another one: not measured any further

struct Settings {
  int device = 0;
  int batch = 1;
  double seconds = 0.1;  // for each side of a row
  int rounds = 9;
  bool convolutions = true, local_sizes = true, all = false;
};

// N: the batch.
constexpr const char* convolutions[] = {
    // ResNet-50
    "conv2d(f32[N,3,224,224], f32[64,3,7,7]; stride=2,2 padding=3,3)",
    "conv2d(f32[N,64,56,56], f32[64,64,1,1])",
    "conv2d(f32[N,64,56,56], f32[64,64,3,3]; padding=1,1)",
    "conv2d(f32[N,64,56,56], f32[256,64,1,1])",
    "conv2d(f32[N,256,56,56], f32[128,256,1,1])",
    "conv2d(f32[N,128,56,56], f32[128,128,3,3]; stride=2,2 padding=1,1)",
    "conv2d(f32[N,256,56,56], f32[512,256,1,1]; stride=2,2)",
    "conv2d(f32[N,128,28,28], f32[128,128,3,3]; padding=1,1)",
    "conv2d(f32[N,512,28,28], f32[128,512,1,1])",
    "conv2d(f32[N,256,28,28], f32[256,256,3,3]; stride=2,2 padding=1,1)",
    "conv2d(f32[N,256,14,14], f32[256,256,3,3]; padding=1,1)",
    "conv2d(f32[N,1024,14,14], f32[256,1024,1,1])",
    "conv2d(f32[N,256,14,14], f32[1024,256,1,1])",
    "conv2d(f32[N,1024,14,14], f32[2048,1024,1,1]; stride=2,2)",
    "conv2d(f32[N,512,14,14], f32[512,512,3,3]; stride=2,2 padding=1,1)",
    "conv2d(f32[N,512,7,7], f32[512,512,3,3]; padding=1,1)",
    "conv2d(f32[N,2048,7,7], f32[512,2048,1,1])",
    // MobileNet-v2
    "conv2d(f32[N,3,224,224], f32[32,3,3,3]; stride=2,2 padding=1,1)",
    "conv2d(f32[N,32,112,112], f32[32,1,3,3]; padding=1,1 groups=32)",
    "conv2d(f32[N,32,112,112], f32[16,32,1,1])",
    "conv2d(f32[N,16,112,112], f32[96,16,1,1])",
    "conv2d(f32[N,96,112,112], f32[96,1,3,3]; stride=2,2 padding=1,1 groups=96)",
    "conv2d(f32[N,96,56,56], f32[24,96,1,1])",
    "conv2d(f32[N,144,56,56], f32[144,1,3,3]; padding=1,1 groups=144)",
    "conv2d(f32[N,192,28,28], f32[192,1,3,3]; padding=1,1 groups=192)",
    "conv2d(f32[N,192,28,28], f32[32,192,1,1])",
    "conv2d(f32[N,64,14,14], f32[384,64,1,1])",
    "conv2d(f32[N,576,14,14], f32[576,1,3,3]; stride=2,2 padding=1,1 groups=576)",
    "conv2d(f32[N,960,7,7], f32[960,1,3,3]; padding=1,1 groups=960)",
    "conv2d(f32[N,320,7,7], f32[1280,320,1,1])",
};

std::string with_batch(std::string text, int batch) {
  return text.replace(text.find("[N,") + 1, 1, std::to_string(batch));
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Small floats, as a convolution may get them.
Tensor filled(Runtime& runtime, const TensorSpec& spec, Device device) {
  const Tensor host = Tensor::empty(spec.dtype, spec.shape);
  for (std::int64_t i = 0; i < element_count(spec); ++i)
    host.as<float>()[i] = static_cast<float>(i * 37 % 101 - 50) / 64;
  return runtime.devices().copy_to(host, device);
}

/// One way to do a row's work.
struct Entrant {
  std::string name = {};
  std::function<double(int)> run = {};  // makes that many calls; microseconds of one
  std::vector<double> times = {};
  int calls = 1;
  bool chosen = false, out = false;
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

/// All in turn, so that a slow spell hits them alike. The chosen one is measured to the end.
void race(std::vector<Entrant>& entrants, const Settings& settings) {
  double best = INFINITY;
  for (Entrant& entrant : entrants) {
    entrant.run(1);  // compiles
    const double once = entrant.run(1);
    entrant.calls = static_cast<int>(std::clamp(settings.seconds * 1e6 / settings.rounds / once, 1.0, 1000.0));
    entrant.times.push_back(once);
    best = std::min(best, once);
  }
  for (Entrant& entrant : entrants) entrant.out = !entrant.chosen && entrant.times[0] > hopeless * best;
  for (int round = 0; round < settings.rounds; ++round)
    for (Entrant& entrant : entrants) {
      if (entrant.out) continue;
      if (round == 0) entrant.times.clear();
      entrant.times.push_back(entrant.run(entrant.calls));
    }
}

const Entrant& best_of(const std::vector<Entrant>& entrants) {
  return *std::min_element(entrants.begin(), entrants.end(),
                           [](const Entrant& a, const Entrant& b) { return median(a.times) < median(b.times); });
}

/// Every kernel that takes the problem, with each of its variants.
std::vector<Entrant> entrants_of(Runtime& runtime, const Problem& problem, std::vector<const Tensor*> inputs,
                                 std::vector<const Tensor*> outputs) {
  const DeviceProfile& profile = runtime.devices().profile(problem.device);
  DeviceDriver& driver = runtime.devices().driver(problem.device);
  const PrepareContext context{problem.device, profile, driver};
  const Decision decision = runtime.dispatcher().explain(problem);
  std::vector<Entrant> entrants;
  for (const auto& kernel : runtime.registry().kernels(problem.op, problem.device.type)) {
    if (!kernel->supports(problem, profile).supported) continue;
    std::vector<std::string> tokens = kernel->variants(problem, context);
    if (tokens.empty()) tokens.emplace_back();
    for (const std::string& token : tokens) {
      std::shared_ptr<const Plan> plan = kernel->prepare(problem, context, token);
      const std::uint64_t bytes = plan->workspace_bytes().value_or(kernel->workspace_bytes(problem, profile));
      const Tensor workspace = runtime.devices().allocate(
          DataType::uint8, {static_cast<std::int64_t>(std::max<std::uint64_t>(bytes, 1))}, problem.device);
      Entrant entrant{std::string(kernel->name()) + (token.empty() ? "" : " " + token)};
      entrant.chosen = decision.kernel == kernel->name() && decision.plan == plan->token();
      entrant.run = [=, &driver](int calls) {
        const double start = now_us();
        Status status = {};
        for (int i = 0; i < calls && status.ok(); ++i) status = plan->run({inputs, outputs, workspace.data(), {}});
        if (status.ok()) status = driver.synchronize(problem.device.index, {});
        if (!status.ok()) fail(status.code(), "opencl_choice_bench", status.message());
        return (now_us() - start) / calls;
      };
      entrants.push_back(std::move(entrant));
    }
  }
  return entrants;
}

std::vector<Entrant> raced_convolution(Runtime& runtime, const Problem& problem, const Settings& settings) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : problem.inputs) tensors.push_back(filled(runtime, spec, problem.device));
  tensors.push_back(runtime.devices().allocate(problem.outputs[0], problem.device));
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) inputs.push_back(&tensors[i]);
  std::vector<Entrant> entrants = entrants_of(runtime, problem, inputs, {&tensors.back()});
  race(entrants, settings);
  return entrants;
}

std::string verdict(bool holds) { return holds ? "holds" : "MISSED"; }

void compare_convolutions(Runtime& runtime, Device device, const Settings& settings) {
  Table table({"convolution", "chosen", "us", "best", "us", "of the best's time"});
  Table every({"convolution", "kernel", "us"});
  int near = 0, rows = 0;
  for (const char* text : convolutions) {
    const Problem problem = parse_problem(with_batch(text, settings.batch), device);
    std::fprintf(stderr, "%s\n", text);
    const std::vector<Entrant> entrants = raced_convolution(runtime, problem, settings);
    const auto chosen =
        std::find_if(entrants.begin(), entrants.end(), [](const Entrant& entrant) { return entrant.chosen; });
    if (chosen == entrants.end()) fail(ErrorCode::internal, "opencl_choice_bench", "no entrant is the chosen one");
    const Entrant& best = best_of(entrants);
    const double loss = median(chosen->times) / median(best.times);
    near += loss <= most_loss;
    ++rows;
    table.add(
        {text, chosen->name, number(median(chosen->times)), best.name, number(median(best.times)), number(loss, 2)});
    for (const Entrant& entrant : entrants) every.add({text, entrant.name, number(median(entrant.times))});
  }
  if (settings.all) every.print();
  table.print();
  const double share = static_cast<double>(near) / rows;
  std::printf("\nwithin 10 %% of the best: %d of %d convolutions; at least 80 %%: %s\n\n", near, rows,
              verdict(share >= least_share).c_str());
}

/// A user's kernel with its arguments.
struct Launchable {
  OpenclKernel kernel;
  std::vector<FunctionArgument> arguments = {};
};

Launchable make_launchable(Runtime& runtime, Device device, const LocalSizeRow& row) {
  Launchable launchable{OpenclKernel({.name = row.function, .source = local_size_source}, &runtime)};
  for (int i = 0; i < 2; ++i)
    launchable.arguments.push_back(kernel_argument(
        filled(runtime, parse_problem("relu(f32[" + std::to_string(row.elements) + "])").inputs[0], device)));
  for (const std::int32_t value : row.values) launchable.arguments.push_back(kernel_argument(value));
  return launchable;
}

std::vector<Entrant> raced_local_sizes(Runtime& runtime, Device device, const LocalSizeRow& row, WorkSize& tuned,
                                       const Settings& settings) {
  const auto launchable = std::make_shared<const Launchable>(make_launchable(runtime, device, row));
  const auto function = launchable->kernel.function(device);
  tuned = WorkGroupTuner().tune(*function, row.function, {launchable->arguments, row.global}).local;
  std::vector<WorkSize> locals(std::begin(fixed_local_sizes), std::end(fixed_local_sizes));
  if (std::find(locals.begin(), locals.end(), tuned) == locals.end()) locals.push_back(tuned);
  std::vector<Entrant> entrants;
  for (const WorkSize& local : locals) {
    double ignored = 0;  // a size that the device refuses does not take part
    if (!function->run_timed({launchable->arguments, row.global, local}, ignored).ok()) continue;
    Entrant entrant{local[0] == 0 ? "driver's" : to_string(local)};
    entrant.chosen = true;  // each fixed size has to have a time for each row
    entrant.run = [=, &row](int calls) {
      double total = 0;
      for (int i = 0; i < calls; ++i) {
        double device_us = -1;
        const double start = now_us();
        const Status status = function->run_timed({launchable->arguments, row.global, local}, device_us);
        if (!status.ok()) fail(status.code(), "opencl_choice_bench", to_string(local) + ": " + status.message());
        total += device_us > 0 ? device_us : now_us() - start;
      }
      return total / calls;
    };
    entrants.push_back(std::move(entrant));
  }
  race(entrants, settings);
  return entrants;
}

void compare_local_sizes(Runtime& runtime, Device device, const Settings& settings) {
  Table table({"kernel", "global", "tuned", "us", "driver's us", "64 us", "256 us", "16x16 us"});
  // Sums of logarithms of each fixed size's time over the tuned one's, over all rows, flat ones and planes.
  std::map<std::string, std::array<double, 3>> logs;
  for (const LocalSizeRow& row : local_size_rows) {
    std::fprintf(stderr, "%s %s\n", row.function, to_string(row.global).c_str());
    WorkSize tuned;
    const std::vector<Entrant> entrants = raced_local_sizes(runtime, device, row, tuned, settings);
    std::map<std::string, double> times;
    for (const Entrant& entrant : entrants) times[entrant.name] = median(entrant.times);
    const std::string name = tuned[0] == 0 ? "driver's" : to_string(tuned);
    for (const WorkSize& local : fixed_local_sizes) {
      const std::string fixed = local[0] == 0 ? "driver's" : to_string(local);
      const double log = times.contains(fixed) ? std::log(times[fixed] / times[name]) : INFINITY;
      logs[fixed][0] += log;
      logs[fixed][row.global[1] == 1 ? 1 : 2] += log;
    }
    table.add({row.function, to_string(row.global), name, number(times[name]), number(times["driver's"]),
               number(times["64"]), number(times["256"]), number(times["16x16"])});
  }
  table.print();
  Table means({"fixed local size", "its time over the tuned one's, geometric mean"});
  const auto mean = [](double sum) { return std::exp(sum / static_cast<double>(std::size(local_size_rows))); };
  double best = INFINITY, flat = INFINITY, plane = INFINITY;
  for (const auto& [name, sums] : logs) {
    means.add({name, number(mean(sums[0]), 3)});
    if (name == "driver's") continue;
    best = std::min(best, sums[0]);
    flat = std::min(flat, sums[1]);
    plane = std::min(plane, sums[2]);
  }
  std::printf("\n");
  means.print();
  std::printf("\ntuned over the best fixed local size: %.3f; at least %.1f: %s\n", mean(best), least_gain,
              verdict(mean(best) >= least_gain).c_str());
  std::printf("over the best one for flat launches and the best one for planes: %.3f\n", mean(flat + plane));
}

int run(const Settings& settings) {
  Runtime runtime;
  const Device device{DeviceType::opencl, static_cast<std::uint8_t>(settings.device)};
  if (!runtime.devices().has(device)) {
    std::printf("no OpenCL device: %s\n", runtime.devices().why_absent(DeviceType::opencl).c_str());
    return 0;
  }
  const DeviceProfile& profile = runtime.devices().profile(device);
  std::printf("%s, driver %s\n\n", profile.name.c_str(), profile.driver_version.c_str());
  if (settings.convolutions) compare_convolutions(runtime, device, settings);
  if (settings.local_sizes) compare_local_sizes(runtime, device, settings);
  return 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main(int argc, char** argv) {
  xpuruntime::bench::Settings settings;
  bool quick = false, convolutions = false, local_sizes = false;
  CLI::App app("Compares the chosen OpenCL kernels and local sizes with all others");
  app.add_flag("--quick", quick, "short races");
  app.add_flag("--all", settings.all, "prints the time of every kernel and variant too");
  app.add_flag("--convolutions", convolutions, "only the first table");
  app.add_flag("--local-sizes", local_sizes, "only the second table");
  app.add_option("--device", settings.device, "number of the OpenCL device")->check(CLI::NonNegativeNumber);
  app.add_option("--batch", settings.batch, "images of a convolution")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (convolutions != local_sizes) settings.convolutions = convolutions, settings.local_sizes = local_sizes;
  if (quick) settings.seconds = 0.03, settings.rounds = 5;
  return xpuruntime::bench::guarded("opencl_choice_bench", [&] { return xpuruntime::bench::run(settings); });
}
