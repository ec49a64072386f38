#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/in_child.h"
#include "xpuruntime/cache/lru_cache.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

using Cache = LRUCache<int, std::string>;

/// Gives threads that are about to wait the time to do so. The tests hold either way; this makes them see more.
void let_others_run() {
  for (int i = 0; i < 200; ++i) std::this_thread::yield();
}

bool fails_as_circle(Cache& cache, int key, const std::function<std::string()>& maker) {
  try {
    cache.get_or_make(key, maker);
    return false;
  } catch (const Error& error) {
    return error.code() == ErrorCode::invalid_argument;
  }
}

TEST(GetOrMake, MakesOnceAndThenFinds) {
  Cache cache(4);
  int made = 0;
  const auto maker = [&] { return std::to_string(++made); };
  const auto first = cache.get_or_make(1, maker);
  EXPECT_EQ(cache.get_or_make(1, maker), first);
  EXPECT_EQ(*first, "1");
  EXPECT_EQ(cache.stats(), (CacheStats{.hits = 1, .misses = 1, .made = 1}));
}

TEST(GetOrMake, TakesValuesThatCannotMove) {
  LRUCache<int, std::atomic<int>> cache(4);
  EXPECT_EQ(cache.get_or_make(1, [] { return std::atomic<int>(5); })->load(), 5);
}

TEST(GetOrMake, RunsOneMakerWhileTheOthersWait) {
  constexpr int threads = 8;
  Cache cache(4);
  std::atomic<int> asking = 0, made = 0;
  std::vector<std::shared_ptr<std::string>> got(threads);
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&, i] {
      ++asking;
      got[i] = cache.get_or_make(1, [&] {
        while (asking < threads) std::this_thread::yield();
        let_others_run();
        ++made;
        return std::string("value");
      });
    });
  }
  for (auto& thread : pool) thread.join();
  EXPECT_EQ(made, 1);
  for (const auto& value : got) EXPECT_EQ(value, got[0]);
  EXPECT_EQ(cache.stats(), (CacheStats{.hits = threads - 1, .misses = 1, .made = 1}));
}

TEST(GetOrMake, MakersOfDifferentKeysRunAtTheSameTime) {
  Cache cache(4);
  std::latch both(2);  // would never open if one maker waited for the other
  const auto maker = [&] {
    both.arrive_and_wait();
    return std::string();
  };
  std::thread other([&] { cache.get_or_make(1, maker); });
  cache.get_or_make(2, maker);
  other.join();
  EXPECT_EQ(cache.size(), 2u);
}

