#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "core/fork_guard.h"
#include "core/json_text.h"
#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

/// In memory where it can be: there syncing costs nothing, and more happens at once.
class StoreOpeners : public StoreTest {
 protected:
  StoreOpeners() {
    if (access("/dev/shm", W_OK) == 0) root_ = "/dev/shm";
  }
};

/// A process that says through a pipe what was acknowledged to it.
struct Writer {
  pid_t id = 0;
  int pipe = -1;
};

/// `work(say)` runs in a child; `say(number)` tells that an entry was put.
template <class Work>
Writer start_writer(Work work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = start_child([&] {
    return work([&](int number) {
      if (write(ends[1], &number, sizeof number) != sizeof number) std::abort();
    });
  });
  close(ends[1]);
  return {child, ends[0]};
}

/// At most so many numbers; fewer where the writer has ended.
void hear(const Writer& writer, std::size_t most, std::vector<int>& numbers) {
  int number = 0;
  for (; most > 0 && read(writer.pipe, &number, sizeof number) == sizeof number; --most) numbers.push_back(number);
}

/// Waits until the writer has ended and hears the rest.
void hear_out(const Writer& writer, int expected_end, std::vector<int>& numbers) {
  EXPECT_EQ(wait_for(writer.id), expected_end);
  hear(writer, SIZE_MAX, numbers);
  close(writer.pipe);
}

bool has_ended(pid_t child) {
  siginfo_t ended = {};
  return waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == child;
}

/// Opens, puts one entry, closes: each time it may be the last who leaves the file.
template <class Say>
[[noreturn]] void open_and_close_without_end(const std::string& path, int number, Say say) {
  for (;; ++number) {
    open_store(path)->put(xeon(), record_of(problem(number), number + 1));
    say(number);
  }
}

/// One opener stays; others come and go beside it by other names, to write and to read.
template <class Say>
int write_beside_openers(const std::string& path, const std::vector<std::string>& names, int rounds, Say say) {
  const auto stays = open_store(path);
  for (int round = 0; round < rounds; ++round) {
    const std::string& name = names[static_cast<std::size_t>(round) % names.size()];
    const int number = 2 * round;
    const auto reader = open_store(name, StoreMode::read_only);
    open_store(name)->put(xeon(), record_of(problem(number), number + 1));
    say(number);
    stays->put(xeon(), record_of(problem(number + 1), number + 2));
    say(number + 1);
    if (round % 64 == 0 && !reader->freeze(xeon())->find(problem(number + 1))) return 1;
  }
  return 0;
}

TEST_F(StoreOpeners, NothingAcknowledgedIsLostAmongTwoInOneProcessAndTwoOthersThatAreKilled) {
  const int rounds = reduced(1000);
  open_store(path_);
  fs::create_symlink(path_, folder_ / "link");
  const std::vector<std::string> names = {path_, (folder_ / "link").string(),
                                          (folder_ / "." / "store.sqlite").string()};
  // Its 8,000 bytes fit into the pipe.
  const Writer two = start_writer([&](auto say) { return write_beside_openers(path_, names, rounds, say); });
  std::vector<int> by_others;
  std::mt19937 random(3);
  int number = 1'000'000, others = 0;
  while (!has_ended(two.id)) {
    Writer writers[2];
    for (Writer& writer : writers) {
      writer = start_writer([&](auto say) -> int { open_and_close_without_end(path_, number, say); });
      number += 10'000;
    }
    for (const Writer& writer : writers) {
      // Some die while they open, some between two commits, some within one.
      hear(writer, random() % 8, by_others);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
      kill(writer.id, SIGKILL);
      hear_out(writer, 1000 + SIGKILL, by_others);
      ++others;
    }
  }
  std::vector<int> acknowledged;
  hear_out(two, 0, acknowledged);
  EXPECT_EQ(acknowledged.size(), static_cast<std::size_t>(2 * rounds));
  EXPECT_GE(by_others.size(), static_cast<std::size_t>(others / 2));
  acknowledged.insert(acknowledged.end(), by_others.begin(), by_others.end());
  const auto store = open_store(path_);
  store->check();
  const auto frozen = store->freeze(xeon());
  int lost = 0;
  for (const int said : acknowledged) lost += frozen->find(problem(said)) ? 0 : 1;
  EXPECT_EQ(lost, 0) << "of " << acknowledged.size() << " with " << others << " others";
}

// ---- one opener and another ----

TEST_F(StoreOpeners, AReaderGoesOnWhereAWriterComesAndGoes) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  const auto reader = open_store(path_, StoreMode::read_only);
  EXPECT_EQ(entry_count(reader->read()), 4);
  {
    const auto writer = open_store((folder_ / "." / "store.sqlite").string());
    EXPECT_FALSE(writer->read_only());
    writer->put(xeon(), record_of(problem(2)));
    EXPECT_EQ(entry_count(reader->read()), 8);
  }
  EXPECT_TRUE(reader->read_only());
  expect_invalid("read only", [&] { reader->put(xeon(), record_of(problem(3))); });
  EXPECT_EQ(run_child([this] {
              open_store(path_)->put(xeon(), record_of(problem(4)));
              return 0;
            }),
            0);
  EXPECT_EQ(entry_count(reader->read()), 12);
}

