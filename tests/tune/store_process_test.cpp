#include <fcntl.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>
#include <vector>

#include "tune/store_fixture.h"

namespace xpuruntime {
namespace {

using StoreProcesses = StoreTest;

// ---- kill -9 ----

/// Writes without end; says each entry that was committed through the pipe before it goes on.
int write_without_end(const std::string& path, int pipe, int round) {
  const auto store = open_store(path);
  for (int i = 0;; ++i) {
    const int number = round * 100'000 + i;
    store->put(xeon(), record_of(problem(number), number + 1));
    store->put(xeon(), record_of("the same", number));
    if (i % 16 == 15) store->prune({.op = "nothing"});
    if (write(pipe, &number, sizeof number) != sizeof number) return 1;
  }
}

/// At most so many numbers; fewer where the writer has ended.
std::vector<int> numbers_from(int pipe, std::size_t most) {
  std::vector<int> numbers;
  int number = 0;
  while (numbers.size() < most && read(pipe, &number, sizeof number) == sizeof number) numbers.push_back(number);
  return numbers;
}

TEST_F(StoreProcesses, NothingCommittedIsLostWhenTheWriterIsKilledAtAnyMoment) {
  const int rounds = 10 * reduced(20);  // every tenth looks at what all before it have left
  std::mt19937 random(11);
  std::vector<int> committed;
  for (int round = 0; round < rounds; ++round) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = start_child([&] { return write_without_end(path_, ends[1], round); });
    close(ends[1]);
    // Some die while they open, some between two commits, some within one.
    for (const int number : numbers_from(ends[0], random() % 4)) committed.push_back(number);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
    kill(child, SIGKILL);
    ASSERT_EQ(wait_for(child), 1000 + SIGKILL);
    for (const int number : numbers_from(ends[0], SIZE_MAX)) committed.push_back(number);
    close(ends[0]);
    if (round % 10 != 9) continue;  // the next writer opens what this one left
    const auto frozen = open_store(path_)->freeze(xeon());
    for (const int number : committed) {
      const auto entry = frozen->find(problem(number));
      ASSERT_TRUE(entry) << number;
      ASSERT_EQ(entry->measurements, record_of(problem(number), number + 1).measurements);
    }
  }
  EXPECT_GT(committed.size(), rounds / 2);
  open_store(path_)->check();
}

TEST_F(StoreProcesses, AMakerThatIsKilledAtAnyMomentLeavesWhatTheNextOneCompletes) {
  std::mt19937 random(5);
  for (int round = 0; round < reduced(40); ++round) {
    const std::string path = path_ + std::to_string(round);
    const pid_t child = start_child([&] {
      open_store(path)->put(xeon(), record_of(problem(1)));
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    kill(child, SIGKILL);
    const bool finished = wait_for(child) == 0;
    const auto store = open_store(path);
    EXPECT_TRUE(!finished || store->freeze(xeon())->find(problem(1)));
    store->put(xeon(), record_of(problem(2)));
    store->check();
  }
}

// ---- many at once ----

TEST_F(StoreProcesses, EightWriteTheSameAndDifferentProblemsIntoOneStore) {
  constexpr int processes = 8;
  const int each = reduced(40);
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    children.push_back(start_child([&, p] {
      const auto store = open_store(path_);  // the first of them makes it
      for (int i = 0; i < each; ++i) {
        store->put(xeon(), record_of(problem(i), p + 1));
        store->put(xeon(), {{measured(problem(i), "kernel " + std::to_string(p), i)}, {}, {}});
        store->put(h200(), record_of(problem(1000 * (p + 1) + i)));
        if (!store->freeze(xeon())->find(problem(i))) return 1;
      }
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  const auto store = open_store(path_);
  store->check();
  const auto frozen = store->freeze(xeon());
  for (int i = 0; i < each; ++i) {
    const auto entry = frozen->find(problem(i));
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->measurements.size(), processes + 2);
    // Whoever came last: a record is there as a whole.
    const double small = entry->measurements.back().time_us;
    EXPECT_EQ(entry->measurements, [&] {
      auto expected = std::vector<Measurement>();
      for (int p = 0; p < processes; ++p) expected.push_back(measured(problem(i), "kernel " + std::to_string(p), i));
      for (const Measurement& part : record_of(problem(i), small).measurements) expected.push_back(part);
      return expected;
    }());
  }
  EXPECT_EQ(store->freeze(h200())->size(), static_cast<std::size_t>(processes * each));
}

TEST_F(StoreProcesses, SomeReadANewStoreWhileOthersMakeIt) {
  for (int round = 0; round < reduced(20); ++round) {
    const std::string path = path_ + std::to_string(round);
    std::ofstream(path) << "";  // as it is when its maker has just begun
    std::vector<pid_t> children;
    for (int p = 0; p < 3; ++p) {
      children.push_back(start_child([&] {
        std::size_t seen = 0;
        for (int i = 0; i < 20; ++i) {
          const std::size_t now = open_store(path, StoreMode::read_only)->freeze(xeon())->size();
          if (now < seen) return 1;
          seen = now;
        }
        return 0;
      }));
      children.push_back(start_child([&] {
        open_store(path)->put(xeon(), record_of(problem(p)));
        return 0;
      }));
    }
    for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
    EXPECT_EQ(entry_count(open_store(path)->read()), 12);
  }
}

TEST_F(StoreProcesses, AChildMustOpenItsOwn) {
  const auto store = open_store(path_);
  store->put(xeon(), record_of(problem(1)));
  EXPECT_EQ(run_child([&] {
              try {
                store->put(xeon(), record_of(problem(2)));
                return 1;
              } catch (const Error& error) {
                if (error.code() != ErrorCode::invalid_argument) return 2;
              }
              open_store(path_)->put(xeon(), record_of(problem(3)));
              return 0;
            }),
            0);
  EXPECT_EQ(entry_count(store->read()), 8);
}

// ---- no room ----

/// Puts until there is no room; then the error must say so, and what was there before must be there still.
int fill(const std::string& path) {
  const auto store = open_store(path);
  int stored = 0;
  try {
    for (;; ++stored) store->put(xeon(), record_of(problem(stored)));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::io_error) return 1;
    if (std::string(error.what()).find("Nothing of it was stored") == std::string::npos) return 2;
  }
  if (stored < 20) return 3;
  if (store->freeze(xeon())->size() != static_cast<std::size_t>(stored)) return 4;
  const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_FSIZE, &none) != 0) return 5;
  store->put(xeon(), record_of(problem(stored)));  // with room again, the same connection goes on
  store->check();
  return store->freeze(xeon())->size() == static_cast<std::size_t>(stored) + 1 ? 0 : 6;
}

TEST_F(StoreProcesses, AFullDiskIsAnErrorThatLeavesTheStoreAsItWas) {
  EXPECT_EQ(run_child([this] {
              std::signal(SIGXFSZ, SIG_IGN);
              struct rlimit small = {};
              getrlimit(RLIMIT_FSIZE, &small);
              small.rlim_cur = 400'000;
              if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 7;
              return fill(path_);
            }),
            0);
  open_store(path_)->check();
}

TEST_F(StoreProcesses, ADiskWithoutAnyRoomMakesNoStore) {
  EXPECT_EQ(run_child([this] {
              std::signal(SIGXFSZ, SIG_IGN);
              struct rlimit small = {};
              getrlimit(RLIMIT_FSIZE, &small);
              small.rlim_cur = 6000;
              if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 7;
              try {
                open_store(path_)->put(xeon(), record_of(problem(1)));
                return 1;
              } catch (const Error& error) {
                if (error.code() != ErrorCode::io_error) return 2;
                if (std::string(error.what()).find("(File too large)") == std::string::npos) return 3;
              }
              // What it left has nothing for a reader, who finds no room for the file that readers share either.
              return open_store(path_, StoreMode::read_only)->read().empty() ? 0 : 4;
            }),
            0);
  open_store(path_)->put(xeon(), record_of(problem(1)));  // what it left can be completed
}

}  // namespace
}  // namespace xpuruntime
