#include "tune/store_connection.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "tune/store_place.h"
#include "tune/store_schema.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

// Tuning writes for milliseconds at a time: who waits this long waits for a process that is stuck.
constexpr int most_ms = 30'000;
// Short: who writes one entry after the other lets go for less than a millisecond between them.
constexpr int longest_nap_ms = 5;

struct Connections {
  Mutex mutex;
  std::vector<StoreConnection*> all;
  std::vector<FileId> lost;  // of a parent whose thread was in SQLite when it forked
};

// Never destroyed: a store may be closed by the last static destructor.
Connections& connections() {
  static Connections& instance = *new Connections;
  return instance;
}

[[noreturn]] void refuse(ErrorCode code, const std::string& message) { fail(code, "open_store", message); }

bool owned_by_another(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 && found.st_uid != geteuid();
}

/// Whether SQLite can make and change the files beside the store that its readers share.
bool may_write_beside(const std::string& path) {
  const auto may_write = [](const std::string& name) {
    return faccessat(AT_FDCWD, name.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT;
  };
  return may_write(fs::path(path).parent_path().string()) && may_write(path + "-shm") && may_write(path + "-wal");
}

}  // namespace

bool StoreConnection::Patience::wait() {
  // Naps are counted, as a clock may stand still; and the clock is read, as a try may take long.
  if (slept_ms_ >= most_ms || std::chrono::steady_clock::now() - start_ > std::chrono::milliseconds(most_ms))
    return false;
  std::this_thread::sleep_for(std::chrono::milliseconds(next_ms_));
  slept_ms_ += next_ms_;
  next_ms_ = std::min(2 * next_ms_, longest_nap_ms);
  return true;
}

// ---- one for each file ----

StoreConnection::StoreConnection(Place place)
    : place_(std::move(place)), owner_(getpid()), claim_(std::in_place, place_.path, place_.id) {}

StoreConnection::~StoreConnection() {
  const std::lock_guard lock(connections().mutex);
  std::erase(connections().all, this);
  close();
}

std::shared_ptr<StoreConnection> StoreConnection::open(const std::string& path, StoreMode mode) {
  for (int tries = 0; tries < 10; ++tries) {
    const Place place = made_if_missing(path, mode);
    close_strays();
    const auto connection = shared(place);
    if (connection->prepare(mode)) return connection;
  }
  refuse(ErrorCode::io_error, "'" + path + "' is replaced again and again while it is opened; see what does that");
}

/// SQLite makes the file: nobody else may open it.
StoreConnection::Place StoreConnection::made_if_missing(const std::string& path, StoreMode mode) {
  check_store_name(path);
  if (mode == StoreMode::read_write) make_store_folder(path);
  check_store_place(path, mode);
  if (!file_id(path)) {
    if (mode == StoreMode::read_only) {
      refuse(ErrorCode::io_error, "'" + path + "' is missing; check the name, or tune something into it first");
    }
    { const Database made(path, DatabaseMode::read_write); }
    check_store_place(path, mode);  // a link may have led to another folder
  }
  std::error_code error;
  const std::string file = fs::canonical(path, error).string();
  if (const auto id = file_id(file); id && !error) return {file, *id};
  refuse(ErrorCode::io_error, "'" + path + "' was removed while it was opened; try again");
}

std::shared_ptr<StoreConnection> StoreConnection::shared(const Place& place) {
  const std::lock_guard lock(connections().mutex);
  const auto& lost = connections().lost;
  if (std::find(lost.begin(), lost.end(), place.id) != lost.end()) {
    refuse(ErrorCode::not_supported, "'" + place.path +
                                         "': a thread was reading or writing it when this process was forked, and "
                                         "SQLite cannot open it here; start the process again, or fork earlier");
  }
  for (StoreConnection* const there : connections().all) {
    if (!(there->place_.id == place.id)) continue;
    if (auto connection = there->weak_from_this().lock()) return connection;  // null: it is being closed
  }
  connections().all.reserve(connections().all.size() + 1);  // its destructor takes the lock that is held here
  const auto made = std::shared_ptr<StoreConnection>(new StoreConnection(place));
  connections().all.push_back(made.get());
  return made;
}

