#include <cmath>
#include <numbers>

#include "backends/cases.h"
#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

/// Losses of the elements as they come, and then all of them reduced.
class Losses {
 public:
  void add(Approximate loss, double weight = 1) {
    out_.add(loss.value, loss.slack);
    weight_ += weight;
  }
  /// `divisor` is what batchmean divides by.
  Answer reduced(std::string_view reduction, double divisor = 1) const {
    if (reduction == "none") return out_;
    double sum = 0, size = 0, slack = 0;
    for (std::size_t i = 0; i < out_.value.size(); ++i) {
      sum += out_.value[i];
      size += std::fabs(out_.value[i]);
      slack += out_.slack[i];
    }
    const double n = static_cast<double>(out_.value.size());
    if (reduction == "mean") divisor = weight_;
    if (reduction == "sum") divisor = 1;
    Answer one;
    // The divisor may be a sum of weights, with roundings of its own.
    one.add(sum / divisor, (slack + (2 * sum_units(n) + 2) * size) / std::fabs(divisor));
    return one;
  }

 private:
  Answer out_;
  double weight_ = 0;
};

/// The scores of one sample: its log-probabilities, and the sizes of what their sum is made of.
struct Sample {
  std::vector<Approximate> logs;
  Values sizes;
};

Sample sample_of(const Problem& problem, const Values& scores, const Lines& lines, std::int64_t o, std::int64_t i) {
  Values line;
  for (std::int64_t c = 0; c < lines.length; ++c) line.push_back(scores[lines.index(o, i, c)]);
  Sample sample;
  if (problem.op == OpId::nll_loss) {
    for (const double x : line) sample.logs.push_back({x, 0});
    return sample;
  }
  LogSoftmax answer = log_softmax_of(line);
  for (const double x : line) sample.sizes.push_back(std::fabs(x) + std::fabs(answer.log_sum));
  sample.logs = std::move(answer.log_probability);
  return sample;
}

double class_weight(const std::vector<Values>& inputs, std::size_t c) { return inputs.size() == 3 ? inputs[2][c] : 1; }

/// -sum of factor(c) * weight(c) * log p(c). A kernel may sum scores and take logsumexp off once: sizes says so.
template <class Factor>
Approximate weighted(const Sample& sample, const std::vector<Values>& inputs, Factor factor) {
  Approximate out;
  const double units = sum_units(static_cast<double>(sample.logs.size())) + 3;
  for (std::size_t c = 0; c < sample.logs.size(); ++c) {
    const double f = factor(c) * class_weight(inputs, c);
    out.value -= f * sample.logs[c].value;
    out.slack += std::fabs(f) * (sample.logs[c].slack + units * sample.sizes[c]);
  }
  return out;
}

Approximate index_loss(const Sample& sample, const std::vector<Values>& inputs, std::size_t target, double smoothing) {
  const double weight = class_weight(inputs, target);
  const Approximate& l = sample.logs[target];
  Approximate loss = {-weight * l.value, std::fabs(weight) * (l.slack + std::fabs(l.value))};
  if (smoothing == 0) return loss;
  const double share = smoothing / static_cast<double>(sample.logs.size());
  const Approximate rest = weighted(sample, inputs, [&](std::size_t) { return share; });
  loss.value = (1 - smoothing) * loss.value + rest.value;
  loss.slack = (1 - smoothing) * loss.slack + rest.slack + 3 * (std::fabs(loss.value) + std::fabs(rest.value));
  return loss;
}

