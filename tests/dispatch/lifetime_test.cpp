// Who keeps decisions, snapshots and scopes alive, and for how long.

#include <condition_variable>
#include <latch>
#include <mutex>
#include <thread>

#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

class Lifetime : public DispatchTest {
 protected:
  /// Asks for so many problems that were never asked for that no cache and no table of this thread knows older ones.
  void decide_others(std::int64_t count = 40000) {
    for (std::int64_t n = 1; n <= count; ++n) {
      // Empty tensors need an address, not memory.
      const Tensor in(relu.in.data(), make_spec(DataType::float32, {++others, 0}));
      const Tensor out(relu.out.data(), make_spec(DataType::float32, {others, 0}));
      const std::array<const Tensor*, 1> inputs = {&in};
      const std::array<const Tensor*, 1> outputs = {&out};
      dispatcher().decide({OpId::relu, inputs, outputs});
    }
  }
  void run(const Relu& problem, int times = 1) {
    for (int i = 0; i < times; ++i) dispatcher().dispatch(problem.call());
  }
  std::weak_ptr<const Decision> newest_logged() { return dispatcher().logs().back().decision; }

  const Relu relu;
  const Relu other{33};
  std::int64_t others = 100;
};

// The longer of two calls of a problem ends last: what was logged last is not what began last.
TEST_F(Lifetime, ALogKeepsTheDecisionOfACallThatBeganLaterAndEndedSooner) {
  static thread_local bool waits = false;
  std::latch begun(1), go_on(1);
  add_kernel("gated", [&] {
    if (!waits) return Status();
    begun.count_down();
    go_on.wait();
    return Status();
  });
  dispatcher().enable_logging(4);
  std::thread longer([&] {
    waits = true;
    run(relu);
    waits = false;
    run(other, 4);
  });
  begun.wait();
  run(relu);
  go_on.count_down();
  longer.join();
  decide_others();
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries.front().input_shape(), (Dims{8}));
  EXPECT_EQ(entries.front().selected_kernel(), "gated");
}

// A call within a call is logged first and began last.
TEST_F(Lifetime, ALogKeepsTheDecisionsOfNestedCalls) {
  bool inside = false;
  add_kernel("nesting", [&] {
    if (!std::exchange(inside, true)) run(other);
    return Status();
  });
  dispatcher().enable_logging(2);
  run(relu);
  decide_others();
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].input_shape(), (Dims{8}));
  EXPECT_EQ(entries[1].input_shape(), (Dims{33}));
}

TEST_F(Lifetime, AKernelThatFailsWithinItselfIsStillLogged) {
  bool inside = false;
  add_kernel("recursive", [&] {
    if (std::exchange(inside, true)) return Status(ErrorCode::device_error, "no");
    run(relu);
    return Status();
  });
  dispatcher().enable_logging(8);
  run(relu);
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 3u);  // the outer call, the inner one, and its fallback
  EXPECT_EQ(entries[0].selected_kernel(), "recursive");
  EXPECT_TRUE(entries[1].failed);
  EXPECT_EQ(entries[2].selected_kernel(), "simd");
}

TEST_F(Lifetime, ALogLetsADecisionGoThatItOverwroteAndKeepsItsTimes) {
  dispatcher().enable_logging(4);
  run(relu, 3);
  const auto decision = newest_logged();
  const Problem problem = decision.lock()->problem;
  decide_others();
  run(other, 4);
  for (int n = 50; n < 60; ++n) run(Relu(n));  // new ones make the ring look for what it may let go
  EXPECT_TRUE(decision.expired());
  EXPECT_EQ(dispatcher().statistics().find(problem, "simd")->count(), 3);
}

TEST_F(Lifetime, LogsOutliveTheirDispatcher) {
  std::vector<LogEntry> entries;
  {
    Runtime own{{false, false, {}}};
    own.dispatcher().enable_logging(4);
    own.dispatcher().dispatch(relu.call());
    entries = own.dispatcher().logs();
  }
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries.front().selected_kernel(), "simd");
}

