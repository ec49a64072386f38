#include "xpuruntime/cache/lru_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "xpuruntime/cache/cache_errors.h"

namespace xpuruntime {
namespace {

using Cache = LRUCache<std::string, int>;
using Values = std::vector<int>;

/// Writes down which values were destroyed, in order.
struct Grave {
  Values dead;
  std::function<void(int&)> callback() {
    return [this](int& value) { dead.push_back(value); };
  }
};

TEST(LRUCache, MovesButNeverCopies) {
  EXPECT_FALSE(std::is_copy_constructible_v<Cache>);
  EXPECT_FALSE(std::is_copy_assignable_v<Cache>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<Cache>);
  EXPECT_TRUE(std::is_nothrow_move_assignable_v<Cache>);
}

TEST(LRUCache, FindsWhatWasPutAndNothingElse) {
  Cache cache(4);
  EXPECT_EQ(*cache.put("a", 1), 1);
  EXPECT_EQ(*cache.get("a"), 1);
  EXPECT_EQ(cache.get("b"), nullptr);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.stats(), (CacheStats{.hits = 1, .misses = 1}));
}

TEST(LRUCache, PushesOutTheValueUnusedForLongest) {
  Grave grave;
  Cache cache(2, grave.callback());
  cache.put("a", 1);
  cache.put("b", 2);
  cache.get("a");
  cache.put("c", 3);
  EXPECT_EQ(grave.dead, Values{2});
  EXPECT_EQ(cache.get("b"), nullptr);
  EXPECT_EQ(*cache.get("a"), 1);
  EXPECT_EQ(*cache.get("c"), 3);
  EXPECT_EQ(cache.stats().evictions, 1u);
}

TEST(LRUCache, PuttingAKeyAgainReplacesItsValueAndRenewsIt) {
  Grave grave;
  Cache cache(2, grave.callback());
  cache.put("a", 1);
  cache.put("b", 2);
  cache.put("a", 3);
  EXPECT_EQ(grave.dead, Values{1});
  EXPECT_EQ(cache.size(), 2u);
  cache.put("c", 4);
  EXPECT_EQ(*cache.get("a"), 3);
  EXPECT_EQ(cache.get("b"), nullptr);
  EXPECT_EQ(cache.stats().evictions, 1u);
}

TEST(LRUCache, EqualValuesThatAreNoHandlesDieEachForItself) {
  Grave grave;
  Cache cache(4, grave.callback());
  cache.put("a", 7);
  cache.put("a", 7);
  EXPECT_EQ(grave.dead, Values{7});
}

TEST(LRUCache, AValueInUseOutlivesItsEvictionAndTheCache) {
  Grave grave;
  std::shared_ptr<int> in_use;
  {
    Cache cache(1, grave.callback());
    in_use = cache.put("a", 1);
    cache.put("b", 2);
    EXPECT_EQ(cache.get("a"), nullptr);
    EXPECT_TRUE(grave.dead.empty());
  }
  EXPECT_EQ(grave.dead, Values{2});
  EXPECT_EQ(*in_use, 1);
  in_use.reset();
  EXPECT_EQ(grave.dead, (Values{2, 1}));
}

TEST(LRUCache, CapacityZeroKeepsNothingButHandsBackTheValue) {
  Grave grave;
  Cache cache(0, grave.callback());
  auto value = cache.put("a", 1);
  EXPECT_EQ(*value, 1);
  EXPECT_TRUE(grave.dead.empty());
  EXPECT_EQ(cache.get("a"), nullptr);
  value.reset();
  EXPECT_EQ(grave.dead, Values{1});
  EXPECT_EQ(cache.stats().evictions, 0u);
}

TEST(LRUCache, CapacityZeroMakesEachTime) {
  Cache cache(0);
  int made = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(*cache.get_or_make("a", [&] { return ++made; }), i + 1);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.stats(), (CacheStats{.misses = 3, .made = 3}));
}

TEST(LRUCache, ShrinkingPushesOutTheOldestAndZeroAll) {
  Grave grave;
  Cache cache(4, grave.callback());
  for (int i = 1; i <= 4; ++i) cache.put(std::to_string(i), i);
  cache.set_capacity(2);
  EXPECT_EQ(grave.dead, (Values{1, 2}));
  EXPECT_EQ(cache.capacity(), 2u);
  cache.set_capacity(0);
  EXPECT_EQ(grave.dead, (Values{1, 2, 3, 4}));
  cache.set_capacity(1);
  cache.put("5", 5);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(LRUCache, EraseAndClearRemoveWithoutCountingEvictions) {
  Grave grave;
  Cache cache(4, grave.callback());
  cache.put("a", 1);
  cache.put("b", 2);
  EXPECT_TRUE(cache.erase("a"));
  EXPECT_FALSE(cache.erase("a"));
  cache.clear();
  EXPECT_EQ(grave.dead, (Values{1, 2}));
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.stats().evictions, 0u);
}

