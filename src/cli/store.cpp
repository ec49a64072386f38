#include <charconv>
#include <cmath>

#include "cli/commands.h"
#include "cli/store_list.h"
#include "cli/store_option.h"
#include "core/duration.h"
#include "core/json_text.h"
#include "xpuruntime/tune/work_group_tuner.h"

namespace xpuruntime::cli {
namespace {

struct StoreRequest {
  std::string action = {};
  std::vector<std::string> files = {};
  StoreOption store = {};
  std::string op = {};
  std::string kernel = {};
  std::string environment = {};
  std::string older_than = {};
  std::string out = {};
  bool dry_run = false;
};

constexpr std::size_t most_import_bytes = std::size_t{1} << 30;

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::invalid_argument, "xrt", message); }

// ---- the filter ----

/// Seconds in "30d", "12h", "90m" or "60s"; negative where it is none.
double seconds_in(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || end - stop != 1) return -1;
  constexpr std::pair<char, double> units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  for (const auto& [unit, seconds] : units) {
    if (*stop == unit) return number * seconds;
  }
  return -1;
}

std::string flaw_of_age(const std::string& text) {
  constexpr double hundred_years = 100 * 365.25 * 86400;
  const double seconds = seconds_in(text);
  if (seconds >= 0 && seconds <= hundred_years) return {};
  return "'" + text + "' is not a valid age; write a number and s, m, h or d, such as 30d";
}

StoreFilter filter_of(const StoreRequest& options, Context& context) {
  StoreFilter filter;
  if (options.op == opencl_kernel_op) {
    filter.op = options.op;
  } else if (!options.op.empty()) {
    context.runtime();  // a plugin may bring ops of its own
    filter.op = std::string(to_string(parse_op(options.op)));
  }
  if (!options.kernel.empty()) filter.kernel = options.kernel;
  if (!options.environment.empty()) filter.environment_id = options.environment;
  if (!options.older_than.empty()) {
    filter.older_than = seconds_since_1970() - std::llround(seconds_in(options.older_than));
  }
  return filter;
}

// ---- the actions ----

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + (count == 1 ? " entry " : " entries ") + what + "\n";
}

/// A path need not be UTF-8.
std::string text_of(const Json& document) { return dump_json(document, 2) + "\n"; }

/// What a change came to, in words or as a document.
Answer told(const Context& context, const std::string& path, const char* key, std::size_t count,
            const std::string& what) {
  if (!context.json) return {counted(count, what)};
  return {text_of(Json{{"version", 1}, {"store", path}, {key, count}})};
}

Answer list(Context& context, const StoreRequest& options) {
  const auto store = open_store(options.store.file(), StoreMode::read_only);
  return {listed(store->path(), store->read(filter_of(options, context)), context)};
}

Answer export_store(Context& context, const StoreRequest& options) {
  const StoreContents contents =
      open_store(options.store.file(), StoreMode::read_only)->read(filter_of(options, context));
  if (options.out.empty()) return {to_json(contents)};
  write_file_atomically(options.out, to_json(contents), {"xrt", "'" + options.out + "' ", "store contents"});
  return told(context, options.store.file(), "exported", entry_count(contents), "written to " + printable(options.out));
}

Answer import_file(Context& context, const StoreRequest& options) {
  const std::string& file = options.files.front();
  const JsonSource source = {"xrt", "'" + file + "': ", "store contents"};
  const StoreContents contents = store_contents_from_json(read_text_file(file, source, most_import_bytes));
  return told(context, options.store.file(), "changed", open_store(options.store.file())->merge(contents), "changed");
}

Answer merge(Context& context, const StoreRequest& options) {
  StoreContents all;
  for (const std::string& file : options.files) {
    for (StoreRow& row : open_store(file, StoreMode::read_only)->read()) all.push_back(std::move(row));
  }
  return told(context, options.store.file(), "changed", open_store(options.store.file())->merge(all), "changed");
}

