#include "cli/store_option.h"

#include "core/claimed_files.h"
#include "core/json_text.h"

namespace xpuruntime::cli {

void StoreOption::add_to(CLI::App& command) {
  command
      .add_option("--store", path, "Measured choices from this file (default: $XPURUNTIME_STORE, or the user's cache)")
      ->type_name("FILE");
}

std::string StoreOption::file() const { return path.empty() ? default_store_path() : path; }

void StoreOption::check_output(const std::string& output) const {
  const std::string store = file(), owner = main_file_of(output);
  if (!same_file(output, store) && (owner.empty() || !same_file(owner, store))) return;
  fail(ErrorCode::invalid_argument, "xrt",
       "'" + output + "' cannot be written: it is the store '" + store + "' or belongs to it; name another file");
}

void StoreOption::use_in(Runtime& runtime, StoreMode mode) const {
  if (mode == StoreMode::read_only && path.empty()) return;  // the runtime opens the user's own when it is asked for
  runtime.use_store(open_store(file(), mode));
}

}  // namespace xpuruntime::cli
