#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cases.h"
#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

struct Attention {
  const Problem& problem;
  const std::vector<Values>& in;
  std::int64_t heads, key_heads, queries, keys, size, value_size;
  double scale;
  bool causal, bottom_right, lse, bool_mask, paged;

  Attention(const Problem& p, const std::vector<Values>& inputs) : problem(p), in(inputs) {
    const Dims& q = p.inputs[0].shape;
    const Dims& v = p.inputs[2].shape;
    paged = inputs.size() > 5;
    heads = q[1], queries = q[2], size = q[3];
    key_heads = v[paged ? 2 : 1], keys = paged ? p.inputs[5].shape[1] * v[1] : v[2], value_size = v[3];
    const double given = p.attributes.real("scale");
    scale = given == 0 ? 1 / std::sqrt(static_cast<double>(size)) : given;
    causal = p.attributes.boolean("causal");
    bottom_right = p.attributes.choice("causal_align") == "bottom_right";
    lse = p.attributes.boolean("lse");
    bool_mask = has(3) && p.inputs[3].dtype == DataType::boolean;
  }
  bool has(std::size_t input) const { return input < in.size() && !in[input].empty(); }
  double at(std::size_t input, std::int64_t index) const { return in[input][static_cast<std::size_t>(index)]; }
  std::int64_t length(std::int64_t b) const { return has(4) ? static_cast<std::int64_t>(at(4, b)) : keys; }
  bool sees(const Position& query, std::int64_t j) const {
    const std::int64_t length_here = length(query[0]);
    const std::int64_t last = query[2] + (bottom_right ? length_here - queries : 0);
    return j < length_here && (!causal || j <= last);
  }
  /// Which line of keys or values it is, all heads counted.
  std::int64_t line(std::int64_t b, std::int64_t h, std::int64_t j) const {
    const std::int64_t head = h / (heads / key_heads);
    if (!paged) return (b * key_heads + head) * keys + j;
    const std::int64_t page_size = problem.inputs[1].shape[1], columns = problem.inputs[5].shape[1];
    const auto page = static_cast<std::int64_t>(at(5, b * columns + j / page_size));
    return (page * page_size + j % page_size) * key_heads + head;
  }
  double query(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) const {
    return in[0][static_cast<std::size_t>(((b * heads + h) * queries + i) * size + d)];
  }
  double key(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) const {
    return at(1, line(b, h, j) * size + d);
  }
  double value(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) const {
    return at(2, line(b, h, j) * value_size + d);
  }
};

Approximate score(const Attention& a, const Broadcast* mask, const Position& at, std::int64_t j) {
  if (!a.sees(at, j)) return {minus_infinity, 0};
  double sum = 0, size = 0;
  for (std::int64_t d = 0; d < a.size; ++d) {
    const double term = a.query(at[0], at[1], at[2], d) * a.key(at[0], at[1], j, d);
    sum += term;
    size += std::fabs(term);
  }
  // The scale may be applied before or after the product, and may itself be rounded.
  Approximate s = {sum * a.scale, (sum_units(static_cast<double>(a.size)) + 3) * size * std::fabs(a.scale)};
  if (mask == nullptr) return s;
  const double m = mask->at({at[0], at[1], at[2], j});
  if (a.bool_mask) {
    if (m == 0) s.value = minus_infinity;
    return s;
  }
  s.value += m;
  if (std::isfinite(m)) s.slack += std::fabs(m) + std::fabs(sum * a.scale);
  return s;
}

struct Weights {
  std::vector<Approximate> p;  // their slack is relative
  bool none = false;
  Approximate lse = {minus_infinity, 0};
};

// A weight is exp(s - m) over their sum: the error of s and of s - m enter it relatively. With online softmax each
// block of keys may scale what came before by one more exp; blocks are taken to hold 32 keys or more.
Weights weights_of(const Attention& a, const Broadcast* mask, const Position& at) {
  Weights w;
  double most = minus_infinity;
  for (std::int64_t j = 0; j < a.keys; ++j) {
    w.p.push_back(score(a, mask, at, j));
    most = std::max(most, w.p.back().value);
  }
  w.none = most == minus_infinity;
  if (w.none) return w;
  double sum = 0, mean = 0;
  for (Approximate& p : w.p) {
    const double distance = p.value - most;
    p.value = std::exp(distance);
    p.slack = p.value == 0 ? 0 : p.slack + std::fabs(distance) + function_units;
    sum += p.value;
    mean += p.value * p.slack;
  }
  const double blocks = 1 + static_cast<double>(a.keys) / 32;
  const double of_sum = mean / sum + sum_units(static_cast<double>(a.keys)) + (function_units + 2) * blocks;
  // Kernels of bf16 may use exponentials that are off by up to 64 u.
  const double coarse = a.problem.inputs[0].dtype == DataType::bfloat16 ? 64 : 0;
  w.lse = {most + std::log(sum), of_sum + function_units + 2 * std::fabs(most) + coarse};
  for (Approximate& p : w.p) {
    p.value /= sum;
    p.slack += of_sum;
  }
  return w;
}

