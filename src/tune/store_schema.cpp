#include "tune/store_schema.h"

#include <filesystem>
#include <vector>

#include "tune/store_rows.h"

// An entry is all that one environment knows about one problem, as one line of JSON: it is read, checked and replaced
// as a whole. Checksums make a tree (totals, environments, entries), so that a row which was changed, lost or moved
// shows, whichever part of the file was hit.

namespace xpuruntime {
namespace {

constexpr std::uint32_t application_id = 0x58525453;  // "XRTS"

struct Table {
  const char* name = "";
  const char* sql = "";
};

constexpr Table tables[] = {
    {"environment",
     "CREATE TABLE environment (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE, entries INTEGER NOT NULL, "
     "digest INTEGER NOT NULL, checksum INTEGER NOT NULL)"},
    {"entry",
     "CREATE TABLE entry (id INTEGER PRIMARY KEY, environment INTEGER NOT NULL REFERENCES environment (id), "
     "problem TEXT NOT NULL, measured_at INTEGER NOT NULL, body TEXT NOT NULL, checksum INTEGER NOT NULL, "
     "UNIQUE (environment, problem))"},
    {"totals",
     "CREATE TABLE totals (id INTEGER PRIMARY KEY CHECK (id = 1), environments INTEGER NOT NULL, "
     "digest INTEGER NOT NULL)"},
};

void create_tables(const Database& database) {
  for (const Table& table : tables) database.execute(table.sql);
  database.execute("INSERT INTO totals VALUES (1, 0, 0)");
}

void sign(const Database& database) {
  database.execute(("PRAGMA application_id = " + std::to_string(application_id)).c_str());
  database.execute(("PRAGMA user_version = " + std::to_string(store_version)).c_str());
}

// ---- version 1: the same without checksums, totals and the time of an entry; version 2: without kernel_version, which
// an entry may lack, so that its rows need no change ----

struct OldRow {
  std::string environment = {};
  std::string problem = {};
  std::string body = {};
};

std::vector<OldRow> read_version_1(const Database& database) {
  std::vector<OldRow> rows;
  Statement select(database,
                   "SELECT environment.json, entry.problem, entry.body FROM entry JOIN environment "
                   "ON environment.id = entry.environment ORDER BY entry.id");
  while (select.step()) {
    rows.push_back({std::string(select.text(0)), std::string(select.text(1)), std::string(select.text(2))});
  }
  return rows;
}

void create_from(const std::vector<OldRow>& rows, const Database& database) {
  create_tables(database);
  StoreRows store(database);
  for (const OldRow& row : rows) {
    EnvironmentRow& environment = store.environment(row.environment);
    store.write(environment, row.problem, store.parse(row.problem, row.body));
  }
  store.save();
  sign(database);
}

// ---- whose file it is ----

[[noreturn]] void refuse_foreign(const std::string& path) {
  fail(ErrorCode::corrupt_data, "open_store",
       "'" + path + "' is not a store of measurements; name another file. This one was left as it is");
}

[[noreturn]] void refuse_newer(const std::string& path, std::int64_t version) {
  fail(ErrorCode::not_supported, "open_store",
       "'" + path + "' is a store of version " + std::to_string(version) + ", and this library knows up to " +
           std::to_string(store_version) + "; use a newer one. The file was left as it is");
}

void check_numbers(const std::string& path, std::int64_t id, std::int64_t version) {
  if (id != application_id) refuse_foreign(path);
  if (version > store_version) refuse_newer(path, version);
  if (version < 1) refuse_foreign(path);
}

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

/// Refuses a file that is no store, or one of a later version, from its first bytes: before any SQL. False if it has
/// none.
bool has_header(const Database& database) {
  constexpr std::size_t header_bytes = 100;
  const std::string header = database.first_bytes(header_bytes);
  if (header.empty()) {
    // SQLite takes a file of one byte for an empty one.
    std::error_code ignored;
    if (std::filesystem::file_size(database.path(), ignored) == 1) refuse_foreign(database.path());
    return false;
  }
  if (header.size() < header_bytes || !header.starts_with("SQLite format 3")) refuse_foreign(database.path());
  const std::uint32_t version = big_endian(&header[60]), id = big_endian(&header[68]);
  // All zero: the rest may still be in the log, or it is another program's; SQLite will tell.
  if (id != 0 || version != 0) check_numbers(database.path(), id, version);
  return true;
}

/// Nothing was written yet: an empty file, or one whose maker is at work or was interrupted. Of an empty one SQLite is
/// not asked: it would remove a log beside it.
bool is_blank(const Database& database) {
  if (!has_header(database)) return true;
  return database.number("PRAGMA application_id") == 0 && database.number("PRAGMA user_version") == 0 &&
         database.number("SELECT count(*) FROM sqlite_schema") == 0;
}

void create_or_migrate(const Database& database) {
  Transaction transaction(database, Transaction::Kind::write);
  if (is_blank(database)) {
    create_tables(database);
    sign(database);
  } else {
    const std::int64_t version = database.number("PRAGMA user_version");
    check_numbers(database.path(), database.number("PRAGMA application_id"), version);
    if (version == 1) {
      const std::vector<OldRow> rows = read_version_1(database);
      database.execute("DROP TABLE entry; DROP TABLE environment");
      create_from(rows, database);
    } else if (version < store_version) {
      sign(database);
    }
  }
  transaction.commit();
}

}  // namespace

void prepare_to_write(const Database& database) {
  if (!is_blank(database)) {
    check_numbers(database.path(), database.number("PRAGMA application_id"), database.number("PRAGMA user_version"));
  }
  if (!database.writable()) {
    database.refuse(ErrorCode::io_error,
                    "it may only be read; check the rights of the file and its folder, or open it to read only");
  }
  database.number("PRAGMA journal_mode = WAL");  // a timeout unless we have the file alone for a moment
  // FULL: a commit is on the disk before `put` returns, so that not even a power cut takes it back. It costs what one
  // sync costs, once for each problem that was tuned for a second.
  database.execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 4194304");
  create_or_migrate(database);
  database.checkpoint();  // what a process left that was killed
  sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

std::unique_ptr<Database> prepare_to_read(const Database& database) {
  std::vector<OldRow> rows;
  if (!is_blank(database)) {
    const std::int64_t version = database.number("PRAGMA user_version");
    check_numbers(database.path(), database.number("PRAGMA application_id"), version);
    if (version >= 2) return nullptr;
    rows = read_version_1(database);
  }
  auto copy = std::make_unique<Database>(database.path(), DatabaseMode::memory);
  create_from(rows, *copy);
  return copy;
}

void check_schema(const Database& database) {
  Statement select(database, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?");
  for (const Table& table : tables) {
    select.restart().bind(std::string_view(table.name));
    if (!select.step() || select.text(0) != table.sql) {
      database.refuse_damaged(std::string("the table '") + table.name + "' is not as it was made");
    }
  }
}

}  // namespace xpuruntime
