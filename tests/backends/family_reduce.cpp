#include <algorithm>
#include <cmath>

#include "backends/cases.h"
#include "backends/oracle_references.h"

namespace xpuruntime::oracle {

double sum_units(double n) { return std::min(n, 8 * std::sqrt(n)); }

// x - m costs 1 u of itself, which the exp takes as a relative error; their sum has the mean of those, and its
// logarithm takes a relative error as an absolute one.
LogSoftmax log_softmax_of(const Values& line) {
  double most = -std::numeric_limits<double>::infinity();
  for (const double x : line) most = std::max(most, x);
  double sum = 0, spread = 0;
  for (const double x : line) {
    const double term = std::exp(x - most);
    sum += term;
    if (term > 0) spread += term * (most - x);
  }
  LogSoftmax out;
  const double logarithm = std::log(sum);
  const double common = spread / sum + sum_units(static_cast<double>(line.size())) + function_units +
                        function_units * std::fabs(logarithm);
  for (const double x : line) {
    const double value = x - most - logarithm;
    out.log_probability.push_back({value, std::fabs(x - most) + std::fabs(value) + common});
  }
  out.log_sum = most + logarithm;
  return out;
}

namespace {

// softmax is not the exp of log_softmax, but has the same errors and those of an exp and a division.
std::vector<Answer> solve_softmax(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  Answer out = {Values(inputs[0].size()), Values(inputs[0].size())};
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const LogSoftmax answer = log_softmax_of(lines.line(inputs[0], o, i));
      for (std::int64_t p = 0; p < lines.length; ++p) {
        const Approximate l = answer.log_probability[static_cast<std::size_t>(p)];
        const bool logarithm = problem.op == OpId::log_softmax;
        const double value = std::exp(l.value);
        out.value[lines.index(o, i, p)] = logarithm ? l.value : value;
        out.slack[lines.index(o, i, p)] = logarithm ? l.slack : value == 0 ? 0 : value * (l.slack + function_units + 2);
      }
    }
  }
  return {out};
}

/// What is known of one output while the inputs go by.
struct Running {
  double sum = 0, size = 0, count = 0, product = 1;
  double most = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();

  void add(double x) {
    sum += x;
    product *= x;
    size += std::fabs(x);
    ++count;
    if (is_above(x, most) || std::isnan(x)) most = x;  // a NaN stays: nothing compares with it
    if (is_above(least, x) || std::isnan(x)) least = x;
  }
  Approximate result(OpId op) const {
    switch (op) {
      case OpId::reduce_sum:
        return {sum, sum_units(count) * size};
      case OpId::reduce_mean:
        return {sum / count, (sum_units(count) + 2) * size / count};
      case OpId::reduce_max:
        return {most, 0};
      case OpId::reduce_prod:
        return {product, count * std::fabs(product)};
      default:
        return {least, 0};
    }
  }
};

std::vector<Answer> solve_reduce(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  std::vector<std::int64_t> dims = problem.attributes.list("dim");
  std::vector<bool> gone(shape.size(), dims.empty());
  for (const std::int64_t dim : dims) {
    gone[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim)] = true;
  }
  Dims strides = Dims::filled(shape.size(), 0);
  std::int64_t count = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (gone[i]) continue;
    strides[i] = count;
    count *= shape[i];
  }
  std::vector<Running> running(static_cast<std::size_t>(count));
  std::size_t i = 0;
  for_each_position(shape, [&](const Position& position) {
    running[static_cast<std::size_t>(dot(position, strides))].add(inputs[0][i++]);
  });
  Answer out;
  for (const Running& one : running) {
    const Approximate result = one.result(problem.op);
    out.add(result.value, result.slack);
  }
  return {out};
}

}  // namespace

std::span<const Reference> reduce_references() {
  static constexpr Reference rows[] = {
      {{OpId::softmax, OpId::log_softmax}, solve_softmax, gradients_of_softmax},
      {{OpId::reduce_sum, OpId::reduce_mean, OpId::reduce_max, OpId::reduce_min, OpId::reduce_prod}, solve_reduce},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

// Every set of axes of three, kept and dropped, over two shapes and a strided one.
void add_axes(List& list) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    for (const char* axes :
         {"", " dim=0", " dim=1", " dim=2", " dim=0,1", " dim=0,2", " dim=1,2", " dim=0,1,2", " dim=-1"}) {
      for (const char* shape : {"[3,5,7]", "[4,16,33]", "[6,5,4]{1,6,30}"}) {
        for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
          const bool keep = (std::string_view(shape).size() + std::string_view(axes).size()) % 2 == 0;
          list.add(std::string(op) + "(" + dtype + shape + ";" + axes + (keep ? " keepdim=true" : "") + ")");
        }
      }
    }
  }
}

