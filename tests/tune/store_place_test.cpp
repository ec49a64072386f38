#include <sys/stat.h>

#include "core/claimed_files.h"
#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

using StorePlace = StoreTest;

constexpr uid_t nobody = 65534;

void expect_refused(const std::string& path, const std::string& part) {
  for (const StoreMode mode : {StoreMode::read_write, StoreMode::read_only}) {
    expect_error(ErrorCode::io_error, part, [&] { open_store(path, mode); });
  }
}

TEST_F(StorePlace, WhatIsNoFileIsRefusedAtOnce) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, "a pipe");  // a reader of it would wait for a writer for ever
  fs::create_symlink(pipe, folder_ / "link");
  expect_refused((folder_ / "link").string(), "a pipe");
  expect_refused("/dev/null", "device");
  expect_refused("/dev/zero", "device");
  expect_refused(folder_.string(), "is a folder");
  fs::create_symlink(folder_ / "loop", folder_ / "loop");
  expect_refused((folder_ / "loop").string(), "symbolic links");
}

TEST_F(StorePlace, FoldersThatAreMadeForItAreTheUsersAlone) {
  const mode_t before = umask(0);
  open_store((folder_ / "a" / "b" / "store.sqlite").string());
  umask(before);
  for (const fs::path& made : {folder_ / "a", folder_ / "a" / "b"}) {
    EXPECT_EQ(fs::status(made).permissions(), fs::perms{0700}) << made;
  }
}

TEST_F(StorePlace, AFolderThatOthersMayWriteIsRefused) {
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  fs::permissions(folder_, fs::perms{0777});
  expect_refused(path_, "may be written by others (mode 0777)");
  fs::create_directory(folder_ / "mine");
  fs::permissions(folder_ / "mine", fs::perms{0700});
  fs::create_symlink(path_, folder_ / "mine" / "link");
  expect_refused((folder_ / "mine" / "link").string(),
                 "may be written by others");  // it is where the file lies that counts
  fs::permissions(folder_, fs::perms{01777});  // as /tmp: nobody can put another file in its place
  EXPECT_EQ(entry_count(open_store(path_)->read()), 4);
  fs::permissions(folder_, fs::perms{0755});
  EXPECT_EQ(entry_count(open_store(path_)->read()), 4);
}

TEST_F(StorePlace, AFileThatOthersMayWriteIsRefused) {
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  fs::permissions(path_, fs::perms{0666});
  expect_refused(path_, "chmod go-w");
  fs::permissions(path_, fs::perms{0600});
  EXPECT_EQ(entry_count(open_store(path_)->read()), 4);
}

TEST_F(StorePlace, AGroupOfTheUsersOwnMayWriteAndAnotherMayNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to other groups";
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  fs::permissions(folder_, fs::perms{0775});
  EXPECT_EQ(entry_count(open_store(path_)->read()), 4);  // umask 002, and root's own group
  ASSERT_EQ(chown(folder_.c_str(), 0, 100), 0);
  expect_refused(path_, "may be written by others (mode 0775)");
}

TEST_F(StorePlace, WhatBelongsToAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to other users";
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  ASSERT_EQ(chown(folder_.c_str(), nobody, nobody), 0);
  expect_refused(path_, "belongs to user 65534");
  expect_refused((folder_ / "new").string(), "belongs to user 65534");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  ASSERT_EQ(chown(folder_.c_str(), 0, 0), 0);
  fs::permissions(folder_, fs::perms{01777});
  std::ofstream(path_ + "-wal") << "from somebody else";  // SQLite would take it for the log
  ASSERT_EQ(chown((path_ + "-wal").c_str(), nobody, nobody), 0);
  expect_refused(path_, "store.sqlite-wal' belongs to user 65534");
}

TEST_F(StorePlace, ALinkThatAnotherUserMadeIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to other users";
  fs::permissions(folder_, fs::perms{01777});
  const fs::path victim = folder_ / "victim";
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    const std::string link = path_ + beside;
    fs::create_symlink(victim, link);
    ASSERT_EQ(lchown(link.c_str(), nobody, nobody), 0);
    expect_refused(path_, "is a link that user 65534 made");
    EXPECT_FALSE(fs::exists(victim));
    fs::remove(link);
  }
}

TEST_F(StorePlace, WhatBelongsToRootMayBeReadByOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  fs::permissions(folder_, fs::perms{0755});
  EXPECT_EQ(run_child([this] {
              if (setgid(nobody) != 0 || setuid(nobody) != 0) return 77;
              return entry_count(open_store(path_, StoreMode::read_only)->read()) == 4 ? 0 : 1;
            }),
            0);
}

