#include "cli/context.h"

#include <charconv>
#include <utility>

#include "cli/output.h"
#include "core/environment_variable.h"
#include "core/json_text.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime::cli {
namespace {

// What is wrong with a seed; empty if nothing. The parser's own check would print the largest double as the bound.
std::string flaw_of_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc{} && stop == end) return {};
  return "'" + text + "' is not a valid seed; write a whole number from 0 to " + std::to_string(UINT64_MAX);
}

}  // namespace

// The runtime lives until the process ends; a store that is closed leaves no log beside its file.
Context::~Context() {
  if (opened_) Runtime::global().use_store(nullptr);
}

void Context::load_plugins() {
  if (plugins.empty() && environment_variable("XPURUNTIME_PLUGINS") == nullptr) return;
  Runtime::global(plugins);
  opened_ = true;
}

Runtime& Context::runtime() {
  Runtime& runtime = Runtime::global();
  opened_ = true;
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

KernelPolicy Context::policy_of(const std::string& file) {
  return file.empty() ? KernelPolicy{} : KernelPolicy::load(file);
}

void Context::note(std::string_view message) const { write_message(message); }

void PolicyOptions::add_file_to(CLI::App& command) {
  command.add_option("--policy", file, "Decide under the policy in this JSON file, not XPURUNTIME_POLICY's")
      ->type_name("FILE");
}

void PolicyOptions::add_force_to(CLI::App& command) {
  command.add_option("--force", forced, "Run this kernel or say why it cannot")->type_name("KERNEL");
}

KernelPolicy PolicyOptions::policy(Context& context, OpId op) const {
  KernelPolicy policy = context.policy_of(file);
  if (!forced.empty()) policy.force(to_string(op), forced);
  return policy;
}

KernelPolicy PolicyOptions::whole_policy(OpId op) const {
  KernelPolicy policy = load_policy(file);
  if (!forced.empty()) policy.force(to_string(op), forced);
  return policy;
}

void add_output_to(CLI::App& command, Context& context, const std::string& name, std::string& path,
                   const std::string& about, const std::string& updated) {
  command.add_option(name, path, about)->type_name("FILE")->check([](const std::string& given) {
    const std::string flaw = flaw_of_new_file(given);
    return flaw.empty() ? flaw : "'" + given + "' " + flaw;
  });
  context.output_checks.push_back([&command, &path, name, updated] {
    if (path.empty()) return;
    for (const CLI::Option* other : std::as_const(command).get_options()) {
      const std::string other_name = other->get_name();
      const bool is_file = other->count() > 0 && !other->get_positional() && other->get_type_name() == "FILE";
      if (!is_file || other_name == name || other_name == updated) continue;
      if (!same_file(path, other->as<std::string>())) continue;
      fail(ErrorCode::invalid_argument, "xrt",
           name + " names the file of " + other_name + ", '" + path + "', and would overwrite it; name another");
    }
  });
}

void add_seed_to(CLI::App& command, std::uint64_t& seed) {
  command.add_option("--seed", seed, "Seed of the random inputs (default 1)")->type_name("N")->check(flaw_of_seed);
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