TEST_F(StoreOpeners, AnOlderVersionThatAReaderHasOpenIsBroughtUpToDateByAWriter) {
  execute(
      "PRAGMA application_id = 1481790547; PRAGMA user_version = 1;"
      "CREATE TABLE environment (id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);"
      "CREATE TABLE entry (id INTEGER PRIMARY KEY, environment INTEGER NOT NULL REFERENCES environment (id),"
      "  problem TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (environment, problem));");
  const auto reader = open_store(path_, StoreMode::read_only);
  EXPECT_EQ(entry_count(reader->read()), 0);
  open_store(path_)->put(xeon(), record_of(problem(1)));
  EXPECT_EQ(entry_count(reader->read()), 4);
}

TEST_F(StoreOpeners, ManyThreadsOpenMakeAndCloseTheSameFileAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < reduced(20); ++i) {
        try {
          const std::string path = path_ + std::to_string(i);
          open_store(path)->put(xeon(), record_of(problem(t)));
          if (!open_store(path, StoreMode::read_only)->freeze(xeon())->find(problem(t))) ++failed;
        } catch (const Error&) {
          ++failed;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(entry_count(open_store(path_ + "0")->read()), 16);
}

TEST_F(StoreOpeners, ThreadsReadABlankFileWhileOthersMakeItAStore) {
  const int files = reduced(20);
  for (int i = 0; i < files; ++i) std::ofstream(path_ + std::to_string(i)) << "";
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < files; ++i) {
        const std::string path = path_ + std::to_string(i);
        try {
          if (t % 2 == 1) open_store(path)->put(xeon(), record_of(problem(t)));
          if (t % 2 == 0 && open_store(path, StoreMode::read_only)->freeze(xeon())->size() > 2) ++failed;
        } catch (const Error&) {
          ++failed;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  for (int i = 0; i < files; ++i) EXPECT_EQ(entry_count(open_store(path_ + std::to_string(i))->read()), 8);
}

// ---- a file that goes away ----

TEST_F(StoreOpeners, AFileThatWasRemovedOrReplacedIsAnErrorAndCanBeOpenedAgain) {
  const auto old = open_store(path_);
  old->put(xeon(), record_of(problem(1)));
  fs::remove(path_);  // its log stays: the next file has the same name for its own
  constexpr ErrorCode gone = ErrorCode::io_error;
  expect_error(gone, "open it again", [&] { old->put(xeon(), record_of(problem(2))); });
  expect_error(gone, "open it again", [&] { old->read(); });
  const auto next = open_store(path_);
  next->put(xeon(), record_of(problem(3)));
  expect_error(gone, "open it again", [&] { old->put(xeon(), record_of(problem(4))); });
  EXPECT_EQ(run_child([this] {  // who closes last takes the log away, unless somebody else holds a lock
              open_store(path_)->put(xeon(), record_of(problem(5)));
              return 0;
            }),
            0);
  next->put(xeon(), record_of(problem(6)));
  EXPECT_EQ(entry_count(next->read()), 12);
  next->check();
}

TEST_F(StoreOpeners, AFileThatWasRenamedIsOpenedByItsNewName) {
  const auto old = open_store(path_);
  old->put(xeon(), record_of(problem(1)));
  const std::string moved = (folder_ / "moved.sqlite").string();
  fs::rename(path_, moved);
  expect_error(ErrorCode::io_error, "open it again", [&] { old->read(); });
  const auto next = open_store(moved);
  next->put(xeon(), record_of(problem(2)));
  EXPECT_EQ(entry_count(next->read()), 8);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(StoreOpeners, AFileOfTwoNamesIsNotWritten) {
  open_store(path_)->put(xeon(), record_of(problem(1)));
  fs::create_hard_link(path_, folder_ / "second");
  expect_error(ErrorCode::io_error, "hard link", [this] { open_store(path_); });
  expect_error(ErrorCode::io_error, "hard link", [this] { open_store((folder_ / "second").string()); });
  EXPECT_EQ(entry_count(open_store(path_, StoreMode::read_only)->read()), 4);
}

TEST_F(StoreOpeners, NothingElseInTheLibraryReadsOrReplacesTheFileOfAnOpenStore) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  fs::create_symlink(path_, folder_ / "link");
  const JsonSource source = {"test", "the file: ", "policy"};
  fs::create_hard_link(path_ + "-shm", folder_ / "second");
  for (const std::string& name :
       {path_, (folder_ / "link").string(), path_ + "-wal", path_ + "-shm", (folder_ / "second").string()}) {
    expect_error(ErrorCode::io_error, "has open", [&] { read_text_file(name, source); });
    expect_error(ErrorCode::io_error, "it is a store", [&] { write_file_atomically(name, "{}", source); });
    EXPECT_TRUE(has_lock_on(path_ + "-shm")) << name;
  }
  EXPECT_EQ(entry_count(store->read()), 4);
}

// ---- forks ----

#if !defined(__SANITIZE_THREAD__)  // it does not follow forks of processes with threads

/// A process that locks the file to write when it is told to, until it is told to let go. Made before a store is
/// opened: it must not inherit one.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    int orders[2], answers[2];
    EXPECT_EQ(pipe2(orders, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(answers, O_CLOEXEC), 0);
    id_ = start_child([&] {
      close(orders[1]);
      char byte = 0;
      if (read(orders[0], &byte, 1) != 1) return 1;
      sqlite3* database = nullptr;
      if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) return 2;
      if (sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) return 3;
      if (write(answers[1], &byte, 1) != 1) return 4;
      return read(orders[0], &byte, 1) == 0 ? 0 : 5;
    });
    close(orders[0]);
    close(answers[1]);
    orders_ = orders[1];
    answers_ = answers[0];
  }
  void lock() const {
    char byte = 0;
    EXPECT_EQ(write(orders_, &byte, 1), 1);
    EXPECT_EQ(read(answers_, &byte, 1), 1);
  }
  void let_go() const {
    close(orders_);
    close(answers_);
    EXPECT_EQ(wait_for(id_), 0);
  }

 private:
  pid_t id_ = 0;
  int orders_ = -1;
  int answers_ = -1;
};

