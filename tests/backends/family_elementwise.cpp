#include <cmath>
#include <numbers>

#include "backends/cases.h"
#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Approximate gelu(double x) {
  // 1 + erf is rounded as a number of size 1: beside it the product with a large negative x loses its digits.
  return {0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)), (function_units + 4) * std::fabs(x)};
}

Approximate gelu_tanh(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return {0.5 * x * (1 + std::tanh(inner)), (function_units + 6) * std::fabs(x)};
}

// x * sigmoid(x), or x / (1 + exp(-x)): an exp, an addition, a division and a product.
Approximate silu(double x) { return {x * sigmoid(x), (function_units + 4) * std::fabs(x * sigmoid(x))}; }

Approximate relative(double value, double units) { return {value, units * std::fabs(value)}; }

Approximate unary(const Problem& problem, double x) {
  switch (problem.op) {
    case OpId::relu:
      return {x <= 0 ? 0 : x, 0};  // NaN stays NaN, and -0 becomes +0
    case OpId::gelu:
      return problem.attributes.choice("approximate") == "tanh" ? gelu_tanh(x) : gelu(x);
    case OpId::silu:
      return silu(x);
    case OpId::sigmoid:
      return relative(sigmoid(x), function_units + 3);
    case OpId::tanh:
      return relative(std::tanh(x), function_units);
    case OpId::log:
      return relative(std::log(x), function_units);
    case OpId::exp:
      return relative(std::exp(x), function_units);
    default:
      return relative(std::sqrt(x), 1);
  }
}

double binary(OpId op, double x, double y) {
  switch (op) {
    case OpId::add:
      return x + y;
    case OpId::sub:
      return x - y;
    case OpId::mul:
      return x * y;
    default:
      return x / y;
  }
}

std::uint64_t multiply(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; }

std::vector<Answer> solve_unary(const Problem& problem, const std::vector<Values>& inputs) {
  Answer out;
  for (const double x : inputs[0]) {
    const Approximate result = unary(problem, x);
    out.add(result.value, result.slack);
  }
  return {out};
}

std::vector<Answer> solve_binary(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.outputs[0].shape;
  const Broadcast a(inputs[0], problem.inputs[0].shape, shape), b(inputs[1], problem.inputs[1].shape, shape);
  Answer out;
  for_each_position(shape, [&](const Position& at) {
    const double value = binary(problem.op, a.at(at), b.at(at));
    out.add(value, std::fabs(value));
  });
  return {out};
}

// Element i looks at word i % 4 of block i / 4. The second input, where there is one, holds the seed and an offset that
// is added to i.
std::vector<Answer> solve_dropout(const Problem& problem, const std::vector<Values>& inputs) {
  const bool training = problem.attributes.boolean("training");
  const double p = problem.attributes.real("p");
  auto seed = static_cast<std::uint64_t>(problem.attributes.integer("seed"));
  std::uint64_t offset = 0;
  if (inputs.size() == 2) {
    seed = static_cast<std::uint64_t>(inputs[1][0]);
    offset = static_cast<std::uint64_t>(inputs[1][1]);
  }
  const double threshold = std::floor(p * 0x1p32);
  Answer out;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const std::uint64_t index = i + offset;
    const auto words =
        philox({static_cast<std::uint32_t>(index / 4), static_cast<std::uint32_t>(index / 4 >> 32), 0, 0},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const bool kept = static_cast<double>(words[index % 4]) >= threshold;
    if (!training) {
      out.add(inputs[0][i], 0);
    } else if (kept) {
      const double value = inputs[0][i] / (1 - p);
      out.add(value, 3 * std::fabs(value));  // 1 - p, its inverse and the product may be rounded
    } else {
      out.add(0, 0);
    }
  }
  return {out};
}

