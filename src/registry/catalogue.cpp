#include "xpuruntime/registry/catalogue.h"

#include <algorithm>
#include <deque>

#include "registry/builtin_catalogue.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

/// Names from plugins and from register_kernel. Entries are never removed, so views of their texts stay good.
struct Remembered {
  Mutex mutex;
  std::deque<std::string> texts;
  std::vector<CatalogueEntry> entries;

  std::string_view keep(std::string_view text, std::string_view otherwise = {}) {
    return texts.emplace_back(text.empty() ? otherwise : text);
  }
};

Remembered& remembered() {
  static Remembered& instance = *new Remembered;  // for ever: daemon threads decide while a process ends
  return instance;
}

}  // namespace

std::vector<CatalogueEntry> catalogue() {
  const std::span<const CatalogueEntry> built_in = builtin_catalogue();
  std::vector<CatalogueEntry> all(built_in.begin(), built_in.end());
  Remembered& more = remembered();
  const std::lock_guard lock(more.mutex);
  all.insert(all.end(), more.entries.begin(), more.entries.end());
  return all;
}

std::vector<CatalogueEntry> find_in_catalogue(OpId op, std::string_view kernel) {
  std::vector<CatalogueEntry> found;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.op == op && entry.name == kernel) found.push_back(entry);
  }
  return found;
}

std::optional<CatalogueEntry> find_in_catalogue(OpId op, std::string_view kernel, DeviceType device_type) {
  for (const CatalogueEntry& entry : find_in_catalogue(op, kernel)) {
    if (entry.device_type == device_type) return entry;
  }
  return std::nullopt;
}

void remember_kernel(const CatalogueEntry& entry) {
  const auto same = [&](const CatalogueEntry& known) {
    return known.op == entry.op && known.name == entry.name && known.device_type == entry.device_type;
  };
  const std::span<const CatalogueEntry> built_in = builtin_catalogue();
  if (std::any_of(built_in.begin(), built_in.end(), same)) return;
  Remembered& more = remembered();
  const std::lock_guard lock(more.mutex);
  if (std::any_of(more.entries.begin(), more.entries.end(), same)) return;
  more.entries.push_back({entry.op, more.keep(entry.name), entry.device_type,
                          more.keep(entry.summary, "registered at run time"),
                          more.keep(entry.needs, "the code that registers it"), more.keep(entry.libraries),
                          entry.dtypes, entry.directions});
}

}  // namespace xpuruntime
