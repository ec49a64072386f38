#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <set>
#include <thread>

#include "core/expect_error.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

std::vector<TensorSpec> infer_first(std::span<const TensorSpec> inputs, const Attributes&) { return {inputs[0]}; }

OpInfo info_named(std::string_view name) {
  OpInfo info;
  info.name = name;
  info.infer = infer_first;
  return info;
}

TEST(OpRegistry, FindsEverySpellingThatTheSeedsUse) {
  const std::pair<std::string_view, OpId> spellings[] = {
      {"conv", OpId::conv2d},
      {"Conv2d", OpId::conv2d},
      {"Conv3d", OpId::conv3d},
      {"MatMul", OpId::matmul},
      {"MatrixMultiply", OpId::matmul},
      {"gemm", OpId::matmul},
      {"Linear", OpId::linear},
      {"maxpool2d", OpId::max_pool2d},
      {"MaxPool2d", OpId::max_pool2d},
      {"MaxPool3d", OpId::max_pool3d},
      {"avgpool2d", OpId::avg_pool2d},
      {"AvgPool3d", OpId::avg_pool3d},
      {"BatchNorm1d", OpId::batch_norm1d},
      {"BatchNorm2d", OpId::batch_norm2d},
      {"BatchNorm3d", OpId::batch_norm3d},
      {"Dropout", OpId::dropout},
      {"Relu", OpId::relu},
      {"Gelu", OpId::gelu},
      {"Sigmoid", OpId::sigmoid},
      {"Tanh", OpId::tanh},
      {"ElementwiseAdd", OpId::add},
      {"ElementwiseSub", OpId::sub},
      {"ElementwiseMul", OpId::mul},
      {"ElementwiseDiv", OpId::div},
      {"Softmax", OpId::softmax},
      {"LogSoftmax", OpId::log_softmax},
      {"Log", OpId::log},
      {"Exp", OpId::exp},
      {"Sqrt", OpId::sqrt},
      {"ReduceSum", OpId::reduce_sum},
      {"sum", OpId::reduce_sum},
      {"ReduceMean", OpId::reduce_mean},
      {"mean", OpId::reduce_mean},
      {"ReduceMax", OpId::reduce_max},
      {"ReduceMin", OpId::reduce_min},
      {"Normalize", OpId::normalize},
      {"LayerNorm", OpId::layer_norm},
      {"Embedding", OpId::embedding},
      {"attention", OpId::attention},
      {"sdpa", OpId::attention},
      {"scaled_dot_product_attention", OpId::attention},
  };
  for (const auto& [name, id] : spellings) EXPECT_EQ(find_op(name), id) << name;
}

TEST(OpRegistry, FindsEveryCanonicalNameInAnyCase) {
  for (const OpId id : all_ops()) {
    std::string name(to_string(id));
    EXPECT_EQ(find_op(name), id);
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::toupper(c); });
    EXPECT_EQ(find_op(name), id);
  }
}

TEST(OpRegistry, DoesNotGuessAtUnknownNames) {
  for (std::string_view name : {"", "_", "matmull", "mat mul", "matmul|gemm", "2d", "matmul\n"}) {
    EXPECT_EQ(find_op(name), std::nullopt) << name;
  }
  expect_error(ErrorCode::unknown_name, "did you mean matmul", [] { parse_op("matmull"); });
  EXPECT_EQ(parse_op("Max_Pool2d"), OpId::max_pool2d);
  EXPECT_EQ(parse_op("MAXPOOL2D"), OpId::max_pool2d);
}

TEST(OpRegistry, DoesNotTakeANameWithOtherUnderscoresThanItHas) {
  for (std::string_view name : {"c_o_n_v2d_", "conv2d_", "conv_2d", "Mat_Mul", "maxpool_2d", "max__pool2d", "_relu"}) {
    EXPECT_EQ(find_op(name), std::nullopt) << name;
  }
  expect_error(ErrorCode::unknown_name, "did you mean conv2d", [] { parse_problem("conv2d_(f32[1,1,4,4])"); });
  // Nor may two ops differ in nothing else.
  expect_invalid("choose another name", [] { register_op(info_named("c_onv2d")); });
}

TEST(OpRegistry, RefusesNumbersOfNoOp) {
  expect_invalid("65535", [] { op_info(static_cast<OpId>(65535)); });
}

TEST(OpRegistry, KeepsACopyOfAllThatARegisteredOpPointsTo) {
  OpId id = {};
  {
    std::string name = "my_gated_op";
    std::string alias = "GatedThing";
    std::string attribute = "gate";
    std::string choices = "open|shut";
    std::vector<AttributeSpec> specs = {
        {.name = attribute, .kind = AttributeKind::choice, .default_value = 1, .choices = choices}};
    OpInfo info = info_named(name);
    info.aliases = alias;
    info.attributes = specs;
    id = register_op(info);
    for (std::string* text : {&name, &alias, &attribute, &choices}) std::fill(text->begin(), text->end(), '?');
    specs.clear();
  }
  EXPECT_EQ(to_string(id), "my_gated_op");
  EXPECT_EQ(find_op("gatedthing"), id);
  EXPECT_EQ(Attributes(id).choice("gate"), "shut");
  const std::string text = "my_gated_op(f32[2]; gate=open) @cpu:0";
  EXPECT_EQ(to_string(parse_problem(text)), text);
  EXPECT_EQ(all_ops().back(), id);
}