// The product of a gradient and the inverse scale, and 1 where any gradient or product is not finite in the dtype that
// is written, else 0.
std::vector<Answer> solve_unscale(const Problem& problem, const std::vector<Values>& inputs) {
  Answer gradient, found;
  bool bad = false;
  for (const double x : inputs[0]) {
    const double value = x * inputs[1][0];
    gradient.add(value, std::fabs(value));
    bad |= !std::isfinite(x) || !std::isfinite(rounded(problem.outputs[0].dtype, value));
  }
  found.add(bad ? 1 : 0, 0);
  return {gradient, found};
}

}  // namespace

// An activation passes the error of its argument on by its slope, which is at most 1.13 for all of them.
Approximate apply_activation(std::string_view name, Approximate x) {
  Approximate out = {x.value <= 0 ? 0 : x.value, 0};
  if (name == "gelu") out = gelu(x.value);
  if (name == "silu") out = silu(x.value);
  out.slack += 1.13 * x.slack;
  return out;
}

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = multiply(0xD2511F53, counter[0]), second = multiply(0xCD9E8D57, counter[2]);
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::span<const Reference> elementwise_references() {
  static constexpr Reference rows[] = {
      {{OpId::relu, OpId::gelu, OpId::silu, OpId::sigmoid, OpId::tanh}, solve_unary, gradients_of_activation},
      {{OpId::log, OpId::exp, OpId::sqrt}, solve_unary},
      {{OpId::add, OpId::sub, OpId::mul, OpId::div}, solve_binary},
      {OpId::dropout, solve_dropout},
      {OpId::unscale, solve_unscale},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

constexpr auto special = oracle::Fill::special;

void add_unary(List& list) {
  list.each_op({"relu", "gelu", "silu", "sigmoid", "tanh", "log", "exp", "sqrt"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[])",
                   "OP(T[0])",
                   "OP(T[1])",
                   "OP(T[7])",
                   "OP(T[8])",
                   "OP(T[9])",
                   "OP(T[15])",
                   "OP(T[17])",
                   "OP(T[31])",
                   "OP(T[33])",
                   "OP(T[3,65])",
                   "OP(T[1025])",
                   "OP(T[6,4]{1,6})",
                   "OP(T[5,9]{18,2})",
                   "OP(T[3,65]{130,2})",
                   "OP(T[3,67]{1,0})",
                   "OP(T[4,8]{16,1}) -> T[4,8]{16,1}",
                   "OP(T[6,4]) -> T[6,4]{1,6}",
                   "OP(T[2,3,4,5]{60,1,15,3}) -> T[2,3,4,5]{60,1,15,3}",
                   "OP(T[4,1,5]{0,5,1})",
                   "OP(T[3,65,67]{4355,1,65})",  // turned round in tiles, as those are that have 4096 elements
                   "OP(T[2,5,30,33]{4950,1,165,5})",
               });
  list.each({"f32", "f16", "bf16", "f64"}, {"gelu(T[257]; approximate=tanh)", "gelu(T[6,4]{1,6}; approximate=tanh)",
                                            "gelu(T[7]; approximate=tanh) -> T[7]{2}"});
  list.each_op({"relu", "gelu", "silu", "sigmoid", "tanh", "log", "exp", "sqrt"}, {"f32"},
               {
                   "OP(T[33]/4) -> T[33]/4",
                   "OP(T[300007])",
                   "OP(T[33]) -> bf16[33]",
                   "OP(T[33]) -> f16[33]",
                   "OP(T[33]) -> f64[33]",
                   "OP(bf16[33]) -> T[33]",
                   "OP(f16[33]/2) -> T[33]",
                   "OP(bf16[400003])",
               });
  list.each_op({"relu", "sigmoid", "tanh", "log", "exp", "sqrt"}, {"f32", "f16", "bf16", "f64"}, {"OP(T[130])"},
               special);
  list.each({"i64", "i32", "i16", "i8", "u8"}, {"relu(T[33])", "relu(T[6,4]{1,6})"});
  list.add("relu(f8e4m3[33])");
  list.add("tanh(f8e5m2[33])");
}

void add_binary(List& list) {
  list.each_op({"add", "sub", "mul", "div"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[1], T[1])",
                   "OP(T[0], T[0])",
                   "OP(T[7], T[7])",
                   "OP(T[9], T[9])",
                   "OP(T[16], T[16])",
                   "OP(T[33], T[33])",
                   "OP(T[1025], T[1025])",
                   "OP(T[], T[2,3])",
                   "OP(T[65], T[])",
                   "OP(T[65], T[1])",
                   "OP(T[1], T[5,7])",
                   "OP(T[7,1,5], T[3,1])",
                   "OP(T[5,17], T[17])",  // a row for all rows
                   "OP(T[17], T[5,17])",
                   "OP(T[5,17], T[5,1])",  // a column for all columns
                   "OP(T[5,1], T[5,17])",
                   "OP(T[2,3,4,5], T[3,1,1])",  // a channel
                   "OP(T[9,1], T[1,8])",
                   "OP(T[6,4]{1,6}, T[6,4])",
                   "OP(T[70,131]{1,70}, T[70,131])",
                   "OP(T[131], T[70,131]{1,70})",
                   "OP(T[70,131]{1,70}, T[70,131]{1,70})",
                   "OP(T[4,40,50]{2000,1,40}, T[4,40,50]{1,200,4})",
                   "OP(T[6,4]{1,6}, T[6,4]{1,6}) -> T[6,4]{1,6}",
                   "OP(T[6,4]{8,2}, T[6,4])",
                   "OP(T[3,67]{134,2}, T[3,67]{201,3})",
                   "OP(T[6,4], T[6,4]) -> T[6,4]{8,2}",
                   "OP(T[5,8]{0,1}, T[5,8])",
                   "OP(T[0,3], T[3])",
                   "OP(T[2,2,2,2,2,2,2,2], T[2,1,2,1,2,1,2,1])",
               });
  list.each_op({"add", "sub", "mul", "div"}, {"f32"},
               {
                   "OP(T[33]/4, T[33]/4) -> T[33]/4",
                   "OP(T[300007], T[300007])",
                   "OP(bf16[500009], bf16[500009])",
                   "OP(T[300,1001], T[1001])",
                   "OP(T[300,1001], T[300,1])",
                   "OP(T[33], T[33]) -> bf16[33]",
                   "OP(T[33], T[33]) -> f64[33]",
                   "OP(bf16[33], bf16[33]) -> T[33]",
                   "OP(f16[33], T[33])",
                   "OP(bf16[33], f16[33])",
                   "OP(T[33], f64[33])",
                   "OP(T[33], i32[33])",
                   "OP(i8[33], f16[33])",
               });
  list.add("div(f32[40], i32[40])", special);
  list.each_op({"add", "sub", "mul", "div"}, {"f32", "f16", "bf16", "f64"},
               {"OP(T[130], T[130])", "OP(T[9,13], T[13])"}, special);
  list.each_op({"add", "sub", "mul"}, {"i64", "i32", "i16", "i8", "u8"},
               {"OP(T[100], T[100])", "OP(T[5,7], T[7])", "OP(T[6,4]{1,6}, T[6,4])", "OP(T[70,131]{1,70}, T[70,131])"});
  list.each_op({"add", "sub", "mul"}, {"i32"}, {"OP(T[33], i64[33])", "OP(i8[33], T[33])"});
  list.add("add(i32[300000], i32[300000])");
  list.add("add(f8e5m2[33], f8e5m2[33])");
}

