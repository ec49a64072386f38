#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tune/entry.h"
#include "tune/sqlite.h"

namespace xpuruntime {

/// An environment as it stands in the file: `digest` is the sum of its entries' checksums.
struct EnvironmentRow {
  std::int64_t id = 0;
  std::string json = {};
  std::int64_t entries = 0;
  std::uint64_t digest = 0;

  std::uint64_t seed = 0;  // of the entries' checksums: an entry that moved to another environment shows
  bool changed = false;
};

/// The tables of a store, within one transaction. Whatever is read is checked; damage is an error.
class StoreRows {
 public:
  explicit StoreRows(const Database& database);

  /// All of them, by id; addresses stay. What `environment` added is among them.
  std::deque<EnvironmentRow>& environments() { return environments_; }
  /// The one with this JSON; a new one is added.
  EnvironmentRow& environment(std::string_view json);

  /// What stands under a problem; empty if nothing does.
  ProblemEntry entry(const EnvironmentRow& environment, std::string_view problem);
  /// Replaces what stands under a problem; an empty entry removes it.
  void write(EnvironmentRow& environment, std::string_view problem, const ProblemEntry& entry);
  /// Sums up what was written. Nothing else may follow.
  void save();

  using Visit =
      std::function<void(EnvironmentRow&, std::string_view problem, std::int64_t measured_at, std::string_view body)>;
  /// Every entry of the store, in the file's order; nothing may be written meanwhile. Missing ones show as damage.
  void visit(const Visit& visit);

  /// SQLite's own look at the file.
  void check_file() const;

  ProblemEntry parse(std::string_view problem, std::string_view body) const;

 private:
  /// One entry's checksum as it stands in the file.
  std::optional<std::uint64_t> stored_checksum(const EnvironmentRow& environment, std::string_view problem);
  void read_environments();

  const Database& database_;
  std::deque<EnvironmentRow> environments_ = {};
  Statement select_;
  Statement insert_;
  Statement remove_;
};

}  // namespace xpuruntime
