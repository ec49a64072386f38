// A store whose writer was killed, read by whom SQLite gives no locks there. SQLite's own recovery says what is right.

#include "tune/store_image.h"

#include <csignal>
#include <random>
#include <set>

#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

class StoreImage : public StoreTest {
 protected:
  /// Leaves entries 2, 3 and 4 in the log alone: a reader in another process keeps the log from being emptied, and the
  /// writer ends without closing.
  void leave_log() {
    { open_store(path_)->put(xeon(), record_of(problem(1))); }
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t reader = start_child([&] {
      sqlite3* database = nullptr;
      sqlite3_open(path_.c_str(), &database);
      sqlite3_exec(database, "BEGIN; SELECT count(*) FROM entry", nullptr, nullptr, nullptr);
      if (write(ready[1], "x", 1) != 1) return 1;
      pause();
      return 0;
    });
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_EQ(run_child([this] {
                MeasurementStore* const store = open_store(path_).release();
                for (int i = 2; i <= 4; ++i) store->put(xeon(), record_of(problem(i)));
                return 0;
              }),
              0);
    kill(reader, SIGKILL);
    wait_for(reader);
    close(ready[0]);
    close(ready[1]);
    log_ = bytes_of(path_ + "-wal");
    ASSERT_GT(log_.size(), 32u);
  }
  void write_log(const std::string& log) const {
    std::ofstream(path_ + "-wal", std::ios::binary | std::ios::trunc) << log;
  }
  /// All problems in a file, by SQLite alone.
  static std::string problems_in(const std::string& path) {
    sqlite3* database = nullptr;
    std::string found;
    sqlite3_open(path.c_str(), &database);
    const auto take = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) += std::string(values[0]) + "\n";
      return 0;
    };
    if (sqlite3_exec(database, "SELECT problem FROM entry ORDER BY problem", take, &found, nullptr) != SQLITE_OK) {
      found = sqlite3_errmsg(database);
    }
    sqlite3_close(database);
    return found;
  }

  std::string log_ = {};
};

TEST_F(StoreImage, HoldsWhatSqliteRecoversHoweverTheLogWasCutOrChanged) {
  leave_log();
  const std::string file = bytes();
  const std::string image = (folder_ / "image").string(), copy = (folder_ / "copy").string();
  std::mt19937 random(7);
  std::set<std::string> results;
  const std::size_t frame = 24 + 4096;
  for (int i = 0; i < reduced(120); ++i) {
    std::string log = log_;
    if (i % 3 == 1) log.resize(i % 2 == 0 ? random() % log.size() : 32 + random() % (log.size() / frame + 1) * frame);
    if (i % 3 == 2) log[random() % (i % 2 == 0 ? log.size() : 64)] ^= static_cast<char>(1 + random() % 255);
    for (const char* beside : {"-wal", "-shm"}) fs::remove(copy + beside);
    std::ofstream(copy, std::ios::binary | std::ios::trunc) << file;
    std::ofstream(copy + "-wal", std::ios::binary | std::ios::trunc) << log;
    std::string applied = file;
    apply_log(applied, log);
    applied[18] = applied[19] = 1;  // without a log
    std::ofstream(image, std::ios::binary | std::ios::trunc) << applied;
    const std::string expected = problems_in(copy);
    EXPECT_EQ(problems_in(image), expected) << "round " << i;
    results.insert(expected);
  }
  EXPECT_GE(results.size(), reduced() == 1 ? 4u : 1u);  // one to four entries
}

TEST_F(StoreImage, OfAKilledWriterIsReadAtOnceByOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  leave_log();
  fs::permissions(folder_, fs::perms{0755});
  const auto entries_for_nobody = [this] {
    return run_child([this] {
      constexpr uid_t nobody = 65534;
      if (setgid(nobody) != 0 || setuid(nobody) != 0) return 77;
      const auto store = open_store(path_, StoreMode::read_only);
      store->check();
      return static_cast<int>(entry_count(store->read()));
    });
  };
  EXPECT_EQ(entries_for_nobody(), 16);
  // Killed while it began the log anew: a header, which what readers share knows nothing of.
  write_log(log_.substr(0, 32));
  EXPECT_EQ(entries_for_nobody(), 4);
  write_log("");
  EXPECT_EQ(entries_for_nobody(), 4);
}

// Who can put a log beside an open store would choose its kernels.
TEST_F(StoreImage, ALogThatSomebodyElseBringsIsRefusedEachTime) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  leave_log();
  for (const char* beside : {"-wal", "-shm"}) fs::remove(path_ + beside);
  fs::permissions(folder_, fs::perms{01777});
  constexpr uid_t nobody = 65534, stranger = 65533;
  ASSERT_EQ(seteuid(nobody), 0);
  const auto store = open_store(path_, StoreMode::read_only);
  EXPECT_EQ(entry_count(store->read()), 4u);
  ASSERT_EQ(seteuid(0), 0);
  write_log(log_);
  ASSERT_EQ(chown((path_ + "-wal").c_str(), stranger, stranger), 0);
  ASSERT_EQ(seteuid(nobody), 0);
  expect_error(ErrorCode::io_error, "belongs to user 65533", [&] { store->read(); });
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_EQ(chown((path_ + "-wal").c_str(), 0, 0), 0);
  fs::resize_file(path_ + "-wal", std::uintmax_t{1} << 31);  // no bytes on the disk
  ASSERT_EQ(seteuid(nobody), 0);
  expect_error(ErrorCode::io_error, "is larger than", [&] { store->read(); });
  ASSERT_EQ(seteuid(0), 0);
  fs::remove(path_ + "-wal");
  fs::create_directory(path_ + "-wal");
  ASSERT_EQ(seteuid(nobody), 0);
  expect_error(ErrorCode::io_error, "no regular file", [&] { store->read(); });
  ASSERT_EQ(seteuid(0), 0);
}

TEST_F(StoreImage, IsReadInAFolderWhereNothingMayBeWritten) {
  leave_log();
  fs::permissions(folder_, fs::perms{0555});
  const int entries = run_child([this] {
    constexpr uid_t nobody = 65534;
    if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) return 77;
    return static_cast<int>(entry_count(open_store(path_, StoreMode::read_only)->read()));
  });
  fs::permissions(folder_, fs::perms{0755});
  EXPECT_EQ(entries, 16);
}

}  // namespace
}  // namespace xpuruntime
