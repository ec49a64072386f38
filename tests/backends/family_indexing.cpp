#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cases.h"
#include "backends/oracle_references.h"

// Ops that read or write where indices say.

namespace xpuruntime::oracle {
namespace {

Answer exact(Values values) {
  Answer out;
  out.slack.assign(values.size(), 0);
  out.value = std::move(values);
  return out;
}

std::size_t dim_of(const Problem& problem, std::string_view name = "dim") {
  const std::int64_t dim = problem.attributes.integer(name);
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(problem.inputs[0].shape.size()) : dim);
}

std::int64_t from_front(double index, std::int64_t extent) {
  const auto whole = static_cast<std::int64_t>(index);
  return whole < 0 ? whole + extent : whole;
}

/// One element of a tensor of a shape.
double& at(Values& values, const Dims& shape, const Position& position) {
  return values[static_cast<std::size_t>(dot(position, contiguous_strides(shape)))];
}

/// Where in the data the element at a position of the indices, or of what was gathered, belongs.
Position place_of(const Problem& problem, const Values& indices, const Position& given) {
  const Dims &data = problem.inputs[0].shape, &shape = problem.inputs[1].shape;
  const Dims strides = contiguous_strides(shape);
  Position place = {};
  if (problem.op == OpId::gather) {
    const std::size_t dim = dim_of(problem), taken = shape.size();
    std::int64_t index = 0;
    for (std::size_t d = 0; d < taken; ++d) index += given[dim + d] * strides[d];
    for (std::size_t d = 0; d < data.size(); ++d) {
      if (d != dim) place[d] = given[d < dim ? d : d + taken - 1];
    }
    place[dim] = from_front(indices[static_cast<std::size_t>(index)], data[dim]);
  } else if (problem.op == OpId::gather_elements || problem.op == OpId::scatter_elements) {
    place = given;
    place[dim_of(problem)] = from_front(indices[static_cast<std::size_t>(dot(given, strides))], data[dim_of(problem)]);
  } else {
    const auto batch =
        problem.op == OpId::gather_nd ? static_cast<std::size_t>(problem.attributes.integer("batch_dims")) : 0;
    const std::size_t last = shape.size() - 1, depth = static_cast<std::size_t>(shape[last]);
    std::int64_t row = 0;
    for (std::size_t d = 0; d < last; ++d) row += given[d] * strides[d];
    for (std::size_t d = 0; d < batch; ++d) place[d] = given[d];
    for (std::size_t d = batch; d < data.size(); ++d) {
      const std::size_t column = d - batch;
      place[d] = column < depth ? from_front(indices[static_cast<std::size_t>(row) + column], data[d])
                                : given[last + column - depth];
    }
  }
  return place;
}

std::vector<Answer> solve_gather(const Problem& problem, const std::vector<Values>& inputs) {
  Values data = inputs[0], out;
  for_each_position(problem.outputs[0].shape, [&](const Position& position) {
    out.push_back(at(data, problem.inputs[0].shape, place_of(problem, inputs[1], position)));
  });
  return {exact(std::move(out))};
}

// Each value that is reduced is stored, and so rounded, before the next one comes.
std::vector<Answer> solve_scatter(const Problem& problem, const std::vector<Values>& inputs) {
  const std::string_view reduction = problem.attributes.choice("reduction");
  const Dims& shape = problem.inputs[0].shape;
  const DataType dtype = problem.outputs[0].dtype;
  const double rounding = std::ldexp(half_unit(dtype), dtype == DataType::float64 ? 53 : 24) + 1;
  Answer out = exact(inputs[0]);
  std::size_t next = 0;
  for_each_position(problem.inputs[2].shape, [&](const Position& position) {
    const double update = inputs[2][next++];
    const Position place = place_of(problem, inputs[1], position);
    double &value = at(out.value, shape, place), &slack = at(out.slack, shape, place);
    if (reduction == "add") {
      value += update;
      slack += rounding * std::fabs(value);
    } else if (reduction == "mul") {
      value *= update;
      slack = slack * std::fabs(update) + rounding * std::fabs(value);
    } else if (reduction == "none") {
      value = update;
    } else if (std::isnan(update) || (!std::isnan(value) && is_above(update, value) == (reduction == "max"))) {
      value = update;
    }
  });
  return {out};
}

std::vector<Answer> solve_one_hot(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.outputs[0].shape, problem.attributes.integer("dim"));
  const Values values = inputs.size() > 1 ? inputs[1] : Values{0, 1};
  Values out(static_cast<std::size_t>(lines.outer * lines.length * lines.inner), values[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const std::int64_t index = from_front(inputs[0][static_cast<std::size_t>(o * lines.inner + i)], lines.length);
      if (index >= 0 && index < lines.length) out[lines.index(o, i, index)] = values[1];
    }
  }
  return {exact(std::move(out))};
}

