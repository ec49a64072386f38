#include "cli/context.h"

#include <iostream>

#include "xpuruntime/device/current.h"

namespace xpuruntime::cli {

Runtime& Context::runtime() {
  Runtime& runtime = Runtime::global();
  if (!plugins_loaded_) {
    plugins_loaded_ = true;
    for (const std::string& path : plugins) runtime.registry().load_plugin(path);
  }
  return runtime;
}

std::optional<Device> Context::given_device() const {
  if (device_text.empty()) return std::nullopt;
  return parse_device(device_text);
}

Problem Context::problem(const std::string& text) {
  runtime();
  return parse_problem(text, given_device().value_or(current_device()));
}

void Context::note(std::string_view message) const { std::cerr << "xrt: " << message << '\n'; }

void PolicyOptions::add_file_to(CLI::App& command) {
  command.add_option("--policy", file, "Decide under the policy in this JSON file")->type_name("FILE");
}

void PolicyOptions::add_force_to(CLI::App& command) {
  command.add_option("--force", forced, "Run this kernel or say why it cannot")->type_name("KERNEL");
}

KernelPolicy PolicyOptions::policy(OpId op) const {
  KernelPolicy policy = file.empty() ? KernelPolicy{} : KernelPolicy::load(file);
  if (!forced.empty()) policy.force(to_string(op), forced);
  return policy;
}

CLI::App& add_command(CLI::App& app, Context& context, const std::string& name, const std::string& description,
                      const std::string& example) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.fallthrough();  // so that --device and --plugin may stand after the command
  command.footer("Example:\n  " + example);
  command.add_flag("--json", context.json, "Print one JSON document");
  return command;
}

}  // namespace xpuruntime::cli