// The mean divides by the weights of the targets that count; where the targets are probabilities, by their number.
std::vector<Answer> solve_class_loss(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  const Lines lines(shape, shape.size() == 1 ? 0 : 1);
  const bool cross = problem.op == OpId::cross_entropy;
  const double smoothing = cross ? problem.attributes.real("label_smoothing") : 0;
  const double ignored = static_cast<double>(problem.attributes.integer("ignore_index"));
  const bool probabilities = is_floating(problem.inputs[1].dtype);
  Losses losses;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Sample sample = sample_of(problem, inputs[0], lines, o, i);
      if (probabilities) {
        const double share = smoothing / static_cast<double>(lines.length);
        losses.add(weighted(sample, inputs, [&](std::size_t c) {
          return inputs[1][lines.index(o, i, static_cast<std::int64_t>(c))] * (1 - smoothing) + share;
        }));
        continue;
      }
      const double target = inputs[1][static_cast<std::size_t>(o * lines.inner + i)];
      if (target == ignored) {
        losses.add({}, 0);
        continue;
      }
      const auto index = static_cast<std::size_t>(target);
      losses.add(index_loss(sample, inputs, index, smoothing), class_weight(inputs, index));
    }
  }
  return {losses.reduced(problem.attributes.choice("reduction"))};
}

Approximate divergence(double x, double t, bool log_target) {
  if (log_target) {
    const double p = std::exp(t);
    return {p * (t - x), (function_units + 3) * p * (std::fabs(t) + std::fabs(x))};
  }
  if (t <= 0) return {t == 0 ? 0 - t * x : std::numeric_limits<double>::quiet_NaN(), 0};
  const double l = std::log(t);
  return {t * (l - x), t * ((function_units + 3) * std::fabs(l) + 3 * std::fabs(x))};
}

Approximate poisson(double x, double t, const Attributes& attributes) {
  Approximate out;
  if (attributes.boolean("log_input")) {
    const double e = std::exp(x);
    out = {e - t * x, (function_units + 2) * e + 2 * std::fabs(t * x)};
  } else {
    const double l = std::log(x + attributes.real("eps"));
    out = {x - t * l, std::fabs(x) + std::fabs(t) * (1 + (function_units + 2) * std::fabs(l))};
  }
  if (attributes.boolean("full") && t > 1) {
    const double a = t * std::log(t), b = 0.5 * std::log(2 * std::numbers::pi * t);
    out.value += a - t + b;
    out.slack += (function_units + 4) * (a + t + b);
  }
  out.slack += std::fabs(out.value);
  return out;
}

std::vector<Answer> solve_pointwise_loss(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims shape = broadcast_shapes(problem.inputs[0].shape, problem.inputs[1].shape);
  const Broadcast x(inputs[0], problem.inputs[0].shape, shape), t(inputs[1], problem.inputs[1].shape, shape);
  Losses losses;
  for_each_position(shape, [&](const Position& at) {
    losses.add(problem.op == OpId::poisson_nll_loss
                   ? poisson(x.at(at), t.at(at), problem.attributes)
                   : divergence(x.at(at), t.at(at), problem.attributes.boolean("log_target")));
  });
  const double batch = shape.empty() ? 1 : static_cast<double>(shape[0]);
  return {losses.reduced(problem.attributes.choice("reduction"), batch)};
}

}  // namespace

