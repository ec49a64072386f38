#include <cstdlib>
#include <optional>

#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

using StoreFiles = StoreTest;

/// What another user than root would see; root may do everything. Gives the child's exit code.
int run_as_nobody(const std::function<int()>& work) {
  return run_child([&work] {
    constexpr unsigned nobody = 65534;
    if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) return 77;
    return work();
  });
}

/// 0 if `use` fails with this code and part of a message.
int fails(ErrorCode code, const std::string& part, const std::function<void()>& use) {
  try {
    use();
    return 1;
  } catch (const Error& error) {
    return error.code() == code && std::string(error.what()).find(part) != std::string::npos ? 0 : 2;
  }
}

// ---- versions ----

// What version 1 wrote: no checksums, no sums, no time of an entry.
constexpr const char* version_1 = R"sql(
PRAGMA application_id = 1481790547;
PRAGMA user_version = 1;
CREATE TABLE environment (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
CREATE TABLE entry (id INTEGER PRIMARY KEY, environment INTEGER NOT NULL REFERENCES environment (id),
  problem TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (environment, problem));
INSERT INTO environment VALUES (1, '{"device":"cpu intel Xeon","traits":{"cores":"2"},"versions":{"xpuruntime":"1"}}');
INSERT INTO environment VALUES (7, '{"device":"cuda nvidia H200","traits":{},"versions":{"driver":"580.1"}}');
INSERT INTO entry VALUES (1, 7, 'relu(f32[8]) @cuda:0', '{"choice":null,"measurements":[{"kernel":"elementwise",
  "plan":"","time_us":2.5,"noise_us":0.5,"runs":9,"workspace_bytes":0,"error":0,"measured_at":42}],"quarantine":[]}');
INSERT INTO entry VALUES (2, 1, 'relu(f32[8]) @cpu:0', '{"choice":{"kernel":"simd","plan":"","incumbent":"reference",
  "because":"faster","cut_short":false,"measured_at":41},"measurements":[],"quarantine":[]}');
)sql";

StoreContents version_1_contents() {
  return {{{"cpu intel Xeon", {{"cores", "2"}}, {{"xpuruntime", "1"}}},
           {{}, {{"relu(f32[8]) @cpu:0", "simd", "", "reference", "faster", false, 41}}, {}}},
          {{"cuda nvidia H200", {}, {{"driver", "580.1"}}},
           {{{"relu(f32[8]) @cuda:0", "elementwise", "", 2.5, 0.5, 9, 0, 0, 42}}, {}, {}}}};
}

TEST_F(StoreFiles, AnOlderVersionIsBroughtUpToDateWithAllItHolds) {
  execute(version_1);
  EXPECT_EQ(open_store(path_)->read(), version_1_contents());
  const auto store = open_store(path_, StoreMode::read_only);
  EXPECT_EQ(store->read(), version_1_contents());
  store->check();
}

TEST_F(StoreFiles, AnOlderVersionIsReadAsItIsByAReader) {
  execute(version_1);
  const std::string before = bytes();
  const auto store = open_store(path_, StoreMode::read_only);
  EXPECT_EQ(store->read(), version_1_contents());
  store->check();
  expect_invalid("read only", [&] { store->put(xeon(), record_of(problem(1))); });
  EXPECT_EQ(bytes(), before);
}

TEST_F(StoreFiles, AnOlderVersionThatIsDamagedIsLeftAsItIs) {
  execute(version_1);
  execute("UPDATE entry SET body = 'nonsense' WHERE id = 2");
  expect_error(ErrorCode::corrupt_data, "relu(f32[8]) @cpu:0", [&] { open_store(path_); });
  execute("UPDATE entry SET body = '{\"choice\":null,\"measurements\":[],\"quarantine\":[]}' WHERE id = 2");
  EXPECT_EQ(entry_count(open_store(path_)->read()), 1);
}

// Version 2 is version 3 without kernel_version in any entry.
TEST_F(StoreFiles, VersionTwoIsReadAsItIsAndSignedAnewByAWriter) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  const auto version = [this] {
    const std::string head = bytes();
    return static_cast<int>(head.at(63));  // the low byte of user_version, big-endian at 60
  };
  EXPECT_EQ(version(), 3);
  execute("PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string before = bytes();
  EXPECT_EQ(open_store(path_, StoreMode::read_only)->read(), (StoreContents{{xeon(), record_of(problem(1))}}));
  EXPECT_EQ(bytes(), before);
  const auto store = open_store(path_);
  EXPECT_EQ(store->read(), (StoreContents{{xeon(), record_of(problem(1))}}));
  store->check();
  EXPECT_EQ(version(), 3);
}

