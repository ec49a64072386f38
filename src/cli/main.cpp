#include <algorithm>
#include <csignal>

#include "cli/commands.h"
#include "cli/output.h"
#include "core/printable.h"

namespace xpuruntime::cli {
namespace {

// Errors that the caller's words or files cause are wrong usage; all others are the answer "no".
int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unknown_name:
    case ErrorCode::io_error:
    case ErrorCode::corrupt_data:
      return exit_wrong_usage;
    default:
      return exit_no;
  }
}

void add_all(CLI::App& app, Context& context) {
  app.set_version_flag("--version", "xrt " + std::string(version()));
  app.add_option("--device", context.device_text, "Where models run, and problems that name no device (default cpu:0)")
      ->type_name("DEVICE");
  // One path each time: what follows is the command.
  app.add_option("--plugin", context.plugins, "Open a backend from this shared library; may be given several times")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.require_subcommand(1);
  for (const auto add :
       {add_devices, add_profile, add_kernels, add_explain, add_inspect, add_run, add_bench, add_tune, add_policy,
        add_lock, add_store, add_cache, add_report, add_trace, add_amp, add_demo, add_completion}) {
    add(app, context);
  }
  app.footer("Each command has its own --help with an example. Exit codes: 0 fine, 1 the answer is no, 2 wrong usage.");
}

[[noreturn]] void refuse_unknown(const char* what, const std::string& name, const std::vector<std::string>& known) {
  fail_unknown("xrt", what, name, std::vector<std::string_view>(known.begin(), known.end()));
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app, const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* owner : {command, &app}) {
    if (owner == nullptr) continue;
    for (const CLI::Option* option : owner->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        // Every command has a --help, as xrt itself has.
        if (std::find(names.begin(), names.end(), "--" + name) == names.end()) names.push_back("--" + name);
      }
    }
  }
  return names;
}

[[noreturn]] void refuse_command_line(const CLI::App& app, const CLI::ParseError& error) {
  const auto given = app.get_subcommands();
  const CLI::App* command = given.empty() ? nullptr : given.front();
  const auto rest = app.remaining(true);
  if (!rest.empty() && rest.front().starts_with("-")) {
    refuse_unknown("option", rest.front(), option_names(app, command));
  }
  if (!rest.empty() && command == nullptr) refuse_unknown("command", rest.front(), command_names(app));
  const bool nothing = command == nullptr && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string help = command == nullptr ? "--help" : command->get_name() + " --help";
  fail(ErrorCode::invalid_argument, "xrt",
       (nothing ? "no command was given" : printable(error.what())) + "; see xrt " + help);
}

/// A policy that is named on the command line stands instead of the environment's, also where that one cannot be read;
/// and what looks at policy files is under none. The environment's lock is for what decides as a program would.
void leave_environment(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) {
    const std::string& name = command->get_name();
    if (name != "explain" && name != "run" && name != "trace") unsetenv("XPURUNTIME_LOCK");
    const CLI::Option* named = command->get_option_no_throw("--policy");
    if ((named != nullptr && named->count() > 0) || command->get_name() == "policy") unsetenv("XPURUNTIME_POLICY");
  }
}

Answer answer(int count, const char* const* arguments) {
  CLI::App app("Shows which kernel runs an operation, why, and how fast.", "xrt");
  Context context;
  add_all(app, context);
  try {
    app.parse(count, arguments);
  } catch (const CLI::CallForHelp&) {
    return {app.help()};
  } catch (const CLI::CallForVersion& version) {
    return {std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    refuse_command_line(app, error);
  }
  for (const auto& check : context.output_checks) check();
  leave_environment(app);
  context.load_plugins();
  Answer said = context.command();
  said.text = context.paint.harmless(said.text);
  return said;
}

int run(int count, const char* const* arguments) {
  try {
    const Answer said = answer(count, arguments);
    return write_to_stdout(said.text) ? said.exit_code : exit_no;
  } catch (const Error& error) {
    // Errors of the command itself would name it twice.
    write_message(error.function() == "xrt" ? error.message() : error.what());
    return exit_code_of(error.code());
  } catch (const std::bad_alloc&) {
    write_message("out of host memory; use smaller shapes");
  } catch (...) {
    write_message(exception_text());
  }
  return exit_no;
}

}  // namespace
}  // namespace xpuruntime::cli

int main(int count, char** arguments) {
  // A reader that goes away (xrt kernels | head -1) shows as an error of the write, not as our death.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // and so does a limit on the size of files
  return xpuruntime::cli::run(count, arguments);
}
