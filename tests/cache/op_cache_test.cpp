#include "xpuruntime/cache/op_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/expect_error.h"
#include "xpuruntime/cache/cache_errors.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

constexpr Device cpu{DeviceType::cpu, 0};
constexpr Device cuda0{DeviceType::nvidia, 0};
constexpr Device cuda1{DeviceType::nvidia, 1};
constexpr Device npu0{DeviceType::npu, 0};

struct Death {
  int value;
  Device device;
  bool operator==(const Death&) const = default;
};
using Deaths = std::vector<Death>;

/// Notes which value was destroyed while which device was current; the caller's device is cpu:0 in every test.
class OpCacheTest : public testing::Test {
 protected:
  using Cache = OpCache<std::string, int>;

  ~OpCacheTest() override {
    EXPECT_EQ(current_device(), cpu) << "the caller's device was not restored";
    set_vendor_runtime(DeviceType::npu, nullptr);
    set_cache_error_handler(nullptr);
  }

  Cache::Destructor note() {
    return [this](int& value) { deaths_.push_back({value, current_device()}); };
  }

  Deaths deaths_;
};

TEST_F(OpCacheTest, MovesButNeverCopies) {
  EXPECT_FALSE(std::is_copy_constructible_v<Cache>);
  EXPECT_FALSE(std::is_copy_assignable_v<Cache>);
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<Cache>);
  EXPECT_TRUE(std::is_nothrow_move_assignable_v<Cache>);
}

TEST_F(OpCacheTest, KeepsTheFirstDevicesPlansWhenASecondDeviceAppears) {
  Cache cache(10, note());
  auto& first = cache.get_cache(cuda0);
  const auto value = first.put("plan", 1);
  for (std::size_t index = 1; index <= 255; ++index) cache.get_cache(DeviceType::nvidia, index).put("plan", 2);
  cache.get_cache(npu0);
  EXPECT_EQ(&cache.get_cache(DeviceType::nvidia, 0), &first);
  EXPECT_EQ(first.get("plan"), value);
  EXPECT_TRUE(deaths_.empty());
}

TEST_F(OpCacheTest, KeepsTheValuesOfDevicesApart) {
  Cache cache;
  cache.get_cache(cuda0).put("plan", 1);
  cache.get_cache(cuda1).put("plan", 2);
  EXPECT_EQ(*cache.get_cache(cuda0).get("plan"), 1);
  EXPECT_EQ(*cache.get_cache(DeviceType::nvidia, 1).get("plan"), 2);
  EXPECT_EQ(cache.get_cache(cpu).get("plan"), nullptr);
  EXPECT_EQ(cache.get_cache(cpu).capacity(), 100u);
}

TEST_F(OpCacheTest, RefusesDevicesThatCannotBe) {
  Cache cache;
  const auto refuses = [&](DeviceType type, std::size_t index) {
    error_text(ErrorCode::invalid_argument, [&] { cache.get_cache(type, index); });
  };
  refuses(DeviceType::cpu, 256);
  refuses(DeviceType::cpu, static_cast<std::size_t>(-1));
  refuses(static_cast<DeviceType>(max_device_types), 0);
  EXPECT_THROW(cache.get_cache(Device{static_cast<DeviceType>(200), 0}), Error);
}

TEST_F(OpCacheTest, ValuesDieOnTheirDeviceWhicheverWayTheyLeave) {
  {
    Cache cache(1, note());
    auto& plans = cache.get_cache(cuda1);
    plans.put("a", 1);
    plans.put("b", 2);  // evicts 1
    plans.put("b", 3);  // replaces 2
    plans.erase("b");   // 3
    plans.put("c", 4);
    plans.clear();  // 4
    plans.put("d", 5);
    cache.clear();  // 5
    plans.put("e", 6);
    cache.set_capacity(0);  // 6
    plans.put("f", 7);      // not kept
    cache.set_capacity(1);
    plans.put("g", 8);  // 8 with the cache
  }
  Deaths expected;
  for (int value = 1; value <= 8; ++value) expected.push_back({value, cuda1});
  EXPECT_EQ(deaths_, expected);
}

TEST_F(OpCacheTest, AValueInUseDiesOnItsDeviceAfterTheCache) {
  std::shared_ptr<int> in_use;
  {
    Cache cache(10, note());
    in_use = cache.get_cache(cuda1).put("a", 1);
  }
  EXPECT_TRUE(deaths_.empty());
  const DeviceGuard elsewhere(npu0);
  in_use.reset();
  EXPECT_EQ(deaths_, (Deaths{{1, cuda1}}));
  EXPECT_EQ(current_device(), npu0);
}

TEST_F(OpCacheTest, AValueDroppedOnAnotherThreadDiesOnItsDevice) {
  Cache cache(10, note());
  auto in_use = cache.get_cache(cuda1).put("a", 1);
  cache.clear();
  std::thread([value = std::move(in_use)]() mutable {
    const DeviceGuard own(npu0);
    value.reset();
    EXPECT_EQ(current_device(), npu0);
  }).join();
  EXPECT_EQ(deaths_, (Deaths{{1, cuda1}}));
}