// Kernels of 16-bit problems may keep the weights in 16 bits for the second product, as PyTorch does: half a unit of
// the input dtype times sum |p||v| more. It is expressed in u, as all slack.
std::vector<Answer> solve_attention(const Problem& problem, const std::vector<Values>& inputs) {
  const Attention a(problem, inputs);
  const Dims scores = {problem.inputs[0].shape[0], a.heads, a.queries, a.keys};
  std::vector<Broadcast> mask;
  if (a.has(3)) mask.emplace_back(inputs[3], problem.inputs[3].shape, scores);
  const DataType dtype = problem.inputs[0].dtype;
  const bool narrow = dtype == DataType::float16 || dtype == DataType::bfloat16;
  const double stored = narrow ? half_unit(dtype) / half_unit(DataType::float32) : 0;
  Answer out, lse;
  for_each_position({scores[0], a.heads, a.queries}, [&](const Position& at) {
    const Weights w = weights_of(a, mask.empty() ? nullptr : &mask[0], at);
    lse.add(w.lse.value, w.lse.slack);
    for (std::int64_t d = 0; d < a.value_size; ++d) {
      double sum = 0, size = 0, slack = 0;
      for (std::int64_t j = 0; j < a.keys && !w.none; ++j) {
        if (!a.sees(at, j)) continue;  // nor has it a page, where it is past the length
        const Approximate& p = w.p[static_cast<std::size_t>(j)];
        const double term = p.value * a.value(at[0], at[1], j, d);
        sum += term;
        size += std::fabs(term);
        slack += std::fabs(term) * p.slack;
      }
      out.add(sum, slack + size * (sum_units(static_cast<double>(a.keys)) + 4 + stored));
    }
  });
  return a.lse ? std::vector<Answer>{out, lse} : std::vector<Answer>{out};
}

}  // namespace