TEST(GetOrMake, DoesNotKeepAFailure) {
  Cache cache(4);
  EXPECT_THROW(cache.get_or_make(1, []() -> std::string { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(cache.get_or_make(1, []() -> std::string { throw 7; }), int);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(*cache.get_or_make(1, [] { return std::string("yes"); }), "yes");
  EXPECT_EQ(cache.stats(), (CacheStats{.misses = 3, .made = 1}));
}

TEST(GetOrMake, WhoWaitedForAFailureTriesAgain) {
  Cache cache(4);
  std::latch making(1), asking(1);
  std::thread waiter([&] {
    making.wait();
    asking.count_down();
    EXPECT_EQ(*cache.get_or_make(1, [] { return std::string("second"); }), "second");
  });
  const auto failing = [&]() -> std::string {
    making.count_down();
    asking.wait();
    let_others_run();
    throw std::runtime_error("first");
  };
  EXPECT_THROW(cache.get_or_make(1, failing), std::runtime_error);
  waiter.join();
  EXPECT_EQ(*cache.get(1), "second");
}

TEST(GetOrMake, AMakerMayAskForOtherKeys) {
  Cache cache(4);
  const auto outer = cache.get_or_make(1, [&] {
    cache.put(3, "three");
    return *cache.get_or_make(2, [] { return std::string("inner"); }) + " and outer";
  });
  EXPECT_EQ(*outer, "inner and outer");
  EXPECT_EQ(cache.size(), 3u);
}

TEST(GetOrMake, AMakerThatAsksForItsOwnKeyIsAnErrorAtAnyCapacity) {
  for (const std::size_t capacity : {0, 4}) {
    Cache cache(capacity);
    const auto own = [&] { return *cache.get_or_make(1, [] { return std::string(); }); };
    EXPECT_TRUE(fails_as_circle(cache, 1, own));
    const auto through_another = [&] { return *cache.get_or_make(2, own); };
    EXPECT_TRUE(fails_as_circle(cache, 1, through_another));
    EXPECT_EQ(cache.size(), 0u);
    EXPECT_EQ(*cache.get_or_make(1, [] { return std::string("fine"); }), "fine");
  }
}

TEST(GetOrMake, ACircleOverTwoThreadsAndTwoCachesIsAnErrorInBoth) {
  Cache left(4), right(4);
  std::latch both_make(2);
  const auto ask = [](Cache& cache) { return *cache.get_or_make(1, [] { return std::string(); }); };
  const auto start = [&](Cache& mine, Cache& other) {
    return fails_as_circle(mine, 1, [&] {
      both_make.arrive_and_wait();
      // Whoever makes the other cache's value, it needs mine.
      return *other.get_or_make(1, [&] { return ask(mine); });
    });
  };
  bool left_failed = false;
  std::thread thread([&] { left_failed = start(left, right); });
  const bool right_failed = start(right, left);
  thread.join();
  EXPECT_TRUE(left_failed);
  EXPECT_TRUE(right_failed);
  EXPECT_EQ(ask(left), "");
}

TEST(GetOrMake, WhatIsClearedWhileBeingMadeIsHandedOutButNotKept) {
  Cache cache(4);
  EXPECT_EQ(*cache.get_or_make(1,
                               [&] {
                                 cache.clear();
                                 return std::string("stale");
                               }),
            "stale");
  EXPECT_EQ(cache.get(1), nullptr);
  cache.get_or_make(1, [&] {
    EXPECT_FALSE(cache.erase(1));
    return std::string("stale");
  });
  EXPECT_EQ(cache.get(1), nullptr);
}

TEST(GetOrMake, WhoAsksAfterAClearDoesNotGetTheOldMakersValue) {
  Cache cache(4);
  const auto first = cache.get_or_make(1, [&] {
    cache.clear();
    std::thread([&] { EXPECT_EQ(*cache.get_or_make(1, [] { return std::string("new"); }), "new"); }).join();
    return std::string("old");
  });
  EXPECT_EQ(*first, "old");
  EXPECT_EQ(*cache.get(1), "new");
}

TEST(GetOrMake, AValuePutMeanwhileStays) {
  Cache cache(4);
  cache.get_or_make(1, [&] {
    cache.put(1, "put");
    return std::string("made");
  });
  EXPECT_EQ(*cache.get(1), "put");
}

/// Counts its living copies.
struct Counted {
  static inline std::atomic<int> living = 0;
  explicit Counted(int key) : key(key) { ++living; }
  Counted(Counted&& other) noexcept : key(other.key) { ++living; }
  ~Counted() { --living; }
  int key;
};

#if !defined(__SANITIZE_THREAD__)  // it does not follow forks of processes with threads
TEST(GetOrMake, AForkedChildMakesWhatAThreadOfItsParentWasMaking) {
  Cache cache(4);
  std::latch making(1), done(1);
  std::thread maker([&] {
    cache.get_or_make(1, [&] {
      making.count_down();
      done.wait();
      return std::string("parent");
    });
  });
  making.wait();
  EXPECT_EQ(
      in_child([&] {
        bool right = *cache.get_or_make(1, [] { return std::string("child"); }) == "child";
        std::thread([&] { right &= *cache.get_or_make(1, [] { return std::string("again"); }) == "child"; }).join();
        return right && cache.stats().made == 1;
      }),
      0);
  done.count_down();
  maker.join();
  EXPECT_EQ(*cache.get(1), "parent");
}

TEST(GetOrMake, AMakerThatForksFinishesInBothProcesses) {
  Cache cache(4);
  int status = -1;
  const auto value = cache.get_or_make(1, [&] {
    status = in_child([&] { return *cache.get_or_make(2, [] { return std::string("two"); }) == "two"; });
    return std::string("one");
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*value, "one");
  EXPECT_EQ(cache.get(2), nullptr);
}
#endif

TEST(GetOrMake, ManyThreadsDoingEverythingNeverMixUpOrLoseValues) {
  std::atomic<int> destroyed = 0;
  {
    LRUCache<int, Counted> cache(4, [&](Counted&) { ++destroyed; });
    const auto work = [&](unsigned seed) {
      for (int i = 0; i < 2000; ++i) {
        seed = seed * 1664525u + 1013904223u;
        const int key = static_cast<int>(seed >> 16) % 8;
        const unsigned action = seed >> 28;
        if (action == 0) cache.erase(key);
        if (action == 1) cache.put(key, Counted(key));
        if (action == 2 && i % 16 == 0) cache.clear();
        if (action == 3) cache.set_capacity(2 + i % 4);
        const auto value = cache.get_or_make(key, [&] { return Counted(key); });
        ASSERT_EQ(value->key, key);
      }
    };
    std::vector<std::thread> pool;
    for (unsigned i = 0; i < 4; ++i) pool.emplace_back(work, i);
    for (auto& thread : pool) thread.join();
    EXPECT_LE(cache.size(), 5u);
    EXPECT_EQ(static_cast<std::size_t>(Counted::living), cache.size());
  }
  EXPECT_EQ(Counted::living, 0);
  EXPECT_GT(destroyed, 0);
}

}  // namespace
}  // namespace xpuruntime