std::vector<Answer> solve_reverse_sequence(const Problem& problem, const std::vector<Values>& inputs) {
  const std::size_t batch = dim_of(problem, "batch_dim"), time = dim_of(problem, "time_dim");
  Values data = inputs[0], out;
  for_each_position(problem.outputs[0].shape, [&](Position position) {
    const auto length = static_cast<std::int64_t>(inputs[1][static_cast<std::size_t>(position[batch])]);
    if (position[time] < length) position[time] = length - 1 - position[time];
    out.push_back(at(data, problem.inputs[0].shape, position));
  });
  return {exact(std::move(out))};
}

}  // namespace

std::span<const Reference> indexing_references() {
  static constexpr Reference rows[] = {
      {{OpId::gather, OpId::gather_elements, OpId::gather_nd}, solve_gather},
      {{OpId::scatter_elements, OpId::scatter_nd}, solve_scatter},
      {OpId::one_hot, solve_one_hot},
      {OpId::reverse_sequence, solve_reverse_sequence},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {

std::vector<CaseText> indexing_cases() {
  List list;
  list.each({"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"},
            {
                "gather(T[7,5], i64[3])",
                "gather(T[4,7,3], i64[2,5]; dim=1)",
                "gather_elements(T[5,7], i64[5,4]; dim=1)",
                "gather_nd(T[5,7,3], i64[4,2])",
                "scatter_elements(T[5,7], i64[3,7], T[3,7])",
                "scatter_nd(T[5,7], i64[4,1], T[4,7])",
                "one_hot(i64[5], T[2]; depth=7)",
                "reverse_sequence(T[4,9], i64[4])",
            });
  list.each({"f32", "f16", "bf16", "f64", "i64", "i8"},
            {
                "gather(T[9], i64[])",
                "gather(T[9], i64[0])",
                "gather(T[9,0], i64[3])",
                "gather(T[5,9], i32[6]; dim=-1)",
                "gather(T[2,3,5,4], i64[2,3]; dim=2)",
                "gather(T[3,5,130], i64[7]; dim=1)",
                "gather(T[8,6]{1,8}, i64[4])",
                "gather(T[8,6], i64[4]{2}; dim=1) -> T[8,4]{8,2}",
                "gather(T[6,4], u8[5])",
                "gather_elements(T[9], i64[12])",
                "gather_elements(T[6,5,4], i32[6,3,4]; dim=1)",
                "gather_elements(T[6,5,4], i64[2,5,3]; dim=0)",
                "gather_elements(T[8,6]{1,8}, i64[8,3]{1,8}; dim=-1) -> T[8,3]{6,2}",
                "gather_elements(T[3,4], i64[0,4])",
                "gather_nd(T[5,7,3], i32[2,4,1])",
                "gather_nd(T[5,7], i64[2])",
                "gather_nd(T[5,7], i64[6,2])",
                "gather_nd(T[3,5,7], i64[3,2,1]; batch_dims=1)",
                "gather_nd(T[3,5,7,2], i64[3,5,4,2]; batch_dims=2)",
                "gather_nd(T[8,6]{1,8}, i64[4,1]{2,1}) -> T[4,6]{12,2}",
                "scatter_elements(T[9], i64[12], T[12])",
                "scatter_elements(T[6,5,4], i64[6,3,4], T[6,3,4]; dim=1)",
                "scatter_elements(T[6,5,4], i32[2,5,3], T[2,5,3]; dim=-1)",
                "scatter_elements(T[8,6]{1,8}, i64[3,6]{1,3}, T[3,6]{12,2}) -> T[8,6]{12,2}",
                "scatter_elements(T[3,4], i64[0,4], T[0,4])",
                "scatter_nd(T[5,7,3], i32[2,4,2], T[2,4,3])",
                "scatter_nd(T[5,7], i64[6,2], T[6])",
                "scatter_nd(T[5,7], i64[1], T[7])",
                "scatter_nd(T[8,6]{1,8}, i64[4,1]{2,1}, T[4,6]{1,4}) -> T[8,6]{1,8}",
                "one_hot(i64[], T[2]; depth=4)",
                "one_hot(i32[3,4], T[2]; depth=5 dim=0)",
                "one_hot(i8[3,4]{1,3}, T[2]{3}; depth=5 dim=1) -> T[3,5,4]{40,8,2}",
                "reverse_sequence(T[6,4,3], i64[4]; batch_dim=1 time_dim=0)",
                "reverse_sequence(T[2,3,5,4], i32[3]; batch_dim=1 time_dim=3)",
                "reverse_sequence(T[4,6]{1,4}, i64[4]{2}) -> T[4,6]{12,2}",
                "reverse_sequence(T[4,0], i64[4])",
            });
  for (const char* reduction : {"add", "mul", "max", "min"}) {
    const std::string tail = std::string("reduction=") + reduction + ")";
    list.each({"f32", "f16", "bf16", "f64", "i64", "i32"}, {
                                                               "scatter_elements(T[40,7], i64[9,7], T[9,7]; " + tail,
                                                               "scatter_nd(T[40,7], i64[5,1], T[5,7]; " + tail,
                                                           });
  }
  list.each({"f32", "bf16"}, {"gather(T[300,700], i64[500])", "gather(T[60,4000], i64[3000]; dim=1)",
                              "gather_elements(T[300,500], i64[300,400]; dim=1)", "gather_nd(T[50,60,100], i64[700,2])",
                              "scatter_nd(T[500,600], i64[300,1], T[300,600])",
                              "scatter_elements(T[400,500], i64[300,500], T[300,500])"});
  list.each({"f32", "f16", "bf16"}, {"gather(T[20,3], i64[9])", "scatter_elements(T[20], i64[9], T[9])"},
            oracle::Fill::special);
  list.each({"f32"},
            {"scatter_elements(T[20], i64[30], T[30]; reduction=max)",
             "scatter_elements(T[20], i64[30], T[30]; reduction=min)"},
            oracle::Fill::special);
  for (const char* text : {
           "gather(f32[7,5]/4, i32[3]/4) -> f32[3,5]/4",
           "gather(bf16[7,5], i64[3]) -> f32[3,5]",
           "gather_elements(f32[7,5], i64[3,5]) -> f16[3,5]",
           "gather_nd(i32[7,5], i64[3,1]) -> i64[3,5]",
           "scatter_nd(bf16[7,5], i64[3,1], bf16[3,5]) -> f32[7,5]",
           "one_hot(i64[6]; depth=9)",
           "one_hot(i64[6]; depth=0)",
           "one_hot(i16[6]; depth=9)",
           "one_hot(u8[6]; depth=9)",
           "one_hot(i64[6]; depth=9) -> f32[6,9]",
           "reverse_sequence(bf16[4,9], i64[4]) -> f32[4,9]",
       }) {
    list.add(text);
  }
  return list.take();
}

Checks indexing_checks() {
  return {
      .small =
          {
              "gather(T[9,4], i64[5]; dim=1)",
              "gather_elements(T[9,4], i64[5,4])",
              "gather_nd(T[9,4], i64[5,1])",
              "scatter_elements(T[9,4], i64[5,4], T[5,4])",
              "scatter_nd(T[9,4], i64[5,1], T[5,4])",
              "one_hot(i64[9], T[2]; depth=4)",
              "reverse_sequence(T[9,7], i64[9])",
          },
      .mistakes =
          {
              {"gather_elements(i8[9,9], i64[9,9])", "gather_elements(i8[9,9], i64[9,9]; dim=1)"},
          },
  };
}

}  // namespace xpuruntime::cases