std::vector<std::int64_t> first_extent(const Problem& forward) { return {forward.inputs[0].shape[0]}; }

TEST(OpRegistry, CountsAndKeepsTheInputsThatARegisteredOpDescribes) {
  OpId id = {};
  {
    std::string name = "gate";
    std::vector<InputSpec> inputs = {{.name = "x"}, {.name = name, .optional = true, .gradient = false}};
    std::vector<SizeSpec> sizes = {{.name = "tokens", .read = first_extent, .summary = "rows", .free = true}};
    OpInfo info = info_named("my_described_op");
    info.inputs = inputs;
    info.sizes = sizes;
    id = register_op(info);
    name = "????";
    inputs.clear();
    sizes.clear();
  }
  const OpInfo& info = op_info(id);
  EXPECT_EQ(info.min_inputs, 1);
  EXPECT_EQ(info.max_inputs, 2);
  EXPECT_EQ(info.inputs[1].name, "gate");
  EXPECT_TRUE(has_gradient(info, 0, DataType::float32));
  EXPECT_FALSE(has_gradient(info, 1, DataType::float32));
  EXPECT_EQ(info.sizes[0].read(parse_problem("my_described_op(f32[7,2])")), std::vector<std::int64_t>{7});
}

TEST(OpRegistry, RefusesInputsAndSizesThatMakeNoSense) {
  OpInfo info = info_named("never_described");
  const InputSpec middle[] = {{.name = "x", .optional = true}, {.name = "y"}};
  info.inputs = middle;
  expect_invalid("put it last", [&] { register_op(info); });
  const InputSpec logarithm[] = {{.name = "x", .logarithm = "log_x"}};
  info.inputs = logarithm;
  expect_invalid("not a boolean attribute", [&] { register_op(info); });
  info.inputs = {};
  const SizeSpec size[] = {{.name = "rows"}};
  info.sizes = size;
  expect_invalid("lacks a name, a known kind or its function", [&] { register_op(info); });
}

TEST(OpRegistry, RefusesNamesThatAreTakenOrNoNames) {
  for (std::string_view name : {"matmul", "MatMul", "mat_mul", "gemm", "conv"}) {
    expect_invalid("choose another name", [&] { register_op(info_named(name)); });
  }
  const std::string long_name(65, 'a');
  for (std::string_view name : {std::string_view(""), std::string_view("9x"), std::string_view("a b"),
                                std::string_view("_a"), std::string_view("a(b"), std::string_view(long_name)}) {
    expect_invalid("is not a name", [&] { register_op(info_named(name)); });
  }
  OpInfo info = info_named("brand_new_op");
  info.aliases = "fine|Softmax";
  expect_invalid("already means the op softmax", [&] { register_op(info); });
  EXPECT_EQ(find_op("brand_new_op"), std::nullopt);
  EXPECT_EQ(find_op("fine"), std::nullopt);
}

void expect_attribute_refused(const AttributeSpec& spec, const std::string& part) {
  OpInfo info = info_named("op_with_odd_attributes");
  info.attributes = std::span(&spec, 1);
  expect_invalid(part, [&] { register_op(info); });
}

TEST(OpRegistry, RefusesAttributesThatCouldNotBeReadBack) {
  const std::int64_t nan_bits = std::bit_cast<std::int64_t>(std::numeric_limits<double>::quiet_NaN());
  expect_attribute_refused({.name = "a=b"}, "is not a name");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::choice}, "not one of its choices");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::choice, .default_value = 2, .choices = "x|y"},
                           "not one of its choices");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::choice, .choices = "x y"}, "choice that is not a name");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::boolean, .default_value = 2}, "out of range");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::dtype, .default_value = 13}, "out of range");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::real, .default_value = nan_bits}, "out of range");
  expect_attribute_refused({.name = "a", .kind = AttributeKind::integers, .length = 17}, "17 words");
  expect_attribute_refused({.name = "a", .kind = static_cast<AttributeKind>(9)}, "no known kind");
}

TEST(OpRegistry, RefusesInfosThatCannotWork) {
  OpInfo info = info_named("never_registered");
  info.infer = nullptr;
  expect_invalid("infer is missing", [&] { register_op(info); });
  info = info_named("never_registered");
  info.min_inputs = 3;
  expect_invalid("is not a valid range", [&] { register_op(info); });
  info.max_inputs = 65;
  expect_invalid("is not a valid range", [&] { register_op(info); });
  const AttributeSpec twins[] = {{.name = "a"}, {.name = "a"}};
  info = info_named("never_registered");
  info.attributes = twins;
  expect_invalid("given twice", [&] { register_op(info); });
  EXPECT_EQ(find_op("never_registered"), std::nullopt);
}

TEST(OpRegistry, GivesEachNameToOneOfManyThreadsWhileOthersRead) {
  constexpr int names = 50;
  std::atomic<int> won = 0;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      for (const OpId id : all_ops()) ASSERT_EQ(find_op(op_info(id).name), id);
    }
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < names; ++i) {
        try {
          register_op(info_named("contended_" + std::to_string(i)));
          ++won;
        } catch (const Error&) {
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(won, names);
  std::set<OpId> ids;
  for (int i = 0; i < names; ++i) ids.insert(parse_op("contended_" + std::to_string(i)));
  EXPECT_EQ(ids.size(), names);
}

}  // namespace
}  // namespace xpuruntime
