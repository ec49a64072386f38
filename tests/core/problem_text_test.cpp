#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "core/random_problem.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

TEST(ProblemText, PrintsWhatItReads) {
  const char* texts[] = {
      "matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0",
      "conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1) @opencl:0",
      "copy(f32[4,8]{1,4}) @cpu:0",
      "copy(f32[4,8]{1,4}/4) @cpu:0",
      "copy(f32[]/1) @cpu:0",
      "copy(bool[0,3]) @cpu:255",
      "relu(f32[4]{0}) @npu:0",
      "matmul:backward(f16[2,3], f16[3,4], f16[2,4]) @cuda:1",
      "matmul(f16[2,3], f16[3,4]) -> f32[2,4]{1,2}/8 @cuda:1",
      "linear:backward(f32[2,3], f32[4,3], f32[2,4]) -> f32[2,3], f16[4,3] @cpu:0",
      "add(f32[2], f32[2]) @cpu:0 deterministic",
      "add(f32[2], f32[2]) @cpu:0 deterministic workspace_limit=18446744073709551615",
      "add(f32[2], f32[2]) @cpu:0 deterministic threads=2 workspace_limit=9",
      "dropout(f32[2]; p=0.1 seed=-7 training=false) @cpu:0",
      "reduce_sum(f32[2,3]; dim=0,-1 keepdim=true) @cpu:0",
      "cast(f32[2]; dtype=f8e5m2) @moore:3",
      "cross_entropy(f32[2,3], i64[2]; reduction=none) @cpu:0",
      "matmul(i8[2,3], i8[3,4], none, f32[2]; alpha=0.5) @cpu:0",
      "attention(f32[2,1,1,4], f32[5,8,1,4], f32[5,8,1,4], none, none, i32[2,3]; lse=true) @cpu:0",
      "copy(bool[0]) @cpu:0",
  };
  for (const char* text : texts) EXPECT_EQ(to_string(parse_problem(text)), text);
}

TEST(ProblemText, ReadsWhatPeopleWrite) {
  const Problem problem = parse_problem(
      "  Conv ( fp16 [ 1 , 64,56,56] ,\n half[64,64,3,3] ; stride = 1 , 1\tpadding=1 ) @ nvidia:0  deterministic ");
  EXPECT_EQ(to_string(problem), "conv2d(f16[1,64,56,56], f16[64,64,3,3]; padding=1,1) @cuda:0 deterministic");
  EXPECT_EQ(parse_problem("relu:forward(f32[2]/16)"), parse_problem("relu(f32[2]{1})"));
  EXPECT_EQ(parse_problem("relu(f32[2];)"), parse_problem("relu(f32[2])"));
  EXPECT_EQ(parse_problem("add(f32[2],f32[2])->f32[2]@cpu workspace_limit=5 deterministic"),
            parse_problem("add(f32[2],f32[2]) deterministic workspace_limit=5"));
}

TEST(ProblemText, StandsOnTheGivenDeviceWhereTheTextNamesNone) {
  const Device device = {DeviceType::opencl, 3};
  EXPECT_EQ(parse_problem("relu(f32[2])", device).device, device);
  EXPECT_EQ(parse_problem("relu(f32[2]) @cpu", device).device, (Device{DeviceType::cpu, 0}));
}

TEST(ProblemText, HasNoneOnlyForInputsThatAreLeftOutBeforeOthers) {
  expect_invalid("the last input is none; leave it out", [] { parse_problem("matmul(f32[2,3], f32[3,4], none)"); });
  expect_invalid("the last input is none", [] { parse_problem("matmul(f32[2,3], f32[3,4], f32[4], none)"); });
  expect_invalid("matmul(f32[2,3], f32[3,4], none, f32[7]): ",
                 [] { parse_problem("matmul(f32[2,3], f32[3,4], none, f32[7])"); });
  expect_invalid("; ", [] { parse_problem("matmul(f32[2,3], none)"); });
  expect_invalid("; ", [] { parse_problem("layer_norm(f32[2,3], none, f32[3])"); });
}

TEST(ProblemText, ShowsAHandMadeProblemThatCouldNotBeInferred) {
  Problem problem;
  problem.inputs = {make_spec(DataType::float32, {2, 3})};
  problem.outputs = {make_spec(DataType::float32, {9})};
  EXPECT_EQ(to_string(problem), "matmul(f32[2,3]) -> f32[9] @cpu:0");
}

