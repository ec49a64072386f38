#pragma once

#include <string>

#include "cli/context.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime::cli {

/// --store, as all commands take it that look at measured choices.
struct StoreOption {
  std::string path = {};

  void add_to(CLI::App& command);
  /// The file that is meant: the one that was named, else the user's.
  std::string file() const;
  /// Refuses a file to write that is the store or belongs to it: one that is still to be made is not known as one.
  void check_output(const std::string& output) const;
  /// Makes the runtime look there. To read: a file that was named must exist, the user's own need not.
  void use_in(Runtime& runtime, StoreMode mode) const;
};

}  // namespace xpuruntime::cli
