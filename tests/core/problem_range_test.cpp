#include "xpuruntime/core/problem_range.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

constexpr const char* products = "matmul(f32[m,768], f32[768,768]) @cpu:0 where m=1..512";

TEST(ProblemRange, PrintsWhatItReads) {
  const char* texts[] = {
      products,
      "attention(f32[1,12,s,64], f32[1,12,s,64], f32[1,12,s,64]; causal=true) @cpu:0 where s=1..128",
      "softmax(bf16[b,12,s,s]/8) @cuda:0 deterministic threads=2 where b=1..8, s=16..512",
      "matmul:backward(f32[m,8], f32[8,8], f32[m,8]) @cpu:0 where m=2..3",
      "matmul(i8[m,8], i8[8,8], none, f32[m], f32[1]) @cpu:0 where m=2..9",
      "copy(f32[n,8]{1,n}) -> f32[n,8]{16,1} @cpu:0 where n=0..9",
      "attention(f32[2,4,n,32]{384n,32,384,1}, f32[2,4,n,32]{384n,32,384,1}, f32[2,4,n,32]) @cpu:0 where n=1..64",
  };
  for (const char* text : texts) EXPECT_EQ(to_string(parse_problem_range(text)), text);
}

TEST(ProblemRange, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_problem_range("MatMul( fp32[ m ,768],float[768,768] )where  m = 1 .. 512 "),
            parse_problem_range(products));
  EXPECT_EQ(to_string(parse_problem_range("relu(f32[n]) where n=1..2", {DeviceType::nvidia, 1})),
            "relu(f32[n]) @cuda:1 where n=1..2");
  EXPECT_TRUE(has_ranges(products));
  EXPECT_FALSE(has_ranges("matmul(f32[64,64], f32[64,64]) @cpu:0"));
  EXPECT_FALSE(has_ranges("where(f32[64])"));
}

TEST(ProblemRange, HasOneTextHoweverItIsWritten) {
  const auto again = [](const char* text) { return to_string(parse_problem_range(text)); };
  EXPECT_EQ(again("matmul(f32[m,n], f32[n,64]) where n=60..64, m=1..8"),
            "matmul(f32[m,n], f32[n,64]) @cpu:0 where m=1..8, n=60..64");
  EXPECT_EQ(again("relu(f32[n,4]{4,1}) where n=1..8"), "relu(f32[n,4]) @cpu:0 where n=1..8");
  EXPECT_EQ(again("relu(f32[3,n,4]{4n,4,1}) where n=1..8"), "relu(f32[3,n,4]) @cpu:0 where n=1..8");
  EXPECT_EQ(again("relu(f32[m,n]{n,1}) where n=1..8, m=2..3"), "relu(f32[m,n]) @cpu:0 where m=2..3, n=1..8");
  EXPECT_EQ(again("relu(f32[4,n]{1,4}) where n=1..8"), "relu(f32[4,n]{1,4}) @cpu:0 where n=1..8");
  EXPECT_EQ(again("relu(f32[0,n]{5,3}) where n=1..8"), "relu(f32[0,n]) @cpu:0 where n=1..8");
}

TEST(ProblemRange, MakesUpTheStridesOfExtentsOfOne) {
  const auto same = [](const std::string& tensor, const std::string& as) {
    const std::string where = " @cpu:0 where m=2..3, n=2..8", text = "relu(" + tensor + ")" + where;
    EXPECT_EQ(to_string(parse_problem_range(text)), "relu(" + as + ")" + where) << tensor;
    EXPECT_EQ(parse_problem_range("relu(" + as + ")" + where), parse_problem_range(text)) << tensor;
  };
  for (const char* stride : {"0", "1", "n", "7n", "4611686018427387904"}) {
    same("f32[1,m,n]{" + std::string(stride) + ",n,1}", "f32[1,m,n]");
    same("f32[m,1,n,4]{64n," + std::string(stride) + ",8,2}", "f32[m,1,n,4]{64n,8n,8,2}");
    same("f32[1,m,n]{" + std::string(stride) + ",2n,1}", "f32[1,m,n]{0,2n,1}");  // not 2mn, which has two names
    same("f32[m,n,1]{n,1," + std::string(stride) + "}", "f32[m,n,1]");
  }
  same("f32[m,n,1,1]{0,1,5,6}", "f32[m,n,1,1]{0,1,1,1}");
  same("f32[1,1,m,4,n]{6,5,0,n,1}", "f32[1,1,m,4,n]{0,0,0,n,1}");
  // 2^62 n does not fit 63 bits and would not be read again.
  EXPECT_EQ(to_string(parse_problem_range("copy(u8[1,n]{5,4611686018427387904}) where n=2..2")),
            "copy(u8[1,n]{0,4611686018427387904}) @cpu:0 where n=2..2");
}

