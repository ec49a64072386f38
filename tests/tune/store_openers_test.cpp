#include <fcntl.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

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
  const int rounds = 1000 / reduced();
  open_store(path_);
  fs::create_symlink(path_, folder_ / "link");
  const std::vector<std::string> names = {path_, (folder_ / "link").string(), (folder_ / "." / "store.sqlite").string()};
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
  EXPECT_GT(by_others.size(), static_cast<std::size_t>(others));
  acknowledged.insert(acknowledged.end(), by_others.begin(), by_others.end());
  const auto store = open_store(path_);
  store->check();
  const auto frozen = store->freeze(xeon());
  int lost = 0;
  for (const int said : acknowledged) lost += frozen->find(problem(said)) ? 0 : 1;
  EXPECT_EQ(lost, 0) << "of " << acknowledged.size() << " with " << others << " others";
}

}  // namespace
}  // namespace xpuruntime
