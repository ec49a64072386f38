
#include "cli/call_on.h"
#include "cli/commands.h"
#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

struct TraceRequest {
  std::vector<std::string> problems = {};
  std::string file = {};
  std::string out = {};
  int repeat = 3;
  std::uint64_t seed = 1;
};

void run_all(Runtime& runtime, const std::vector<Problem>& problems, const TraceRequest& options) {
  std::vector<Operands> operands;
  for (const Problem& problem : problems) {
    check_memory(runtime.devices(), problem, false);
    operands.push_back(random_operands(runtime.devices(), problem, options.seed));
  }
  // The problems take turns, as the ops of a model do.
  for (int i = 0; i < options.repeat; ++i) {
    for (std::size_t p = 0; p < problems.size(); ++p) runtime.dispatcher().dispatch(call_on(problems[p], operands[p]));
  }
}

Answer trace(Context& context, const TraceRequest& options) {
  std::vector<Problem> problems;
  for (const std::string& text : options.problems) problems.push_back(context.problem(text));
  Dispatcher& dispatcher = context.runtime().dispatcher();
  const ScopedPolicy scope(dispatcher, context.policy_of(options.file));
  dispatcher.enable_logging(problems.size() * static_cast<std::size_t>(options.repeat));
  run_all(context.runtime(), problems, options);
  const std::vector<LogEntry> log = dispatcher.logs();
  const std::string events = to_trace_json(log);
  if (options.out.empty()) return {events};
  write_file_atomically(options.out, events, {"xrt", "trace file '" + options.out + "': ", "trace"});
  const Json summary = {{"version", 1}, {"file", options.out}, {"calls", log.size()}};
  return {context.json ? dump_json(summary, 2) + "\n"
                       : std::to_string(log.size()) + " calls written to " + printable(options.out) + "\n"};
}

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  CLI::App& command = add_command(app, context, "trace",
                                  "Run problems and write what happened as a trace for Perfetto or chrome://tracing",
                                  "xrt trace \"matmul(f32[64,64], f32[64,64])\" \"relu(f32[64,64])\" --out trace.json");
  const auto options = std::make_shared<TraceRequest>();
  command.add_option("problems", options->problems, "The calls, in order")->type_name("PROBLEM")->required();
  command.add_option("--policy", options->file, "Decide under the policy in this JSON file")->type_name("FILE");
  add_output_to(command, context, "--out", options->out, "Write to this file instead of stdout");
  command.add_option("--repeat", options->repeat, "How many times all of them run (default 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  add_seed_to(command, options->seed);
  command.callback([&context, options] { context.command = [&context, options] { return trace(context, *options); }; });
}

}  // namespace xpuruntime::cli
