#include <algorithm>

#include "backends/cases.h"
#include "backends/oracle_references.h"

// Nothing is computed here, so nothing may be off.

namespace xpuruntime::oracle {
namespace {

Answer exact(Values values) {
  Answer out;
  out.slack.assign(values.size(), 0);
  out.value = std::move(values);
  return out;
}

// Integers that do not fit another integer type keep their low bits, as in C++ and PyTorch; floats are clamped.
std::vector<Answer> solve_copy(const Problem& problem, const std::vector<Values>& inputs) {
  const DataType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
  if (is_floating(from) || to != DataType::uint8) return {exact(inputs[0])};
  Values values = inputs[0];
  for (double& value : values) value = value < 0 ? value + 256 : value;
  return {exact(std::move(values))};
}

std::vector<Answer> solve_embedding(const Problem& problem, const std::vector<Values>& inputs) {
  const auto features = static_cast<std::ptrdiff_t>(problem.inputs[1].shape[1]);
  Values out;
  for (const double index : inputs[0]) {
    const auto row = inputs[1].begin() + static_cast<std::ptrdiff_t>(index) * features;
    out.insert(out.end(), row, row + features);
  }
  return {exact(std::move(out))};
}

std::vector<Answer> solve_transpose(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  const Dims from = contiguous_strides(shape);
  std::vector<std::int64_t> dims = problem.attributes.list("dims");
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (dims.empty()) {
    for (std::int64_t d = rank; d-- > 0;) dims.push_back(d);
  }
  Dims strides = Dims::filled(shape.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    strides[i] = from[static_cast<std::size_t>(dims[i] < 0 ? dims[i] + rank : dims[i])];
  }
  Values out;
  for_each_position(problem.outputs[0].shape,
                    [&](const Position& at) { out.push_back(inputs[0][static_cast<std::size_t>(dot(at, strides))]); });
  return {exact(std::move(out))};
}

std::vector<Answer> solve_concat(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines out_lines(problem.outputs[0].shape, problem.attributes.integer("dim"));
  Values out(static_cast<std::size_t>(out_lines.outer * out_lines.length * out_lines.inner));
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Lines lines(problem.inputs[k].shape, problem.attributes.integer("dim"));
    for (std::int64_t o = 0; o < lines.outer; ++o) {
      for (std::int64_t p = 0; p < lines.length; ++p) {
        for (std::int64_t i = 0; i < lines.inner; ++i) {
          out[out_lines.index(o, i, begin + p)] = inputs[k][lines.index(o, i, p)];
        }
      }
    }
    begin += lines.length;
  }
  return {exact(std::move(out))};
}

std::vector<Answer> solve_slice(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  const auto from_the_back = [&](std::int64_t position) {
    return std::clamp<std::int64_t>(position < 0 ? position + lines.length : position, 0, lines.length);
  };
  const std::int64_t start = from_the_back(problem.attributes.integer("start"));
  const std::int64_t end = from_the_back(problem.attributes.integer("end"));
  Values out;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t p = start; p < end; p += problem.attributes.integer("step")) {
      for (std::int64_t i = 0; i < lines.inner; ++i) out.push_back(inputs[0][lines.index(o, i, p)]);
    }
  }
  return {exact(std::move(out))};
}

}  // namespace

