#include <algorithm>
#include <chrono>
#include <cmath>

#include "cli/call_on.h"
#include "cli/commands.h"
#include "cli/model_commands.h"
#include "cli/store_option.h"
#include "cli/table.h"
#include "core/elements.h"
#include "core/json_text.h"
#include "tune/check.h"
#include "tune/contender.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime::cli {
namespace {

// The reference takes some nanoseconds a product: past this it is worth a word.
constexpr double long_wait = 2e9;

struct RunRequest {
  std::string problem = {};
  PolicyOptions policy = {};
  StoreOption store = {};
  int repeat = 10;
  std::uint64_t seed = 1;
  bool no_check = false;
  ModelOptions model = {};
  std::string lock = {};
  ModelOutputs outputs = {};
};

struct Times {
  double median_us = 0;
  double min_us = 0;
  bool device_time = false;
};

struct RunResult {
  Decision decision = {};
  Times times = {};
  Check check = {};
  bool inputs_kept = true;  // as far as it was looked at
};

Times summary(std::vector<double> times, bool device_time) {
  std::sort(times.begin(), times.end());
  const std::size_t middle = times.size() / 2;
  const double median = times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  return {median, times.front(), device_time};
}

/// Microseconds until the device is done with one call.
double timed_call(Runtime& runtime, const Call& call, Device device) {
  DeviceDriver& driver = runtime.devices().driver(device);
  const auto start = std::chrono::steady_clock::now();
  runtime.dispatcher().dispatch(call);
  const Status status = driver.synchronize(device.index, current_stream(device));
  const auto end = std::chrono::steady_clock::now();
  if (!status.ok()) {
    fail(status.code(), "run", "the device failed: " + status.message() + "; check whether it still responds");
  }
  return std::chrono::duration<double, std::micro>(end - start).count();
}

/// Runs once to decide and prepare, then `repeat` times by the log's clock: that of the device where it has one.
RunResult run_repeatedly(Runtime& runtime, const Call& call, Device device, int repeat) {
  Dispatcher& dispatcher = runtime.dispatcher();
  timed_call(runtime, call, device);
  const std::size_t entries = 1 + dispatcher.decide(call).casts.size();
  dispatcher.enable_logging(static_cast<std::size_t>(repeat) * entries);
  std::vector<double> by_host;
  for (int i = 0; i < repeat; ++i) by_host.push_back(timed_call(runtime, call, device));
  dispatcher.disable_logging();
  std::vector<LogEntry> log = dispatcher.logs();
  // Casts are calls of their own; the problem's is what was asked about.
  std::erase_if(log, [&](const LogEntry& entry) { return entry.decision->problem.op != call.op; });
  const auto timed = static_cast<std::size_t>(repeat);
  if (log.size() > timed) log.erase(log.begin(), log.end() - repeat);  // a trace logs the call that decides too
  std::vector<double> logged;
  for (const LogEntry& entry : log) logged.push_back(entry.elapsed_us);
  const bool device_time = std::all_of(log.begin(), log.end(), [](const LogEntry& entry) { return entry.device_time; });
  // Where launches return early and events tell no time, only the wait for the device does.
  const bool use_host = runtime.devices().driver(device).asynchronous() && !device_time;
  return {*log.back().decision, summary(use_host ? by_host : logged, device_time)};
}

/// A cast to fewer digits rounds an input, or the result once more.
double casting_error(const Decision& decision) {
  double error = 0;
  for (const CastStep& step : decision.casts) error += 2 * epsilon_of(step.is_output ? step.from : step.to);
  return error;
}

RunResult run_and_check(Context& context, const Problem& problem, const KernelPolicy& policy,
                        const RunRequest& options) {
  Runtime& runtime = context.runtime();
  check_memory(runtime.devices(), problem, !options.no_check);
  const Operands operands = random_operands(runtime.devices(), problem, options.seed);
  const bool on_host = problem.device.type == DeviceType::cpu;
  const std::uint64_t inputs = on_host && !options.no_check ? hash_of_inputs(operands) : 0;
  RunResult result;
  {
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    result = run_repeatedly(runtime, call_on(problem, operands), problem.device, options.repeat);
  }
  for (const QuarantinedPlan& plan : runtime.dispatcher().quarantined()) {
    context.note(plan.kernel + " was abandoned: " + plan.reason);
  }
  for (const Candidate& candidate : result.decision.candidates) {  // a lack of memory quarantines nothing
    if (candidate.reason.starts_with("passed over in this call")) {
      context.note(candidate.kernel + " was " + candidate.reason);
    }
  }
  result.check.skipped = "--no-check was given";
  if (options.no_check) return result;
  if (reference_work(problem) > long_wait) {
    context.note("checking against the float64 reference takes a while; --no-check leaves it out");
  }
  result.inputs_kept = !on_host || hash_of_inputs(operands) == inputs;
  if (!result.inputs_kept) context.note(result.decision.kernel + " is wrong: " + wrote_to_its_inputs);
  refill_inputs(runtime.devices(), problem, options.seed, operands);
  result.check = check_against_reference(runtime.registry(), problem,
                                         {result.decision.kernel, casting_error(result.decision)}, operands);
  return result;
}

std::string time_text(double us) { return us < 1000 ? figure("%.2f us", us) : figure("%.3f ms", us / 1000); }

std::string check_text(const RunResult& result, const Painter& paint) {
  const Check& check = result.check;
  if (!result.inputs_kept) return paint(Colour::red, wrote_to_its_inputs);
  if (!check.skipped.empty()) return "not checked: " + check.skipped;
  return figure("max abs %.3g; ", check.max_abs_error) + figure("max rel %.3g, ", check.max_rel_error) +
         (check.within ? paint(Colour::green, "within") : paint(Colour::red, "above")) +
         figure(" the tolerance %.3g", check.tolerance);
}

std::string as_text(const RunResult& result, const RunRequest& options, const Painter& paint) {
  const Decision& decision = result.decision;
  std::string text = paint(Colour::bold, to_string(decision.problem)) + "\n";
  text += paint(Colour::green,
                "  -> " + decision.kernel + " [" + std::string(to_string(decision.level)) + "] " + decision.because) +
          "\n";
  if (!decision.plan.empty()) text += "  plan   " + decision.plan + "\n";
  text += "  time   median " + time_text(result.times.median_us) + ", min " + time_text(result.times.min_us) + " of " +
          std::to_string(options.repeat) + (result.times.device_time ? " (device time)\n" : " (host time)\n");
  return text + "  error  " + check_text(result, paint) + "\n";
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json check_json(const RunResult& result) {
  const Check& check = result.check;
  if (!result.inputs_kept) return {{"within", false}, {"skipped", wrote_to_its_inputs}};
  if (!check.skipped.empty()) return {{"within", nullptr}, {"skipped", check.skipped}};
  return {{"within", check.within},
          {"max_abs_error", number(check.max_abs_error)},
          {"max_rel_error", number(check.max_rel_error)},
          {"tolerance", check.tolerance},
          {"skipped", nullptr}};
}

std::string document(const Decision& decision, const Json& time, const Json& check) {
  const Json all = {
      {"version", 1}, {"decision", parse_known_json(decision.to_json())}, {"time", time}, {"check", check}};
  return dump_json(all, 2) + "\n";
}

std::string as_json(const RunResult& result, const RunRequest& options) {
  const Json time = {{"runs", options.repeat},
                     {"median_us", result.times.median_us},
                     {"min_us", result.times.min_us},
                     {"clock", result.times.device_time ? "device" : "host"}};
  return document(result.decision, time, check_json(result));
}

Answer refusal(Context& context, const Decision& decision) {
  context.note(to_string(decision.problem) + ": " + decision.because);
  return {context.json ? document(decision, nullptr, nullptr) : context.paint.decision(decision.to_text()), exit_no};
}

Answer run_whole_model(Context& context, const CLI::App& command, RunRequest options) {
  refuse_options(command, {"--no-check", "--force"}, "a model");
  options.store.use_in(context.runtime(), StoreMode::read_only);
  options.model.seed = options.seed;
  const ModelRequest request{options.problem, options.model, options.policy, options.lock};
  return run_model(context, request, options.outputs, options.repeat);
}

Answer run(Context& context, const CLI::App& command, const RunRequest& options) {
  if (names_model(options.problem)) return run_whole_model(context, command, options);
  refuse_options(command, {"--shape", "--input", "--execution", "--engine", "--lock", "--out", "--output-dir"},
                 "a problem");
  const Problem problem = context.problem(options.problem);
  options.store.use_in(context.runtime(), StoreMode::read_only);
  const KernelPolicy policy =
      options.policy.policy(context, problem.op).merge(KernelPolicy::from_limits(problem.limits));
  {
    const ScopedPolicy scope(context.runtime().dispatcher(), policy);
    const Decision decision = context.runtime().dispatcher().explain(problem);
    if (decision.kernel.empty()) return refusal(context, decision);
  }
  const RunResult result = run_and_check(context, problem, policy, options);
  const bool fine = result.inputs_kept && (!result.check.skipped.empty() || result.check.within);
  return {context.json ? as_json(result, options) : as_text(result, options, context.paint),
          fine ? exit_fine : exit_no};
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App& command = add_command(
      app, context, "run", "Run a problem on random inputs, time it and check it against float64; or run an ONNX model",
      "xrt run \"matmul(f32[256,256], f32[256,256])\" --repeat 20\n  xrt run model.onnx --input x=x.npy --out y.npy");
  const auto options = std::make_shared<RunRequest>();
  command.add_option("problem", options->problem, "Such as \"add(f32[1024], f32[1024]) @opencl:0\", or an ONNX file")
      ->type_name("PROBLEM|MODEL")
      ->required();
  options->policy.add_file_to(command);
  options->policy.add_force_to(command);
  options->store.add_to(command);
  command.add_option("--repeat", options->repeat, "How many calls are timed (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  add_seed_to(command, options->seed);
  command.add_flag("--no-check", options->no_check, "Do not compare with the float64 reference");
  options->model.add_to(command);
  add_model_lock_to(command, options->lock);
  add_output_to(command, context, "--out", options->outputs.file,
                "Of a model: write its output into this .npy file, or all into this .npz file");
  command
      .add_option("--output-dir", options->outputs.folder,
                  "Of a model: write each output into this folder, as NAME.npy")
      ->type_name("FILE");
  command.callback([&context, &command, options] {
    context.command = [&context, &command, options] { return run(context, command, *options); };
  });
}

}  // namespace xpuruntime::cli
