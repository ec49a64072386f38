#include <random>
#include <set>

#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

/// A good store as bytes, and what it holds.
class StoreDamage : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    {
      const auto store = open_store(path_);
      for (int i = 0; i < 60; ++i) store->put(i % 3 == 0 ? h200() : xeon(), record_of(problem(i), i + 0.5));
      good_ = store->read();
    }
    ASSERT_FALSE(fs::exists(path_ + "-wal"));
    bytes_ = bytes();
    ASSERT_GT(bytes_.size(), 5 * 4096);
  }

  /// Reads a store whose file was changed. True if that was noticed; if it was not, nothing may be wrong.
  bool noticed(const std::string& how) {
    bool said = false;
    const auto try_to = [&](const auto& use) {
      try {
        use();
      } catch (const Error& error) {
        said = true;
        const bool fits = error.code() == ErrorCode::corrupt_data || error.code() == ErrorCode::not_supported ||
                          error.code() == ErrorCode::io_error;
        EXPECT_TRUE(fits) << how << ": " << error.what();
      }
    };
    try_to([&] { EXPECT_EQ(open_store(path_, StoreMode::read_only)->read(), good_) << how; });
    try_to([&] { expect_right(*open_store(path_)->freeze(xeon()), how); });
    return said;
  }

  void expect_right(const StoreSnapshot& frozen, const std::string& how) {
    EXPECT_EQ(frozen.size(), 40) << how;
    for (int i = 1; i < 60; i += 7) {
      if (i % 3 == 0) continue;
      const auto entry = frozen.find(problem(i));
      ASSERT_TRUE(entry) << how;
      EXPECT_EQ(entry->measurements, record_of(problem(i), i + 0.5).measurements) << how;
    }
  }

  StoreContents good_ = {};
  std::string bytes_ = {};
};

TEST_F(StoreDamage, AFileCutShortIsNoticedAtEveryLength) {
  for (std::size_t size = 1; size < bytes_.size(); size += size < 200 ? 23 : 1021 * reduced()) {
    write_bytes(bytes_.substr(0, size));
    EXPECT_TRUE(noticed("cut to " + std::to_string(size)));
  }
  for (std::size_t size = 4096; size < bytes_.size(); size += 4096) {
    write_bytes(bytes_.substr(0, size));
    EXPECT_TRUE(noticed("cut to " + std::to_string(size)));
  }
}

TEST_F(StoreDamage, ABitThatFlipsIsNoticedOrChangesNothing) {
  std::mt19937 random(7);
  std::set<std::size_t> offsets;
  for (std::size_t i = 0; i < 100; ++i) offsets.insert(i);  // the file's header
  for (std::size_t page = 0; page < bytes_.size(); page += 4096) {
    for (std::size_t i = 0; i < 12; ++i) offsets.insert(page + (page == 0 ? 100 : 0) + i);  // the page's own
  }
  while (offsets.size() < 1000) offsets.insert(random() % bytes_.size());
  const int step = std::min(reduced() * reduced(), 25);
  int count = 0, tried = 0;
  for (const std::size_t offset : offsets) {
    if (++tried % step != 0) continue;
    std::string damaged = bytes_;
    damaged[offset] = static_cast<char>(damaged[offset] ^ 1 << random() % 8);
    write_bytes(damaged);
    count += noticed("flipped at " + std::to_string(offset)) ? 1 : 0;
  }
  EXPECT_GT(count, tried / step / 4);  // the rest hit what nothing reads
}

