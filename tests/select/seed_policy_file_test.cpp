// Files go both ways between our KernelPolicy and the class that the seed has in C++, word by word.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "xpuruntime/select/policy.h"

namespace seed {
#include "seed_003_kernel_policy.inc"
}  // namespace seed

namespace xpuruntime {
namespace {

using Theirs = seed::xpuruntime::KernelPolicy;

TEST(SeedPolicyFile, OfOursIsReadByTheSeedsReader) {
  for (const Strategy strategy : {Strategy::first_supported, Strategy::best_performance, Strategy::lowest_memory}) {
    for (const char* precision : {"fp32", "fp16", "bf16", "int8"}) {
      KernelPolicy ours;
      ours.set("matmul", "cublasLt").set("conv", "cudnn");
      ours.auto_strategy = strategy;
      ours.default_precision = parse_data_type(precision);
      const Theirs theirs = Theirs::from_json(ours.to_json());
      EXPECT_EQ(theirs.preferences,
                (std::unordered_map<std::string, std::string>{{"matmul", "cublasLt"}, {"conv", "cudnn"}}));
      EXPECT_EQ(static_cast<int>(theirs.auto_strategy), static_cast<int>(strategy));
      EXPECT_EQ(theirs.default_precision, precision);
      EXPECT_EQ(KernelPolicy::from_json(theirs.to_json()), ours);
      EXPECT_EQ(nlohmann::json::parse(theirs.to_json()), nlohmann::json::parse(ours.to_json()));
    }
  }
}

TEST(SeedPolicyFile, OfTheSeedsIsReadByOurs) {
  Theirs theirs;
  theirs.preferences["attention"] = "flash_v2";
  theirs.auto_strategy = Theirs::AutoSelectStrategy::LowestMemory;
  theirs.default_precision = "bf16";
  const KernelPolicy ours = KernelPolicy::from_json(theirs.to_json());
  EXPECT_EQ(*ours.get("attention"), (KernelPreference{{"flash_v2"}, false}));
  EXPECT_EQ(ours.auto_strategy, KernelPolicy::AutoSelectStrategy::lowest_memory);
  EXPECT_EQ(ours.default_precision, DataType::bfloat16);
}

}  // namespace
}  // namespace xpuruntime
