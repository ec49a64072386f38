#include "xpuruntime/tune/store.h"

#include <map>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tune/store_connection.h"
#include "tune/store_rows.h"
#include "tune/store_snapshot.h"

namespace xpuruntime {
namespace {

constexpr const char* function = "MeasurementStore";

class SqliteStore final : public MeasurementStore {
 public:
  SqliteStore(std::shared_ptr<StoreConnection> connection, std::string path, StoreMode mode)
      : connection_(std::move(connection)), path_(std::move(path)), mode_(mode) {}

  void put(const Environment& environment, const TuneRecord& record) override;
  std::shared_ptr<const StoreSnapshot> freeze(const Environment& here) const override;
  StoreContents read(const StoreFilter& filter) const override;
  std::size_t merge(const StoreContents& contents) override;
  std::size_t prune(const StoreFilter& filter) override;
  void check() const override;
  std::string path() const override { return path_; }
  bool read_only() const override { return mode_ == StoreMode::read_only; }

 private:
  using Kind = Transaction::Kind;

  /// Calls `use(rows)` within one transaction; anew where another process was in the way.
  template <class Use>
  auto look(Use use) const {
    return connection_->run([&](const Database& database) { return within(database, Kind::read, use); });
  }
  /// A process may keep its store open for weeks: what it wrote must not lie in the log for so long.
  template <class Use>
  std::size_t change(Use use) {
    return connection_->run([&](const Database& database) {
      const std::size_t count = within(database, Kind::write, use);
      database.checkpoint();
      return count;
    });
  }
  template <class Use>
  static auto within(const Database& database, Kind kind, Use use) {
    Transaction transaction(database, kind);
    StoreRows rows(database);
    if constexpr (std::is_void_v<decltype(use(rows))>) {
      use(rows);
      transaction.commit();
    } else {
      auto result = use(rows);
      transaction.commit();
      return result;
    }
  }
  void check_writable() const;
  [[noreturn]] void refuse(const std::string& message) const {
    fail(ErrorCode::invalid_argument, function, "store '" + path_ + "': " + message);
  }

  std::shared_ptr<StoreConnection> connection_;
  std::string path_;
  StoreMode mode_;
};

void SqliteStore::check_writable() const {
  if (read_only()) refuse("it was opened to read only; open it to write");
}

void SqliteStore::put(const Environment& environment, const TuneRecord& record) {
  check_writable();
  const ProblemEntries entries = by_problem(record, function);
  if (entries.empty()) return;
  change([&](StoreRows& rows) {
    EnvironmentRow& row = rows.environment(environment.to_json());
    for (const auto& [problem, later] : entries) {
      ProblemEntry entry = rows.entry(row, problem);
      entry.put(later);
      rows.write(row, problem, entry);
    }
    rows.save();
    return entries.size();
  });
}

std::size_t SqliteStore::merge(const StoreContents& contents) {
  check_writable();
  std::vector<ProblemEntries> incoming;
  for (const StoreRow& row : contents) incoming.push_back(by_problem(row.record, function));
  return change([&](StoreRows& rows) {
    std::size_t changed = 0;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      if (incoming[i].empty()) continue;
      EnvironmentRow& row = rows.environment(contents[i].environment.to_json());
      for (const auto& [problem, theirs] : incoming[i]) {
        ProblemEntry entry = rows.entry(row, problem);
        const std::size_t taken = entry.merge(theirs);
        if (taken != 0) rows.write(row, problem, entry);
        changed += taken;
      }
    }
    rows.save();
    return changed;
  });
}

bool holds(const StoreFilter& filter, const EnvironmentRow& row) {
  return !filter.environment_id || Environment::from_json(row.json).id() == *filter.environment_id;
}

/// Calls `use(row, problem, body)` for what the filter's op and environment hold for.
template <class Use>
void visit(StoreRows& rows, const StoreFilter& filter, Use use) {
  std::map<const EnvironmentRow*, bool> meant;
  for (const EnvironmentRow& row : rows.environments()) meant[&row] = holds(filter, row);
  rows.visit([&](EnvironmentRow& row, std::string_view problem, std::int64_t, std::string_view body) {
    if (meant[&row] && (!filter.op || is_of_op(problem, *filter.op))) use(row, problem, body);
  });
}

StoreContents SqliteStore::read(const StoreFilter& filter) const {
  return look([&](StoreRows& rows) {
    std::map<std::string, ProblemEntries> found;
    visit(rows, filter, [&](const EnvironmentRow& row, std::string_view problem, std::string_view body) {
      ProblemEntry entry = rows.parse(problem, body);
      entry.keep(filter);
      if (!entry.empty()) found[row.json].emplace(problem, std::move(entry));
    });
    StoreContents contents;
    for (const auto& [json, entries] : found) {
      StoreRow& row = contents.emplace_back();
      row.environment = Environment::from_json(json);
      for (const auto& [problem, entry] : entries) append(row.record, entry);
    }
    return contents;
  });
}

std::size_t SqliteStore::prune(const StoreFilter& filter) {
  check_writable();
  if (!filter.op && !filter.kernel && !filter.environment_id && !filter.older_than) {
    refuse("prune without a filter would remove all; say what is meant");
  }
  return change([&](StoreRows& rows) {
    std::size_t removed = 0;
    std::vector<std::tuple<EnvironmentRow*, std::string, ProblemEntry>> changed;
    visit(rows, filter, [&](EnvironmentRow& row, std::string_view problem, std::string_view body) {
      ProblemEntry entry = rows.parse(problem, body);
      const std::size_t gone = entry.remove(filter);
      removed += gone;
      if (gone != 0) changed.emplace_back(&row, problem, std::move(entry));
    });
    for (const auto& [row, problem, entry] : changed) rows.write(*row, problem, entry);
    rows.save();
    return removed;
  });
}

std::shared_ptr<const StoreSnapshot> SqliteStore::freeze(const Environment& here) const {
  return look([&](StoreRows& rows) {
    std::vector<std::string> stale;
    std::map<const EnvironmentRow*, std::size_t> shown_as;
    for (const EnvironmentRow& row : rows.environments()) {
      const EnvironmentMatch match = compare_environments(Environment::from_json(row.json), here);
      if (match.verdict == EntryVerdict::refuse) continue;
      shown_as[&row] = stale.size();
      stale.push_back(match.reason);
    }
    const auto frozen = std::make_shared<FrozenEntries>(std::move(stale));
    rows.visit([&](EnvironmentRow& row, std::string_view problem, std::int64_t measured_at, std::string_view body) {
      if (const auto at = shown_as.find(&row); at != shown_as.end())
        frozen->add(at->second, problem, measured_at, body);
    });
    return std::shared_ptr<const StoreSnapshot>(frozen);
  });
}

void SqliteStore::check() const {
  look([](StoreRows& rows) {
    rows.visit([&](EnvironmentRow&, std::string_view problem, std::int64_t, std::string_view body) {
      rows.parse(problem, body);
    });
    rows.check_file();
  });
}

}  // namespace

std::unique_ptr<MeasurementStore> open_store(const std::string& path, StoreMode mode) {
  if (path.empty()) fail(ErrorCode::invalid_argument, "open_store", "no file was named; name one");
  return std::make_unique<SqliteStore>(StoreConnection::open(path, mode), path, mode);
}

}  // namespace xpuruntime