std::span<const Reference> loss_references() {
  static constexpr Reference rows[] = {
      {{OpId::cross_entropy, OpId::nll_loss}, solve_class_loss, gradients_of_class_loss},
      {{OpId::kl_div, OpId::poisson_nll_loss}, solve_pointwise_loss},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

void add_class_losses(List& list) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    const std::string tail = std::string(" reduction=") + reduction + ")";
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      for (const char* text :
           {"cross_entropy(T[1,1], i64[1];", "cross_entropy(T[7,33], i64[7];", "cross_entropy(T[7,33], i32[7], T[33];",
            "cross_entropy(T[5,17], i64[5]; label_smoothing=0.1",
            "cross_entropy(T[5,17], i64[5], T[17]; label_smoothing=0.3",
            "cross_entropy(T[3,5,4,6], i64[3,4,6]; ignore_index=2", "cross_entropy(T[3,5,7], i64[3,7], T[5];",
            "cross_entropy(T[9], i64[];", "cross_entropy(T[6,9], T[6,9];",
            "cross_entropy(T[6,9], T[6,9], T[9]; label_smoothing=0.2", "cross_entropy(T[2,5,7], T[2,5,7];",
            "cross_entropy(T[12,9]{1,12}, i64[12]{2};", "cross_entropy(T[4,9], i64[4], f32[9];",
            "nll_loss(T[1,1], i64[1];", "nll_loss(T[17,9], i64[17];", "nll_loss(T[17,9], i32[17], T[9]; ignore_index=3",
            "nll_loss(T[3,5,4,6], i64[3,4,6], T[5];", "nll_loss(T[9], i64[];", "nll_loss(T[12,9]{1,12}, i64[12]{2};"}) {
        list.add(replaced(text, "T", dtype) + tail);
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "cross_entropy(T[0,5], i64[0]; reduction=sum)",
                                               "cross_entropy(T[0,5], i64[0]; reduction=none)",
                                               "cross_entropy(T[0,5], i64[0])",  // 0 / 0
                                               "nll_loss(T[0,5], i64[0]; reduction=sum)",
                                               "nll_loss(T[0,5], i64[0])",
                                               "cross_entropy(T[6,9], i64[6]; reduction=none) -> T[6]{2}",
                                               "nll_loss(T[6,9], i64[6]; reduction=none) -> T[6]{2}",
                                           });
  list.each({"f32", "bf16"}, {"cross_entropy(T[300,1500], i64[300])", "cross_entropy(T[4,20,60,60], i64[4,60,60])",
                              "nll_loss(T[3000,100], i64[3000])"});
  list.each({"f32", "f16", "bf16", "f64"},
            {"cross_entropy(T[40,33], i64[40]; reduction=none)", "cross_entropy(T[9,5,9], i64[9,9]; reduction=none)",
             "nll_loss(T[40,33], i64[40]; reduction=none)", "nll_loss(T[9,5,9], i64[9,9]; reduction=none)"},
            oracle::Fill::special);
  list.add("cross_entropy(f32[5,13]/4, i64[5]/8) -> f32[]/4");
  list.add("cross_entropy(bf16[5,13], i64[5]) -> f32[]");
  list.add("cross_entropy(f32[5,13], i64[5]; reduction=none) -> f64[5]");
  list.add("nll_loss(bf16[5,13], i64[5]) -> f32[]");
  list.add("nll_loss(f32[5,13]/4, i32[5]/4)");
}

void add_pointwise_losses(List& list) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    const std::string tail = std::string(" reduction=") + reduction + ")";
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      for (const char* text :
           {"kl_div(T[], T[];", "kl_div(T[5,17], T[5,17];", "kl_div(T[5,17], T[5,17]; log_target=true",
            "kl_div(T[4,3,9], T[9];", "kl_div(T[1,9], T[5,9]; log_target=true", "kl_div(T[6,8]{1,6}, T[6,8];",
            "kl_div(T[0,8], T[0,8];", "poisson_nll_loss(T[], T[];", "poisson_nll_loss(T[5,17], T[5,17];",
            "poisson_nll_loss(T[5,17], T[5,17]; log_input=false", "poisson_nll_loss(T[5,17], T[5,17]; full=true",
            "poisson_nll_loss(T[5,17], T[5,17]; log_input=false full=true eps=0.001",
            "poisson_nll_loss(T[5,17], i64[17];", "poisson_nll_loss(T[6,8]{1,6}, i32[6,8];",
            "poisson_nll_loss(T[0], T[0];"}) {
        list.add(replaced(text, "T", dtype) + tail);
      }
    }
  }
  list.each({"f32", "f16", "bf16", "f64"}, {
                                               "kl_div(T[5,17], T[5,17]; reduction=batchmean)",
                                               "kl_div(T[7,33], T[7,33]; reduction=batchmean log_target=true)",
                                               "kl_div(T[5,17], T[5,17]; reduction=none) -> T[5,17]{34,2}",
                                               "poisson_nll_loss(T[5,17], T[5,17]; reduction=none) -> T[5,17]{34,2}",
                                           });
  list.each(
      {"f32", "bf16"},
      {"kl_div(T[300,1100], T[300,1100])", "kl_div(T[300,1100], T[300,1100]; log_target=true reduction=batchmean)",
       "poisson_nll_loss(T[330000], T[330000])", "poisson_nll_loss(T[330000], T[330000]; reduction=none)"});
  list.each({"f32", "f16", "bf16", "f64"}, {"kl_div(T[10,17], T[10,17]; reduction=none)"}, oracle::Fill::special);
  list.add("kl_div(f32[5,13]/4, f32[5,13]/4) -> f32[]/4");
  list.add("kl_div(bf16[5,13], bf16[5,13]) -> f32[]");
  list.add("poisson_nll_loss(f32[5,13]/4, f32[5,13]/4; reduction=none) -> f32[5,13]/4");
  list.add("poisson_nll_loss(f32[5,13], f32[5,13]) -> f64[]");
}

}  // namespace

