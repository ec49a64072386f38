#include <condition_variable>
#include <mutex>
#include <thread>

#include "dispatch/fixture.h"
#include "xpuruntime/select/lock.h"

namespace xpuruntime {
namespace {

/// Does on its thread what it is told, one thing after the other: a worker of a pool.
class Worker {
 public:
  ~Worker() {
    give({});
    thread_.join();
  }
  /// Returns when it is done, with the text of what it threw; empty: nothing.
  std::string run(std::function<void()> task) {
    give(std::move(task));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !task_; });
    return thrown_;
  }

 private:
  void give(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    ended_ = !task;
    task_ = std::move(task);
    changed_.notify_all();
  }
  void serve() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return ended_ || task_; });
      if (ended_) return;
      thrown_.clear();
      try {
        task_();
      } catch (const Error& error) {
        thrown_ = error.what();
      }
      task_ = {};
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  std::string thrown_;
  bool ended_ = false;
  std::thread thread_{[this] { serve(); }};
};

class LockThreads : public DispatchTest {
 protected:
  LockUse lock_to(const std::string& kernel) {
    LockEntry entry{.problem = "relu(f32[8]) @cpu:0", .kernel = kernel, .kernel_version = "1"};
    KernelLock lock;
    lock.add(entry, environment_of(runtime.devices().profile({})));
    return {std::make_shared<const KernelLock>(lock)};
  }
  void call() { dispatcher().dispatch(relu.call()); }
  std::string in_worker(const std::function<void()>& enter = {}) {
    return worker.run([&] {
      if (enter) return enter();
      call();
    });
  }

  std::shared_ptr<std::atomic<int>> locked = add_kernel("locked");
  std::shared_ptr<std::atomic<int>> usual = add_kernel("usual");  // the newest comes first
  Relu relu;
  Worker worker;
};

TEST_F(LockThreads, AProcessLockHoldsOnEveryThreadAndInScopesThatWereEnteredBefore) {
  const ScopedPolicy policy(dispatcher(), KernelPolicy{});
  EXPECT_EQ(in_worker(), "");
  call();
  EXPECT_EQ(usual->load(), 2);
  dispatcher().set_lock(lock_to("locked"));
  call();
  EXPECT_EQ(in_worker(), "");
  EXPECT_EQ(in_worker([&] {
              const ScopedPolicy inner(dispatcher(), KernelPolicy{});
              call();
            }),
            "");
  std::thread([&] { call(); }).join();  // a new one
  EXPECT_EQ(locked->load(), 4);
  EXPECT_EQ(usual->load(), 2);
  EXPECT_HAS(worker.run([&] { dispatcher().dispatch(Relu(9).call()); }), "the lock has no entry for it");
  dispatcher().set_lock({});
  EXPECT_EQ(in_worker(), "");
  EXPECT_EQ(usual->load(), 3);
}

TEST_F(LockThreads, WhileALockIsInAScopeThreadsWithoutOneAreRefused) {
  EXPECT_EQ(in_worker(), "");  // what it has decided does not get it past the lock
  {
    const ScopedLock scope(dispatcher(), lock_to("locked"));
    EXPECT_HAS(in_worker(), "relu(f32[8]) @cpu:0: a lock is in force in a scope of another thread or task");
    EXPECT_HAS(in_worker(), "an event loop or a saved context that was made in one and still exists");
    EXPECT_HAS(in_worker(), "set it for the whole process (set_lock, XPURUNTIME_LOCK)");
    EXPECT_HAS(worker.run([&] {
      const ScopedPolicy own(dispatcher(), KernelPolicy{});
      call();
    }),
               "a lock is in force in a scope of another thread");
    worker.run([&] {
      const Decision decision = dispatcher().explain(parse_problem("relu(f32[8])"));
      EXPECT_EQ(decision.kernel, "");
      EXPECT_EQ(decision.level, Level::lock);
    });
    EXPECT_EQ(usual->load(), 1);
    EXPECT_EQ(locked->load(), 0);
  }
  EXPECT_EQ(in_worker(), "");
  EXPECT_EQ(usual->load(), 2);
}

TEST_F(LockThreads, AScopeThatAWorkerEnteredBeforeDoesNotGetItPastALock) {
  std::uint64_t token = 0;
  worker.run([&] {
    token = dispatcher().enter_scope(dispatcher().layered_scope(KernelPolicy{}));
    call();
  });
  const ScopedLock scope(dispatcher(), lock_to("locked"));
  EXPECT_HAS(in_worker(), "a lock is in force");
  worker.run([&] { dispatcher().leave_scope(token); });
}

TEST_F(LockThreads, AWorkerRunsUnderTheScopeThatItIsHanded) {
  ScopePtr captured;
  {
    const ScopedLock scope(dispatcher(), lock_to("locked"));
    captured = dispatcher().current_scope();
    EXPECT_EQ(in_worker([&] {
                const ScopedPolicy handed(dispatcher(), captured);
                call();
              }),
              "");
    EXPECT_EQ(locked->load(), 1);
  }
  const ScopedPolicy again(dispatcher(), captured);  // a lock is a lock, whoever brings it
  EXPECT_HAS(in_worker(), "a lock is in force");
}

TEST_F(LockThreads, AThreadMaySayThatItIsMeantToRunUnlocked) {
  const ScopedLock scope(dispatcher(), lock_to("locked"));
  EXPECT_EQ(in_worker([&] {
              const ScopedLock none(dispatcher(), {});
              call();
            }),
            "");
  EXPECT_EQ(usual->load(), 1);
}

TEST_F(LockThreads, UnderAProcessLockAScopedOneIsNoMatterOfOthers) {
  dispatcher().set_lock(lock_to("locked"));
  const ScopedLock scope(dispatcher(), lock_to("usual"));
  call();
  EXPECT_EQ(in_worker(), "");
  EXPECT_EQ(usual->load(), 1);
  EXPECT_EQ(locked->load(), 1);
  const ScopedLock none(dispatcher(), {});
  call();
  EXPECT_EQ(usual->load(), 2);
  dispatcher().set_lock({});
  EXPECT_HAS(in_worker(), "a lock is in force");
}

}  // namespace
}  // namespace xpuruntime
