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

bool is_boolean(const OpInfo& info, std::string_view attribute) {
  return std::any_of(info.attributes.begin(), info.attributes.end(), [&](const AttributeSpec& spec) {
    return spec.name == attribute && spec.kind == AttributeKind::boolean;
  });
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

TEST(OpTable, RowsAreComplete) {
  for (const OpInfo& info : builtin_ops()) {
    EXPECT_TRUE(info.summary.ends_with('.')) << info.name;
    ASSERT_FALSE(info.inputs.empty()) << info.name;
    std::set<std::string_view> names;
    bool optional = false;
    for (const InputSpec& input : info.inputs) {
      EXPECT_TRUE(names.insert(input.name).second) << info.name << " " << input.name;
      EXPECT_TRUE(input.optional || !optional) << info.name << ": an optional input stands before " << input.name;
      optional = input.optional;
      EXPECT_TRUE(input.logarithm.empty() || is_boolean(info, input.logarithm)) << info.name;
    }
    for (const SizeSpec& size : info.sizes) EXPECT_FALSE(size.summary.empty()) << info.name << " " << size.name;
    EXPECT_NE(info.rounding, Rounding::category) << info.name;
  }
}

TEST(OpTable, CountsInputsByTheirRow) {
  EXPECT_EQ(op_info(OpId::matmul).min_inputs, 2);
  EXPECT_EQ(op_info(OpId::batch_norm2d).min_inputs, 1);
  EXPECT_EQ(op_info(OpId::batch_norm2d).max_inputs, 5);
  EXPECT_EQ(op_info(OpId::concat).max_inputs, 64);
  EXPECT_EQ(input_spec(op_info(OpId::concat), 63).name, "tensors");
}

TEST(OpTable, TreatsInputsThatNobodyDescribedAsUsualInTheirCategory) {
  EXPECT_EQ(usual_input(OpCategory::elementwise, 1).in_place, any_output);
  EXPECT_EQ(usual_input(OpCategory::normalization, 2).in_place, 0b100);
  EXPECT_TRUE(usual_input(OpCategory::loss, 0).follows_precision);
  EXPECT_FALSE(usual_input(OpCategory::loss, 1).follows_precision);
  EXPECT_FALSE(usual_input(OpCategory::movement, 0).follows_precision);
  EXPECT_TRUE(usual_input(OpCategory::matrix, 2).follows_precision);
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