TEST(ProblemRange, HoldsOneProblemForEachCombinationOfSizes) {
  const ProblemRange range = parse_problem_range("softmax(f32[b,s,s]) where b=1..2, s=7..9");
  ASSERT_EQ(range.count(), 6u);
  const char* texts[] = {"softmax(f32[1,7,7]) @cpu:0", "softmax(f32[1,8,8]) @cpu:0", "softmax(f32[1,9,9]) @cpu:0",
                         "softmax(f32[2,7,7]) @cpu:0", "softmax(f32[2,8,8]) @cpu:0", "softmax(f32[2,9,9]) @cpu:0"};
  for (std::size_t i = 0; i < range.count(); ++i) {
    EXPECT_EQ(range.at(i), parse_problem(texts[i]));
    EXPECT_TRUE(range.contains(parse_problem(texts[i])));
  }
  EXPECT_EQ(sizes_text(range, range.sizes_at(4)), "b=2, s=8");
  expect_invalid("b=3 is outside of softmax(f32[b,s,s])", [&] { range.at(std::vector<std::int64_t>{3, 7}); });
  expect_invalid("1 sizes were given for 2 names", [&] { range.at(std::vector<std::int64_t>{1}); });
}

TEST(ProblemRange, StridesMayBeMultiplesOfAName) {
  const ProblemRange range = parse_problem_range("copy(f32[3,n,8]{ 16n ,8,1}) where n=2..9");
  EXPECT_EQ(range.at(3), parse_problem("copy(f32[3,5,8]{80,8,1})"));
  EXPECT_TRUE(range.contains(parse_problem("copy(f32[3,9,8]{144,8,1})")));
  EXPECT_FALSE(range.contains(parse_problem("copy(f32[3,9,8]{145,8,1})")));
  EXPECT_EQ(to_string(parse_problem_range("copy(f32[n,8]{0n,1n}) where n=2..9")),
            "copy(f32[n,8]{0,n}) @cpu:0 where n=2..9");
  expect_invalid("column 15: the stride does not fit 63 bits",
                 [] { parse_problem_range("copy(f32[n,8]{9000000000000000000n,1}) where n=2..9"); });
  expect_invalid("column 16: k is not defined", [] { parse_problem_range("copy(f32[n,8]{8k,1}) where n=2..9"); });
  expect_invalid("column 11: ", [] { parse_problem_range("copy(f32[2n,8]) where n=2..9"); });
  expect_invalid("column 16: ", [] { parse_problem("copy(f32[3,8]{8n,1})"); });
}

TEST(ProblemRange, ContainsNothingThatDiffersInMoreThanItsSizes) {
  const ProblemRange range = parse_problem_range("softmax(f32[b,s,s]) where b=1..2, s=7..9");
  for (const char* text : {"softmax(f32[1,7,8])", "softmax(f32[1,6,6])", "softmax(f32[3,7,7])", "softmax(f64[1,7,7])",
                           "softmax(f32[7,7])", "softmax(f32[1,7,7]/8)", "softmax(f32[1,7,7]{49,1,7})",
                           "softmax(f32[1,7,7]) @cuda:0", "softmax(f32[1,7,7]) threads=1", "softmax(f32[1,7,7]; dim=0)",
                           "log_softmax(f32[1,7,7])", "softmax:backward(f32[1,7,7], f32[1,7,7])"}) {
    EXPECT_FALSE(range.contains(parse_problem(text))) << text;
  }
  EXPECT_TRUE(range.contains(parse_problem_range("softmax(f32[n,k,k]) where n=2..2, k=7..8")));
  EXPECT_FALSE(range.contains(parse_problem_range("softmax(f32[b,s,s]) where b=1..3, s=7..8")));
  EXPECT_FALSE(range.contains(parse_problem_range("softmax(f32[b,s,7]) where b=1..2, s=7..9")));
  EXPECT_FALSE(range.contains(parse_problem_range("softmax(f64[b,s,s]) where b=1..2, s=7..9")));
}

