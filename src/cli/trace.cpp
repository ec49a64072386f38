#include <algorithm>
#include <functional>

#include "cli/call_on.h"
#include "cli/commands.h"
#include "cli/model_commands.h"
#include "cli/model_timing.h"
#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

struct TraceRequest {
  std::vector<std::string> problems = {};
  std::string file = {};
  std::string out = {};
  int repeat = 3;
  std::uint64_t seed = 1;
  ModelOptions model = {};
};

/// One thing to run: a problem, or a whole model.
using Runs = std::vector<std::function<void()>>;

Runs prepared(Context& context, const TraceRequest& options) {
  Runtime& runtime = context.runtime();
  Runs runs;
  for (const std::string& text : options.problems) {
    if (names_model(text)) {
      const auto model = std::make_shared<OpenedModel>(open_model(context, {text, options.model}));
      runs.push_back([&context, model] {
        std::vector<Tensor> results;
        timed_run(context, model->session, model->inputs, model->device, results);
      });
      continue;
    }
    const Problem problem = context.problem(text);
    check_memory(runtime.devices(), problem, false);
    const auto operands = std::make_shared<const Operands>(random_operands(runtime.devices(), problem, options.seed));
    runs.push_back([&runtime, problem, operands] { runtime.dispatcher().dispatch(call_on(problem, *operands)); });
  }
  return runs;
}

Answer trace(Context& context, TraceRequest options) {
  const auto models =
      static_cast<std::size_t>(std::count_if(options.problems.begin(), options.problems.end(), names_model));
  options.model.check_used(models > 0);
  options.model.seed = options.seed;
  Dispatcher& dispatcher = context.runtime().dispatcher();
  const ScopedPolicy scope(dispatcher, context.policy_of(options.file));
  const Runs runs = prepared(context, options);
  constexpr std::size_t kept = 65536;  // a model makes many calls
  dispatcher.enable_logging(models > 0 ? kept : runs.size() * static_cast<std::size_t>(options.repeat));
  // In turns, as the ops of a model.
  for (int i = 0; i < options.repeat; ++i) {
    for (const auto& run : runs) run();
  }
  const std::vector<LogEntry> log = dispatcher.logs();
  const std::string events = to_trace_json(log, {}, dispatcher.spans());
  if (const std::uint64_t dropped = dispatcher.dropped_logs(); dropped > 0) {
    context.note(std::to_string(dropped) + " calls are left out: a trace has the last " + std::to_string(kept) +
                 " of a thread");
  }
  if (options.out.empty()) return {events};
  write_file_atomically(options.out, events, {"xrt", "trace file '" + options.out + "': ", "trace"});
  const std::size_t model_runs = models * static_cast<std::size_t>(options.repeat);
  Json summary = {{"version", 1}, {"file", options.out}, {"calls", log.size()}, {"model_runs", model_runs}};
  return {context.json ? dump_json(summary, 2) + "\n"
                       : std::to_string(log.size()) + " calls " +
                             (models > 0 ? "and " + std::to_string(model_runs) + " runs of models " : "") +
                             "written to " + printable(options.out) + "\n"};
}

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "trace",
                  "Run problems or models and write what happened as a trace for Perfetto or chrome://tracing",
                  "xrt trace \"matmul(f32[64,64], f32[64,64])\" \"relu(f32[64,64])\" --out trace.json\n"
                  "  xrt trace model.onnx --shape x=1,3,224,224 --out trace.json");
  const auto options = std::make_shared<TraceRequest>();
  command.add_option("problems", options->problems, "The calls and models, in order")
      ->type_name("PROBLEM|MODEL")
      ->required();
  command.add_option("--policy", options->file, "Decide under the policy in this JSON file")->type_name("FILE");
  add_output_to(command, context, "--out", options->out, "Write to this file instead of stdout");
  command.add_option("--repeat", options->repeat, "How many times all of them run (default 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  add_seed_to(command, options->seed);
  options->model.add_to(command);
  command.callback([&context, options] { context.command = [&context, options] { return trace(context, *options); }; });
}

}  // namespace xpuruntime::cli
