#include <gtest/gtest.h>

#include <limits>

#include "core/expect_error.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime {
namespace {

using List = std::vector<std::int64_t>;

TEST(Attributes, StartWithPyTorchsDefaults) {
  const Attributes conv(OpId::conv2d);
  EXPECT_EQ(conv.list("stride"), (List{1, 1}));
  EXPECT_EQ(conv.list("padding"), (List{0, 0}));
  EXPECT_EQ(conv.list("dilation"), (List{1, 1}));
  EXPECT_EQ(conv.integer("groups"), 1);
  EXPECT_EQ(Attributes(OpId::softmax).integer("dim"), -1);
  EXPECT_EQ(Attributes(OpId::layer_norm).real("eps"), 1e-5);
  EXPECT_EQ(Attributes(OpId::batch_norm2d).real("momentum"), 0.1);
  EXPECT_FALSE(Attributes(OpId::batch_norm2d).boolean("training"));
  EXPECT_TRUE(Attributes(OpId::avg_pool2d).boolean("count_include_pad"));
  EXPECT_EQ(Attributes(OpId::cross_entropy).choice("reduction"), "mean");
  EXPECT_EQ(Attributes(OpId::cross_entropy).integer("ignore_index"), -100);
  EXPECT_TRUE(Attributes(OpId::dropout).boolean("training"));
  EXPECT_EQ(Attributes(OpId::gelu).choice("approximate"), "none");
  EXPECT_EQ(Attributes(OpId::reduce_sum).list("dim"), List{});
  EXPECT_EQ(Attributes(OpId::cast).data_type("dtype"), DataType::float32);
}

TEST(Attributes, PrintOnlyWhatDiffersFromTheDefaults) {
  EXPECT_EQ(Attributes(OpId::conv2d).to_string(), "");
  EXPECT_EQ(Attributes(OpId::relu).to_string(), "");
  const List two = {2};
  const List pads = {1, 2};
  EXPECT_EQ(Attributes(OpId::conv2d).set_list("padding", pads).set_list("stride", two).set("groups", 4).to_string(),
            "stride=2,2 padding=1,2 groups=4");
  EXPECT_EQ(Attributes(OpId::conv2d).set("groups", 1).to_string(), "");
}

TEST(Attributes, PrintTheShortestRealThatReadsBack) {
  const auto printed = [](double eps) { return Attributes(OpId::normalize).set_real("eps", eps).to_string(); };
  EXPECT_EQ(printed(0.1), "eps=0.1");
  EXPECT_EQ(printed(1e-5), "eps=1e-05");
  EXPECT_EQ(printed(3), "eps=3");
  const double values[] = {1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -0.0, 123456789.125};
  for (const double value : values) {
    const Attributes set = Attributes(OpId::normalize).set_real("eps", value);
    EXPECT_EQ(Attributes(OpId::normalize).parse("eps", set.to_string().substr(4)), set) << set.to_string();
  }
}

TEST(Attributes, ReadEveryKindFromText) {
  EXPECT_EQ(Attributes(OpId::conv2d).parse("stride", "2,3").list("stride"), (List{2, 3}));
  EXPECT_EQ(Attributes(OpId::conv2d).parse("stride", "2").list("stride"), (List{2, 2}));
  EXPECT_EQ(Attributes(OpId::reduce_sum).parse("dim", "-1,0").list("dim"), (List{-1, 0}));
  EXPECT_EQ(Attributes(OpId::reduce_sum).parse("dim", "").list("dim"), List{});
  EXPECT_TRUE(Attributes(OpId::matmul).parse("transpose_a", "true").boolean("transpose_a"));
  EXPECT_TRUE(Attributes(OpId::matmul).parse("transpose_a", "1").boolean("transpose_a"));
  EXPECT_FALSE(Attributes(OpId::avg_pool2d).parse("count_include_pad", "false").boolean("count_include_pad"));
  EXPECT_EQ(Attributes(OpId::linear).parse("activation", "silu").choice("activation"), "silu");
  EXPECT_EQ(Attributes(OpId::dropout).parse("p", "0.25").real("p"), 0.25);
  EXPECT_EQ(Attributes(OpId::cast).parse("dtype", "half").data_type("dtype"), DataType::float16);
  EXPECT_EQ(Attributes(OpId::cast).parse("dtype", "bf16").to_string(), "dtype=bf16");
  EXPECT_EQ(Attributes(OpId::slice).parse("start", "-9223372036854775808").integer("start"),
            std::numeric_limits<std::int64_t>::min());
}

TEST(Attributes, TakeOneIntegerForAListOrAReal) {
  EXPECT_EQ(Attributes(OpId::conv2d).set("stride", 2).list("stride"), (List{2, 2}));
  EXPECT_EQ(Attributes(OpId::conv3d).set("padding", 3).to_string(), "padding=3,3,3");
  EXPECT_EQ(Attributes(OpId::reduce_sum).set("dim", -1).list("dim"), List{-1});
  EXPECT_EQ(Attributes(OpId::normalize).set("p", 3).real("p"), 3.0);
  expect_invalid("use it as a choice", [] { Attributes(OpId::gelu).set("approximate", 1); });
}

TEST(Attributes, CompareEqualWhateverWayTheyWereSet) {
  const List long_list = {0, 1, 2};
  const List short_list = {1};
  const Attributes direct = Attributes(OpId::reduce_sum).set_list("dim", short_list);
  const Attributes after = Attributes(OpId::reduce_sum).set_list("dim", long_list).set_list("dim", short_list);
  EXPECT_EQ(direct, after);
  EXPECT_EQ(after, Attributes(OpId::reduce_sum).parse("dim", "1"));
  EXPECT_NE(direct, Attributes(OpId::reduce_sum));
  EXPECT_NE(Attributes(OpId::reduce_sum), Attributes(OpId::reduce_mean));
}

TEST(Attributes, ListTheNearNamesOfOneThatIsUnknown) {
  expect_error(ErrorCode::unknown_name, "did you mean stride", [] { Attributes(OpId::conv2d).set("strid", 1); });
  expect_error(ErrorCode::unknown_name, "did you mean relu",
               [] { Attributes(OpId::linear).set_choice("activation", "rellu"); });
  expect_error(ErrorCode::unknown_name, "relu has no attributes", [] { Attributes(OpId::relu).parse("x", "1"); });
}

TEST(Attributes, RefuseAWrongKindOrLength) {
  Attributes conv(OpId::conv2d);
  const List three = {1, 2, 3};
  const List nine(9, 0);
  expect_invalid("give 1 or 2", [&] { conv.set_list("stride", three); });
  expect_invalid("give 1 or 2", [&] { conv.set_list("stride", {}); });
  expect_invalid("use it as an integer", [&] { conv.set_real("groups", 1); });
  expect_invalid("use it as an integer", [&] { conv.set_choice("groups", "x"); });
  expect_invalid("use it as a list", [&] { (void)conv.integer("padding"); });
  expect_invalid("give at most 8", [&] { Attributes(OpId::reduce_sum).set_list("dim", nine); });
  expect_invalid("use it as a choice", [] { (void)Attributes(OpId::gelu).integer("approximate"); });
  EXPECT_EQ(conv, Attributes(OpId::conv2d)) << "a refused value leaves things as they were";
}

TEST(Attributes, RefuseValuesThatAreNone) {
  expect_invalid("transpose_a=2", [] { Attributes(OpId::matmul).set("transpose_a", 2); });
  expect_invalid("give a dtype", [] { Attributes(OpId::cast).set("dtype", 13); });
  expect_invalid("finite", [] { Attributes(OpId::dropout).set_real("p", std::numeric_limits<double>::infinity()); });
  const std::pair<const char*, const char*> bad[] = {
      {"stride", "1,"}, {"stride", ",1"}, {"stride", "1,,2"}, {"stride", "1.5"},     {"stride", ""},    {"groups", "x"},
      {"groups", "1 "}, {"groups", ""},   {"groups", "+1"},   {"stride", "1,2,3,4"}, {"groups", "0x10"}};
  for (const auto& entry : bad) {
    expect_invalid("; give", [&] { Attributes(OpId::conv2d).parse(entry.first, entry.second); });
  }
  for (const char* value : {"nan", "inf", "1e999", "", "1f", "--1"}) {
    expect_invalid("; give", [&] { Attributes(OpId::dropout).parse("p", value); });
  }
  expect_invalid("true or false", [] { Attributes(OpId::matmul).parse("transpose_a", "yes"); });
  expect_invalid("; give", [] { Attributes(OpId::conv2d).parse("groups", "9223372036854775808"); });
  expect_error(ErrorCode::unknown_name, "f17", [] { Attributes(OpId::cast).parse("dtype", "f17"); });
}

TEST(Attributes, OfNoOpHaveNothingToRead) {
  expect_invalid("Attributes(op)", [] { (void)Attributes().boolean("transpose_a"); });
  EXPECT_EQ(Attributes().to_string(), "");
}

}  // namespace
}  // namespace xpuruntime