/// Of a forked parent's connections SQLite would take over locks that a child does not have. One whose file was removed
/// or replaced would share its log's name, and on closing its locks, with the new file's.
void StoreConnection::close_strays() {
  const std::lock_guard lock(connections().mutex);
  std::erase_if(connections().all, [](StoreConnection* there) {
    if (there->inherited()) {
      there->close();
      return true;
    }
    if (!there->moved()) return false;
    const Turn turn(*there);
    there->close();
    return true;
  });
}

/// With the lock of all connections, or alone.
void StoreConnection::close() {
  if (database_ != nullptr && inherited()) {
    // Its locks are the parent's: nothing may be written here, and nothing touched that a lost thread was at.
    if (in_use_) connections().lost.push_back(place_.id);
    in_use_ ? database_->abandon() : database_->leave_log();
  }
  database_.reset();
  copy_.reset();
  claim_.reset();
}

// ---- whose it is, and whether it is there still ----

bool StoreConnection::inherited() const { return getpid() != owner_; }

void StoreConnection::check_process() const {
  if (!inherited()) return;
  fail(ErrorCode::invalid_argument, "MeasurementStore",
       "store '" + place_.path + "': it was opened before this process was forked; open it again");
}

bool StoreConnection::moved() const {
  struct stat found = {};
  if (stat(place_.path.c_str(), &found) != 0) return errno == ENOENT || errno == ENOTDIR;
  return !(FileId{found.st_dev, found.st_ino} == place_.id);
}

const Database& StoreConnection::checked_database() {
  if (database_ == nullptr || moved()) {
    fail(ErrorCode::io_error, "MeasurementStore",
         "store '" + place_.path + "': the file was moved, removed or replaced since it was opened; open it again");
  }
  // Another process may have made its tables, brought it up to date or written since.
  if (copy_ != nullptr || database_->mode() == DatabaseMode::copied) open_to_read();
  return copy_ != nullptr ? *copy_ : *database_;
}

// ---- opening ----

/// A file that nobody could write when it was opened is looked at again; so is a blank one or one of an older version.
bool StoreConnection::serves(StoreMode mode) const {
  if (database_ == nullptr || copy_ != nullptr) return false;
  if (database_->mode() == DatabaseMode::read_write) return true;
  return mode == StoreMode::read_only && database_->mode() == DatabaseMode::read_only;
}

bool StoreConnection::prepare(StoreMode mode) {
  return with_patience([&] {
    if (moved()) return false;
    if (!serves(mode)) mode == StoreMode::read_write ? open_to_write() : open_to_read();
    return !moved();
  });
}

void StoreConnection::open_to_write() {
  auto database = std::make_unique<Database>(place_.path, DatabaseMode::read_write);
  prepare_to_write(*database);
  check_schema(*database);
  database_ = std::move(database);
  copy_.reset();
}

void StoreConnection::open_to_read() {
  const auto take = [this](std::unique_ptr<Database> database) {
    auto copy = prepare_to_read(*database);
    check_schema(copy != nullptr ? *copy : *database);
    database_ = std::move(database);
    copy_ = std::move(copy);
  };
  // Readers share files beside the store; where SQLite may not write them, it waits for the owner, who may be gone. And
  // whose store it is not leaves nothing there that its owner could not remove.
  if (owned_by_another(place_.path) || !may_write_beside(place_.path)) {
    return take(std::make_unique<Database>(place_.path, DatabaseMode::copied));
  }
  try {
    return take(std::make_unique<Database>(place_.path, DatabaseMode::read_only));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io_error) throw;  // a full disk, for one, has no room for what readers share
  }
  take(std::make_unique<Database>(place_.path, DatabaseMode::copied));
}

}  // namespace xpuruntime