TEST_F(StoreOpeners, AForkDoesNotWaitForAThreadThatWaitsForAnotherProcess) {
  const Holder holder(path_);
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  holder.lock();
  std::atomic<int> waiting = 0, over = 0;
  std::vector<std::thread> threads;
  for (int i = 2; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ++waiting;
      EXPECT_NO_THROW(store->put(xeon(), record_of(problem(i))));
      ++over;
    });
  }
  while (waiting < 2) std::this_thread::yield();
  // The threads wait for half a minute at most, which 20 forks take on a busy machine under a sanitizer.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  for (int i = 0; i < 20 && (i == 0 || std::chrono::steady_clock::now() < end); ++i) {
    EXPECT_EQ(run_child([&] {
                alarm(60);  // a child that hangs would hang for ever
                try {
                  store->put(xeon(), record_of(problem(9)));
                  return 1;
                } catch (const Error& error) {
                  if (std::string(error.what()).find("forked; open it again") == std::string::npos) return 2;
                }
                return entry_count(open_store(path_, StoreMode::read_only)->read()) == 4 ? 0 : 3;
              }),
              0);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  EXPECT_EQ(over, 0);
  EXPECT_EQ(entry_count(store->read()), 4);  // nor do other threads
  EXPECT_EQ(forks_given_up(), 0);
  holder.let_go();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entry_count(store->read()), 12);
}

#endif

TEST_F(StoreOpeners, AChildThatClosesWhatItInheritedTakesNothingFromItsParent) {
  auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  EXPECT_EQ(run_child([&] {
              store.reset();
              return fs::exists(path_ + "-wal") ? 0 : 1;
            }),
            0);
  EXPECT_EQ(run_child([this] {
              open_store(path_)->put(xeon(), record_of(problem(2)));
              return fs::exists(path_ + "-wal") ? 0 : 1;  // it was not the last
            }),
            0);
  store->put(xeon(), record_of(problem(3)));
  EXPECT_EQ(entry_count(store->read()), 12);
  store->check();
}

/// The locks that SQLite believes to hold in a child are its parent's: without them others take the log away under it.
TEST_F(StoreOpeners, WhatAChildOpenedForItselfIsLockedByItselfWhenItsParentCloses) {
  int told[2], done[2];
  ASSERT_EQ(pipe2(told, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(done, O_CLOEXEC), 0);
  auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  const pid_t child = start_child([&] {
    close(told[1]);
    char byte = 0;
    const auto own = open_store(path_);
    own->put(xeon(), record_of(problem(2)));
    if (write(done[1], &byte, 1) != 1 || read(told[0], &byte, 1) != 0) return 1;
    own->put(xeon(), record_of(problem(3)));
    return 0;
  });
  close(told[0]);
  char byte = 0;
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  store.reset();
  EXPECT_EQ(run_child([this] {  // the last to close, if the child's own locks are not seen
              open_store(path_)->put(xeon(), record_of(problem(4)));
              return 0;
            }),
            0);
  close(told[1]);
  EXPECT_EQ(wait_for(child), 0);
  close(done[0]);
  close(done[1]);
  const auto now = open_store(path_);
  now->check();
  EXPECT_EQ(entry_count(now->read()), 16);
}

}  // namespace
}  // namespace xpuruntime
