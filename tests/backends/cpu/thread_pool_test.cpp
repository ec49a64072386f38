#include "backends/cpu/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace xpuruntime::cpu {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceWhateverTheThreadCount) {
  for (const int threads : {1, 2, 3, 8, 33}) {
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
      parallel_tasks(count, threads, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const auto& run : runs) EXPECT_EQ(run.load(), 1);
    }
  }
}

TEST(ThreadPool, UsesNoMoreThreadsThanAsked) {
  parallel_tasks(64, 8, [](std::int64_t) {});  // the pool has workers to spare
  std::mutex mutex;
  std::set<std::thread::id> seen;
  parallel_tasks(200, 2, [&](std::int64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_LE(seen.size(), 2u);
}

TEST(ThreadPool, OneThreadIsTheCallers) {
  parallel_tasks(
      5, 1, [caller = std::this_thread::get_id()](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ThreadPool, CutsARangeIntoPiecesThatCoverItOnce) {
  for (const std::int64_t count : {1, 2, 10, 11, 12, 1001}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    parallel_for(count, 3, 4, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_LT(begin, end);
      EXPECT_TRUE(end - begin >= 3 || count < 3);
      for (std::int64_t i = begin; i < end; ++i) ++runs[static_cast<std::size_t>(i)];
    });
    for (const auto& run : runs) EXPECT_EQ(run.load(), 1);
  }
}

TEST(ThreadPool, TasksThatStartTasksStayOnTheirThread) {
  std::atomic<int> inner = 0;
  parallel_tasks(4, 4, [&](std::int64_t) {
    const auto outer = std::this_thread::get_id();
    parallel_tasks(8, 4, [&](std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      ++inner;
    });
  });
  EXPECT_EQ(inner.load(), 32);
}

TEST(ThreadPool, ManyCallersAtOnceAllGetTheirWorkDone) {
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> sum = 0;
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) parallel_tasks(10, 3, [&](std::int64_t i) { sum += i; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 6 * 200 * 45);
}

TEST(ThreadPool, WorkersThatFellAsleepAreWoken) {
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> runs = 0;
    parallel_tasks(100, 4, [&](std::int64_t) { ++runs; });
    EXPECT_EQ(runs.load(), 100);
  }
}

TEST(ThreadPool, TheFirstExceptionReachesTheCallerAndThePoolGoesOn) {
  std::atomic<int> runs = 0;
  const auto faulty = [&](std::int64_t i) {
    ++runs;
    if (i == 3) throw std::runtime_error("task 3");
  };
  EXPECT_THROW(parallel_tasks(10, 4, faulty), std::runtime_error);
  EXPECT_EQ(runs.load(), 10);
  parallel_tasks(10, 4, [&](std::int64_t) { ++runs; });
  EXPECT_EQ(runs.load(), 20);
}

#if !defined(__SANITIZE_THREAD__)  // its runtime does not follow threads into a child
TEST(ThreadPool, AForkedChildGetsWorkersOfItsOwn) {
  parallel_tasks(16, 4, [](std::int64_t) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<int> runs = 0;
    parallel_tasks(16, 4, [&](std::int64_t) { ++runs; });
    _exit(runs.load() == 16 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

TEST(ThreadPool, AProblemsLimitBeatsTheDefault) {
  Problem problem;
  EXPECT_EQ(threads_for(problem), default_threads());
  problem.limits.threads = 5;
  EXPECT_EQ(threads_for(problem), 5);
}

}  // namespace
}  // namespace xpuruntime::cpu