std::vector<CaseText> loss_cases() {
  List list;
  add_class_losses(list);
  add_pointwise_losses(list);
  return list.take();
}

Checks loss_checks() {
  return {
      .small =
          {
              "cross_entropy(T[5,7], i64[5])",
              "cross_entropy(T[5,7], i64[5], T[7]; label_smoothing=0.1)",
              "cross_entropy(T[5,7], T[5,7]; reduction=none)",
              "nll_loss(T[5,7], i64[5], T[7])",
              "kl_div(T[5,7], T[5,7])",
              "poisson_nll_loss(T[5,7], T[5,7]; full=true)",
              "cross_entropy:backward(T[5,7], i64[5], T[])",
              "nll_loss:backward(T[5,7], i64[5], T[7], T[])",
          },
      .by_lines =
          {
              "cross_entropy(f32[6,33], i64[6]; reduction=none)",
              "cross_entropy(f32[6,9001], i64[6]; reduction=none)",
              "cross_entropy(f32[6,33], f32[6,33]; reduction=none)",
              "cross_entropy(f32[6,33], i64[6]; reduction=none label_smoothing=0.1)",
              "cross_entropy:backward(f32[6,33], i64[6], f32[6]; reduction=none)",
          },
      .gradients =
          {
              "cross_entropy:backward(f64[4,5], i64[4], f64[])",
              "cross_entropy:backward(f64[4,5], i64[4], f64[5], f64[4]; reduction=none)",
              "cross_entropy:backward(f64[4,5], i64[4], f64[5], f64[]; label_smoothing=0.2 ignore_index=2)",
              "cross_entropy:backward(f64[2,5,3], i64[2,3], f64[]; reduction=sum)",
              "cross_entropy:backward(f64[5], i64[], f64[])",
              "cross_entropy:backward(f64[4,5], f64[4,5], f64[5], f64[]; label_smoothing=0.3)",
              "nll_loss:backward(f64[4,5], i64[4], f64[5], f64[])",
              "nll_loss:backward(f64[2,5,3], i64[2,3], f64[2,3]; reduction=none)",
          },
      .mistakes =
          {
              {"cross_entropy(f32[20,9], i64[20])", "cross_entropy(f32[20,9], i64[20]; label_smoothing=0.01)"},
              {"poisson_nll_loss(bf16[50], bf16[50]; full=true)", "poisson_nll_loss(bf16[50], bf16[50])"},
              {"kl_div(f32[5,9], f32[5,9]; reduction=batchmean)", "kl_div(f32[5,9], f32[5,9])"},
          },
      .gradient_mistakes =
          {
              {"cross_entropy:backward(f32[20,9], i64[20], f32[])",
               "cross_entropy:backward(f32[20,9], i64[20], f32[]; label_smoothing=0.01)"},
              {"cross_entropy:backward(bf16[20,9], i64[20], bf16[])",
               "cross_entropy:backward(bf16[20,9], i64[20], bf16[]; reduction=sum)"},
          },
  };
}

}  // namespace xpuruntime::cases
