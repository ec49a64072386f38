#include <cmath>

#include "backends/cases.h"
#include "backends/oracle_references.h"

// Functions of one element and of two that have no backward, comparisons, logic and choices.

namespace xpuruntime::oracle {
namespace {

Approximate relative(double value, double units) { return {value, units * std::fabs(value)}; }
Approximate exact(double value) { return {value, 0}; }
Approximate function(double value) { return relative(value, function_units); }

/// alpha (exp(x) - 1) as 2 alpha sinh(x / 2) exp(x / 2), which keeps the digits near 0.
double exponential_below(double x, double alpha) {
  return x < -30 ? alpha * (std::exp(x) - 1) : 2 * alpha * std::sinh(x / 2) * std::exp(x / 2);
}

/// log(1 + e) is 2 atanh(e / (2 + e)), which keeps the digits of a small e.
double softplus(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x > 0 ? x : 0) + 2 * std::atanh(e / (2 + e));
}

double held(double x, double low, double high) { return std::isnan(x) ? x : x < low ? low : x > high ? high : x; }

/// Of two that are equal the other sign of zero may be wanted.
double larger(double a, double b) {
  return std::isnan(a) || is_above(a, b) ? a : std::isnan(b) || is_above(b, a) ? b : a;
}
double smaller(double a, double b) { return -larger(-a, -b); }

Approximate function_of(const Problem& problem, double x) {
  const Attributes& given = problem.attributes;
  switch (problem.op) {
    case OpId::abs:
      return exact(x < 0 || (x == 0 && std::signbit(x)) ? -x : x);
    case OpId::neg:
      return exact(-x);
    case OpId::sign:
      return exact(std::isnan(x) ? x : (x > 0) - (x < 0));
    case OpId::floor:
      return exact(std::trunc(x) - (std::trunc(x) > x ? 1 : 0));
    case OpId::ceil:
      return exact(std::trunc(x) + (std::trunc(x) < x ? 1 : 0));
    case OpId::round:
      return exact(std::rint(x));
    case OpId::reciprocal:
      return relative(1 / x, 1);
    case OpId::erf:
      return function(std::erf(x));
    case OpId::sin:
      return function(std::sin(x));
    case OpId::cos:
      return function(std::cos(x));
    case OpId::tan:
      return function(std::tan(x));
    case OpId::asin:
      return function(std::asin(x));
    case OpId::acos:
      return function(std::acos(x));
    case OpId::atan:
      return function(std::atan(x));
    case OpId::sinh:
      return function(std::sinh(x));
    case OpId::cosh:
      return function(std::cosh(x));
    case OpId::asinh:
      return function(std::asinh(x));
    case OpId::acosh:
      return function(std::acosh(x));
    case OpId::atanh:
      return function(std::atanh(x));
    case OpId::softplus:  // a sum of two that are not negative
      return relative(softplus(x), function_units + 2);
    case OpId::isnan:
      return exact(x != x);
    case OpId::isinf:
      return exact(std::fabs(x) > 1.7976931348623157e308);
    case OpId::clip:
      return exact(smaller(larger(x, given.real("min")), given.real("max")));
    case OpId::leaky_relu:  // the slope is rounded too
      return x < 0 ? relative(x * given.real("negative_slope"), 2) : exact(x);
    case OpId::elu:
      return x < 0 ? relative(exponential_below(x, given.real("alpha")), function_units + 2) : exact(x);
    case OpId::hard_sigmoid: {
      const double product = given.real("alpha") * x, beta = given.real("beta");
      return {held(product + beta, 0, 1), std::isfinite(x) ? 4 * std::fabs(product) + 2 * std::fabs(beta) : 0};
    }
    case OpId::hard_swish: {
      const double value = x * held(x / 6 + 0.5, 0, 1);
      return {value, std::fabs(x) < 4 ? 5 * std::fabs(x) + std::fabs(value) : 0};
    }
    case OpId::logical_not:
      return exact(x == 0);
    default:  // bitwise_not
      if (problem.inputs[0].dtype == DataType::boolean) return exact(x == 0);
      return exact(problem.inputs[0].dtype == DataType::uint8 ? 255 - x : -x - 1);
  }
}

/// What is left of a division: from the remainder that is nearest to 0, which has no rounding error, to that of a sign.
double left_of(double a, double b, bool sign_of_divisor) {
  const double nearest = std::remainder(a, b);
  if (nearest == 0 || std::isnan(nearest)) return nearest;
  const double wanted = sign_of_divisor ? b : a;
  return (nearest < 0) == (wanted < 0) ? nearest : nearest + std::copysign(b, wanted);
}

double integer_left(double a, double b, bool floored) {
  if (b == 0) return 0;
  return a - b * (floored ? std::floor(a / b) : std::trunc(a / b));  // exact: the numbers are small
}

double integer_power(double base, double exponent) {
  return exponent < 0 && std::fabs(base) != 1 ? 0 : std::pow(base, exponent);
}

double joined_bits(OpId op, double x, double y) {
  const auto a = static_cast<std::int64_t>(x), b = static_cast<std::int64_t>(y);
  if (op == OpId::bitwise_and || op == OpId::logical_and) return static_cast<double>(a & b);
  if (op == OpId::bitwise_or || op == OpId::logical_or) return static_cast<double>(a | b);
  return static_cast<double>(a ^ b);
}

Approximate pair_of(const Problem& problem, double a, double b) {
  const bool integers = !is_floating(problem.inputs[0].dtype) && !is_floating(problem.inputs[1].dtype);
  switch (problem.op) {
    case OpId::maximum:
      return exact(larger(a, b));
    case OpId::minimum:
      return exact(smaller(a, b));
    case OpId::pow:
      return integers ? exact(integer_power(a, b)) : function(std::pow(a, b));
    case OpId::remainder:
      return integers ? exact(integer_left(a, b, true)) : relative(left_of(a, b, true), 2);
    case OpId::fmod:
      return integers ? exact(integer_left(a, b, false)) : relative(left_of(a, b, false), 2);
    case OpId::trunc_div:
      return exact(b == 0 ? 0 : std::trunc(a / b));
    case OpId::prelu:
      return a < 0 ? relative(a * b, 1) : exact(a);
    case OpId::equal:
      return exact(!(a < b) && !(a > b) && a == a && b == b);
    case OpId::not_equal:
      return exact(a < b || a > b || a != a || b != b);
    case OpId::less:
      return exact(b > a);
    case OpId::less_equal:
      return exact(b > a || b == a);
    case OpId::greater:
      return exact(b < a);
    case OpId::greater_equal:
      return exact(b < a || b == a);
    case OpId::shift_left:
      return exact(std::ldexp(a, static_cast<int>(b)));
    case OpId::shift_right:
      return exact(std::floor(std::ldexp(a, -static_cast<int>(b))));
    default:
      return exact(joined_bits(problem.op, a, b));
  }
}

std::vector<Answer> solve_function(const Problem& problem, const std::vector<Values>& inputs) {
  Answer out;
  for (const double x : inputs[0]) {
    const Approximate result = function_of(problem, x);
    out.add(result.value, result.slack);
  }
  return {out};
}

std::vector<Answer> solve_pair(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.outputs[0].shape;
  const Broadcast a(inputs[0], problem.inputs[0].shape, shape), b(inputs[1], problem.inputs[1].shape, shape);
  Answer out;
  for_each_position(shape, [&](const Position& at) {
    const Approximate result = pair_of(problem, a.at(at), b.at(at));
    out.add(result.value, result.slack);
  });
  return {out};
}

std::vector<Answer> solve_where(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.outputs[0].shape;
  const Broadcast condition(inputs[0], problem.inputs[0].shape, shape);
  const Broadcast a(inputs[1], problem.inputs[1].shape, shape), b(inputs[2], problem.inputs[2].shape, shape);
  Answer out;
  for_each_position(shape, [&](const Position& at) { out.add(condition.at(at) != 0 ? a.at(at) : b.at(at), 0); });
  return {out};
}

}  // namespace