void add_reduce(List& list) {
  add_axes(list);
  list.each_op({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[])",
                   "OP(T[1])",
                   "OP(T[9])",
                   "OP(T[63])",
                   "OP(T[257])",
                   "OP(T[0,3]; dim=1)",
                   "OP(T[5,8,2,3]; dim=1,3)",
                   "OP(T[2,2,2,2,2,2,2,2]; dim=0,2,4,6)",
                   "OP(T[16,17]{34,2}; dim=1)",
                   "OP(T[16,17]{34,2}; dim=0)",
                   "OP(T[5,7,16]{16,1,2}; dim=2)",
                   "OP(T[3,70,9]{3150,45,5}; dim=1,2)",
                   "OP(T[8,100,33]{33,0,1}; dim=1)",
                   "OP(T[8,100,33]{33,0,1}; dim=2)",
                   "OP(T[8,100,33]{33,0,1}; dim=0,1)",
                   "OP(T[65,40]{1,0}; dim=1)",
                   "OP(T[65,40]{1,0}; dim=0)",
                   "OP(T[65,40]{0,0})",
                   "OP(T[8,9]; dim=0) -> T[9]{2}",
               });
  list.each_op({"reduce_sum", "reduce_mean"}, {"f32", "f16", "bf16", "f64"}, {"OP(T[3,0]; dim=1)"});
  list.each_op({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}, {"f32", "bf16"},
               {
                   "OP(T[400001])",
                   "OP(T[700,600]; dim=1)",
                   "OP(T[700,600]; dim=0)",
                   "OP(T[30,130,90]; dim=1)",
                   "OP(T[9,1025]{2050,2}; dim=1)",
                   "OP(T[3,17000]{51000,3}; dim=1)",
               });
  list.each_op({"reduce_max", "reduce_min"}, {"f32", "f16", "bf16", "f64"},
               {"OP(T[7,33]; dim=1)", "OP(T[7,33]; dim=0)", "OP(T[65])"}, oracle::Fill::special);
  list.each_op({"reduce_sum", "reduce_max", "reduce_min"}, {"i64", "i32", "i16", "i8", "u8"},
               {"OP(T[100])", "OP(T[7,33]; dim=1)", "OP(T[7,33]; dim=0 keepdim=true)", "OP(T[6,4]{1,6}; dim=1)"});
  list.each_op({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}, {"f32"},
               {
                   "OP(T[5,33]/4; dim=1) -> T[5]/4",
                   "OP(T[5,33]; dim=1) -> bf16[5]",
                   "OP(T[5,33]; dim=1) -> f64[5]",
                   "OP(bf16[5,33]; dim=1) -> T[5]",
               });
  list.add("reduce_sum(i8[40]) -> i32[]");
}

void add_softmax(List& list) {
  list.each_op({"softmax", "log_softmax"}, {"f32", "f16", "bf16", "f64"},
               {
                   "OP(T[1])",
                   "OP(T[5,1])",
                   "OP(T[5,7])",
                   "OP(T[5,8])",
                   "OP(T[4,15])",
                   "OP(T[4,16])",
                   "OP(T[3,17])",
                   "OP(T[5,33])",
                   "OP(T[2,65])",
                   "OP(T[3,1000])",
                   "OP(T[5,3,4]; dim=1)",
                   "OP(T[9,20]; dim=0)",
                   "OP(T[2,17,33]; dim=-2)",
                   "OP(T[0,5])",
                   "OP(T[5,0])",
                   "OP(T[8,6]{1,8})",
                   "OP(T[8,6]{12,2}) -> T[8,6]{12,2}",
                   "OP(T[8,6]) -> T[8,6]{1,8}",
               });
  list.each_op({"softmax", "log_softmax"}, {"f32", "f16", "bf16"}, {"OP(T[300,1030])", "OP(T[40,90,100]; dim=1)"});
  list.each_op({"softmax", "log_softmax"}, {"f32", "f16", "bf16"},
               {"OP(T[20,33])", "OP(T[20,3])", "OP(T[7,5,9]; dim=1)"}, oracle::Fill::special);
  list.each_op({"softmax", "log_softmax"}, {"f32"},
               {"OP(T[5,13]/4) -> T[5,13]/4", "OP(T[5,13]) -> bf16[5,13]", "OP(bf16[5,13]) -> T[5,13]",
                "OP(f16[5,13]) -> T[5,13]"});
}

}  // namespace

std::vector<CaseText> reduce_cases() {
  List list;
  add_reduce(list);
  add_softmax(list);
  return list.take();
}

Checks reduce_checks() {
  return {
      .small =
          {
              "softmax(T[5,1])",
              "softmax(T[5,100])",
              "log_softmax(T[5,3])",
              "log_softmax(T[2,5,7]; dim=1)",
              "reduce_sum(T[3,99]; dim=1)",
              "reduce_sum(T[5,2]; dim=0)",
              "reduce_mean(T[3,9]; dim=1)",
              "reduce_max(T[3,9]; dim=1)",
              "reduce_min(T[3,9]; dim=0)",
              "softmax:backward(T[5,9], T[5,9])",
              "log_softmax:backward(T[5,9], T[5,9])",
          },
      .by_lines =
          {
              "softmax(f32[6,7])",
              "softmax(f32[6,150])",
              "softmax(f32[6,9001])",
              "softmax(bf16[6,9001])",
              "log_softmax(f32[6,7])",
              "log_softmax(f32[6,9001])",
              "softmax(f32[6,5,1]; dim=1)",
              "softmax:backward(f32[6,33], f32[6,33])",
              "log_softmax:backward(f32[6,33], f32[6,33])",
          },
      .gradients =
          {
              "softmax:backward(f64[3,7], f64[3,7])",
              "softmax:backward(f64[3,4,2], f64[3,4,2]; dim=1)",
              "log_softmax:backward(f64[3,7], f64[3,7])",
          },
      .mistakes =
          {
              {"softmax(bf16[6,6])", "softmax(bf16[6,6]; dim=0)"},
          },
      .gradient_mistakes =
          {
              {"softmax:backward(bf16[6,6], bf16[6,6])", "softmax:backward(bf16[6,6], bf16[6,6]; dim=0)"},
              {"softmax:backward(f32[6,6], f32[6,6])", "log_softmax:backward(f32[6,6], f32[6,6])"},
          },
  };
}

}  // namespace xpuruntime::cases
