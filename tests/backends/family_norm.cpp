#include <algorithm>
#include <cmath>

#include "backends/cases.h"
#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

/// Mean and variance of some values, by two passes.
struct Moments {
  double count = 0;
  Approximate mean, variance;
};

// The mean is a sum. With distances from a mean that is off by e, the variance is off by its sum's roundings and e^2:
// the first-order term drops out. Two passes and Welford's method keep to this; E[x^2] - E[x]^2 does not.
Moments moments_of(const Values& x) {
  Moments m;
  m.count = static_cast<double>(x.size());
  double sum = 0, size = 0, squares = 0;
  for (const double v : x) {
    sum += v;
    size += std::fabs(v);
  }
  m.mean = {sum / m.count, (sum_units(m.count) + 1) * size / m.count};
  for (const double v : x) squares += (v - m.mean.value) * (v - m.mean.value);
  const double u = half_unit(DataType::float32);
  m.variance.value = squares / m.count;
  m.variance.slack = (sum_units(m.count) + 4) * m.variance.value + m.mean.slack * m.mean.slack * u;
  return m;
}

/// 1 / sqrt(x + eps): half the relative error of what stands below the root, and three operations.
Approximate inverse_root(Approximate x, double eps) {
  const double below = x.value + eps;
  const double root = 1 / std::sqrt(below);
  return {root, root * (0.5 * x.slack / below + 4)};
}

// (x - mean) * scale * weight + bias, or x * (scale * weight) + (bias - mean * scale * weight): the second way rounds
// terms of the size of x and of the mean.
Approximate normalized(double x, Approximate mean, Approximate scale, double weight, double bias) {
  const double distance = x - mean.value;
  const double factor = std::fabs(scale.value * weight);
  const double terms = (std::fabs(x) + std::fabs(mean.value)) * factor;
  return {distance * scale.value * weight + bias,
          mean.slack * factor + std::fabs(distance * weight) * scale.slack + 4 * terms + 2 * std::fabs(bias)};
}

double given(const std::vector<Values>& inputs, std::size_t which, std::size_t index, double otherwise) {
  return which < inputs.size() ? inputs[which][index] : otherwise;
}

Approximate moved(double old, Approximate now, double momentum) {
  const double a = (1 - momentum) * old, b = momentum * now.value;
  return {a + b, 3 * (std::fabs(a) + std::fabs(b)) + momentum * now.slack};
}

struct Channel {
  Approximate mean, scale;
};

std::vector<Answer> solve_batch_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const bool training = problem.attributes.boolean("training");
  const double momentum = problem.attributes.real("momentum"), eps = problem.attributes.real("eps");
  const Lines lines(problem.inputs[0].shape, 1);
  std::vector<Answer> out(problem.outputs.size());
  std::vector<Channel> channels;
  for (std::int64_t c = 0; c < lines.length; ++c) {
    const auto index = static_cast<std::size_t>(c);
    if (!training) {
      channels.push_back({{inputs[1][index], 0}, inverse_root({inputs[2][index], 0}, eps)});
      continue;
    }
    Values x;
    for (std::int64_t n = 0; n < lines.outer; ++n) {
      for (std::int64_t i = 0; i < lines.inner; ++i) x.push_back(inputs[0][lines.index(n, i, c)]);
    }
    const Moments m = moments_of(x);
    channels.push_back({m.mean, inverse_root(m.variance, eps)});
    if (out.size() < 3) continue;
    const double unbiased = m.count > 1 ? m.count / (m.count - 1) : 1;
    const Approximate mean = moved(inputs[1][index], m.mean, momentum);
    const Approximate variance =
        moved(inputs[2][index], {m.variance.value * unbiased, (m.variance.slack + 2 * m.variance.value) * unbiased},
              momentum);
    out[1].add(mean.value, mean.slack);
    out[2].add(variance.value, variance.slack);
  }
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(lines.inner) % static_cast<std::size_t>(lines.length);
    const Approximate y =
        normalized(inputs[0][i], channels[c].mean, channels[c].scale, given(inputs, 3, c, 1), given(inputs, 4, c, 0));
    out[0].add(y.value, y.slack);
  }
  return out;
}