/// A value that frees its resource itself, without a callback.
struct NotesItsDeath {
  Device* where;
  explicit NotesItsDeath(Device* where) : where(where) {}
  NotesItsDeath(NotesItsDeath&& other) noexcept : where(std::exchange(other.where, nullptr)) {}
  ~NotesItsDeath() {
    if (where != nullptr) *where = current_device();
  }
};

TEST_F(OpCacheTest, AValuesOwnDestructorRunsOnItsDeviceToo) {
  Device where = npu0;
  OpCache<int, NotesItsDeath> cache;
  cache.get_cache(cuda1).put(1, NotesItsDeath(&where));
  cache.clear();
  EXPECT_EQ(where, cuda1);
}

TEST_F(OpCacheTest, RestoresTheCallersDeviceWhenACallbackThrows) {
  const auto before = cache_error_count();
  Cache cache(10, [](int& value) {
    if (value == 1) throw std::runtime_error("no");
    throw value;
  });
  cache.get_cache(cuda0).put("a", 1);
  cache.get_cache(cuda1).put("a", 2);
  const DeviceGuard caller(npu0);
  cache.clear();
  EXPECT_EQ(current_device(), npu0);
  EXPECT_EQ(cache_error_count(), before + 2);
}

TEST_F(OpCacheTest, RestoresTheCallersDeviceWhenACallbackSwitchesIt) {
  Cache cache(10, [](int&) { set_current_device(npu0); });
  cache.get_cache(cuda1).put("a", 1);
  cache.clear();
  EXPECT_EQ(current_device(), cpu);
}

TEST_F(OpCacheTest, RestoresTheCallersDeviceWhenAMakerThrows) {
  Cache cache(10, note());
  const auto failing = [&]() -> int {
    const DeviceGuard guard(cuda1);
    throw std::runtime_error("no");
  };
  EXPECT_THROW(cache.get_cache(cuda1).get_or_make("a", failing), std::runtime_error);
  EXPECT_EQ(current_device(), cpu);
  EXPECT_TRUE(deaths_.empty());
}

TEST_F(OpCacheTest, ReportsADeviceThatCannotBeMadeCurrentAndGoesOnWithTheOthers) {
  std::vector<std::string> heard;
  set_cache_error_handler([&](std::string_view message) { heard.emplace_back(message); });
  Cache cache(10, note());
  cache.get_cache(cuda0).put("a", 1);
  cache.get_cache(npu0).put("a", 2);
  cache.get_cache(Device{DeviceType::moore, 0}).put("a", 3);
  static constexpr VendorRuntime gone = {.activate = [](int) { throw std::runtime_error("npu is gone"); }};
  set_vendor_runtime(DeviceType::npu, &gone);
  cache.clear();
  EXPECT_EQ(deaths_, (Deaths{{1, cuda0}, {3, {DeviceType::moore, 0}}}));
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find("npu is gone"), std::string::npos) << heard[0];
}

TEST_F(OpCacheTest, ChangesTheCapacityOfCachesThatAreAndThatCome) {
  Cache cache(3, note());
  auto& plans = cache.get_cache(cuda1);
  for (int i = 1; i <= 3; ++i) plans.put(std::to_string(i), i);
  cache.set_capacity(1);
  EXPECT_EQ(deaths_, (Deaths{{1, cuda1}, {2, cuda1}}));
  EXPECT_EQ(plans.capacity(), 1u);
  EXPECT_EQ(cache.get_cache(cuda0).capacity(), 1u);
}

TEST_F(OpCacheTest, CallbacksMayUseTheCacheBecauseNoLockIsHeld) {
  Cache* reached = nullptr;
  int calls = 0;
  Cache cache(4, [&](int&) {
    ++calls;
    reached->get_cache(npu0).get("a");
  });
  reached = &cache;
  cache.get_cache(cuda1).put("a", 1);
  cache.set_capacity(0);
  cache.set_capacity(4);
  cache.get_cache(cuda1).put("a", 1);
  cache.clear();
  cache.get_cache(cuda0).put("a", 1);
  cache = Cache(4);
  EXPECT_EQ(calls, 3);
}

TEST_F(OpCacheTest, MovingKeepsTheCachesWhereTheyAre) {
  Cache first(7, note());
  auto& plans = first.get_cache(cuda1);
  plans.put("a", 1);
  Cache second(std::move(first));
  EXPECT_EQ(&second.get_cache(cuda1), &plans);
  EXPECT_EQ(*plans.get("a"), 1);

  EXPECT_NE(&first.get_cache(cuda1), &plans);
  EXPECT_EQ(first.get_cache(cuda1).size(), 0u);
  EXPECT_EQ(first.get_cache(cuda1).capacity(), 7u);
  first.get_cache(cuda1).put("a", 2);
  first.clear();
  EXPECT_EQ(deaths_, (Deaths{{2, cuda1}}));
}

