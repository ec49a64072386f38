#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/colour.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cli {

// How the process ends; docs/cli.md.
inline constexpr int exit_fine = 0;
inline constexpr int exit_no = 1;           // a check failed, a refusal, nothing can run it
inline constexpr int exit_wrong_usage = 2;  // names, texts, files or options that cannot be right

/// What a command says on stdout, and how the process ends.
struct Answer {
  std::string text = {};
  int exit_code = exit_fine;
};

/// What all commands share: the options before and after the command's name, and the runtime.
struct Context {
  std::string device_text = {};
  std::vector<std::string> plugins = {};
  bool json = false;
  Painter paint = Painter::for_stdout();
  std::function<Answer()> command = {};                   // set by the parser
  std::vector<std::function<void()>> output_checks = {};  // for after the parser

  ~Context();

  /// Has the runtime load those of the command line after the environment's, before it reads a policy or a lock: these
  /// and texts of all kinds may speak of their devices, ops and kernels.
  void load_plugins();
  /// The process's runtime, opened on the first call.
  Runtime& runtime();
  /// The device that --device names, if it was given.
  std::optional<Device> given_device() const;
  /// Reads a problem. Opens the runtime first: a plugin may bring ops of its own.
  Problem problem(const std::string& text);
  /// The policy of a file that the user named, else one that says nothing: the runtime is under that of
  /// XPURUNTIME_POLICY then.
  static KernelPolicy policy_of(const std::string& file);
  /// A line on stderr: stdout holds only the answer.
  void note(std::string_view message) const;

 private:
  bool opened_ = false;
};

/// --policy and --force, as explain, run and trace take them.
struct PolicyOptions {
  std::string file = {};
  std::string forced = {};

  void add_file_to(CLI::App& command);
  void add_force_to(CLI::App& command);
  /// What the options say about problems of one op, to be layered over the runtime's own policy.
  KernelPolicy policy(Context& context, OpId op) const;
  /// The same with the environment's policy where no file is given, for choices outside the runtime.
  KernelPolicy whole_policy(OpId op) const;
};

/// An option that names a file to write. What can be none is refused before the work begins, and so is the file of
/// another option, but for one that is `updated`.
void add_output_to(CLI::App& command, Context& context, const std::string& name, std::string& path,
                   const std::string& about, const std::string& updated = {});

/// --seed, as run and trace take it.
void add_seed_to(CLI::App& command, std::uint64_t& seed);

/// A command with its help, an example for the help's end, and --json.
CLI::App& add_command(CLI::App& app, Context& context, const std::string& name, const std::string& description,
                      const std::string& example);

}  // namespace xpuruntime::cli