Answer prune(Context& context, const StoreRequest& options) {
  const StoreFilter filter = filter_of(options, context);
  if (!filter.op && !filter.kernel && !filter.environment_id && !filter.older_than) {
    refuse("prune needs a filter; give --older-than, --op, --kernel or --environment");
  }
  const std::string path = options.store.file();
  if (options.dry_run) {
    const std::size_t count = entry_count(open_store(path, StoreMode::read_only)->read(filter));
    return told(context, path, "would_remove", count, "would be removed");
  }
  open_store(path, StoreMode::read_only);  // one that is missing is not made for this
  return told(context, path, "removed", open_store(path)->prune(filter), "removed");
}

Answer check(Context& context, const StoreRequest& options) {
  const std::string path = options.store.file();
  std::string damage;
  std::size_t count = 0;
  try {
    const auto store = open_store(path, StoreMode::read_only);
    store->check();
    count = entry_count(store->read());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt_data) throw;
    damage = error.what();
  }
  const int code = damage.empty() ? exit_fine : exit_no;
  if (!context.json) return {damage.empty() ? counted(count, "and no damage") : damage + "\n", code};
  const Json document = {{"version", 1},
                         {"store", path},
                         {"entries", damage.empty() ? Json(count) : Json(nullptr)},
                         {"damage", damage.empty() ? Json(nullptr) : Json(damage)}};
  return {text_of(document), code};
}

struct StoreAction {
  const char* name = "";
  Answer (*run)(Context&, const StoreRequest&) = nullptr;
  std::size_t fewest_files = 0;
  std::size_t most_files = 0;
  const char* usage = "";
};

constexpr StoreAction store_actions[] = {
    {"list", list, 0, 0, "xrt store list"},
    {"export", export_store, 0, 0, "xrt store export --out FILE"},
    {"import", import_file, 1, 1, "xrt store import FILE"},
    {"merge", merge, 1, SIZE_MAX, "xrt store merge OTHER_STORE..."},
    {"prune", prune, 0, 0, "xrt store prune --older-than 30d"},
    {"check", check, 0, 0, "xrt store check"},
};

const StoreAction& action_of(const StoreRequest& options) {
  for (const StoreAction& action : store_actions) {
    if (options.action != action.name) continue;
    if (options.files.size() < action.fewest_files || options.files.size() > action.most_files) {
      refuse(std::string("store ") + action.name + " takes " + (action.most_files == 0 ? "no" : "a") +
             " file here; write " + action.usage);
    }
    return action;
  }
  refuse("unknown command of store '" + options.action + "'; see xrt store --help");
}

Answer run(Context& context, const StoreRequest& options) {
  const StoreAction& action = action_of(options);
  const bool prunes = options.action == "prune";
  if (!prunes && (options.dry_run || !options.older_than.empty()))
    refuse("only prune takes --dry-run and --older-than");
  if (options.action != "export" && !options.out.empty()) refuse("only export takes --out");
  return action.run(context, options);
}

}  // namespace

void add_store(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "store", "Inspect, export, merge, prune and check the store of measurements",
                  "xrt store export --op matmul --out matmul.json");
  const auto options = std::make_shared<StoreRequest>();
  command
      .add_option(
          "action", options->action,
          "list; export; import FILE; merge STORE...; prune: remove what matches the filters; check: read it all")
      ->type_name("ACTION")
      ->required()
      ->check(CLI::IsMember({"list", "export", "import", "merge", "prune", "check"}));
  command.add_option("files", options->files, "The files that import and merge read")->type_name("FILE");
  options->store.add_to(command);
  command
      .add_option("--op", options->op, "Only entries of this op; opencl_kernel: local sizes of OpenCL kernels of users")
      ->type_name("OP");
  command.add_option("--kernel", options->kernel, "Only entries of this kernel")->type_name("KERNEL");
  command.add_option("--environment", options->environment, "Only entries of the environment with this id")
      ->type_name("ID");
  command.add_option("--older-than", options->older_than, "Prune what was measured longer ago, such as 30d or 12h")
      ->type_name("AGE")
      ->check(flaw_of_age);
  add_output_to(command, context, "--out", options->out, "Where export writes (default: stdout)");
  command.add_flag("--dry-run", options->dry_run, "Say what prune would remove, and remove nothing");
  command.callback([&context, options] { context.command = [&context, options] { return run(context, *options); }; });
}

}  // namespace xpuruntime::cli