TEST_F(StorePlace, AReaderWhoDoesNotOwnItLeavesNothingBesideIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  fs::permissions(folder_, fs::perms{01777});
  EXPECT_EQ(run_child([this] {
              if (setgid(nobody) != 0 || setuid(nobody) != 0) return 77;
              return entry_count(open_store(path_, StoreMode::read_only)->read()) == 4 ? 0 : 1;
            }),
            0);
  EXPECT_FALSE(fs::exists(path_ + "-wal"));
  EXPECT_FALSE(fs::exists(path_ + "-shm"));
  open_store(path_)->put(xeon(), record_of(problem(2)));
}

// No lock keeps the owner from writing meanwhile: what is read must be whole all the same.
TEST_F(StorePlace, AReaderWhoDoesNotOwnItNeverSeesHalfOfWhatIsWritten) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  { open_store(path_)->put(xeon(), record_of(problem(0))); }
  fs::permissions(folder_, fs::perms{0755});
  const pid_t writer = start_child([this]() -> int {
    for (int i = 1;; ++i) open_store(path_)->put(xeon(), record_of(problem(i % 500)));
  });
  EXPECT_EQ(run_child([this] {
              if (setgid(nobody) != 0 || setuid(nobody) != 0) return 77;
              for (int i = 0; i < reduced(100); ++i) open_store(path_, StoreMode::read_only)->check();
              const auto open = open_store(path_, StoreMode::read_only);
              for (int i = 0; i < reduced(100); ++i) open->check();
              return 0;
            }),
            0);
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
}

TEST_F(StorePlace, AFileBesideAStoreIsNoStoreWhetherItIsThereOrNot) {
  const std::string link = (folder_ / "link").string();
  const auto expect_all_refused = [&] {
    for (const char* beside : {"-wal", "-shm", "-journal"}) {
      expect_refused(path_ + beside, "name the store instead: '" + path_ + "'");
      fs::create_symlink(std::string("store.sqlite") + beside, link);
      expect_refused(link, "name the store instead: '" + path_ + "'");
      fs::remove(link);
    }
  };
  expect_all_refused();
  expect_refused((folder_ / "new" / "a-wal").string(), "name the store instead");
  expect_refused("-wal", "beside a store");
  expect_refused(path_ + std::string("\0b", 2), "a zero byte");
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(fs::is_empty(folder_));
  { open_store(path_)->put(xeon(), record_of(problem(1))); }
  expect_all_refused();
  fs::create_symlink("store.sqlite", folder_ / "my-wal");  // it is the name of the file itself that counts
  EXPECT_EQ(entry_count(open_store((folder_ / "my-wal").string())->read()), 4);
}

TEST_F(StorePlace, AFileOfSomethingElseBesideANewOrEmptyStoreIsNotEmptied) {
  for (int round = 0; round < 2; ++round) {
    for (const char* beside : {"-wal", "-journal"}) {
      std::ofstream(path_ + beside) << "{}";
      expect_refused(path_, "is not SQLite's");
      EXPECT_EQ(fs::file_size(path_ + beside), 2u);
      fs::remove(path_ + beside);
    }
    std::ofstream(path_) << "";
  }
  open_store(path_)->put(xeon(), record_of(problem(1)));
}

TEST_F(StorePlace, APipeBesideItIsRefusedAndNotWaitedFor) {
  for (int round = 0; round < 2; ++round) {
    for (const char* beside : {"-wal", "-journal", "-shm"}) {
      ASSERT_EQ(mkfifo((path_ + beside).c_str(), 0600), 0);
      expect_refused(path_, "is no regular file");
      fs::remove(path_ + beside);
    }
    if (round == 0) open_store(path_)->put(xeon(), record_of(problem(1)));
  }
}

TEST_F(StorePlace, AnOpenStoreKeepsItsLocksWhenAFileBesideItIsOpenedAsAStore) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  const std::string index = path_ + "-shm", second = (folder_ / "second").string();
  ASSERT_TRUE(has_lock_on(index));
  expect_refused(index, "name the store instead: '" + path_ + "'");
  fs::create_hard_link(index, second);
  expect_refused(second, "name the store instead: '" + fs::canonical(path_).string() + "'");
  EXPECT_TRUE(has_lock_on(index));
}

TEST_F(StorePlace, AnOpenStoreIsClaimedByEveryName) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  const std::string link = (folder_ / "link").string();
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    EXPECT_TRUE(is_claimed(path_ + beside)) << beside;
    if (!fs::exists(path_ + beside)) continue;  // a journal, which others must not put there
    fs::create_symlink(path_ + beside, link);
    EXPECT_TRUE(is_claimed(link)) << beside;
    fs::remove(link);
    fs::create_hard_link(path_ + beside, link);
    EXPECT_TRUE(is_claimed(link)) << beside;
    fs::remove(link);
  }
  EXPECT_FALSE(is_claimed(path_ + "-other"));
}

}  // namespace
}  // namespace xpuruntime