std::vector<Answer> solve_layer_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  std::size_t length = 1;
  for (std::int64_t i = 1; i <= problem.attributes.integer("normalized_rank"); ++i) {
    length *= static_cast<std::size_t>(shape[shape.size() - static_cast<std::size_t>(i)]);
  }
  Answer out;
  for (std::size_t start = 0; start < inputs[0].size(); start += length) {
    const auto first = inputs[0].begin() + static_cast<std::ptrdiff_t>(start);
    const Moments m = moments_of(Values(first, first + static_cast<std::ptrdiff_t>(length)));
    const Approximate scale = inverse_root(m.variance, problem.attributes.real("eps"));
    for (std::size_t i = 0; i < length; ++i) {
      const Approximate y =
          normalized(inputs[0][start + i], m.mean, scale, given(inputs, 1, i, 1), given(inputs, 2, i, 0));
      out.add(y.value, y.slack);
    }
  }
  return {out};
}

/// The p-norm of a line, its slack relative. A power carries the error of p log x, and its root takes 1/p of the sum's.
Approximate norm_of(const Values& line, double p) {
  double sum = 0, logarithm = 0;
  for (const double x : line) {
    const double size = std::fabs(x);
    sum += p == 0 ? (x != 0) : std::pow(size, p);
    if (size > 0) logarithm = std::max(logarithm, std::fabs(std::log(size)));
  }
  if (p == 0) return {sum, 0};
  const double units = sum_units(static_cast<double>(line.size())) + 1;
  if (p == 1) return {sum, units};
  if (p == 2) return {std::sqrt(sum), units / 2 + 1};
  return {std::pow(sum, 1 / p), (units + function_units * (1 + p * logarithm)) / p + 2 * function_units};
}

std::vector<Answer> solve_normalize(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  Answer out = {Values(inputs[0].size()), Values(inputs[0].size())};
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Approximate norm = norm_of(lines.line(inputs[0], o, i), problem.attributes.real("p"));
      for (std::int64_t p = 0; p < lines.length; ++p) {
        const std::size_t at = lines.index(o, i, p);
        out.value[at] = inputs[0][at] / std::max(norm.value, problem.attributes.real("eps"));
        out.slack[at] = std::fabs(out.value[at]) * (norm.slack + 2);
      }
    }
  }
  return {out};
}

}  // namespace

std::vector<Answer> solve_rms_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, -1);
  const auto length = static_cast<std::size_t>(lines.length);
  Answer out;
  for (std::size_t start = 0; start < inputs[0].size(); start += length) {
    double squares = 0;
    for (std::size_t i = 0; i < length; ++i) squares += inputs[0][start + i] * inputs[0][start + i];
    const double count = static_cast<double>(length);
    const Approximate mean = {squares / count, (sum_units(count) + 2) * squares / count};
    const Approximate scale = inverse_root(mean, problem.attributes.real("eps"));
    for (std::size_t i = 0; i < length; ++i) {
      const Approximate y = normalized(inputs[0][start + i], {}, scale, given(inputs, 1, i, 1), 0);
      out.add(y.value, y.slack);
    }
  }
  return {out};
}

