#include "cli/commands.h"
#include "cli/model_commands.h"
#include "cli/store_option.h"
#include "dispatch/by_precision.h"

namespace xpuruntime::cli {
namespace {

struct ExplainRequest {
  std::string problem = {};
  std::string profile = {};
  std::string autocast = {};  // a dtype; empty: off
  PolicyOptions policy = {};
  StoreOption store = {};
  ModelOptions model = {};
  std::string lock = {};
};

bool has_kernels(const KernelRegistry& registry, DeviceType type) {
  for (const OpId op : registry.registered_ops()) {
    if (!registry.kernels(op, type).empty()) return true;
  }
  return false;
}

Problem problem_for(const DeviceProfile& profile, const std::string& text, const Context& context) {
  const Problem problem = parse_problem(text, context.given_device().value_or(Device{profile.type, 0}));
  if (problem.device.type == profile.type) return problem;
  fail(ErrorCode::invalid_argument, "explain",
       "the problem is on " + to_string(problem.device) + ", but the profile describes a device of type " +
           std::string(to_string(profile.type)) + "; leave the device out or give the profile of a " +
           std::string(to_string(problem.device.type)) + " device");
}

Autocast autocast_of(Context& context, const ExplainRequest& options) {
  if (options.autocast.empty()) return {};
  return make_autocast(context.runtime().amp(), true, parse_data_type(options.autocast));
}

/// Asks a device that is somebody's description: nothing is prepared and nothing runs.
Decision explain_described(Context& context, const ExplainRequest& options) {
  const KernelRegistry& registry = context.runtime().registry();
  const DeviceProfile profile = DeviceProfile::load(options.profile);
  Problem problem = problem_for(profile, options.problem, context);
  const KernelPolicy policy = options.policy.whole_policy(problem.op);
  problem.limits = stricter(problem.limits, policy.limits());
  if (!has_kernels(registry, profile.type)) {
    const std::string type(to_string(profile.type));
    context.note("this build has no " + type + " kernels, so there is nothing to choose from; use a build with the " +
                 type + " backend, or open one with --plugin");
  }
  return decide_described(registry, problem, profile, policy, autocast_of(context, options));
}

Decision explain_here(Context& context, const ExplainRequest& options) {
  const Problem problem = context.problem(options.problem);
  Runtime& runtime = context.runtime();
  const KernelPolicy policy = options.policy.policy(context, problem.op);
  if (const std::string why = runtime.devices().why_absent(problem.device.type); !why.empty()) {
    fail(ErrorCode::not_supported, "explain",
         to_string(problem.device) + " is not here: " + why + "; to ask anyway, describe it with --profile");
  }
  options.store.use_in(runtime, StoreMode::read_only);
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const ScopedPolicy with_autocast(runtime.dispatcher(),
                                   runtime.dispatcher().layered_scope(autocast_of(context, options)));
  return runtime.dispatcher().explain(problem);
}

/// The same for each call of a model.
Answer explain_all(Context& context, const CLI::App& command, const ExplainRequest& options) {
  refuse_options(command, {"--profile", "--autocast", "--force"}, "a model");
  options.store.use_in(context.runtime(), StoreMode::read_only);
  return explain_model(context, {options.problem, options.model, options.policy, options.lock});
}

Answer explain(Context& context, const CLI::App& command, const ExplainRequest& options) {
  if (names_model(options.problem)) return explain_all(context, command, options);
  refuse_options(command, {"--shape", "--input", "--execution", "--engine", "--lock"}, "a problem");
  const Decision decision =
      options.profile.empty() ? explain_here(context, options) : explain_described(context, options);
  return {context.json ? decision.to_json() + "\n" : context.paint.decision(decision.to_text()),
          decision.kernel.empty() ? exit_no : exit_fine};
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "explain", "Say which kernel would run a problem, why, and why not the others",
                  "xrt explain \"matmul(f32[256,256], f32[256,256])\" --force reference");
  const auto options = std::make_shared<ExplainRequest>();
  command
      .add_option("problem", options->problem,
                  "Such as \"matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0\", or an ONNX file: each of its nodes")
      ->type_name("PROBLEM|MODEL")
      ->required();
  options->policy.add_file_to(command);
  command
      .add_option("--profile", options->profile, "Ask the device that this JSON file describes; it need not be here")
      ->type_name("FILE");
  command.add_option("--autocast", options->autocast, "As inside an autocast scope, where `lower` means bf16 or f16")
      ->type_name("DTYPE");
  options->policy.add_force_to(command);
  options->store.add_to(command);
  options->model.add_to(command);
  add_model_lock_to(command, options->lock);
  command.callback([&context, &command, options] {
    context.command = [&context, &command, options] { return explain(context, command, *options); };
  });
}

}  // namespace xpuruntime::cli