struct SameHash {
  std::size_t operator()(const std::string&) const { return 7; }
};

TEST(LRUCache, TellsKeysWithOneHashApart) {
  LRUCache<std::string, int, SameHash> cache(64);
  for (int i = 0; i < 64; ++i) cache.put(std::to_string(i), i);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(*cache.get(std::to_string(i)), i);
  EXPECT_EQ(cache.get("64"), nullptr);
  EXPECT_TRUE(cache.erase("5"));
  EXPECT_EQ(cache.get("5"), nullptr);
  EXPECT_EQ(*cache.get("6"), 6);
}

/// A hash that fails on demand, for all lookups after it.
struct FailingHash {
  static inline bool fails = false;
  std::size_t operator()(const std::string& key) const {
    if (fails) throw std::runtime_error("no hash");
    return std::hash<std::string>{}(key);
  }
};

TEST(LRUCache, IsUnharmedByAHashThatThrows) {
  LRUCache<std::string, int, FailingHash> cache(2);
  cache.put("a", 1);
  FailingHash::fails = true;
  EXPECT_THROW(cache.put("b", 2), std::runtime_error);
  EXPECT_THROW(cache.get("a"), std::runtime_error);
  EXPECT_THROW(cache.get_or_make("a", [] { return 3; }), std::runtime_error);
  FailingHash::fails = false;
  EXPECT_EQ(*cache.get("a"), 1);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(*cache.get_or_make("b", [] { return 4; }), 4);
}

TEST(LRUCache, AFailureToStoreAMadeValueLeavesTheKeyFree) {
  LRUCache<std::string, int, FailingHash> cache(2);
  const auto break_hash = [] {
    FailingHash::fails = true;
    return 1;
  };
  EXPECT_THROW(cache.get_or_make("a", break_hash), std::runtime_error);
  FailingHash::fails = false;
  EXPECT_EQ(*cache.get_or_make("a", [] { return 2; }), 2);
}

TEST(LRUCache, CallbacksMayUseTheCacheBecauseNoLockIsHeld) {
  Cache* reached = nullptr;
  std::size_t calls = 0;
  Cache cache(1, [&](int&) {
    ++calls;
    reached->get("a");
    reached->size();
  });
  reached = &cache;
  cache.put("a", 1);
  cache.put("a", 2);      // replaced
  cache.put("b", 3);      // evicted
  cache.erase("b");       // erased
  cache.put("c", 4);      //
  cache.clear();          // cleared
  cache.put("d", 5);      //
  cache.set_capacity(0);  // shrunk away
  EXPECT_EQ(calls, 5u);
}

TEST(LRUCache, ContainsWhateverACallbackThrows) {
  const auto before = cache_error_count();
  int calls = 0;
  {
    Cache cache(4, [&](int& value) {
      ++calls;
      if (value == 1) throw std::runtime_error("no");
      if (value == 2) throw 2;
      throw "text";
    });
    cache.put("a", 1);
    cache.put("a", 2);
    EXPECT_TRUE(cache.erase("a"));
    cache.put("a", 3);
    cache.put("b", 4);
  }
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(cache_error_count(), before + 4);
}

struct ThrowsOnDeath {
  bool armed = true;
  ThrowsOnDeath() = default;
  ThrowsOnDeath(ThrowsOnDeath&& other) : armed(std::exchange(other.armed, false)) {}
  ~ThrowsOnDeath() noexcept(false) {
    if (armed) throw 7;
  }
};

TEST(LRUCache, ContainsWhatTheValuesOwnDestructorThrows) {
  const auto before = cache_error_count();
  LRUCache<int, ThrowsOnDeath> cache(4);
  cache.put(1, ThrowsOnDeath{});
  EXPECT_TRUE(cache.erase(1));
  EXPECT_EQ(cache_error_count(), before + 1);
}

TEST(LRUCache, AThrowingCallbackDoesNotKeepTheValueFromDying) {
  auto resource = std::make_shared<int>(1);
  LRUCache<int, std::shared_ptr<int>> cache(4, [](std::shared_ptr<int>&) { throw 7; });
  cache.put(1, resource);
  EXPECT_EQ(resource.use_count(), 2);
  cache.clear();
  EXPECT_EQ(resource.use_count(), 1);
}