std::span<const Reference> norm_references() {
  static constexpr Reference rows[] = {
      {{OpId::batch_norm1d, OpId::batch_norm2d, OpId::batch_norm3d}, solve_batch_norm},
      {OpId::layer_norm, solve_layer_norm, gradients_of_layer_norm},
      {OpId::rms_norm, solve_rms_norm, gradients_of_layer_norm},
      {OpId::normalize, solve_normalize},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

void add_batch_norm(List& list) {
  struct Shape {
    const char* op;
    const char* x;
    int channels;
  };
  constexpr Shape shapes[] = {{"batch_norm1d", "[1,1]", 1},
                              {"batch_norm1d", "[7,17]", 17},
                              {"batch_norm1d", "[3,5,31]", 5},
                              {"batch_norm1d", "[2,64,9]", 64},
                              {"batch_norm2d", "[1,3,4,4]", 3},
                              {"batch_norm2d", "[2,16,7,9]", 16},
                              {"batch_norm2d", "[3,5,8,8]", 5},
                              {"batch_norm3d", "[2,3,3,4,5]", 3},
                              {"batch_norm2d", "[2,6,5,5]{150,1,30,6}", 6},
                              {"batch_norm1d", "[9,8]{1,9}", 8}};
  for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
    for (const Shape& shape : shapes) {
      const std::string c = "T[" + std::to_string(shape.channels) + "]";
      const std::string x = std::string(shape.op) + "(T" + shape.x;
      for (const std::string& text :
           {x + ", " + c + ", " + c + ", " + c + ", " + c + ")", x + ", " + c + ", " + c + ")", x + "; training=true)",
            x + ", " + c + ", " + c + ", " + c + ", " + c + "; training=true momentum=0.3)",
            x + ", " + c + ", " + c + "; training=true eps=0.001)"}) {
        list.add(replaced(text, "T", dtype));
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "batch_norm2d(T[0,3,4,4], T[3], T[3])",
                "batch_norm2d(T[2,3,0,4], T[3], T[3], T[3], T[3])",
                "batch_norm2d(T[2,0,4,4], T[0], T[0])",
                "batch_norm1d(T[4,0], T[0], T[0]; training=true)",
                "batch_norm2d(T[2,4,5,6], f32[4], f32[4], f32[4], f32[4])",  // statistics kept wider
                "batch_norm2d(T[2,4,5,6], f32[4], f32[4], f32[4], f32[4]; training=true)",
                "batch_norm2d(T[2,4,5,6], T[4]{2}, T[4]{3}, T[4]{2}, T[4]) -> T[2,4,5,6]{240,60,12,2}",
                "batch_norm2d(T[2,4,5,6]{120,1,24,4}, T[4], T[4]) -> T[2,4,5,6]{120,1,24,4}",
                "batch_norm2d(T[2,4,5,6], T[4], T[4]; training=true) -> T[2,4,5,6]{240,60,12,2}, T[4]{2}, T[4]{3}",
            });
  list.each({"f32", "bf16"}, {"batch_norm2d(T[4,32,60,60], T[32], T[32], T[32], T[32])",
                              "batch_norm2d(T[4,32,60,60], T[32], T[32], T[32], T[32]; training=true)",
                              "batch_norm1d(T[2000,150], T[150], T[150]; training=true)"});
  list.add("batch_norm2d(f32[2,4,5,6]/4, f32[4]/4, f32[4]/4, f32[4]/4, f32[4]/4) -> f32[2,4,5,6]/4");
  list.add("batch_norm2d(f32[2,4,5,6], f32[4], f32[4]) -> bf16[2,4,5,6]");
  list.add("batch_norm2d(bf16[2,4,5,6], f32[4], f32[4]) -> f32[2,4,5,6]");
}

void add_layer_norm(List& list) {
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "layer_norm(T[1])",
                                               "layer_norm(T[3,7], T[7], T[7])",
                                               "layer_norm(T[5,8], T[8])",
                                               "layer_norm(T[1030,6], T[6], T[6])",
                                               "layer_norm(T[4,9])",
                                               "layer_norm(T[2,3,16], T[16], T[16])",
                                               "layer_norm(T[17,17], T[17], T[17]; eps=0.01)",
                                               "layer_norm(T[3,31], T[31], T[31])",
                                               "layer_norm(T[3,33], T[33], T[33])",
                                               "layer_norm(T[2,65], T[65], T[65])",
                                               "layer_norm(T[4,768], T[768], T[768])",
                                               "layer_norm(T[2,5,6], T[5,6], T[5,6]; normalized_rank=2)",
                                               "layer_norm(T[2,3,4]; normalized_rank=3)",
                                               "layer_norm(T[0,8], T[8], T[8])",
                                               "layer_norm(T[8,6]{1,8}, T[6], T[6])",
                                               "layer_norm(T[8,6]{24,2}, T[6]{3}, T[6]) -> T[8,6]{12,1}",
                                               "layer_norm(T[2,3,4,5]{120,20,5,1}; normalized_rank=2)",
                                               "layer_norm(T[5,12], f32[12], f32[12])",
                                               "layer_norm(T[5,12], T[12], T[12]) -> T[5,12]{24,2}",
                                           });
  list.each({"f32", "f16", "bf16"}, {"layer_norm(T[300,1030], T[1030], T[1030])"});
  list.add("layer_norm(f32[5,13]/4, f32[13]/4, f32[13]/4) -> f32[5,13]/4");
  list.add("layer_norm(f32[5,13], f32[13], f32[13]) -> bf16[5,13]");
  list.add("layer_norm(bf16[5,13], bf16[13], bf16[13]) -> f32[5,13]");
}