TEST(ProblemText, NamesTheColumnAndWhatToWrite) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "column 1: the text ends; write an op"},
      {"matmul", "column 7: the text ends; write '('"},
      {"relu(f32[2]", "column 12: the text ends; write ')'"},
      {"relu(f32[2", "column 11: the text ends; write ']'"},
      {"relu(f32 2])", "column 10: found '2'; write '['"},
      {"relu(f32[2,])", "column 12: found ']'; write a number of 0 or more here"},
      {"relu(f32[n])",
       "column 10: found 'n'; write a number of 0 or more, or add the sizes of a name behind the problem: where "
       "n=1..512"},
      {"relu(f32[2]/)", "column 13: found ')'; write an alignment of 1, 2, 4, 8 or 16 here"},
      {"relu(f32[-2])", "column 10: found '-'"},
      {"relu(f32[2]{-1})", "column 13: found '-'"},
      {"relu(f32[2]{1,2})", "column 6: strides [1,2] do not match shape [2]"},
      {"relu(f32[99999999999999999999])", "column 10: the number does not fit 63 bits"},
      {"relu(f32[8]) threads=5000000000", "column 22: the number does not fit 32 bits"},
      {"relu(f32[9223372036854775807])", "column 6: shape"},
      {"relu(f32[1,1,1,1,1,1,1,1,1])", "column 26: more than 8 dims"},
      {"relu(f32[2]/3)", "column 13: no such alignment"},
      {"relu(f32[2]/99999999999999999999)", "column 13: the number"},
      {"relu(f32[2],)", "column 13: found ')'; write a tensor"},
      {"relu(f32[2]) trailing", "column 14: found 'trailing'"},
      {"relu(f32[2]) !", "column 14: found '!'; write nothing more"},
      {"relu(f32[2])) @cpu", "column 13: found ')'"},
      {"relu:sideways(f32[2])", "column 6: no such direction"},
      {"conv2d(f32[1,1,4,4], f32[1,1,3,3]; stride)", "column 42: found ')'; write '='"},
      {"conv2d(f32[1,1,4,4], f32[1,1,3,3]; stride=)", "column 43: found ')'; write a value"},
      {"conv2d(f32[1,1,4,4], f32[1,1,3,3]; stride=x)", "column 36: stride=x does not fit"},
      {"conv2d(f32[1,1,4,4], f32[1,1,3,3]; stride=1 stride=1)", "column 45: stride is given twice"},
      {"conv2d(f32[1,1,4,4], f32[1,1,3,3]; groups=99999999999999999999)", "column 36: groups="},
      {"relu(f32[2]) @cpu:256", "column 15:"},
      {"relu(f32[2]) @", "column 15: the text ends; write a device"},
      {"relu(f32[2]) -> @cpu", "column 17: found '@'; write a tensor"},
      {"relu(f32[2]) -> f32[3]", "column 14: relu: output 0 is f32[3]"},
      {"relu(f32[2]) workspace_limit", "column 29: the text ends; write '='"},
      {"relu(f32[2]) workspace_limit=-1", "column 30: found '-'"},
      {"relu(f32[2]) workspace_limit=18446744073709551616", "column 30: the number"},
      {"relu(f32[2]) deterministic deterministic", "column 28:"},
      {"relu(f32[2]) threads=0", "column 14: 0 threads do no work; write 1 or more"},
      {"relu(f32[2]) threads=2 threads=2", "column 24:"},
      {"relu(f32[2]) threads=4294967296", "column 22:"},
      {"relu(f32[2]) deterministic @cpu", "column 28: found '@'"},
      {"matmul(f32[2,3], f32[4,5])", "column 1: matmul(f32[2,3], f32[4,5]): the inner extents"},
      {"relu(\x01)", "column 6: found an unexpected character"},
  };
  for (const auto& [text, part] : cases) {
    SCOPED_TRACE(text);
    expect_invalid(std::string("[parse_problem] ") + part, [t = text] { parse_problem(t); });
  }
}

TEST(ProblemText, ListsNearNamesOfUnknownOnes) {
  const std::pair<const char*, const char*> cases[] = {
      {"matmull(f32[2,2], f32[2,2])", "column 1: unknown op 'matmull'; did you mean matmul"},
      {"relu(f33[2])", "column 6: unknown dtype 'f33'; did you mean"},
      {"relu(f32[2]) @cudda:0", "column 15: unknown device type 'cudda'; did you mean cuda"},
      {"conv2d(f32[1,1,4,4], f32[1,1,3,3]; strde=1)",
       "column 36: unknown attribute of conv2d 'strde'; did you mean stride"},
      {"gelu(f32[2]; approximate=tanhh)", "column 14: unknown approximate 'tanhh'; did you mean tanh"},
      {"relu(f32[2]; alpha=1)", "column 14: relu has no attributes"},
  };
  for (const auto& [text, part] : cases) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::unknown_name, part, [t = text] { parse_problem(t); });
  }
}

TEST(ProblemText, RefusesMoreThan64Inputs) {
  std::string text = "concat(f32[1]";
  for (int i = 1; i < 64; ++i) text += ",f32[1]";
  EXPECT_EQ(parse_problem(text + ")").inputs.size(), 64U);
  expect_invalid("more than 64 tensors", [&] { parse_problem(text + ",f32[1])"); });
}

TEST(ProblemText, TakesTextsThatAreNotTerminated) {
  const std::string text = "relu(f32[21])";
  expect_invalid("column 12", [&] { parse_problem(std::string_view(text).substr(0, 11)); });
  expect_invalid("unexpected character", [] { parse_problem(std::string_view("relu(f32[2])\0", 13)); });
}

// Every prefix and every text with one character changed is read or refused, never anything else.
TEST(ProblemText, SurvivesDamagedTexts) {
  const std::string text =
      "conv2d:backward(f16[1,4,8,8]{1,64,8,1}/8, f16[4,4,3,3], f16[1,4,6,6]; stride=1,1 groups=1) -> "
      "f32[1,4,8,8], f16[4,4,3,3] @cuda:1 deterministic workspace_limit=12";
  int refused = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      const Problem problem = parse_problem(damaged);
      EXPECT_EQ(parse_problem(to_string(problem)), problem) << damaged;
    } catch (const Error&) {
      ++refused;
    }
  };
  for (std::size_t i = 0; i <= text.size(); ++i) attempt(text.substr(0, i));
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : std::string_view("\0 0,;:/=@-]{)x\xff", 16)) {
      std::string damaged = text;
      damaged[i] = c;
      attempt(damaged);
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(ProblemText, ReadsBackEveryRandomProblem) {
  ProblemMaker maker(42);
  for (int i = 0; i < 20000; ++i) {
    const Problem problem = maker.make();
    const std::string text = to_string(problem);
    ASSERT_EQ(parse_problem(text), problem) << text;
    ASSERT_EQ(to_string(parse_problem(text)), text);
  }
}

}  // namespace
}  // namespace xpuruntime
