#include "xpuruntime/core/error.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

TEST(Error, StartsWithTheFunctionAndKeepsItsCode) {
  const Error error(ErrorCode::timeout, "compile", "took too long; raise the limit");
  EXPECT_STREQ(error.what(), "[compile] took too long; raise the limit");
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_EQ(error.function(), "compile");
  EXPECT_EQ(error.message(), "took too long; raise the limit");
}

TEST(Error, KeepsItsPartsInACopy) {
  const auto copy = [] { return Error(ErrorCode::internal, "a::b[]", "[c] d"); }();
  EXPECT_EQ(copy.function(), "a::b[]");
  EXPECT_EQ(Error(copy).message(), "[c] d");
}

TEST(ExceptionText, IsTheExceptionsOwnWhereItHasOne) {
  const auto text_of = [](const auto& thrown) {
    try {
      throw thrown;
    } catch (...) {
      return exception_text();
    }
  };
  EXPECT_EQ(text_of(Error(ErrorCode::io_error, "read", "no such file")), "[read] no such file");
  EXPECT_EQ(text_of(std::runtime_error("")), "an exception without a text");
  EXPECT_EQ(text_of(7), "an exception that is not a std::exception");
}

TEST(Error, IsCaughtAsARuntimeError) {
  EXPECT_THROW(fail(ErrorCode::io_error, "read", "no such file; check the path"), std::runtime_error);
}

TEST(Error, NamesEveryCodeDifferently) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) names.insert(to_string(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(to_string(ErrorCode::out_of_memory), "out_of_memory");
}

TEST(Status, IsFineUntilToldOtherwise) {
  const Status fine;
  EXPECT_TRUE(fine.ok());
  EXPECT_EQ(fine.message(), "");
}

TEST(Status, CarriesItsReasonThroughCopies) {
  Status copy;
  {
    const Status failed(ErrorCode::device_error, "the launch failed");
    copy = failed;
  }
  EXPECT_FALSE(copy.ok());
  EXPECT_EQ(copy.code(), ErrorCode::device_error);
  EXPECT_EQ(copy.message(), "the launch failed");
}

TEST(Status, CostsOneSharedPointer) { EXPECT_EQ(sizeof(Status), sizeof(std::shared_ptr<void>)); }

constexpr std::string_view ops[] = {"matmul", "mul", "softmax", "log_softmax", "relu", "gelu", "silu"};

TEST(NearNames, PutsTheNearestFirst) {
  EXPECT_EQ(near_names("matmull", ops), (std::vector<std::string>{"matmul"}));
  EXPECT_EQ(near_names("rellu", ops).front(), "relu");
}

TEST(NearNames, IgnoresCase) { EXPECT_EQ(near_names("MATMU", ops).front(), "matmul"); }

TEST(NearNames, NeverGivesMoreThanThree) {
  constexpr std::string_view alike[] = {"aaaa", "aaab", "aaac", "aaad", "aaae"};
  EXPECT_EQ(near_names("aaaz", alike).size(), 3u);
}

TEST(NearNames, GivesEachNameOnce) {
  constexpr std::string_view twice[] = {"relu", "relu"};
  EXPECT_EQ(near_names("rel", twice).size(), 1u);
}

TEST(NearNames, FindsNothingNearNonsenseAndTheEmptyName) {
  EXPECT_TRUE(near_names("zzzzzz", ops).empty());
  EXPECT_TRUE(near_names("", ops).empty());
  EXPECT_TRUE(near_names(std::string(1 << 20, 'm'), ops).empty());
}

TEST(FailUnknown, AsksWhetherTheNearNameWasMeant) {
  expect_error(ErrorCode::unknown_name, "[parse_op] unknown op 'matmull'; did you mean matmul?",
               [] { fail_unknown("parse_op", "op", "matmull", ops); });
}

TEST(FailUnknown, ListsTheKnownNamesWhenNoneIsNear) {
  expect_error(ErrorCode::unknown_name, "use one of: matmul, mul, softmax",
               [] { fail_unknown("parse_op", "op", "zzzzzz", ops); });
}

TEST(FailUnknown, ShortensAnEndlessName) {
  try {
    fail_unknown("parse_op", "op", std::string(100000, 'x'), ops);
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string_view(error.what()).size(), 400u);
  }
}

}  // namespace
}  // namespace xpuruntime