void add_other_norms(List& list) {
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "rms_norm(T[1])",
                                               "rms_norm(T[3,7], T[7])",
                                               "rms_norm(T[4,8])",
                                               "rms_norm(T[5,15], T[15])",
                                               "rms_norm(T[2,3,17], T[17]; eps=0.1)",
                                               "rms_norm(T[2,65], T[65])",
                                               "rms_norm(T[4,1024], T[1024])",
                                               "rms_norm(T[0,8], T[8])",
                                               "rms_norm(T[8,6]{1,8}, T[6]{2}) -> T[8,6]{12,1}",
                                               "rms_norm(T[8,6]{12,1}, T[6])",
                                               "rms_norm(T[5,12], f32[12])",
                                               "rms_norm:backward(T[6,9], T[9], T[6,9]{1,6}) -> T[6,9]{18,2}, T[9]{2}",
                                               "normalize(T[1,1])",
                                               "normalize(T[3,7])",
                                               "normalize(T[4,16,3])",
                                               "normalize(T[5,33]; dim=-1)",
                                               "normalize(T[9,4]; dim=0)",
                                               "normalize(T[4,17]; p=1)",
                                               "normalize(T[4,17]; p=3)",
                                               "normalize(T[4,17]; p=0.5)",
                                               "normalize(T[4,17]; p=0)",
                                               "normalize(T[3,4,65]; dim=2)",
                                               "normalize(T[4,8]; eps=10)",  // the norm is the smaller
                                               "normalize(T[0,8])",
                                               "normalize(T[3,0])",
                                               "normalize(T[6,8]{1,6})",
                                               "normalize(T[2,3,8]; dim=1) -> T[2,3,8]{48,16,2}",
                                           });
  list.each({"f32", "bf16"}, {"rms_norm(T[300,1030], T[1030])", "normalize(T[300,1030])", "normalize(T[20,300,50])"});
  list.add("rms_norm(f32[5,13]/4, f32[13]/4) -> f32[5,13]/4");
  list.add("rms_norm(bf16[5,13], bf16[13]) -> f32[5,13]");
  list.add("normalize(f32[5,13]/4) -> f32[5,13]/4");
  list.add("normalize(f32[5,13]) -> f16[5,13]");
}

}  // namespace

std::vector<CaseText> norm_cases() {
  List list;
  add_batch_norm(list);
  add_layer_norm(list);
  add_other_norms(list);
  return list.take();
}

Checks norm_checks() {
  return {
      .small =
          {
              "batch_norm2d(T[2,3,4,4], T[3], T[3], T[3], T[3])",
              "batch_norm1d(T[2,3], T[3], T[3]; training=true)",
              "layer_norm(T[9,2], T[2], T[2])",
              "layer_norm(T[3,100], T[100], T[100])",
              "layer_norm(T[9,1])",
              "rms_norm(T[9,5], T[5])",
              "normalize(T[5,9])",
              "normalize(T[5,9]; p=3)",
              "layer_norm:backward(T[9,2], T[2], T[2], T[9,2])",
              "layer_norm:backward(T[9,50], T[50], T[50], T[9,50])",
              "rms_norm:backward(T[9,5], T[5], T[9,5])",
          },
      .by_lines =
          {
              "layer_norm(f32[6,33], f32[33], f32[33])",
              "layer_norm:backward(f32[6,33], f32[6,33])",
              "rms_norm(f32[6,33], f32[33])",
              "normalize(f32[6,33])",
              "normalize(bf16[6,150])",
          },
      .gradients =
          {
              "layer_norm:backward(f64[3,6], f64[6], f64[6], f64[3,6])",
              "layer_norm:backward(f64[2,3,4], f64[2,3,4]; normalized_rank=2 eps=0.1)",
              "rms_norm:backward(f64[3,6], f64[6], f64[3,6])",
          },
      .mistakes =
          {
              {"layer_norm(f32[4,32]; eps=0.001)", "layer_norm(f32[4,32])"},
              {"rms_norm(f32[4,32]; eps=0.0001)", "rms_norm(f32[4,32])"},
              {"batch_norm1d(f32[9,4], f32[4], f32[4]; training=true momentum=0.2)",
               "batch_norm1d(f32[9,4], f32[4], f32[4]; training=true)"},
              {"normalize(bf16[4,9]; p=3)", "normalize(bf16[4,9])"},
          },
      .gradient_mistakes =
          {
              {"layer_norm:backward(f32[4,32], f32[4,32]; eps=0.001)", "layer_norm:backward(f32[4,32], f32[4,32])"},
          },
  };
}

}  // namespace xpuruntime::cases
