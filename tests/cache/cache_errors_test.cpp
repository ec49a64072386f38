#include "xpuruntime/cache/cache_errors.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace xpuruntime {
namespace {

class CacheErrors : public testing::Test {
 protected:
  ~CacheErrors() override { set_cache_error_handler(nullptr); }

  void listen() {
    set_cache_error_handler([this](std::string_view message) { heard_.emplace_back(message); });
  }

  const std::uint64_t before_ = cache_error_count();
  std::vector<std::string> heard_;
};

TEST_F(CacheErrors, AreOnlyCountedWhenNobodyListens) {
  EXPECT_FALSE(detail::contain("a step", [] { throw std::runtime_error("lost"); }));
  EXPECT_EQ(cache_error_count(), before_ + 1);
}

TEST_F(CacheErrors, AStepThatGoesThroughIsNoError) {
  listen();
  EXPECT_TRUE(detail::contain("a step", [] {}));
  EXPECT_EQ(cache_error_count(), before_);
  EXPECT_TRUE(heard_.empty());
}

TEST_F(CacheErrors, TellTheHandlerWhatWasTriedAndWhatWentWrong) {
  listen();
  detail::contain("freeing the plan", [] { throw std::runtime_error("device is gone"); });
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_TRUE(heard_[0].starts_with("[cache] freeing the plan: device is gone;")) << heard_[0];
}

TEST_F(CacheErrors, MayBeOfAnyType) {
  listen();
  detail::contain("a step", [] { throw 7; });
  detail::contain("a step", [] { throw "text"; });
  EXPECT_EQ(cache_error_count(), before_ + 2);
  ASSERT_EQ(heard_.size(), 2u);
  EXPECT_NE(heard_[0].find("not a std::exception"), std::string::npos) << heard_[0];
}

TEST_F(CacheErrors, FromTheHandlerItselfAreDropped) {
  set_cache_error_handler([](std::string_view) { throw 7; });
  EXPECT_FALSE(detail::contain("a step", [] { throw std::runtime_error("lost"); }));
  EXPECT_EQ(cache_error_count(), before_ + 1);
}

TEST_F(CacheErrors, AHandlerMayReplaceItselfWhileItRuns) {
  auto alive = std::make_shared<int>(1);
  set_cache_error_handler([&, alive](std::string_view) {
    listen();
    heard_.push_back(std::to_string(*alive));
  });
  detail::contain("a step", [] { throw 7; });
  EXPECT_EQ(heard_, std::vector<std::string>{"1"});
  EXPECT_EQ(alive.use_count(), 1);
  detail::contain("a step", [] { throw 7; });
  EXPECT_EQ(heard_.size(), 2u);
}

}  // namespace
}  // namespace xpuruntime