std::span<const Reference> movement_references() {
  static constexpr Reference rows[] = {
      {{OpId::cast, OpId::copy}, solve_copy}, {OpId::embedding, solve_embedding}, {OpId::transpose, solve_transpose},
      {OpId::concat, solve_concat},           {OpId::slice, solve_slice},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

void add_cast(List& list) {
  for (const char* from : {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"}) {
    for (const char* to : {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"}) {
      list.add("cast(" + std::string(from) + "[137]; dtype=" + to + ")");
    }
  }
  for (const char* to : {"f64", "f32", "f16", "bf16"}) {
    const std::string tail = std::string("; dtype=") + to + ")";
    for (const char* from : {"f32", "f16", "bf16", "f64"}) {
      for (const char* shape : {"[0]", "[]", "[7]", "[33]", "[1025]", "[6,4]{1,6}", "[9,5]{10,2}"}) {
        list.add("cast(" + std::string(from) + shape + tail);
      }
      list.add("cast(" + std::string(from) + "[120]" + tail, oracle::Fill::special);
    }
    list.add("cast(f32[400001]" + tail);
    list.add("cast(bf16[400001]" + tail);
  }
  list.add("cast(f32[33]/4; dtype=bf16) -> bf16[33]/2");
  list.add("cast(f32[4,6]; dtype=bf16) -> bf16[4,6]{1,4}");
  list.add("cast(bf16[4,6]; dtype=f32) -> f32[4,6]{12,2}");
}

void add_copies(List& list) {
  list.each({"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "bool", "f8e4m3"},
            {
                "copy(T[33])",
                "copy(T[6,4]{1,6})",
                "copy(T[6,4]) -> T[6,4]{1,6}",
                "transpose(T[33,17])",
                "transpose(T[3,4,5]; dims=1,2,0)",
                "concat(T[3,4], T[2,4])",
                "concat(T[3,4], T[3,1], T[3,5]; dim=-1)",
                "slice(T[9,4]; start=2 end=7)",
                "slice(T[5,33]; dim=1 start=1 step=3)",
            });
  list.each({"f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u8", "f8e4m3"}, {"embedding(i64[5], T[7,9])"});
  list.each({"f32", "f16", "bf16", "f64", "i8"}, {
                                                     "copy(T[])",
                                                     "copy(T[0,4])",
                                                     "copy(T[2,3,4,5]{60,1,15,3})",
                                                     "copy(T[2,3,4,5]) -> T[2,3,4,5]{60,1,15,3}",
                                                     "copy(T[5,8]{0,1})",
                                                     "copy(T[3,67]{1,0})",
                                                     "copy(T[6,2,5,2,1]{5,0,1,0,1})",  // each of a row twice
                                                     "copy(T[7,3]{1,0})",
                                                     "copy(T[2,9,4]{27,3,0})",
                                                     "copy(T[5,8]{16,2}) -> T[5,8]{8,1}",
                                                     "copy(T[2,2,2,2,2,2,2,2]{1,2,4,8,16,32,64,128})",
                                                     "transpose(T[])",
                                                     "transpose(T[7])",
                                                     "transpose(T[0,3])",
                                                     "transpose(T[1,65])",
                                                     "transpose(T[16,16])",
                                                     "transpose(T[63,65])",
                                                     "transpose(T[2,3,4,5]; dims=0,2,3,1)",
                                                     "transpose(T[2,5,4,3]; dims=0,3,1,2)",
                                                     "transpose(T[2,9,4,8]; dims=0,2,1,3)",
                                                     "transpose(T[2,3,4]; dims=0,1,2)",
                                                     "transpose(T[3,4,5]; dims=-1,0,-2)",
                                                     "transpose(T[6,4]{1,6})",
                                                     "transpose(T[8,6]) -> T[6,8]{16,2}",
                                                     "concat(T[5])",
                                                     "concat(T[0], T[5], T[0])",
                                                     "concat(T[2,3,4], T[2,1,4], T[2,9,4]; dim=1)",
                                                     "concat(T[4,6]{1,4}, T[4,6]; dim=1)",
                                                     "concat(T[3,4], T[2,4]) -> T[5,4]{1,5}",
                                                     "concat(T[1,7], T[1,9]; dim=1) -> T[1,16]{32,2}",
                                                     "slice(T[9]; start=-3)",
                                                     "slice(T[9]; start=7 end=2)",
                                                     "slice(T[9]; end=-2 step=2)",
                                                     "slice(T[4,5,6]; dim=1 start=1 end=4)",
                                                     "slice(T[4,5,6]; dim=-1 start=2 end=100)",
                                                     "slice(T[6,8]{1,6}; dim=1 start=3)",
                                                     "slice(T[6,8]; start=1 end=5) -> T[4,8]{16,2}",
                                                     "embedding(i64[], T[7,9])",
                                                     "embedding(i64[0], T[7,9])",
                                                     "embedding(i32[2,3], T[7,16])",
                                                     "embedding(i64[4], T[1,1])",
                                                     "embedding(i64[3,4]{1,3}, T[10,8]{16,1})",
                                                     "embedding(i64[6], T[10,8]{1,10})",
                                                     "embedding(i64[6], T[10,8]) -> T[6,8]{16,2}",
                                                     "embedding(i64[5], T[7,0])",
                                                 });
}

void add_large(List& list) {
  list.each({"f32", "bf16"}, {
                                 "copy(T[400001])",
                                 "copy(T[500,700]{1,500})",
                                 "transpose(T[700,900])",
                                 "transpose(T[8,60,16,50]; dims=0,2,1,3)",
                                 "transpose(T[4,30,40,64]; dims=0,3,1,2)",
                                 "concat(T[300,500], T[300,600]; dim=1)",
                                 "concat(T[300,500], T[200,500])",
                                 "slice(T[600,800]; dim=1 start=3 end=700)",
                                 "slice(T[600,800]; step=2)",
                                 "embedding(i64[700], T[1000,512])",
                             });
  for (const char* text :
       {"copy(f32[33]/4) -> f32[33]/4", "copy(f32[33]) -> bf16[33]", "transpose(f32[17,33]/4) -> f32[33,17]/4",
        "transpose(f32[17,33]) -> bf16[33,17]", "concat(f32[5,3], bf16[5,3])", "concat(i32[5], i64[6])",
        "concat(i32[5], f32[6])", "concat(f32[5,3]/4, f32[4,3]/4) -> f32[9,3]/4",
        "slice(f32[33]/4; start=1) -> f32[32]/4", "slice(f32[33]; start=1) -> f16[32]",
        "embedding(i32[5]/4, f32[7,9]/4) -> f32[5,9]/4", "embedding(i64[5], bf16[7,9]) -> f32[5,9]",
        "embedding(i64[5], f32[7,19]{20,1}) -> bf16[5,19]", "embedding(i64[700], f16[1000,512]) -> f32[700,512]",
        "embedding(u8[5], f32[7,9])", "embedding(i16[5], f32[7,9])", "embedding(i8[5], f32[7,9])",
        "concat(f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2], f32[2,2]; dim=1)"}) {
    list.add(text);
  }
  list.each({"f32", "f16", "bf16"},
            {"copy(T[65])", "transpose(T[9,17])", "concat(T[20], T[30])", "slice(T[40]; step=3)"},
            oracle::Fill::special);
}

}  // namespace

std::vector<CaseText> movement_cases() {
  List list;
  add_cast(list);
  add_copies(list);
  add_large(list);
  return list.take();
}

Checks movement_checks() {
  return {
      .small =
          {
              "embedding(i64[9], T[5,4])",
              "cast(T[99]; dtype=bf16)",
              "copy(T[9,5]{1,9})",
              "transpose(T[9,5])",
              "concat(T[9,5], T[9,5]; dim=1)",
              "slice(T[9,5]; dim=1 start=1)",
          },
      .mistakes =
          {
              {"slice(i8[9]; start=1 end=5)", "slice(i8[9]; start=2 end=6)"},
          },
  };
}

}  // namespace xpuruntime::cases