TEST_F(Lifetime, LogsAreReadWhileDecisionsComeAndGo) {
  dispatcher().enable_logging(8);
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; !stop; ++i) {
        const Relu mine(1 + (i * 7 + t) % 3000);
        run(mine, 2);
        if (i % 64 == 0) std::thread([&] { run(mine); }).join();
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    for (const LogEntry& entry : dispatcher().logs()) ASSERT_EQ(entry.selected_kernel(), "simd");
    if (i % 8 == 7) runtime.registry().invalidate();
    if (i % 16 == 15) dispatcher().clear_logs();
    if (i % 20 == 19) dispatcher().enable_logging(i % 40 == 19 ? 5 : 8);
    decide_others(100);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

// --- scopes and their snapshots ---

KernelPolicy fastest() {
  KernelPolicy policy;
  policy.auto_strategy = Strategy::best_performance;
  return policy;
}

TEST_F(Lifetime, ScopesOfAPolicyAreOneUntilThereIsNews) {
  dispatcher().enable_logging(16);
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 1000; ++i) {
    const ScopedPolicy scope(dispatcher(), fastest());
    ids.push_back(dispatcher().current_scope()->id);
    run(relu);
  }
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_LE(ids.size(), 11u);  // the first time, and each power of two up to 512
  const Problem problem = dispatcher().decide(relu.call()).problem;
  dispatcher().statistics().record(problem, "reference", 1e-6);  // another order
  const ScopedPolicy scope(dispatcher(), fastest());
  EXPECT_NE(dispatcher().current_scope()->id, ids.back());
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "reference");
}

TEST_F(Lifetime, SnapshotsGoWithTheScopesThatHoldThem) {
  const Problem problem = dispatcher().decide(relu.call()).problem;
  std::vector<std::weak_ptr<const Measurements>> snapshots;
  for (int i = 0; i < 200; ++i) {
    dispatcher().statistics().record(problem, "kernel" + std::to_string(i), 1);
    KernelPolicy policy = fastest();
    policy.workspace_limit_bytes = 1 + i % 10;
    const ScopedPolicy scope(dispatcher(), policy);
    snapshots.push_back(dispatcher().current_scope()->measurements);
    EXPECT_FALSE(snapshots.back().expired());
  }
  const auto alive = [](const auto& snapshot) { return !snapshot.expired(); };
  EXPECT_LE(std::count_if(snapshots.begin(), snapshots.end(), alive), 1);
}

TEST_F(Lifetime, AScopeInForceKeepsItsSnapshotWhileOthersComeAndGo) {
  const Problem problem = dispatcher().decide(relu.call()).problem;
  dispatcher().statistics().record(problem, "simd", 2);
  dispatcher().statistics().record(problem, "reference", 1);
  const ScopedPolicy held(dispatcher(), fastest());
  dispatcher().statistics().record(problem, "simd", 1e-6);
  dispatcher().statistics().record(problem, "simd", 1e-6);
  dispatcher().statistics().record(problem, "simd", 1e-6);
  std::thread([&] {
    const ScopedPolicy newer(dispatcher(), fastest());
    EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  }).join();
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "reference");
}

// --- threads that do nothing ---

/// A thread that does what it is told, when it is told, and waits in between.
class Idler {
 public:
  Idler() : thread_([this] { serve(); }) {}
  ~Idler() {
    tell([this] { ended_ = true; });
    thread_.join();
  }
  void tell(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(lock, [&] { return task_ == nullptr; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      changed_.wait(lock, [&] { return task_ != nullptr; });
      task_();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool ended_ = false;
  std::thread thread_;
};

TEST_F(Lifetime, AnIdleThreadKeepsNothingButItsLastDecision) {
  dispatcher().enable_logging(64);
  Idler idler;
  const Decision* last = nullptr;
  std::weak_ptr<const Decision> decision;
  idler.tell([&] {
    run(relu);
    decision = newest_logged();
    last = &dispatcher().decide(other.call());
  });
  dispatcher().clear_logs();
  EXPECT_FALSE(decision.expired());
  decide_others();
  EXPECT_TRUE(decision.expired());
  EXPECT_EQ(last->problem.inputs[0].shape, (Dims{33}));  // good until that thread's next call
  idler.tell([&] {
    run(relu);
    run(other);
    EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  });
  EXPECT_EQ(dispatcher().logs().size(), 2u);
}

TEST_F(Lifetime, AThreadInsideAKernelKeepsWhatItRuns) {
  std::latch begun(1), go_on(1);
  auto token = std::make_shared<int>(7);
  const std::weak_ptr<int> alive = token;
  int seen = 0;
  add_kernel("slow", [&, token = std::move(token)] {
    if (seen != 0) return Status();
    begun.count_down();
    go_on.wait();
    seen = *token;
    return Status();
  });
  std::thread caller([&] { run(relu); });
  begun.wait();
  runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "slow");
  decide_others();
  EXPECT_FALSE(alive.expired());
  go_on.count_down();
  caller.join();
  EXPECT_EQ(seen, 7);
}

TEST_F(Lifetime, TablesThatAreEmptiedByOthersAreFilledAgain) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::unique_ptr<Relu>> mine;
      for (int n = 0; n < 50; ++n) mine.push_back(std::make_unique<Relu>(1 + 50 * t + n));
      while (!stop) {
        for (const auto& problem : mine) run(*problem);
        if (t == 0) std::this_thread::yield();
      }
    });
  }
  decide_others(30000);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace xpuruntime