TEST_F(StoreFiles, KernelVersionsAreKept) {
  TuneRecord record = record_of(problem(1));
  record.measurements[0].kernel_version = "1.2";
  record.choices[0].kernel_version = "1.3 sha256:00";
  record.quarantine[0].kernel_version = "unversioned 1-2-3";
  open_store(path_)->put(xeon(), record);
  EXPECT_EQ(open_store(path_, StoreMode::read_only)->read(), (StoreContents{{xeon(), record}}));
  record.measurements[0].kernel_version = "2.0";  // takes the place of the older one
  open_store(path_)->put(xeon(), record);
  EXPECT_EQ(open_store(path_)->read(), (StoreContents{{xeon(), record}}));
}

TEST_F(StoreFiles, ANewerVersionIsRefusedAndNotTouched) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  execute("PRAGMA user_version = 4; PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string before = bytes();
  for (const StoreMode mode : {StoreMode::read_write, StoreMode::read_only}) {
    expect_error(ErrorCode::not_supported, "version 4", [&] { open_store(path_, mode); });
  }
  EXPECT_EQ(bytes(), before);
}

// ---- files of others ----

TEST_F(StoreFiles, AFileOfAnotherProgramIsRefusedAndNotTouched) {
  const auto refused = [this] {
    const std::string before = bytes();
    for (const StoreMode mode : {StoreMode::read_write, StoreMode::read_only}) {
      expect_error(ErrorCode::corrupt_data, "not a store", [&] { open_store(path_, mode); });
    }
    EXPECT_EQ(bytes(), before);
    EXPECT_FALSE(fs::exists(path_ + "-wal"));
  };
  write_bytes("a letter to a friend, longer than a hundred bytes: " + std::string(100, 'x'));
  refused();
  write_bytes("short");
  refused();
  write_bytes("");
  execute("CREATE TABLE friend (name TEXT)");  // without an application's number
  refused();
  execute("PRAGMA application_id = 12345");
  refused();
}

// What a maker leaves that was killed at its first write: no bytes, or a header without tables.
TEST_F(StoreFiles, ABlankFileHasNothingForAReaderUntilAWriterMakesItAStore) {
  for (const char* left : {"", "PRAGMA journal_mode = WAL"}) {
    write_bytes("");
    execute(left);
    const auto size = fs::file_size(path_);
    EXPECT_EQ(size, std::string(left).empty() ? 0u : 4096u);
    const auto reader = open_store(path_, StoreMode::read_only);
    EXPECT_TRUE(reader->read().empty());
    EXPECT_EQ(reader->freeze(xeon())->size(), 0u);
    reader->check();
    expect_invalid("read only", [&] { reader->put(xeon(), record_of(problem(1))); });
    EXPECT_EQ(fs::file_size(path_), size);
    EXPECT_EQ(run_child([this] {
                open_store(path_)->put(xeon(), record_of(problem(1)));
                return 0;
              }),
              0);
    EXPECT_EQ(entry_count(reader->read()), 4);  // what another process wrote
    open_store(path_)->put(xeon(), record_of(problem(2)));
    EXPECT_EQ(entry_count(reader->read()), 8);  // and this one
  }
}

TEST_F(StoreFiles, AHeaderThatWasCutOffIsNoBlankFile) {
  execute("PRAGMA journal_mode = WAL");
  write_bytes(bytes().substr(0, 100));
  for (const StoreMode mode : {StoreMode::read_write, StoreMode::read_only}) {
    expect_error(ErrorCode::corrupt_data, path_, [&] { open_store(path_, mode); });
  }
}

TEST_F(StoreFiles, AMakerThatWasInterruptedLeavesWhatTheNextOneCompletes) {
  execute("PRAGMA journal_mode = WAL");
  open_store(path_)->put(xeon(), record_of(problem(1)));
  EXPECT_EQ(entry_count(open_store(path_)->read()), 4);
}

TEST_F(StoreFiles, MissingNamesAreErrorsThatSaySo) {
  expect_error(ErrorCode::invalid_argument, "name one", [] { open_store(""); });
  expect_error(ErrorCode::io_error, "folder", [this] { open_store(folder_.string()); });
  expect_error(ErrorCode::io_error, "missing", [this] { open_store(path_, StoreMode::read_only); });
  EXPECT_FALSE(fs::exists(path_));
  std::ofstream(folder_ / "file") << "x";
  expect_error(ErrorCode::io_error, "folder", [this] { open_store((folder_ / "file" / "store").string()); });
}

