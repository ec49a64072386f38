#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/claimed_files.h"
#include "tune/sqlite.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// The one connection of this process to a store's file, shared by all who have opened it by whatever name. SQLite's
/// locks are the process's, not the connection's, so nothing else in it may open or close the file.
class StoreConnection : public std::enable_shared_from_this<StoreConnection> {
 public:
  /// To write, a file that is missing is made. One that is open to read only is then opened anew for all.
  static std::shared_ptr<StoreConnection> open(const std::string& path, StoreMode mode);
  ~StoreConnection();
  StoreConnection(const StoreConnection&) = delete;
  StoreConnection& operator=(const StoreConnection&) = delete;

  /// Calls `use(database)`, one thread at a time; again and again for half a minute where another process is in the
  /// way. Nothing is locked between the calls: neither forks nor other threads wait for that process.
  template <class Use>
  auto run(Use use) {
    return with_patience([&] { return use(checked_database()); });
  }

 private:
  /// Where a file is: its path without links, and which file lay there.
  struct Place {
    std::string path = {};
    FileId id = {};
  };

  explicit StoreConnection(Place place);

  static Place made_if_missing(const std::string& path, StoreMode mode);
  static std::shared_ptr<StoreConnection> shared(const Place& place);
  static void close_strays();

  /// Sleeps a little; false when half a minute has gone.
  class Patience {
   public:
    bool wait();

   private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    int slept_ms_ = 0;
    int next_ms_ = 1;
  };
  /// While a thread is in SQLite.
  class Turn {
   public:
    explicit Turn(StoreConnection& of) : of_(of), lock_(of.mutex_) { of_.in_use_ = true; }
    ~Turn() { of_.in_use_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    StoreConnection& of_;
    std::lock_guard<Mutex> lock_;
  };
  template <class Use>
  auto with_patience(Use use) {
    for (Patience patience;;) {
      check_process();  // before the mutex: a thread that a forked child does not have may have locked it
      try {
        const Turn turn(*this);
        return use();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::timeout || !patience.wait()) throw;
      }
    }
  }

  void check_process() const;
  const Database& checked_database();
  bool inherited() const;
  bool moved() const;
  bool serves(StoreMode mode) const;
  /// False: another file has taken the place of the one that is meant.
  bool prepare(StoreMode mode);
  void open_to_write();
  void open_to_read();
  void close();

  const Place place_;
  const pid_t owner_;
  std::optional<FileClaim> claim_;
  Mutex mutex_;
  bool in_use_ = false;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Database> copy_;  // in memory, of a blank or older store that was opened to read only
};

}  // namespace xpuruntime