TEST(ProblemRange, KeepsStridesThatVaryAndThoseThatDoNot) {
  const ProblemRange columns = parse_problem_range("copy(f32[m,4]{1,m}) where m=1..8");
  EXPECT_EQ(columns.at(4), parse_problem("copy(f32[5,4]{1,5})"));
  const ProblemRange rows = parse_problem_range("copy(f32[m,4]{8,1}) where m=1..8");
  EXPECT_EQ(rows.at(0), parse_problem("copy(f32[1,4])"));
  EXPECT_EQ(rows.at(1), parse_problem("copy(f32[2,4]{8,1})"));
}

TEST(ProblemRange, RefusesTextsWithTheColumn) {
  const auto refused = [](const std::string& text, const std::string& why) {
    expect_invalid("[parse_problem_range] column " + why, [&] { parse_problem_range(text); });
  };
  refused("relu(f32[n])", "10: n is not defined; add its range at the end, like 'where n=1..512'");
  refused("relu(f32[n,m]) where n=1..4", "12: m is not defined; add its range at the end, like ', m=1..512'");
  refused("relu(f32[8])", "13: there are no ranges; add them, like 'where m=1..512'");
  refused("relu(f32[n]) where", "19: the text ends; write a name and its range");
  refused("relu(f32[n]) where n", "21: the text ends; write '=' and a range, like n=1..512");
  refused("relu(f32[n]) where n=", "22: the text ends; write the least size");
  refused("relu(f32[n]) where n=1", "23: the text ends; write '..'");
  refused("relu(f32[n]) where n=1..", "25: the text ends; write the largest size");
  refused("relu(f32[n]) where n=9..1", "22: the range runs backwards; write 1..9");
  refused("relu(f32[n]) where n=-1..1", "22: found '-'; write the least size");
  refused("relu(f32[n]) where n=1..2 m=1..2", "27: found 'm'; write nothing more, or ','");
  refused("relu(f32[n]) where n=1..2,", "27: the text ends; write a name");
  refused("relu(f32[n]) where n=1..2, n=1..2", "28: n is given twice; write it once");
  refused("relu(f32[n]) where n=1..2, m=1..2", "28: m is not an extent of an input");
  refused("relu(f32[8]) where m=1..2", "20: m is not an extent of an input");
  refused("copy(f32[8,8]{m,1}) where m=8..9", "27: m is not an extent of an input");
  refused("relu(f32[n]) where 1n=1..2", "20: a name starts with a letter");
  refused("relu(f32[n]) where n=1..99999999", "14: the ranges hold more than 1048576 problems; narrow them");
  refused("relu(f32[n,m]) where n=1..2000, m=1..2000", "16: the ranges hold more than 1048576 problems");
  refused("relu(f32[n]) where n=0..9223372036854775807", "14: the ranges hold more than");
  refused("relu(f32[n]) where n=1..9223372036854775808", "25: the number does not fit 63 bits");
  refused("relu(f32[a,b,c,d,e]) where a=1..1, b=1..1, c=1..1, d=1..1, e=1..1", "60: more than 4 names");
  expect_error(ErrorCode::unknown_name, "[parse_problem_range] column 6: unknown dtype 'f33'",
               [] { parse_problem_range("relu(f33[n]) where n=1..2"); });
}

TEST(ProblemRange, RefusesSizesThatDoNotFitWithTheSizes) {
  expect_error(ErrorCode::invalid_argument, "which is at n=5",
               [] { parse_problem_range("matmul(f32[8,n], f32[4,8]) where n=4..6"); });
  // 1 is broadcast and 4 fits, but 2 and 3 do not.
  expect_error(ErrorCode::invalid_argument, "which is at n=2",
               [] { parse_problem_range("add(f32[n,8], f32[4,8]) where n=1..4"); });
  expect_error(ErrorCode::invalid_argument, "which is at n=1000",
               [] { parse_problem_range("relu(f32[n,4611686018427387]) where n=1..1000"); });
}

TEST(ProblemRange, IsNoProblem) {
  expect_invalid("column 32: this has ranges of sizes, and one problem is expected",
                 [] { parse_problem("matmul(f32[4,768], f32[768,8]) where m=1..512"); });
  expect_invalid(
      "column 14: this has ranges of sizes, and one problem is expected; write its sizes as numbers, or "
      "give the text to tune, lock record (record_lock in Python) or report",
      [] { parse_problem("relu(f32[n]) where n=1..9"); });
  expect_invalid("column 10: found 'n'", [] { parse_problem("relu(f32[n])"); });
}

