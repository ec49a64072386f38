#include <algorithm>
#include <chrono>

#include "cli/blocks.h"
#include "cli/commands.h"
#include "cli/demo_tune.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime::cli {
namespace {

struct DemoRequest {
  std::string block = {};
  std::string policy = {};
  int repeat = 10;
  bool tune = false;
  TunedDemo tuned = {};
};

/// What one kernel took for one step.
struct Timing {
  std::string kernel = {};
  double us = 0;
};

struct StepResult {
  Decision decision = {};
  double us = 0;
  std::vector<Timing> others = {};  // kernels that were passed over, each forced once to see
};

struct BlockResult {
  Block block = {};
  std::vector<StepResult> steps = {};
};

/// The choice of a user who forces a kernel by name that can run, and loses most by it.
struct WorstChoice {
  std::size_t step = 0;
  Timing timing = {};
};

/// From the call to its result, also on a device of its own.
double call_us(Runtime& runtime, const Call& call) {
  const Device device = call.outputs.front()->device();
  const auto start = std::chrono::steady_clock::now();
  runtime.dispatcher().dispatch(call);
  const Status done = runtime.devices().driver(device).synchronize(device.index, {});
  if (!done.ok()) fail(done.code(), "demo", done.message());
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// The median of some calls after one that decides and prepares; slow kernels are called fewer times.
double median_us(Runtime& runtime, const Call& call, int repeat) {
  std::vector<double> times = {call_us(runtime, call)};
  const double limit_us = 2e5;
  double spent = times.front();
  // Where kernels are compiled, the first call says nothing.
  if (runtime.devices().driver(call.outputs.front()->device()).asynchronous()) spent = 0;
  if (spent < limit_us) times.clear();
  while (static_cast<int>(times.size()) < repeat && spent < limit_us) {
    times.push_back(call_us(runtime, call));
    spent += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

StepResult run_step(Runtime& runtime, const BoundStep& step, int repeat) {
  Dispatcher& dispatcher = runtime.dispatcher();
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : step.inputs) inputs.push_back(&tensor);
  const std::array<const Tensor*, 1> outputs = {&step.output};
  const Call call{step.problem.op, inputs, outputs, &step.problem.attributes};
  StepResult result;
  result.us = median_us(runtime, call, repeat);
  result.decision = dispatcher.decide(call);
  for (const Candidate& candidate : result.decision.candidates) {
    if (candidate.outcome != Outcome::passed) continue;
    KernelPolicy policy;
    policy.force(to_string(step.problem.op), candidate.kernel);
    const ScopedPolicy scope(dispatcher, policy);
    result.others.push_back({candidate.kernel, median_us(runtime, call, std::min(repeat, 3))});
  }
  return result;
}

BlockResult run_block(Runtime& runtime, const Block& block, Device device, int repeat) {
  BlockResult result{block, {}};
  for (const BoundStep& step : bind(block, 1, runtime.devices(), device))
    result.steps.push_back(run_step(runtime, step, repeat));
  return result;
}

double total_us(const BlockResult& result) {
  double total = 0;
  for (const StepResult& step : result.steps) total += step.us;
  return total;
}

/// Over all steps; with `real` set, kernels that only serve as the yardstick do not count.
std::optional<WorstChoice> worst_choice(const BlockResult& result, bool real) {
  std::optional<WorstChoice> worst;
  double most = 0;
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    for (const Timing& timing : result.steps[i].others) {
      const double lost = timing.us - result.steps[i].us;
      if ((real && timing.kernel == "reference") || lost <= most) continue;
      most = lost;
      worst = {i, timing};
    }
  }
  return worst;
}

std::string time_text(double us) {
  return us < 1000 ? figure("%.1f us", us) : us < 1e6 ? figure("%.2f ms", us / 1000) : figure("%.2f s", us / 1e6);
}

std::string factor_text(double factor) { return figure(factor < 10 ? "%.1f" : "%.0f", factor); }

std::string short_problem(const Problem& problem) {
  const std::string text = to_string(problem);
  return text.substr(0, text.find(" @"));
}

std::string worst_text(const BlockResult& result, const WorstChoice& worst, const char* kind) {
  const StepResult& step = result.steps[worst.step];
  const double total = total_us(result);
  return std::string("  ") + kind + ": " + worst.timing.kernel + " for " + short_problem(step.decision.problem) +
         " takes " + time_text(worst.timing.us) + " instead of " + time_text(step.us) + " (" + step.decision.kernel +
         "), " + factor_text(worst.timing.us / step.us) + " times as long; the block would take " +
         factor_text((total + worst.timing.us - step.us) / total) + " times as long\n";
}

std::string as_text(const BlockResult& result, const Painter& paint) {
  std::string text = paint(Colour::bold, result.block.name + ": " + result.block.about) + "\n";
  std::size_t widest = 13;
  for (const StepResult& step : result.steps)
    for (const Candidate& candidate : step.decision.candidates) widest = std::max(widest, candidate.kernel.size());
  const auto name = [&](const std::string& kernel) { return padded(kernel, widest + 1); };
  for (const StepResult& step : result.steps) {
    const Decision& decision = step.decision;
    text += "  " + short_problem(decision.problem) + "\n";
    text += paint(Colour::green, "    -> " + name(decision.kernel) + padded(time_text(step.us), 10) + " [" +
                                     std::string(to_string(decision.level)) + "] " + decision.because) +
            "\n";
    for (const Timing& other : step.others) {
      text += "       " + name(other.kernel) + padded(time_text(other.us), 10) + " passed over\n";
    }
    for (const Candidate& candidate : decision.candidates) {
      if (candidate.outcome != Outcome::refused) continue;
      text += "       " + name(candidate.kernel) + padded("", 10) + " refused: " + candidate.reason + "\n";
    }
  }
  text += "  " + std::to_string(result.steps.size()) + " ops in " + time_text(total_us(result)) + "\n";
  if (const auto worst = worst_choice(result, false)) {
    text += paint(Colour::red, worst_text(result, *worst, "the worst choice open to you"));
  }
  const auto real = worst_choice(result, true);
  if (real) text += paint(Colour::red, worst_text(result, *real, "the worst among fast kernels"));
  return text;
}

Json worst_json(const BlockResult& result, bool real) {
  const auto worst = worst_choice(result, real);
  if (!worst) return nullptr;
  return {{"step", worst->step}, {"kernel", worst->timing.kernel}, {"time_us", worst->timing.us}};
}

Json as_json(const BlockResult& result) {
  Json steps = Json::array();
  for (const StepResult& step : result.steps) {
    Json others = Json::array();
    for (const Timing& other : step.others) others.push_back({{"kernel", other.kernel}, {"time_us", other.us}});
    steps.push_back(
        {{"decision", parse_known_json(step.decision.to_json())}, {"time_us", step.us}, {"others", others}});
  }
  return {{"block", result.block.name},
          {"total_us", total_us(result)},
          {"steps", steps},
          {"worst", worst_json(result, false)},
          {"worst_fast", worst_json(result, true)}};
}

std::vector<Block> chosen_blocks(const std::string& name) {
  std::vector<Block> blocks = {transformer_block(), cnn_block()};
  if (!name.empty()) std::erase_if(blocks, [&](const Block& block) { return block.name != name; });
  return blocks;
}

Answer demo(Context& context, const DemoRequest& options) {
  Dispatcher& dispatcher = context.runtime().dispatcher();
  const ScopedPolicy scope(dispatcher, context.policy_of(options.policy));
  if (options.tune) return tune_blocks(context, chosen_blocks(options.block), options.tuned);
  const Device device = context.given_device().value_or(current_device());
  std::string text;
  Json blocks = Json::array();
  for (const Block& block : chosen_blocks(options.block)) {
    const BlockResult result = run_block(context.runtime(), block, device, options.repeat);
    if (context.json) {
      blocks.push_back(as_json(result));
    } else {
      text += (text.empty() ? "" : "\n") + as_text(result, context.paint);
    }
  }
  return {context.json ? dump_json(Json{{"version", 1}, {"blocks", blocks}}, 2) + "\n" : text};
}

}  // namespace

void add_demo(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "demo",
                  "Run a transformer block and a CNN block on a device: each op's kernel, why, its time, "
                  "and what the worst choice would cost",
                  "xrt demo --block cnn");
  const auto options = std::make_shared<DemoRequest>();
  command.add_option("--block", options->block, "transformer or cnn (default both)")
      ->type_name("BLOCK")
      ->check(CLI::IsMember({"transformer", "cnn"}));
  command.add_option("--policy", options->policy, "Apply this policy file")->type_name("FILE");
  command.add_option("--repeat", options->repeat, "How many calls are timed (default 10)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  command.add_flag("--tune", options->tune, "Tune the blocks instead, write policy.json and kernels.lock, and replay");
  options->tuned.store.add_to(command);
  command.add_option("--out", options->tuned.folder, "The folder that --tune writes to (default: here)")
      ->type_name("FOLDER");
  command.callback([&context, options] { context.command = [&context, options] { return demo(context, *options); }; });
}

}  // namespace xpuruntime::cli