TEST_F(OpCacheTest, AssigningDestroysTheOldValuesOnTheirDevice) {
  Cache cache(7, note());
  cache.get_cache(cuda1).put("a", 1);
  cache = Cache(5, note());
  EXPECT_EQ(deaths_, (Deaths{{1, cuda1}}));
  EXPECT_EQ(cache.get_cache(cuda1).capacity(), 5u);
}

TEST_F(OpCacheTest, OneHandleUnderTwoKeysIsFreedOnce) {
  int frees = 0;
  int object = 0;
  OpCache<int, void*> cache(4, [&](void*&) { ++frees; });
  auto& handles = cache.get_cache(cuda0);
  handles.put(1, &object);
  handles.put(1, &object);
  handles.put(2, &object);
  handles.erase(1);
  EXPECT_EQ(frees, 0);
  cache.clear();
  EXPECT_EQ(frees, 1);
}

struct HashShape {
  std::size_t operator()(const std::tuple<int, int, int>& shape) const {
    return static_cast<std::size_t>(std::get<0>(shape) + std::get<1>(shape) + std::get<2>(shape));
  }
};

TEST_F(OpCacheTest, TakesTuplesOfPlainTypesWithoutAHashOfTheirOwn) {
  OpCache<std::tuple<std::size_t, std::size_t, std::size_t>, int> cache;
  auto& here = cache.get_cache(cpu);
  for (std::size_t m = 0; m < 4; ++m) {
    for (std::size_t n = 0; n < 4; ++n) here.put({m, n, 7}, static_cast<int>(10 * m + n));
  }
  for (std::size_t m = 0; m < 4; ++m) {
    for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ(*here.get({m, n, 7}), static_cast<int>(10 * m + n));
  }
  LRUCache<std::pair<std::string, std::tuple<DeviceType, bool>>, int> nested;
  nested.put({"a", {DeviceType::npu, true}}, 1);
  EXPECT_EQ(*nested.get({"a", {DeviceType::npu, true}}), 1);
  EXPECT_EQ(nested.get({"a", {DeviceType::npu, false}}), nullptr);
}

TEST(KeyHash, TellsTheOrderAndTheNumberOfPartsApart) {
  using Triple = std::tuple<int, int, int>;
  std::set<std::size_t> hashes;
  for (int a = 0; a < 16; ++a) {
    for (int b = 0; b < 16; ++b) {
      for (int c = 0; c < 16; ++c) hashes.insert(KeyHash<Triple>{}({a, b, c}));
    }
  }
  EXPECT_EQ(hashes.size(), 16u * 16 * 16);
  EXPECT_NE(KeyHash<std::tuple<int>>{}({1}), (KeyHash<std::tuple<int, int>>{}({1, 0})));
  EXPECT_EQ(KeyHash<std::string>{}("a"), std::hash<std::string>{}("a"));
}

TEST_F(OpCacheTest, TakesAKeyWithItsOwnHashAndTellsCollidingOnesApart) {
  OpCache<std::tuple<int, int, int>, int, HashShape> cache;
  auto& plans = cache.get_cache(cuda0);
  plans.put({1, 2, 3}, 123);
  plans.put({3, 2, 1}, 321);
  EXPECT_EQ(*plans.get({1, 2, 3}), 123);
  EXPECT_EQ(*plans.get({3, 2, 1}), 321);
  EXPECT_EQ(plans.get({2, 2, 2}), nullptr);
}

TEST_F(OpCacheTest, ThreadsThatMeetANewDeviceGetOneCacheAndOneMaker) {
  constexpr int threads = 4, devices = 32;
  Cache cache(4);
  std::atomic<int> made = 0;
  std::mutex mutex;
  std::set<Cache::BaseCache*> seen;
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) {
    pool.emplace_back([&] {
      for (std::size_t index = 0; index < devices; ++index) {
        auto& plans = cache.get_cache(DeviceType::opencl, index);
        plans.get_or_make("plan", [&] { return ++made; });
        const std::lock_guard lock(mutex);
        seen.insert(&plans);
      }
    });
  }
  for (auto& thread : pool) thread.join();
  EXPECT_EQ(made, devices);
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(devices));
}

TEST_F(OpCacheTest, ClearingAndResizingWhileOthersUseItIsSafe) {
  std::atomic<int> made = 0, destroyed = 0;
  {
    Cache cache(2, [&](int&) { ++destroyed; });
    const auto use = [&] {
      for (int i = 0; i < 2000; ++i) {
        auto& plans = cache.get_cache(DeviceType::nvidia, static_cast<std::size_t>(i % 3));
        plans.get_or_make(std::to_string(i % 5), [&] { return ++made; });
      }
    };
    std::thread first(use), second(use);
    for (std::size_t i = 0; i < 200; ++i) {
      cache.clear();
      cache.set_capacity(i % 4);
    }
    first.join();
    second.join();
  }
  EXPECT_EQ(made, destroyed);
}

}  // namespace
}  // namespace xpuruntime