TEST(LRUCache, AMovedFromCacheIsEmptyAndStillDestroysItsValues) {
  Grave grave;
  Cache first(3, grave.callback());
  first.put("a", 1);
  Cache second(std::move(first));
  EXPECT_EQ(*second.get("a"), 1);
  EXPECT_EQ(second.capacity(), 3u);
  EXPECT_EQ(first.size(), 0u);
  EXPECT_EQ(first.get("a"), nullptr);
  first.put("a", 2);
  first.clear();
  EXPECT_EQ(grave.dead, Values{2});
  EXPECT_EQ(first.capacity(), 3u);
}

TEST(LRUCache, AssigningDestroysTheOldValuesByTheirOwnCallback) {
  Grave old_grave, new_grave;
  Cache target(3, old_grave.callback());
  target.put("a", 1);
  Cache source(5, new_grave.callback());
  source.put("b", 2);
  target = std::move(source);
  EXPECT_EQ(old_grave.dead, Values{1});
  EXPECT_EQ(*target.get("b"), 2);
  EXPECT_EQ(target.capacity(), 5u);
  target.clear();
  EXPECT_EQ(new_grave.dead, Values{2});
}

TEST(LRUCache, SurvivesBeingAssignedToItself) {
  Cache cache(3);
  cache.put("a", 1);
  Cache& same = cache;
  cache = std::move(same);
  EXPECT_EQ(*cache.get("a"), 1);
  cache.put("b", 2);
  EXPECT_EQ(cache.size(), 2u);
}

/// Raw handles, freed by the callback: a second free of one would be seen here and by the address sanitizer.
class LRUCacheOfHandles : public testing::Test {
 protected:
  int* open() { return *open_.insert(new int(0)).first; }
  void close(int* handle) {
    EXPECT_EQ(open_.erase(handle), 1u) << "freed twice";
    delete handle;
  }
  bool is_open(int* handle) const { return open_.count(handle) == 1; }

  std::set<int*> open_;
  LRUCache<std::string, int*> cache_{2, [this](int*& handle) { close(handle); }};
};

TEST_F(LRUCacheOfHandles, PuttingOneAgainUnderItsKeyDoesNotFreeIt) {
  int* handle = open();
  cache_.put("a", handle);
  cache_.put("a", handle);
  EXPECT_TRUE(is_open(handle));
  EXPECT_EQ(*cache_.get("a"), handle);
  cache_.clear();
  EXPECT_FALSE(is_open(handle));
}

TEST_F(LRUCacheOfHandles, OneUnderTwoKeysIsFreedOnceWithTheLast) {
  int* handle = open();
  cache_.put("a", handle);
  cache_.put("b", handle);
  cache_.erase("a");
  EXPECT_TRUE(is_open(handle));
  cache_.erase("b");
  EXPECT_FALSE(is_open(handle));
}

TEST_F(LRUCacheOfHandles, OneInUseIsNotFreedWhenPutAgainAndDropped) {
  int* handle = open();
  auto in_use = cache_.put("a", handle);
  cache_.clear();
  cache_.put("b", handle);
  cache_.clear();
  EXPECT_TRUE(is_open(handle));
  in_use.reset();
  EXPECT_FALSE(is_open(handle));
}

TEST_F(LRUCacheOfHandles, AnotherOneUnderTheSameKeyFreesTheFirst) {
  int* first = open();
  int* second = open();
  cache_.put("a", first);
  cache_.put("a", second);
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second));
  cache_.clear();
}

TEST_F(LRUCacheOfHandles, OverwritingAValueDoesNotUpsetTheCountOfItsHandle) {
  int* handle = open();
  int* other = open();
  auto in_use = cache_.put("a", handle);
  *in_use = other;  // the user has taken `handle` back
  cache_.clear();
  in_use.reset();
  EXPECT_FALSE(is_open(other));
  cache_.put("b", handle);
  cache_.clear();
  EXPECT_FALSE(is_open(handle));
}

TEST_F(LRUCacheOfHandles, MadeOnesAreFreedToo) {
  int* handle = nullptr;
  cache_.get_or_make("a", [&] { return handle = open(); });
  EXPECT_TRUE(is_open(handle));
  cache_.clear();
  EXPECT_FALSE(is_open(handle));
}

}  // namespace
}  // namespace xpuruntime
