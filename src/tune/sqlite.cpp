#include "tune/sqlite.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tune/store_image.h"

namespace xpuruntime {
namespace {

/// In a URI `?`, `#` and `%` have a meaning. Absolute, as the process may change its folder.
std::string uri_of(const std::string& path, DatabaseMode mode) {
  if (mode == DatabaseMode::memory) return ":memory:";
  constexpr char digits[] = "0123456789ABCDEF";
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '?' || c == '#' || c == '%') {
      uri += {'%', digits[byte >> 4], digits[byte & 15]};
    } else {
      uri += c;
    }
  }
  return uri + (mode == DatabaseMode::copied ? "?immutable=1" : "");
}

int flags_of(DatabaseMode mode) {
  const bool writes = mode == DatabaseMode::read_write || mode == DatabaseMode::memory;
  const int access = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  return access | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;  // StoreConnection keeps threads apart
}

struct Meaning {
  ErrorCode code = ErrorCode::io_error;
  const char* advice = "";
};

Meaning meaning_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {ErrorCode::timeout, "another process has been writing for 30 s; see what it does and try again"};
    case SQLITE_FULL:
      return {ErrorCode::io_error, "free some space on that disk and try again. Nothing of it was stored"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return {ErrorCode::io_error, "check your rights to read and write it and its folder, or open it to read only"};
    case SQLITE_NOMEM:
      return {ErrorCode::out_of_memory, "free some memory and try again"};
    case SQLITE_IOERR:
      return {ErrorCode::io_error, "check the disk, its free space and your quota. Nothing of it was stored"};
    default:
      return {ErrorCode::corrupt_data,
              "it was left as it is; move it away and tune again, or put a copy of it in its place"};
  }
}

}  // namespace

Database::Database(const std::string& path, DatabaseMode mode) : path_(path), mode_(mode) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(uri_of(path, mode).c_str(), &opened, flags_of(mode), nullptr);
  handle_.reset(opened);
  if (code != SQLITE_OK) refuse_code(code);
  sqlite3_extended_result_codes(handle(), 1);
  // A file from anywhere: nothing in its schema may run code, and nothing is written before we know whose it is.
  sqlite3_db_config(handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (mode == DatabaseMode::copied) copy_file();
}

/// In place of the file.
void Database::copy_file() {
  std::string bytes = read_store_image(*this);
  if (bytes.empty()) return;
  // In memory there is no log. A file that is too short for a header is refused by what reads it next.
  constexpr std::size_t write_version = 18, read_version = 19;
  if (bytes.size() > read_version) bytes[write_version] = bytes[read_version] = 1;
  auto* const copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size()));
  if (copy == nullptr) refuse_code(SQLITE_NOMEM);
  std::memcpy(copy, bytes.data(), bytes.size());
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  const int code = sqlite3_deserialize(handle(), "main", copy, size, size,
                                       SQLITE_DESERIALIZE_READONLY | SQLITE_DESERIALIZE_FREEONCLOSE);
  if (code != SQLITE_OK) refuse_code(code);
}

void Database::execute(const char* sql) const {
  const int code = sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) refuse_code(code);
}

std::int64_t Database::number(const char* sql) const {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::first_bytes(std::int64_t most) const {
  sqlite3_file* file = nullptr;
  sqlite3_int64 size = 0;
  sqlite3_file_control(handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (file == nullptr || file->pMethods == nullptr) return {};
  if (const int code = file->pMethods->xFileSize(file, &size); code != SQLITE_OK) refuse_code(code);
  std::string bytes(static_cast<std::size_t>(std::min<sqlite3_int64>(size, most)), '\0');
  constexpr std::size_t largest_read = std::size_t{1} << 30;
  for (std::size_t at = 0; at < bytes.size(); at += largest_read) {
    const auto part = static_cast<int>(std::min(bytes.size() - at, largest_read));
    const int code = file->pMethods->xRead(file, &bytes[at], part, static_cast<sqlite3_int64>(at));
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) refuse_code(code);
  }
  return bytes;
}

void Database::checkpoint() const noexcept {
  sqlite3_wal_checkpoint_v2(handle(), "main", SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

void Database::refuse(ErrorCode code, const std::string& message) const {
  fail(code, "MeasurementStore", "store '" + path_ + "': " + message);
}

void Database::refuse_damaged(const std::string& what) const {
  refuse(ErrorCode::corrupt_data, "damaged: " + what + "; " + meaning_of(SQLITE_CORRUPT).advice);
}

void Database::refuse_busy() const {
  const Meaning meaning = meaning_of(SQLITE_BUSY);
  refuse(meaning.code, std::string("busy: ") + meaning.advice);
}

void Database::refuse_code(int code) const {
  const Meaning meaning = meaning_of(code);
  // Of a failed open there may be no connection to ask.
  std::string said = handle() == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle());
  // "disk I/O error" may be a full disk or a quota: the system says which.
  const int of_system = handle() == nullptr ? 0 : sqlite3_system_errno(handle());
  if ((code & 0xff) == SQLITE_IOERR && of_system != 0) said += std::string(" (") + std::strerror(of_system) + ")";
  if (meaning.code == ErrorCode::corrupt_data) refuse_damaged(said);
  refuse(meaning.code, said + "; " + meaning.advice);
}

Statement::Statement(const Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &prepared, nullptr);
  handle_.reset(prepared);
  if (code != SQLITE_OK) database_.refuse_code(code);
}

Statement& Statement::bind(std::int64_t value) {
  const int code = sqlite3_bind_int64(handle_.get(), ++bound_, value);
  if (code != SQLITE_OK) database_.refuse_code(code);
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  const int code =
      sqlite3_bind_text64(handle_.get(), ++bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) database_.refuse_code(code);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.refuse_code(code);
  return false;
}

Statement& Statement::restart() {
  sqlite3_reset(handle_.get());
  bound_ = 0;
  return *this;
}

std::string_view Statement::text(int column) const {
  // As bytes: asked for as text, SQLite would copy it to put a zero behind.
  const void* const bytes = sqlite3_column_blob(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return bytes == nullptr ? std::string_view() : std::string_view(static_cast<const char*>(bytes), size);
}

Transaction::Transaction(const Database& database, Kind kind) : database_(database) {
  // A writer asks for the lock at once: one that read first might find that it may not write any more.
  database_.execute(kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // Some errors have undone it already.
  if (sqlite3_get_autocommit(database_.handle()) == 0) {
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Transaction::commit() { database_.execute("COMMIT"); }

}  // namespace xpuruntime