std::span<const Reference> pointwise_references() {
  static constexpr Reference rows[] = {
      {{OpId::abs, OpId::neg, OpId::sign, OpId::floor, OpId::ceil, OpId::round, OpId::reciprocal, OpId::erf,
        OpId::softplus, OpId::clip, OpId::leaky_relu, OpId::elu, OpId::hard_sigmoid, OpId::hard_swish, OpId::sin,
        OpId::cos},
       solve_function},
      {library_ops, solve_function},
      {{OpId::isnan, OpId::isinf, OpId::logical_not, OpId::bitwise_not}, solve_function},
      {{OpId::maximum, OpId::minimum, OpId::pow, OpId::remainder, OpId::fmod, OpId::trunc_div, OpId::prelu},
       solve_pair},
      {comparison_ops, solve_pair},
      {logical_ops | bitwise_ops | OpList{OpId::shift_left, OpId::shift_right}, solve_pair},
      {OpId::where, solve_where},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

constexpr auto special = oracle::Fill::special;

void add_functions(List& list) {
  const List::Words floats = {"f32", "f16", "bf16", "f64"};
  const List::Words vectors = {"abs",        "neg",  "sign",     "floor",      "ceil", "round",
                               "reciprocal", "erf",  "softplus", "leaky_relu", "elu",  "hard_sigmoid",
                               "hard_swish", "clip", "sin",      "cos"};
  const List::Words library = {"tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"};
  list.each_op(vectors, floats,
               {"OP(T[0])", "OP(T[33])", "OP(T[3,65]{130,2})", "OP(T[6,4]) -> T[6,4]{1,6}", "OP(T[4,1,5]{0,5,1})",
                "OP(T[65,67]{1,65})"});
  list.each_op(library, floats, {"OP(T[7])", "OP(T[5,9]{18,2})"});
  for (const auto& ops : {vectors, library}) {
    list.each_op(ops, {"f32"}, {"OP(T[33]/4) -> T[33]/4", "OP(bf16[9]) -> T[9]", "OP(T[40007])"});
  }
  list.each_op({"abs", "neg", "sign", "floor", "ceil", "round", "erf", "softplus", "clip", "leaky_relu", "elu",
                "hard_sigmoid", "isnan", "isinf"},
               floats, {"OP(T[130])"}, special);
  list.each(floats, {"clip(T[130]; min=-0.5 max=2)", "clip(T[65]; min=0)", "clip(T[9]; min=2 max=1)",
                     "leaky_relu(T[33]; negative_slope=0.25)", "elu(T[33]; alpha=0.75)",
                     "hard_sigmoid(T[33]; alpha=0.2 beta=0.5)"});
  list.each({"f32", "f16", "bf16", "f64"}, {"clip(T[130]; min=-0 max=0)", "clip(T[130]; min=-1)"}, special);
  list.each_op({"abs", "sign", "clip"}, {"i64", "i32", "i16", "i8", "u8"}, {"OP(T[33])", "OP(T[6,4]{1,6})"});
  list.each_op({"neg"}, {"i64", "i32", "i16", "i8"}, {"OP(T[33])"});
  list.each({"i64", "i32", "i16", "i8", "u8"}, {"clip(T[65]; min=3 max=50)", "bitwise_not(T[33])"});
  list.add("neg(i8[33]) -> f32[33]");
  list.add("neg(u8[0])");
  list.add("bitwise_not(bool[33])");
  list.each_op({"isnan", "isinf"}, floats, {"OP(T[33])", "OP(T[6,4]{1,6})", "OP(T[9]) -> bool[9]{2}"}, special);
  list.add("isnan(f32[9]) -> f32[9]", special);
  list.each_op({"isnan", "isinf"}, {"f32"}, {"OP(T[35])"});
  list.each({"bool"}, {"logical_not(T[130])", "logical_not(T[6,4]{1,6})", "logical_not(T[70,131]{1,70})"});
}

void add_pairs(List& list) {
  const List::Words floats = {"f32", "f16", "bf16", "f64"};
  const List::Words integers = {"i64", "i32", "i16", "i8", "u8"};
  const List::Words shapes = {"OP(T[33], T[33])",   "OP(T[5,17], T[17])",      "OP(T[65], T[])",
                              "OP(T[9,1], T[1,8])", "OP(T[6,4]{1,6}, T[6,4])", "OP(T[70,131], T[131,70]{1,131})"};
  const List::Words simple = {"OP(T[33], T[33])", "OP(T[5,17]{1,5}, T[17])"};
  list.each_op({"maximum", "minimum"}, floats,
               {shapes.begin()[0], shapes.begin()[1], shapes.begin()[2], shapes.begin()[3], shapes.begin()[4]});
  list.each_op({"maximum", "minimum", "equal", "less", "not_equal", "less_equal", "greater", "greater_equal"}, floats,
               {"OP(T[130], T[130])", "OP(T[9,13], T[13])"}, special);
  list.each_op({"pow", "remainder", "fmod"}, floats, simple);
  list.each_op({"maximum", "minimum", "pow", "remainder", "fmod", "trunc_div"}, integers, simple);
  list.each_op(
      {"maximum", "minimum", "pow", "remainder", "fmod"}, {"f32"},
      {"OP(T[33]/4, T[33]/4) -> T[33]/4", "OP(T[33], i32[33])", "OP(bf16[33], f16[33])", "OP(T[40007], T[40007])"});
  list.each(floats, {"prelu(T[33], T[33])", "prelu(T[2,3,5], T[3,1])", "prelu(T[3,65]{1,3}, T[])"});
  list.each_op({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"},
               {"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "bool"},
               {"OP(T[70], T[70])", "OP(T[5,17]{1,5}, T[17])"});
  list.each_op({"equal", "less"}, {"f32"},
               {"OP(T[70]/4, T[70]/4)", "OP(T[70], bf16[70])", "OP(T[70], f64[70])", "OP(T[70], i64[70])",
                "OP(i8[70], i64[70])", "OP(T[33], T[33]) -> bool[33]{3}", "OP(T[300007], T[300007])",
                "OP(T[70,131]{1,70}, T[70,131])", "OP(T[9], T[9]) -> f32[9]"});
  list.each_op({"logical_and", "logical_or", "logical_xor"}, {"bool"},
               {"OP(T[70], T[70])", "OP(T[5,17]{1,5}, T[17])", "OP(T[70,131]{1,70}, T[131])"});
  list.each_op({"bitwise_and", "bitwise_or", "bitwise_xor"}, {"i64", "i32", "i16", "i8", "u8", "bool"}, simple);
  list.each_op({"bitwise_and"}, {"i32"}, {"OP(i8[33], T[33])", "OP(T[300007], T[300007])"});
  list.each_op({"shift_left", "shift_right"}, integers, simple);
}

void add_where(List& list) {
  list.each({"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"},
            {
                "where(bool[33], T[33], T[33])",
                "where(bool[5,1], T[17], T[5,17])",
                "where(bool[], T[5,17]{1,5}, T[5,17])",
                "where(bool[6,4]{8,2}, T[6,4]{1,6}, T[]) -> T[6,4]{1,6}",
            });
  list.add("where(bool[300,1001], f32[1001], f32[300,1])");
  list.add("where(bool[300007], f32[300007], f32[300007])");
  list.add("where(bool[33], f32[33]/4, f32[33]/4) -> f32[33]/4");
  list.add("where(bool[33], f32[33], f32[33]) -> bf16[33]");
  list.add("where(bool[0,3], f32[3], f32[])");
  list.add("where(bool[130], f32[130], f32[130])", special);
  list.add("where(bool[9], f8e4m3[9], f8e4m3[9])");
}

}  // namespace

std::vector<CaseText> pointwise_cases() {
  List list;
  add_functions(list);
  add_pairs(list);
  add_where(list);
  return list.take();
}

Checks pointwise_checks() {
  return {
      .small =
          {
              "softplus(T[99])",
              "erf(T[99])",
              "hard_swish(T[99])",
              "elu(T[99]; alpha=0.75)",
              "leaky_relu(T[99]; negative_slope=0.3)",
              "reciprocal(T[99])",
              "sin(T[99])",
              "pow(T[99], T[99])",
              "remainder(T[99], T[99])",
              "prelu(T[99], T[99])",
          },
      .mistakes =
          {
              {"clip(f32[40]; min=-1 max=1)", "clip(f32[40]; min=-1)"},
              {"remainder(f32[40], f32[40])", "fmod(f32[40], f32[40])"},
              {"less(f32[90], f32[90])", "less_equal(f32[90], f32[90])"},
              {"maximum(f32[40], f32[40])", "minimum(f32[40], f32[40])"},
              {"elu(f32[40])", "leaky_relu(f32[40])"},
              {"floor(f32[40])", "round(f32[40])"},
              {"sinh(f32[40])", "asinh(f32[40])"},
              {"bitwise_and(i32[40], i32[40])", "bitwise_or(i32[40], i32[40])"},
          },
  };
}

}  // namespace xpuruntime::cases
