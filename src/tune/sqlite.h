#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"

namespace xpuruntime {

/// How a file is opened. `copied` reads it and its log whole into memory, with no lock and no files beside it: for one
/// that is not ours to write. `memory` opens none: what is written there goes with the connection.
enum class DatabaseMode : std::uint8_t { read_write, read_only, copied, memory };

/// One connection to a SQLite file. Not for two threads at once. Errors name the file and say what to do; one that
/// another process has locked is a timeout at once: who can wait tries again.
class Database {
 public:
  Database(const std::string& path, DatabaseMode mode);

  const std::string& path() const { return path_; }
  DatabaseMode mode() const { return mode_; }
  sqlite3* handle() const { return handle_.get(); }
  /// Runs statements that give no rows.
  void execute(const char* sql) const;
  /// The one number that a statement gives.
  std::int64_t number(const char* sql) const;
  /// Its first bytes, as they stand in the file, read by SQLite's own descriptor; no SQL has run and no lock is taken.
  std::string first_bytes(std::int64_t most) const;
  /// False: the system let us open the file only to read it.
  bool writable() const { return sqlite3_db_readonly(handle(), "main") == 0; }
  /// Moves what the log holds into the file itself and empties the log, as far as nobody is in the way: where readers
  /// or a writer are, it moves what it can. Never fails: what stays in the log is as good there.
  void checkpoint() const noexcept;
  /// Closing it will not touch the log.
  void leave_log() const { sqlite3_db_config(handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }
  /// Not even closed from now on: for a process that inherited the connection while a thread was in it.
  void abandon() { [[maybe_unused]] sqlite3* const lost = handle_.release(); }

  [[noreturn]] void refuse(ErrorCode code, const std::string& message) const;
  /// What was read cannot be what was written.
  [[noreturn]] void refuse_damaged(const std::string& what) const;
  /// Another process is in the way: a timeout, as who can wait tries again.
  [[noreturn]] void refuse_busy() const;
  /// With SQLite's words for a code of its own.
  [[noreturn]] void refuse_code(int code) const;

 private:
  void copy_file();

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::string path_;
  DatabaseMode mode_;
  std::unique_ptr<sqlite3, Close> handle_ = nullptr;
};

/// A prepared statement. Values are bound in order, each run anew after `restart`.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  Statement& bind(std::int64_t value);
  Statement& bind(std::string_view text);
  /// True: a row can be read. False: that was all.
  bool step();
  Statement& restart();

  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::uint64_t word(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  /// Stays until the next step.
  std::string_view text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_ = nullptr;
  int bound_ = 0;
};

/// Undone unless it was committed.
class Transaction {
 public:
  enum class Kind : std::uint8_t { read, write };

  Transaction(const Database& database, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  const Database& database_;
};

}  // namespace xpuruntime