std::vector<std::string> proposed(const std::vector<std::string>& texts, std::size_t least = 4) {
  std::vector<Problem> problems;
  for (const std::string& text : texts) problems.push_back(parse_problem(text));
  std::vector<std::string> ranges;
  for (const ProblemRange& range : propose_ranges(problems, least)) ranges.push_back(to_string(range));
  return ranges;
}

TEST(ProposeRanges, FindsTheSizeThatVariesInEachProblemOfABlock) {
  std::vector<std::string> texts;
  for (const int s : {1, 12, 64, 77, 100}) {
    const std::string n = std::to_string(s), heads = "f32[1,12," + n + ",64]";
    texts.push_back("linear(f32[" + n + ",768], f32[2304,768], f32[2304])");
    texts.push_back("attention(" + heads + ", " + heads + ", " + heads + "; causal=true)");
    texts.push_back("linear(f32[" + n + ",768], f32[768,768], f32[768])");
    texts.push_back("relu(f32[8])");
  }
  // Of attention, only 77 and 100 are no other extent's sizes too; once they are seen, so are the others.
  const std::vector<std::string> expected = {"linear(f32[n,768], f32[2304,768], f32[2304]) @cpu:0 where n=1..100",
                                             "linear(f32[n,768], f32[768,768], f32[768]) @cpu:0 where n=1..100"};
  EXPECT_EQ(proposed(texts, 4), expected);
  std::vector<std::string> with_attention = expected;
  with_attention.push_back(
      "attention(f32[1,12,n,64], f32[1,12,n,64], f32[1,12,n,64]; causal=true) @cpu:0 where n=1..100");
  EXPECT_EQ(proposed(texts, 2), with_attention);
}

TEST(ProposeRanges, SeesStridesThatStayAndStridesThatFollowTheSize) {
  // Powers of two divide strides that do not follow them.
  std::vector<std::string> texts;
  for (const int s : {16, 64, 128, 256, 77}) {
    const std::string n = std::to_string(s), row = std::to_string(384 * s);
    const std::string stay = "f32[1,4," + n + ",32]{128,32,384,1}",
                      follow = "f32[2,4," + n + ",32]{" + row + ",32,384,1}";
    texts.push_back("attention(" + stay + ", " + stay + ", " + stay + ")");
    texts.push_back("attention(" + follow + ", " + follow + ", " + follow + ")");
    texts.push_back("copy(f32[" + n + ",5]{1," + n + "}) -> f32[" + n + ",5]");
    texts.push_back("copy(f32[" + n + ",5]{7,1})");
  }
  const std::string stay = "f32[1,4,n,32]{128,32,384,1}", follow = "f32[2,4,n,32]{384n,32,384,1}";
  std::vector<std::string> expected = {
      "attention(" + stay + ", " + stay + ", " + stay + ") @cpu:0 where n=16..256",
      "attention(" + follow + ", " + follow + ", " + follow + ") @cpu:0 where n=16..256",
      "copy(f32[n,5]{1,n}) @cpu:0 where n=16..256", "copy(f32[n,5]{7,1}) @cpu:0 where n=16..256"};
  std::vector<std::string> found = proposed(texts);
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
}

TEST(ProposeRanges, SeesSizesInOutputsThatAreWritten) {
  std::vector<std::string> texts;
  for (const char* n : {"3", "5", "9", "12"}) {
    texts.push_back("matmul(f32[" + std::string(n) + ",16], f32[16,16]) -> bf16[" + n + ",16]");
  }
  EXPECT_EQ(proposed(texts),
            std::vector<std::string>{"matmul(f32[n,16], f32[16,16]) -> bf16[n,16] @cpu:0 where n=3..12"});
}

TEST(ProposeRanges, LeavesStridesOfNoPatternAndFewProblemsAlone) {
  EXPECT_TRUE(proposed({"relu(f32[1])", "relu(f32[2])", "relu(f32[3])"}).empty());
  EXPECT_EQ(proposed({"relu(f32[1])", "relu(f32[2])", "relu(f32[3])", "relu(f32[9])"}),
            std::vector<std::string>{"relu(f32[n]) @cpu:0 where n=1..9"});
  EXPECT_TRUE(
      proposed({"copy(f32[2,3]{5,1})", "copy(f32[4,3]{7,1})", "copy(f32[5,3]{9,1})", "copy(f32[6,3]{4,1})"}).empty());
  EXPECT_TRUE(proposed({}).empty());
}

}  // namespace
}  // namespace xpuruntime