TEST_F(StoreDamage, AChangedWordInARowIsNoticedByAllWhoReadIt) {
  std::string damaged = bytes_;
  const auto at = damaged.find("\"time_us\":1.5,");  // the problem 1
  ASSERT_NE(at, std::string::npos);
  damaged[at + 10] = '9';
  write_bytes(damaged);
  const auto store = open_store(path_);
  constexpr ErrorCode corrupt = ErrorCode::corrupt_data;
  expect_error(corrupt, "damaged", [&] { store->freeze(xeon()); });
  expect_error(corrupt, "damaged", [&] { store->read(); });
  expect_error(corrupt, "damaged", [&] { store->check(); });
  expect_error(corrupt, "damaged", [&] { store->prune({.op = "relu"}); });
  expect_error(corrupt, "move it away", [&] { store->put(xeon(), record_of(problem(1))); });
  EXPECT_EQ(bytes().substr(at, 20), damaged.substr(at, 20));
}

TEST_F(StoreDamage, RowsThatWentMissingAreNoticed) {
  constexpr const char* changes[] = {
      "DELETE FROM entry WHERE id = 5",
      "UPDATE entry SET environment = 3 - environment WHERE id = 5",
      "UPDATE environment SET entries = entries + 1 WHERE id = 1",
      "PRAGMA foreign_keys = OFF; DELETE FROM environment WHERE id = 2",
      "DELETE FROM totals",
      "UPDATE totals SET digest = 1",
      "INSERT INTO entry SELECT 1000, environment, problem || ' ', measured_at, body, checksum FROM entry WHERE id = 5",
      "UPDATE entry SET measured_at = measured_at + 1 WHERE id = 5",
      "DROP TABLE totals",
      "ALTER TABLE entry ADD COLUMN colour TEXT",
  };
  for (const char* change : changes) {
    write_bytes(bytes_);
    execute(change);
    EXPECT_TRUE(noticed(change));
  }
}

// ---- the log beside the file ----

TEST_F(StoreTest, TheFileAloneHoldsWhatWasPutWhileTheStoreIsStillOpen) {
  const auto store = open_store(path_);
  const std::string copy = (folder_ / "copy.sqlite").string();
  const auto copied = [&] {
    fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
    return open_store(copy, StoreMode::read_only)->read();
  };
  store->put(xeon(), record_of(problem(1), 1.5));
  EXPECT_EQ(copied(), store->read());
  EXPECT_EQ(time_of(copied(), problem(1), "small"), 1.5);
  store->merge({{h200(), record_of(problem(2), 2.5)}});
  EXPECT_EQ(copied(), store->read());
  store->prune({.kernel = "small"});
  EXPECT_EQ(copied(), store->read());
}

TEST_F(StoreTest, NothingIsLostWithTheLogOfAProcessThatNeverClosedTheStore) {
  ASSERT_EQ(run_child([&] {
              auto* const store = open_store(path_).release();
              for (int i = 0; i < 20; ++i) store->put(xeon(), record_of(problem(i), i + 0.5));
              return 0;
            }),
            0);
  const std::string file = bytes();
  std::string log = bytes_of(path_ + "-wal");
  for (char& byte : log) byte = static_cast<char>(byte ^ 0x10);
  for (const std::string& left : {log, log.substr(0, log.size() / 2), std::string(50'000, 'x'), std::string()}) {
    write_bytes(file);
    std::ofstream(path_ + "-wal", std::ios::binary) << left;
    const auto contents = open_store(path_, StoreMode::read_only)->read();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(time_of(contents, problem(i), "small"), i + 0.5);
    open_store(path_)->check();
  }
}

TEST_F(StoreTest, AReaderInTheWayOfTheLogNeitherHoldsUpNorFailsAPut) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1), 1.5));
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT * FROM entry", nullptr, nullptr, nullptr), SQLITE_OK);
  // Were one of them to wait, that would be for half a minute each.
  for (int i = 2; i < 30; ++i) store->put(xeon(), record_of(problem(i), 2.5));
  EXPECT_EQ(time_of(store->read(), problem(29), "small"), 2.5);
  EXPECT_GT(fs::file_size(path_ + "-wal"), 0u);
  sqlite3_close(reader);
  store->put(xeon(), record_of(problem(30), 3.5));
  EXPECT_EQ(fs::file_size(path_ + "-wal"), 0u);
}

}  // namespace
}  // namespace xpuruntime
