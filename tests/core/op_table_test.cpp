#include "core/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace xpuruntime {
namespace {

std::string folded(std::string_view name) {
  std::string out;
  for (char c : name) {
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

TEST(OpTable, HoldsEveryOpOnceInTheOrderOfItsNumbers) {
  const auto ops = builtin_ops();
  ASSERT_EQ(ops.size(), static_cast<std::size_t>(OpId::builtin_count));
  for (std::size_t i = 0; i < ops.size(); ++i) EXPECT_EQ(static_cast<std::size_t>(ops[i].id), i) << ops[i].name;
}

TEST(OpTable, GivesNoNameOrAliasToTwoOpsEvenWithoutCaseAndUnderscores) {
  std::map<std::string, std::string> owner;
  for (const OpInfo& info : builtin_ops()) {
    std::vector<std::string> names = {folded(info.name)};
    for_each_part(info.aliases, [&](std::string_view alias) {
      names.push_back(folded(alias));
      return true;
    });
    for (const std::string& name : names) {
      const auto [it, is_new] = owner.emplace(name, info.name);
      EXPECT_TRUE(is_new) << name << " is " << it->second << " and " << info.name;
    }
  }
}

TEST(OpTable, NamesAreLowerCaseAndHaveARule) {
  for (const OpInfo& info : builtin_ops()) {
    EXPECT_TRUE(std::none_of(info.name.begin(), info.name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    EXPECT_NE(info.infer, nullptr) << info.name;
    EXPECT_LE(info.min_inputs, info.max_inputs) << info.name;
  }
}

TEST(OpTable, AttributesFitTheirWordsAndHaveDistinctNames) {
  for (const OpInfo& info : builtin_ops()) {
    std::set<std::string_view> names;
    for (const AttributeSpec& spec : info.attributes) EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_LE(word_count(info.attributes), Attributes::max_words) << info.name;
    EXPECT_EQ(Attributes(info.id).words().size(), word_count(info.attributes)) << info.name;
  }
}

TEST(OpTable, PutsOpsInTheCategoriesThatPoliciesSpeakOf) {
  const auto category = [](OpId op) { return to_string(op_info(op).category); };
  EXPECT_EQ(category(OpId::matmul), "matrix");
  EXPECT_EQ(category(OpId::attention), "matrix");
  EXPECT_EQ(category(OpId::conv3d), "matrix");
  EXPECT_EQ(category(OpId::reduce_mean), "reduction");
  EXPECT_EQ(category(OpId::nll_loss), "loss");
  EXPECT_EQ(category(OpId::layer_norm), "normalization");
  EXPECT_EQ(category(OpId::gelu), "activation");
  EXPECT_EQ(category(OpId::add), "elementwise");
  EXPECT_EQ(category(OpId::max_pool2d), "pooling");
  EXPECT_EQ(category(OpId::embedding), "lookup");
  EXPECT_EQ(category(OpId::slice), "movement");
}

}  // namespace
}  // namespace xpuruntime
