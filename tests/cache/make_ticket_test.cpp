#include "xpuruntime/cache/make_ticket.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "core/expect_error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::detail {
namespace {

/// A thread that owns a ticket and waits for the main thread's one.
class MakeTicketTest : public testing::Test {
 protected:
  void start() {
    other_ = std::thread([this] {
      theirs_.emplace();
      std::unique_lock lock(our_mutex_);
      started_ = true;
      ours_.wait(lock);
    });
    while (!started_) std::this_thread::yield();
    // Taking the lock means that the other thread has let go of it, hence that it waits.
    our_lock_ = std::unique_lock(our_mutex_);
  }

  void end() {
    our_lock_.unlock();
    other_.join();
  }

  MakeTicket ours_;
  std::optional<MakeTicket> theirs_;
  Mutex our_mutex_;
  Mutex their_mutex_;
  std::unique_lock<Mutex> our_lock_;
  std::atomic<bool> started_ = false;
  std::thread other_;
};

TEST_F(MakeTicketTest, RefusesAWaitForAThreadThatWaitsForTheCaller) {
  start();
  std::unique_lock lock(their_mutex_);
  EXPECT_THROW(theirs_->wait(lock), Error);
  ours_.finish();
  end();
}

TEST_F(MakeTicketTest, LetsAThreadBeWaitedForThatIsFreeButHasNotWokenUp) {
  start();
  ours_.finish();  // our_lock_ is held: the other thread cannot wake up yet
  std::thread helper([this] {
    const std::lock_guard lock(their_mutex_);
    theirs_->finish();
  });
  {
    std::unique_lock lock(their_mutex_);
    EXPECT_NO_THROW(theirs_->wait(lock));
  }
  helper.join();
  end();
}

TEST_F(MakeTicketTest, RefusesAWaitForOneself) {
  std::unique_lock lock(our_mutex_);
  expect_invalid("[LRUCache::get_or_make]", [&] { ours_.wait(lock); });
}

}  // namespace
}  // namespace xpuruntime::detail