void add_dropout(List& list) {
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "dropout(T[1])",
                                               "dropout(T[0])",
                                               "dropout(T[7]; seed=3)",
                                               "dropout(T[17]; p=0.1 seed=12345)",
                                               "dropout(T[1001]; p=0.9 seed=-1)",
                                               "dropout(T[5,33]; p=0)",
                                               "dropout(T[5,33]; p=1 seed=9)",
                                               "dropout(T[65]; training=false)",
                                               "dropout(T[65], i64[2]; p=0.3)",
                                               "dropout(T[6,9]{1,6}; seed=4)",
                                               "dropout(T[6,9]; seed=4) -> T[6,9]{18,2}",
                                               "dropout(T[1003], i64[2])",
                                           });
  list.each({"f32", "bf16"}, {"dropout(T[300007]; p=0.2 seed=99)", "dropout(T[300007], i64[2])"});
  list.add("dropout(f32[33]/4; seed=2) -> f32[33]/4");
  list.add("dropout(f32[33]; seed=2) -> bf16[33]");
  list.add("dropout(bf16[33]; seed=2) -> f32[33]");
}

void add_unscale(List& list) {
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "unscale(T[], f32[])",
                                               "unscale(T[0], f32[1])",
                                               "unscale(T[1], f32[1])",
                                               "unscale(T[7], f32[1])",
                                               "unscale(T[33], f32[])",
                                               "unscale(T[1025], f32[1])",
                                               "unscale(T[3,65], f32[1])",
                                               "unscale(T[6,4]{1,6}, f32[1])",
                                               "unscale(T[5,9]{18,2}, f32[1])",
                                               "unscale(T[4,1,5]{0,5,1}, f32[1])",
                                               "unscale(T[6,4], f32[1]) -> f32[6,4]{1,6}, f32[1]",
                                               "unscale(T[5,700], f32[1]) -> f32[5,700]{1400,2}, f32[1]",
                                               "unscale(T[33], f32[1]) -> f64[33], f32[1]",
                                               "unscale(T[33], f32[1]) -> f16[33], f32[1]",
                                           });
  list.each({"f32", "f16", "bf16", "f64"},
            {"unscale(T[130], f32[1])", "unscale(T[9,13]{1,9}, f32[1])", "unscale(T[40], f32[]) -> f16[40], f32[1]"},
            special);
  list.each({"f32", "bf16"}, {"unscale(T[300007], f32[1])"});
  list.add("unscale(f32[33]/4, f32[1]/4) -> f32[33]/4, f32[1]/4");
  list.add("unscale(f64[33], f64[1])");
  list.add("unscale(f32[33], f64[])");
  list.add("unscale(f8e5m2[33], f32[1])");
}

}  // namespace

