#include "xpuruntime/tune/store.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tune/store_rows.h"
#include "tune/store_schema.h"
#include "tune/store_snapshot.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

constexpr const char* function = "MeasurementStore";

class SqliteStore final : public MeasurementStore {
 public:
  SqliteStore(std::unique_ptr<Database> database, StoreMode mode) : database_(std::move(database)), mode_(mode) {}
  ~SqliteStore() override {
    if (getpid() != owner_) database_->abandon();
  }

  void put(const Environment& environment, const TuneRecord& record) override;
  std::shared_ptr<const StoreSnapshot> freeze(const Environment& here) const override;
  StoreContents read(const StoreFilter& filter) const override;
  std::size_t merge(const StoreContents& contents) override;
  std::size_t prune(const StoreFilter& filter) override;
  void check() const override;
  std::string path() const override { return database_->path(); }
  bool read_only() const override { return mode_ == StoreMode::read_only; }

 private:
  using Kind = Transaction::Kind;

  /// Calls `use(rows)` within one transaction, alone on this connection.
  template <class Use>
  auto look(Use use) const {
    const std::lock_guard lock(mutex_);
    return within(Kind::read, use);
  }
  /// A process may keep its store open for weeks: what it wrote must not lie in the log for so long.
  template <class Use>
  std::size_t change(Use use) {
    const std::lock_guard lock(mutex_);
    const std::size_t count = within(Kind::write, use);
    database_->checkpoint();
    return count;
  }
  template <class Use>
  auto within(Kind kind, Use use) const {
    check_process();
    Transaction transaction(*database_, kind);
    StoreRows rows(*database_);
    if constexpr (std::is_void_v<decltype(use(rows))>) {
      use(rows);
      transaction.commit();
    } else {
      auto result = use(rows);
      transaction.commit();
      return result;
    }
  }
  void check_process() const;
  void check_writable() const;

  std::unique_ptr<Database> database_;
  StoreMode mode_;
  mutable Mutex mutex_;
  pid_t owner_ = getpid();
};

// SQLite's locks belong to the process that took them: a child would write past its parent's.
void SqliteStore::check_process() const {
  if (getpid() == owner_) return;
  database_->refuse(ErrorCode::invalid_argument, "it was opened before this process was forked; open it again");
}

void SqliteStore::check_writable() const {
  if (!read_only()) return;
  database_->refuse(ErrorCode::invalid_argument, "it was opened to read only; open it to write");
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
    database_->refuse(ErrorCode::invalid_argument, "prune without a filter would remove all; say what is meant");
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
  look([&](StoreRows& rows) {
    rows.visit([&](EnvironmentRow&, std::string_view problem, std::int64_t, std::string_view body) {
      rows.parse(problem, body);
    });
    Statement check(*database_, "PRAGMA integrity_check(1)");
    if (!check.step() || check.text(0) != "ok") database_->refuse_damaged(std::string(check.text(0)));
  });
}

void make_folder(const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error || fs::is_directory(folder)) return;
  fail(ErrorCode::io_error, "open_store",
       "the folder of '" + path + "' cannot be made: " + error.message() + "; name another place");
}

std::unique_ptr<Database> open_to_write(const std::string& path) {
  make_folder(path);
  holds_store(path);
  auto database = std::make_unique<Database>(path, DatabaseMode::read_write);
  prepare_to_write(*database);
  return database;
}

std::unique_ptr<Database> open_to_read(const std::string& path) {
  if (!holds_store(path)) {
    fail(ErrorCode::io_error, "open_store",
         "'" + path + "' is missing, empty or may not be read; check the name and your rights");
  }
  auto database = std::make_unique<Database>(path, DatabaseMode::read_only);
  try {
    return prepare_to_read(std::move(database));
  } catch (const Error& error) {
    // In a folder that may not be written SQLite cannot make the file that readers share. Without a log there is
    // nothing to share: nobody writes.
    std::error_code absent;
    const auto log_bytes = fs::file_size(path + "-wal", absent);
    if (error.code() != ErrorCode::io_error || (!absent && log_bytes != 0)) throw;
  }
  return prepare_to_read(std::make_unique<Database>(path, DatabaseMode::frozen));
}

}  // namespace

std::unique_ptr<MeasurementStore> open_store(const std::string& path, StoreMode mode) {
  if (path.empty()) fail(ErrorCode::invalid_argument, "open_store", "no file was named; name one");
  std::error_code error;
  if (fs::is_directory(path, error)) {
    fail(ErrorCode::io_error, "open_store", "'" + path + "' is a folder; name a file in it");
  }
  auto database = mode == StoreMode::read_write ? open_to_write(path) : open_to_read(path);
  check_schema(*database);
  return std::make_unique<SqliteStore>(std::move(database), mode);
}

}  // namespace xpuruntime
