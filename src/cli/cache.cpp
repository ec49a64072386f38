#include "cli/commands.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "xpuruntime/graph/model_cache.h"

namespace xpuruntime::cli {
namespace {

struct CacheRequest {
  std::string action = {};
  std::string folder = {};
};

Answer list(const Context& context, const std::string& cache_dir) {
  const std::string folder = model_cache_folder(cache_dir);
  const std::vector<CachedModel> entries = cached_models(cache_dir);
  if (context.json) {
    Json json = {{"version", 1}, {"folder", folder}, {"entries", Json::array()}};
    for (const CachedModel& entry : entries) {
      json["entries"].push_back({{"key", entry.key}, {"bytes", entry.bytes}, {"used_at", entry.used_at}});
    }
    return {dump_json(json, 2) + "\n"};
  }
  std::string text = printable(folder) + ": " + std::to_string(entries.size()) +
                     (entries.size() == 1 ? " compiled model\n" : " compiled models\n");
  if (entries.empty()) return {text};
  Table table({"key", "size"});
  for (const CachedModel& entry : entries) {
    table.add({entry.key.substr(0, 16), figure("%.1f kB", static_cast<double>(entry.bytes) / 1e3)});
  }
  return {text + table.to_text(context.paint)};
}

Answer clear(const Context& context, const std::string& cache_dir) {
  const std::string folder = model_cache_folder(cache_dir);
  const std::size_t removed = clear_cached_models(cache_dir);
  if (context.json) return {dump_json({{"version", 1}, {"folder", folder}, {"removed", removed}}, 2) + "\n"};
  return {"removed " + std::to_string(removed) + (removed == 1 ? " compiled model" : " compiled models") + " from " +
          printable(folder) + "\n"};
}

}  // namespace

void add_cache(CLI::App& app, Context& context) {
  CLI::App& command = add_command(app, context, "cache", "List or remove the compiled models that engines keep",
                                  "xrt cache list\n  xrt cache clear");
  const auto options = std::make_shared<CacheRequest>();
  command.add_option("action", options->action, "list or clear")
      ->type_name("ACTION")
      ->required()
      ->check(CLI::IsMember({"list", "clear"}));
  command
      .add_option("--dir", options->folder,
                  "This folder (default: $XPURUNTIME_MODEL_CACHE, or xpuruntime/models in the user's cache folder)")
      ->type_name("FILE");
  command.callback([&context, options] {
    context.command = [&context, options] {
      return options->action == "list" ? list(context, options->folder) : clear(context, options->folder);
    };
  });
}

}  // namespace xpuruntime::cli
