#include <set>

#include "cli/commands.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime::cli {
namespace {

// The scripts are made from the parser's own options, so they cannot fall behind them.

std::string names_of_ops() {
  std::string names;
  for (const OpId op : all_ops()) names += std::string(to_string(op)) + " ";
  return names;
}

std::string names_of_kernels() {
  std::set<std::string_view> seen;
  std::string names;
  for (const CatalogueEntry& entry : catalogue()) {
    if (seen.insert(entry.name).second) names += std::string(entry.name) + " ";
  }
  return names;
}

std::string names_of_devices() {
  std::string names;
  for (const DeviceType type : device_types()) names += std::string(to_string(type)) + " ";
  return names;
}

/// The words that a value of this kind may be; nothing for files, numbers and problems.
std::string words_for(const std::string& type_name) {
  if (type_name == "OP") return names_of_ops();
  if (type_name == "KERNEL") return names_of_kernels();
  if (type_name == "DEVICE") return names_of_devices();
  if (type_name == "DTYPE") return "bf16 f16 ";
  // What must be one of some words is named with them: "ACTION:{list,get}".
  const std::size_t open = type_name.find(":{");
  if (open == type_name.npos) return "";
  std::string words = type_name.substr(open + 2);
  for (char& c : words) {
    if (c == ',' || c == '}') c = ' ';
  }
  return words;
}

std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_positional() && !option->get_lnames().empty(); });
}

std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    if (option->get_positional()) words += words_for(option->get_type_name());
  }
  return words;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) { return app.get_subcommands({}); }

std::string join_names(const CLI::App& app, const char* between) {
  std::string names;
  for (const CLI::App* command : commands_of(app)) names += (names.empty() ? "" : between) + command->get_name();
  return names;
}

/// `branch` for each option that takes a value, of the app and of its commands, each name once.
template <class Branch>
std::string value_branches(const CLI::App& app, Branch branch) {
  std::set<std::string> seen;
  std::string text;
  std::vector<const CLI::App*> all = commands_of(app);
  all.push_back(&app);
  for (const CLI::App* command : all) {
    for (const CLI::Option* option : options_of(*command)) {
      const std::string name = "--" + option->get_lnames().front();
      if (option->get_items_expected_max() == 0 || !seen.insert(name).second) continue;
      text += branch(name, option->get_type_name());
    }
  }
  return text;
}

std::string bash_script(const CLI::App& app) {
  std::string text =
      "# xrt completion for bash: eval \"$(xrt completion bash)\"\n"
      "_xrt() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command='' word words=''\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $word in " +
      join_names(app, "|") +
      ") command=$word; break ;; esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case $previous in\n";
  text += value_branches(app, [](const std::string& name, const std::string& type) {
    if (type == "FILE") return "    " + name + ") compopt -o default; return ;;\n";
    return "    " + name + ") mapfile -t COMPREPLY < <(compgen -W '" + words_for(type) +
           "' -- \"$current\"); return ;;\n";
  });
  text += "  esac\n  case $command in\n    '') words='" + join_names(app, " ") + " " + words_of(app) + "' ;;\n";
  for (const CLI::App* command : commands_of(app)) {
    text += "    " + command->get_name() + ") words='" + words_of(*command) + "' ;;\n";
  }
  return text +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "}\n"
         "complete -F _xrt xrt\n";
}

std::string zsh_script(const CLI::App& app) {
  std::string text =
      "#compdef xrt\n"
      "# xrt completion for zsh: save as _xrt in a folder of $fpath\n"
      "_xrt() {\n"
      "  local command='' word\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case $word in (" +
      join_names(app, "|") +
      ") command=$word; break ;; esac\n"
      "  done\n"
      "  case ${words[CURRENT-1]} in\n";
  text += value_branches(app, [](const std::string& name, const std::string& type) {
    return "    (" + name + ") " + (type == "FILE" ? "_files" : "compadd -- " + words_for(type)) + "; return ;;\n";
  });
  text += "  esac\n  case $command in\n    ('') compadd -- " + join_names(app, " ") + " " + words_of(app) + ";;\n";
  for (const CLI::App* command : commands_of(app)) {
    text += "    (" + command->get_name() + ") compadd -- " + words_of(*command) + ";;\n";
  }
  return text + "  esac\n}\n_xrt \"$@\"\n";
}

// Inside single quotes only these two mean something to fish.
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "'";
}

std::string fish_option(const CLI::Option& option, const std::string& condition) {
  std::string line = "complete -c xrt" + condition + " -l " + option.get_lnames().front();
  const std::string words = words_for(option.get_type_name());
  if (option.get_items_expected_max() > 0) line += option.get_type_name() == "FILE" ? " -r -F" : " -x";
  if (!words.empty()) line += " -a " + fish_quoted(words);
  return line + " -d " + fish_quoted(option.get_description()) + "\n";
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# xrt completion for fish: xrt completion fish | source\ncomplete -c xrt -f\n";
  for (const CLI::Option* option : options_of(app)) text += fish_option(*option, "");
  for (const CLI::App* command : commands_of(app)) {
    text += "complete -c xrt -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            fish_quoted(command->get_description()) + "\n";
    const std::string condition = " -n '__fish_seen_subcommand_from " + command->get_name() + "'";
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_lnames().empty()) text += fish_option(*option, condition);
      const std::string words = option->get_positional() ? words_for(option->get_type_name()) : "";
      if (!words.empty()) text += "complete -c xrt" + condition + " -a " + fish_quoted(words) + "\n";
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  CLI::App& command = *app.add_subcommand("completion", "Print a script that completes xrt's words in your shell");
  command.fallthrough();
  command.footer("Example:\n  eval \"$(xrt completion bash)\"");
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash, zsh or fish")
      ->type_name("SHELL")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command.callback([&app, &context, shell] {
    context.command = [&app, shell]() -> Answer {
      if (*shell == "bash") return {bash_script(app)};
      return {*shell == "zsh" ? zsh_script(app) : fish_script(app)};
    };
  });
}

}  // namespace xpuruntime::cli