std::vector<CaseText> elementwise_cases() {
  List list;
  add_unary(list);
  add_binary(list);
  add_dropout(list);
  add_unscale(list);
  return list.take();
}

Checks elementwise_checks() {
  return {
      .small =
          {
              "dropout(T[99])",
              "relu(T[99])",
              "gelu(T[99])",
              "gelu(T[99]; approximate=tanh)",
              "silu(T[99])",
              "sigmoid(T[99])",
              "tanh(T[99])",
              "add(T[99], T[99])",
              "sub(T[9,1], T[9])",
              "mul(T[99], T[1])",
              "div(T[99], T[99])",
              "log(T[99])",
              "exp(T[99])",
              "sqrt(T[99])",
              "unscale(T[99], f32[1])",
              "relu:backward(T[99], T[99])",
              "gelu:backward(T[99], T[99])",
              "silu:backward(T[99], T[99])",
              "sigmoid:backward(T[99], T[99])",
              "tanh:backward(T[99], T[99])",
          },
      .gradients =
          {
              "relu:backward(f64[9], f64[9])",
              "gelu:backward(f64[20], f64[20])",
              "gelu:backward(f64[20], f64[20]; approximate=tanh)",
              "silu:backward(f64[20], f64[20])",
              "sigmoid:backward(f64[20], f64[20])",
              "tanh:backward(f64[20], f64[20])",
          },
      .mistakes =
          {
              {"gelu(f32[64])", "gelu(f32[64]; approximate=tanh)"},
              {"dropout(f32[40]; seed=1)", "dropout(f32[40]; seed=2)"},
          },
      .gradient_mistakes =
          {
              {"gelu:backward(f32[64], f32[64])", "gelu:backward(f32[64], f32[64]; approximate=tanh)"},
              {"silu:backward(bf16[64], bf16[64])", "sigmoid:backward(bf16[64], bf16[64])"},
          },
  };
}

}  // namespace xpuruntime::cases