std::span<const Reference> attention_references() {
  static constexpr Reference rows[] = {{OpId::attention, solve_attention}};
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {

std::vector<CaseText> attention_cases() {
  List list;
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "attention(T[1,1,1,1], T[1,1,1,1], T[1,1,1,1])",
          "attention(T[1,2,8,16], T[1,2,8,16], T[1,2,8,16])",
          "attention(T[2,3,17,7], T[2,3,17,7], T[2,3,17,7])",
          "attention(T[1,2,33,64], T[1,2,33,64], T[1,2,33,64]; causal=true)",
          "attention(T[1,2,5,32], T[1,2,65,32], T[1,2,65,32])",
          "attention(T[1,2,65,32], T[1,2,5,32], T[1,2,5,32])",
          "attention(T[1,2,13,32], T[1,2,31,32], T[1,2,31,32]; causal=true)",  // keys past the diagonal
          "attention(T[1,2,31,32], T[1,2,13,32], T[1,2,13,32]; causal=true)",
          "attention(T[1,4,1,64], T[1,4,65,64], T[1,4,65,64])",  // single query
          "attention(T[3,4,1,33], T[3,2,17,33], T[3,2,17,33])",
          "attention(T[1,8,1,128], T[1,1,130,128], T[1,1,130,128])",
          "attention(T[1,2,1,16], T[1,2,9,16], T[1,2,9,16]; causal=true)",  // only the first key
          "attention(T[1,2,1,16], T[1,2,9,16], T[1,2,9,16], bool[9])",
          "attention(T[1,2,1,16], T[1,2,9,16], T[1,2,9,16], T[1,1,1,9])",
          "attention(T[1,8,20,32], T[1,2,20,32], T[1,2,20,32])",  // grouped heads
          "attention(T[2,6,9,16], T[2,3,9,16], T[2,3,9,16]; causal=true)",
          "attention(T[1,4,9,16], T[1,1,9,16], T[1,1,9,16]; scale=0.5)",
          "attention(T[1,4,9,16], T[1,2,40,16], T[1,2,40,16]; scale=-0.5 causal=true)",
          "attention(T[1,4,1,16], T[1,2,40,16], T[1,2,40,16]; scale=-0.25)",
          "attention(T[1,2,9,16], T[1,2,12,16], T[1,2,12,16], bool[9,12]; scale=-2)",
          "attention(T[1,2,9,24], T[1,2,12,24], T[1,2,12,40])",  // values of another size
          "attention(T[1,2,9,15], T[1,2,12,15], T[1,2,12,17]; scale=1)",
          "attention(T[1,2,9,128], T[1,2,40,128], T[1,2,40,128])",
          "attention(T[1,1,4,3], T[1,1,7,3], T[1,1,7,1])",
          "attention(T[1,2,12,16], T[1,2,12,16], T[1,2,12,16], bool[12,12])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[2,1,12,15])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[2,2,12,15]; causal=true)",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[2,1,1,15])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], bool[12,1])",
          "attention(T[1,2,12,16], T[1,2,12,16], T[1,2,12,16], T[12,12])",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], T[2,1,12,15]; causal=true)",
          "attention(T[2,2,12,16], T[2,2,15,16], T[2,2,15,16], f32[1,2,12,15])",
          "attention(T[2,4,33,16], T[2,2,47,16], T[2,2,47,16], T[2,4,33,47])",
          "attention(T[0,2,4,8], T[0,2,4,8], T[0,2,4,8])",
          "attention(T[1,2,0,8], T[1,2,4,8], T[1,2,4,8])",
          "attention(T[1,2,4,8], T[1,2,4,8], T[1,2,4,0])",
          "attention(T[2,9,4,16]{576,16,144,1}, T[2,9,4,16]{576,16,144,1}, T[2,9,4,16]{576,16,144,1})",  // [B,L,H,D]
          "attention(T[2,3,9,16]{432,16,48,1}, T[2,3,9,16]{432,16,48,1}, T[2,3,9,16]{432,16,48,1}; causal=true) -> "
          "T[2,3,9,16]{432,16,48,1}",
          "attention(T[1,2,8,16]{512,256,32,2}, T[1,2,8,16], T[1,2,8,16])",
          "attention(T[1,2,8,16], T[1,2,8,16]{256,128,1,8}, T[1,2,8,16])",  // keys transposed
          "attention(T[1,2,8,16], T[1,2,8,16], T[1,2,8,16]{256,128,1,8})",
          "attention(T[1,2,12,16], T[1,2,12,16], T[1,2,12,16], bool[12,12]{1,12})",
          "attention(T[1,2,8,16], T[1,2,8,16], T[1,2,8,16]) -> T[1,2,8,16]{512,256,32,2}",
      });
  list.each({"f32", "f16", "bf16"}, {
                                        "attention(T[1,3,150,64], T[1,3,150,64], T[1,3,150,64]; causal=true)",
                                        "attention(T[2,4,65,64], T[2,2,130,64], T[2,2,130,64])",
                                        "attention(T[1,2,70,80], T[1,2,257,80], T[1,2,257,80], bool[70,257])",
                                        "attention(T[1,16,1,64], T[1,4,700,64], T[1,4,700,64])",
                                    });
  list.each(
      {"f32", "f16", "bf16", "f64"},
      {
          "attention(T[1,2,13,32], T[1,2,31,32], T[1,2,31,32]; causal=true causal_align=bottom_right)",
          "attention(T[1,2,50,32], T[1,2,13,32], T[1,2,13,32]; causal=true causal_align=bottom_right)",  // rows of none
          "attention(T[1,4,3,16], T[1,2,9,16], T[1,2,9,16]; causal=true causal_align=bottom_right)",
          "attention(T[1,2,4,16], T[1,2,2,16], T[1,2,2,16]; causal=true causal_align=bottom_right lse=true)",
          "attention(T[3,4,9,16], T[3,2,40,16], T[3,2,40,16], none, i32[3])",
          "attention(T[5,2,40,16], T[5,1,140,16], T[5,1,140,16], none, i32[5]{2}; lse=true)",
          "attention(T[3,4,1,16], T[3,2,600,16], T[3,2,600,16], none, i64[3])",
          "attention(T[5,2,6,16], T[5,2,20,16], T[5,2,20,16], none, i64[5]; causal=true causal_align=bottom_right)",
          "attention(T[5,2,2,16], T[5,2,20,16], T[5,2,20,16], none, i32[5]; causal=true)",
          "attention(T[3,2,7,16], T[3,2,40,16], T[3,2,40,16], bool[3,1,7,40], i32[3]; lse=true)",
          "attention(T[3,2,1,16], T[3,2,40,16], T[3,2,40,16], T[3,1,1,40], i32[3]; lse=true)",
          "attention(T[2,4,9,16], T[2,2,40,16], T[2,2,40,16]; lse=true)",
          "attention(T[2,4,1,16], T[2,2,700,16], T[2,2,700,16]; lse=true scale=0.5)",
          "attention(T[2,2,5,16], T[2,2,9,16], T[2,2,9,16]; lse=true scale=-0.5) -> T[2,2,5,16], f32[2,2,5]{1,2,4}",
          "attention(T[1,2,4,8], T[1,2,4,8], T[1,2,4,0]; lse=true)",
          "attention(T[2,4,1,16], T[7,8,2,16], T[7,8,2,16], none, none, i32[2,3])",
          "attention(T[3,8,1,64], T[40,16,2,64], T[40,16,2,64], none, i32[3], i32[3,20]; lse=true)",
          "attention(T[4,2,3,15], T[9,3,1,15], T[9,3,1,17], none, i32[4], i32[4,5]{1,4}; causal=true "
          "causal_align=bottom_right)",
          "attention(T[2,2,1,16], T[3,300,2,16], T[3,300,2,16], bool[600], i64[2], i32[2,2])",  // pages past a chunk
          "attention(T[2,2,9,16], T[7,8,2,16], T[7,8,2,16], none, i32[2], i32[2,3]; causal=true)",
      });
  for (const char* text : {"attention(f32[1,2,9,16]/4, f32[1,2,9,16]/4, f32[1,2,9,16]/4) -> f32[1,2,9,16]/4",
                           "attention(bf16[1,2,9,16]/2, bf16[1,2,9,16]/2, bf16[1,2,9,16]/2) -> bf16[1,2,9,16]/2",
                           "attention(f32[1,2,9,16], f32[1,2,9,16], f32[1,2,9,16]) -> bf16[1,2,9,16]",
                           "attention(bf16[1,2,9,16], bf16[1,2,9,16], bf16[1,2,9,16]) -> f32[1,2,9,16]",
                           "attention(f16[1,2,9,16], f32[1,2,9,16], f32[1,2,9,16])"}) {
    list.add(text);
  }
  return list.take();
}

