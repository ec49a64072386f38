#include "cli/store_option.h"

#include <filesystem>

namespace xpuruntime::cli {

void StoreOption::add_to(CLI::App& command) {
  command
      .add_option("--store", path, "Measured choices from this file (default: $XPURUNTIME_STORE, or the user's cache)")
      ->type_name("FILE");
}

std::string StoreOption::file() const { return path.empty() ? default_store_path() : path; }

void StoreOption::use_in(Runtime& runtime, StoreMode mode) const {
  if (mode == StoreMode::read_only && path.empty()) return;  // the runtime opens the user's own when it is asked for
  runtime.use_store(open_store(file(), mode));
}

}  // namespace xpuruntime::cli