TEST_F(StoreFiles, MakesItsFolderAndTakesAnyName) {
  for (const char* name : {"new/folder/store.sqlite", "a name?mode=memory#%41.db", ":memory:"}) {
    const std::string path = (folder_ / name).string();
    open_store(path)->put(xeon(), record_of(problem(1)));
    EXPECT_TRUE(fs::exists(path)) << name;
    EXPECT_EQ(entry_count(open_store(path)->read()), 4) << name;
  }
}

// ---- reading only ----

TEST_F(StoreFiles, AStoreOpenedToReadRefusesToWrite) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  const auto store = open_store(path_, StoreMode::read_only);
  EXPECT_TRUE(store->read_only());
  expect_invalid("read only", [&] { store->put(xeon(), record_of(problem(2))); });
  expect_invalid("read only", [&] { store->merge({{xeon(), record_of(problem(2))}}); });
  expect_invalid("read only", [&] { store->prune({.op = "matmul"}); });
  EXPECT_EQ(entry_count(store->read()), 4);
  EXPECT_TRUE(store->freeze(xeon())->find(problem(1)));
}

TEST_F(StoreFiles, AReaderSeesWhatAWriterHasNotMovedFromItsLogYet) {
  const auto writer = open_store(path_);
  writer->put(xeon(), record_of(problem(1)));
  const auto reader = open_store(path_, StoreMode::read_only);
  EXPECT_EQ(entry_count(reader->read()), 4);
  writer->put(xeon(), record_of(problem(2)));
  EXPECT_EQ(entry_count(reader->read()), 8);
}

TEST_F(StoreFiles, AFolderThatMayNotBeWrittenCanBeReadAndSaysWhyNotMore) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  fs::permissions(path_, fs::perms{0444});
  fs::permissions(folder_, fs::perms{0555});
  const std::string before = bytes();
  const int code = run_as_nobody([this] {
    const auto store = open_store(path_, StoreMode::read_only);
    if (entry_count(store->read()) != 4 || !store->freeze(xeon())->find(problem(1))) return 3;
    store->check();
    if (const int wrong = fails(ErrorCode::io_error, "read", [this] { open_store(path_); })) return 10 + wrong;
    return fails(ErrorCode::io_error, "", [this] { open_store((folder_ / "another").string()); });
  });
  fs::permissions(folder_, fs::perms{0755});
  if (code == 77) GTEST_SKIP() << "root may write everywhere, and this process may not become another user";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(bytes(), before);
}

TEST_F(StoreFiles, AFileThatMayNotBeReadSaysSo) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  fs::permissions(path_, fs::perms{0000});
  fs::permissions(folder_, fs::perms{0755});
  const int code = run_as_nobody([this] {
    const int reading = fails(ErrorCode::io_error, "rights", [this] { open_store(path_, StoreMode::read_only); });
    return reading != 0 ? 10 + reading : fails(ErrorCode::io_error, "check", [this] { open_store(path_); });
  });
  if (code == 77) GTEST_SKIP() << "root may read everything, and this process may not become another user";
  EXPECT_EQ(code, 0);
}

// ---- where it lies ----

class StorePath : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : names) {
      const char* const value = std::getenv(name);
      before_.push_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      before_[i] ? setenv(names[i], before_[i]->c_str(), 1) : unsetenv(names[i]);
    }
  }

  static constexpr const char* names[] = {"XPURUNTIME_STORE", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before_;
};

TEST_F(StorePath, IsTheVariablesElseTheCacheFolders) {
  expect_error(ErrorCode::not_supported, "XPURUNTIME_STORE", [] { default_store_path(); });
  setenv("HOME", "/home/ann", 1);
  EXPECT_EQ(default_store_path(), "/home/ann/.cache/xpuruntime/store.sqlite");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(default_store_path(), "/home/ann/.cache/xpuruntime/store.sqlite");
  setenv("XDG_CACHE_HOME", "/var/cache/ann", 1);
  EXPECT_EQ(default_store_path(), "/var/cache/ann/xpuruntime/store.sqlite");
  setenv("XPURUNTIME_STORE", "here.sqlite", 1);
  EXPECT_EQ(default_store_path(), "here.sqlite");
}

}  // namespace
}  // namespace xpuruntime
