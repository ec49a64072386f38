#include "xpuruntime/select/decision.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace xpuruntime {
namespace {

using nlohmann::json;

Decision sample() {
  Decision decision;
  decision.problem = parse_problem("matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0");
  decision.kernel = "skinny";
  decision.kernel_version = "1.2";
  decision.level = Level::rule;
  decision.because = "mine matches";
  decision.precision = {DataType::bfloat16, DataType::float32, "the inputs are bf16"};
  decision.casts = {{false, 1, DataType::float32, DataType::bfloat16, "simd"},
                    {true, 0, DataType::bfloat16, DataType::float32, "simd"}};
  decision.copies = {
      {false, 0, parse_problem("relu(bf16[1,4096]/2)").inputs[0], decision.problem.inputs[0], "blocked"}};
  decision.plan = "tile=64x32";
  decision.workspace_bytes = 1024;
  decision.candidates = {{"skinny", Outcome::chosen, "mine matches", 12.5, 1024, 8192},
                         {"cublasLt", Outcome::refused, "k is odd", {}, {}},
                         {"reference", Outcome::passed, "", 99.0, 0}};
  return decision;
}

TEST(Decision, ShowsAPrecisionThatNobodyWasAskedAboutWithoutAReason) {
  Decision decision = sample();
  EXPECT_NE(decision.to_text().find("  precision bf16: the inputs are bf16\n"), std::string::npos);
  decision.precision.because.clear();
  EXPECT_NE(decision.to_text().find("  precision bf16\n"), std::string::npos) << decision.to_text();
}

TEST(Decision, WritesEveryFieldOfTheContract) {
  const json document = json::parse(sample().to_json());
  EXPECT_EQ(document["version"], 1);
  EXPECT_EQ(document["problem"], "matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0");
  EXPECT_EQ(document["device"], "cuda:0");
  EXPECT_EQ(document["kernel"], "skinny");
  EXPECT_EQ(document["kernel_version"], "1.2");
  EXPECT_EQ(document["level"], "rule");
  EXPECT_EQ(document["because"], "mine matches");
  EXPECT_EQ(document["precision"],
            (json{{"forward", "bf16"}, {"backward", "f32"}, {"because", "the inputs are bf16"}}));
  EXPECT_EQ(document["casts"], (json{{{"tensor", "input 1"}, {"from", "f32"}, {"to", "bf16"}, {"kernel", "simd"}},
                                     {{"tensor", "output 0"}, {"from", "bf16"}, {"to", "f32"}, {"kernel", "simd"}}}));
  EXPECT_EQ(document["copies"],
            (json{{{"tensor", "input 0"}, {"from", "bf16[1,4096]/2"}, {"to", "bf16[1,4096]"}, {"kernel", "blocked"}}}));
  EXPECT_EQ(document["plan"], "tile=64x32");
  EXPECT_EQ(document["workspace_bytes"], 1024);
  EXPECT_EQ(document.size(), 13u);
}

TEST(Decision, WritesOneObjectPerCandidateWithNullForWhatIsNotKnown) {
  const json candidates = json::parse(sample().to_json())["candidates"];
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0], (json{{"kernel", "skinny"},
                                 {"verdict", "chosen"},
                                 {"reason", "mine matches"},
                                 {"time_us", 12.5},
                                 {"workspace_bytes", 1024},
                                 {"copied_bytes", 8192}}));
  EXPECT_EQ(candidates[1]["verdict"], "refused");
  EXPECT_TRUE(candidates[1]["time_us"].is_null());
  EXPECT_TRUE(candidates[1]["workspace_bytes"].is_null());
  EXPECT_EQ(candidates[2]["verdict"], "passed");
}

TEST(Decision, WritesNullWhereNothingWasChosen) {
  const json document = json::parse(Decision{}.to_json());
  EXPECT_TRUE(document["kernel"].is_null());
  EXPECT_EQ(document["candidates"], json::array());
}

TEST(Decision, FitsOnOneLineWhereThatIsAskedFor) {
  EXPECT_EQ(sample().to_json(-1).find('\n'), std::string::npos);
  EXPECT_EQ(json::parse(sample().to_json(-1)), json::parse(sample().to_json(4)));
}

TEST(Decision, PrintsReasonsInAnyEncoding) {
  Decision decision = sample();
  decision.candidates[1].reason = "driver said \xff\xfe";
  EXPECT_TRUE(json::accept(decision.to_json()));
}

TEST(Decision, TellsPeopleTheChoiceAndEveryCandidate) {
  const std::string text = sample().to_text();
  EXPECT_NE(text.find("-> skinny [rule] mine matches"), std::string::npos) << text;
  EXPECT_NE(text.find("refused  cublasLt   k is odd"), std::string::npos) << text;
  EXPECT_NE(text.find("passed   reference  99.00 us"), std::string::npos) << text;
  EXPECT_NE(text.find("copy input 0 bf16[1,4096]/2 -> bf16[1,4096] by blocked"), std::string::npos) << text;
  EXPECT_NE(text.find("plan tile=64x32"), std::string::npos) << text;
  EXPECT_NE(text.find("workspace 1024 bytes"), std::string::npos) << text;
}

TEST(Decision, TellsPeopleThatNothingCanRun) {
  Decision decision = sample();
  decision.kernel.clear();
  decision.because = "no kernel is left";
  EXPECT_NE(decision.to_text().find("nothing can run this: no kernel is left"), std::string::npos);
}

TEST(Decision, NamesLevelsAndOutcomesAsTheContractDoes) {
  EXPECT_EQ(to_string(Level::lock), "lock");
  EXPECT_EQ(to_string(Level::force), "force");
  EXPECT_EQ(to_string(Level::prefer), "prefer");
  EXPECT_EQ(to_string(Level::strategy), "strategy");
  EXPECT_EQ(to_string(Outcome::passed), "passed");
}

}  // namespace
}  // namespace xpuruntime