Checks attention_checks() {
  return {
      .small =
          {
              "attention(T[1,2,5,16], T[1,2,40,16], T[1,2,40,16])",
              "attention(T[1,2,1,8], T[1,1,9,8], T[1,1,9,8])",
              "attention(T[1,1,9,4], T[1,1,9,4], T[1,1,9,4]; causal=true)",
              "attention(T[2,1,9,4], T[2,1,7,4], T[2,1,7,4], none, i32[2]; causal=true causal_align=bottom_right "
              "lse=true)",
              "attention(T[2,2,1,8], T[5,4,1,8], T[5,4,1,8], none, i32[2], i32[2,3]; lse=true)",
          },
      .by_lines =
          {
              "attention(f32[1,1,6,16], f32[1,1,40,16], f32[1,1,40,16])",
              "attention(bf16[1,1,6,16], bf16[1,1,300,16], bf16[1,1,300,16])",
              "attention(f32[6,1,1,16], f32[6,1,40,16], f32[6,1,40,16])",
          },
      .mistakes =
          {
              {"attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8]; causal=true)",
               "attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8])"},
              {"attention(bf16[1,1,9,8], bf16[1,1,12,8], bf16[1,1,12,8]; causal=true causal_align=bottom_right)",
               "attention(bf16[1,1,9,8], bf16[1,1,12,8], bf16[1,1,12,8]; causal=true)"},
              {"attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8]; scale=0.5)",
               "attention(bf16[1,1,9,8], bf16[1,1,9,8], bf16[1,1,9,8])"},
          },
  };
}

}  // namespace xpuruntime::cases
