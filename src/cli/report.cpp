#include "xpuruntime/runtime/report.h"

#include "cli/commands.h"
#include "cli/model_commands.h"
#include "cli/problem_list.h"
#include "cli/store_option.h"
#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

struct ReportRequest {
  ProblemList list = {};
  std::string lock = {};
  std::string against = {};
  std::string policy = {};
  std::string out = {};
  std::string title = {};
  StoreOption store = {};
};

std::shared_ptr<const KernelLock> lock_of(const std::string& path) {
  return path.empty() ? nullptr : std::make_shared<const KernelLock>(KernelLock::load(path));
}

/// The store that was named, else the user's own where there is one.
std::shared_ptr<const MeasurementStore> store_of(const ReportRequest& options) {
  if (!options.store.path.empty()) return open_store(options.store.path, StoreMode::read_only);
  return open_default_store();
}

ReportOptions report_options(Context& context, const ReportRequest& options) {
  ReportOptions made;
  made.title = options.title;
  made.lock = lock_of(options.lock);
  made.lock_name = options.lock;
  made.against = lock_of(options.against);
  made.against_name = options.against;
  made.store = store_of(options);
  options.list.model.check_used(options.list.has_model());
  const bool listed = !options.list.texts.empty() || !options.list.log.empty();
  if (listed) {
    ListedProblems list = options.list.read(context);
    made.problems = std::move(list.problems);
    made.ranges = std::move(list.ranges);
    for (const std::string& text : options.list.texts) {
      if (names_model(text)) made.models.push_back(report_model(context, {text, options.list.model}));
    }
  }
  made.list_store = !options.store.path.empty() && made.lock == nullptr && !listed;
  return made;
}

Answer report(Context& context, const ReportRequest& options) {
  Runtime& runtime = context.runtime();
  options.store.use_in(runtime, StoreMode::read_only);
  const ScopedPolicy scope(runtime.dispatcher(), context.policy_of(options.policy));
  const ReportOptions about = report_options(context, options);
  const std::string json = report_json(runtime, about);
  if (options.out.empty()) return {context.json ? json : report_page(json)};
  save_report(options.out, report_page(json));
  const std::size_t count = parse_known_json(json)["decisions"].size();
  const Json summary = {{"version", 1}, {"file", options.out}, {"decisions", count}};
  return {context.json ? dump_json(summary, 2) + "\n"
                       : std::to_string(count) + (count == 1 ? " decision" : " decisions") + " shown in " +
                             printable(options.out) + "\n"};
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "report",
                  "Write an HTML page: each choice, its alternatives with times and memory, why, "
                  "what was refused, what changed",
                  "xrt report --lock kernels.lock --out report.html\n  xrt report model.onnx --shape x=1,3,224,224 "
                  "--out report.html");
  const auto options = std::make_shared<ReportRequest>();
  command
      .add_option("problems", options->list.texts,
                  "Problems to decide and show, and models to run; without any input, a model's blocks")
      ->type_name("PROBLEM|MODEL");
  options->list.add_log_to(command);
  options->list.model.add_to(command);
  command.add_option("--lock", options->lock, "Show the decisions of this lock")->type_name("FILE");
  command.add_option("--against", options->against, "Show what changed since this lock")->type_name("FILE");
  options->store.add_to(command);
  command.add_option("--policy", options->policy, "Decide under the policy in this JSON file")->type_name("FILE");
  command.add_option("--title", options->title, "The title of the page")->type_name("TEXT");
  add_output_to(command, context, "--out", options->out, "Write to this file instead of stdout");
  command.callback(
      [&context, options] { context.command = [&context, options] { return report(context, *options); }; });
}

}  // namespace xpuruntime::cli
