#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cases.h"
#include "backends/oracle_references.h"

// Ops that arrange elements along their dims.

namespace xpuruntime::oracle {
namespace {

Answer exact(Values values) {
  Answer out;
  out.slack.assign(values.size(), 0);
  out.value = std::move(values);
  return out;
}

/// Walks from element to element, turning round or jumping at the ends.
std::int64_t inside(std::int64_t at, std::int64_t extent, std::string_view mode) {
  if (mode == "replicate") return std::clamp<std::int64_t>(at, 0, extent - 1);
  while (at < 0 || at >= extent) {
    if (mode == "wrap") {
      at += at < 0 ? extent : -extent;
    } else if (extent == 1) {
      at = 0;
    } else {
      at = at < 0 ? -at : 2 * (extent - 1) - at;
    }
  }
  return at;
}

std::vector<Answer> solve_pad(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& from = problem.inputs[0].shape;
  const Dims strides = contiguous_strides(from);
  const std::vector<std::int64_t> pads = problem.attributes.list("pads");
  const std::string_view mode = problem.attributes.choice("mode");
  Values out;
  for_each_position(problem.outputs[0].shape, [&](Position position) {
    bool outside = false;
    for (std::size_t d = 0; d < from.size(); ++d) {
      const std::size_t pair = from.size() - 1 - d;
      position[d] -= 2 * pair < pads.size() ? pads[2 * pair] : 0;
      if (position[d] >= 0 && position[d] < from[d]) continue;
      outside = outside || mode == "constant";
      if (mode != "constant") position[d] = inside(position[d], from[d], mode);
    }
    const double value = inputs.size() > 1 ? inputs[1][0] : 0;
    out.push_back(outside ? value : inputs[0][static_cast<std::size_t>(dot(position, strides))]);
  });
  return {exact(std::move(out))};
}

std::vector<Answer> solve_tile(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& from = problem.inputs[0].shape;
  const std::size_t added = problem.outputs[0].shape.size() - from.size();
  Values out;
  for_each_position(problem.outputs[0].shape, [&](const Position& position) {
    Position place = {};
    for (std::size_t d = 0; d < from.size(); ++d) place[d] = position[added + d] % from[d];
    out.push_back(inputs[0][static_cast<std::size_t>(dot(place, contiguous_strides(from)))]);
  });
  return {exact(std::move(out))};
}

std::vector<Answer> solve_flip(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::vector<std::int64_t> dims = problem.attributes.list("dims");
  if (dims.empty()) {
    for (std::int64_t d = 0; d < rank; ++d) dims.push_back(d);
  }
  std::vector<bool> turned(shape.size(), false);
  for (const std::int64_t dim : dims) turned[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)] = true;
  Values out;
  for_each_position(shape, [&](Position position) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (turned[d]) position[d] = shape[d] - 1 - position[d];
    }
    out.push_back(inputs[0][static_cast<std::size_t>(dot(position, contiguous_strides(shape)))]);
  });
  return {exact(std::move(out))};
}

std::vector<Answer> solve_trilu(const Problem& problem, const std::vector<Values>& inputs) {
  const std::size_t rank = problem.inputs[0].shape.size();
  const std::int64_t diagonal = problem.attributes.integer("diagonal");
  Values out;
  for_each_position(problem.inputs[0].shape, [&](const Position& position) {
    const std::int64_t off = position[rank - 1] - position[rank - 2];
    const bool kept = problem.attributes.boolean("upper") ? off >= diagonal : off <= diagonal;
    out.push_back(kept ? inputs[0][out.size()] : 0);
  });
  return {exact(std::move(out))};
}

std::vector<Answer> solve_cumsum(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  const bool exclusive = problem.attributes.boolean("exclusive"), reverse = problem.attributes.boolean("reverse");
  Answer out = exact(inputs[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      for (std::int64_t p = 0; p < lines.length; ++p) {
        double sum = 0, size = 0, count = 0;
        for (std::int64_t q = 0; q < lines.length; ++q) {
          const bool counts = reverse ? q > p : q < p;
          if (!counts && (q != p || exclusive)) continue;
          const double value = inputs[0][lines.index(o, i, q)];
          sum += value, size += std::fabs(value), ++count;
        }
        out.value[lines.index(o, i, p)] = sum;
        out.slack[lines.index(o, i, p)] = sum_units(count) * size;
      }
    }
  }
  return {out};
}

/// The places of a line's elements, the wanted first; of equal ones the first.
std::vector<std::size_t> in_order(const Values& line, bool largest) {
  std::vector<std::size_t> places(line.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) { return std::isnan(line[i]) ? HUGE_VAL : line[i]; };
    const bool nan_a = std::isnan(line[a]), nan_b = std::isnan(line[b]);
    if (nan_a != nan_b) return nan_a == largest;
    return largest ? key(a) > key(b) : key(a) < key(b);
  });
  return places;
}

std::vector<Answer> solve_arg(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  const bool last = problem.attributes.boolean("select_last_index");
  Values out;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Values line = lines.line(inputs[0], o, i);
      double extreme = line[0];
      for (const double value : line) {
        if (std::isnan(value)) extreme = value;
        if (problem.op == OpId::arg_max ? value > extreme : value < extreme) extreme = value;
      }
      std::size_t found = 0;
      bool any = false;
      for (std::size_t p = 0; p < line.size(); ++p) {
        const bool same = std::isnan(extreme) ? std::isnan(line[p]) : line[p] == extreme;
        if (same && (!any || last)) found = p;
        any = any || same;
      }
      out.push_back(static_cast<double>(found));
    }
  }
  return {exact(std::move(out))};
}

std::vector<Answer> solve_top_k(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  const Lines taken(problem.outputs[0].shape, problem.attributes.integer("dim"));
  Values values(static_cast<std::size_t>(taken.outer * taken.length * taken.inner)), places(values.size());
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Values line = lines.line(inputs[0], o, i);
      const auto order = in_order(line, problem.attributes.boolean("largest"));
      for (std::int64_t p = 0; p < taken.length; ++p) {
        const std::size_t place = order[static_cast<std::size_t>(p)];
        values[taken.index(o, i, p)] = line[place];
        places[taken.index(o, i, p)] = static_cast<double>(place);
      }
    }
  }
  return {exact(std::move(values)), exact(std::move(places))};
}

}  // namespace

std::span<const Reference> arranging_references() {
  static constexpr Reference rows[] = {
      {OpId::pad, solve_pad},     {OpId::tile, solve_tile},     {OpId::flip, solve_flip},
      {OpId::trilu, solve_trilu}, {OpId::cumsum, solve_cumsum}, {{OpId::arg_max, OpId::arg_min}, solve_arg},
      {OpId::top_k, solve_top_k},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime::cases {
namespace {

void add_moved(List& list) {
  list.each({"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"},
            {
                "pad(T[3,4]; pads=1,2,2,1)",
                "tile(T[3,4]; repeats=2,3)",
                "flip(T[3,4])",
                "trilu(T[4,5])",
            });
  list.each({"f32", "f16", "bf16", "f64", "i64", "i8"}, {
                                                            "pad(T[9], T[]; pads=2,3)",
                                                            "pad(T[2,3,5,4], T[1]; pads=1,0,2,1,0,1)",
                                                            "pad(T[2,3,5,4]; pads=0,0,0,0,1,2)",
                                                            "pad(T[700,1,1]; pads=0,0,0,1)",  // narrow rows
                                                            "pad(T[2,400,3], T[]; pads=2,1)",
                                                            "pad(T[600,4]; pads=1,-2)",
                                                            "pad(T[6,7]; pads=-2,3,1,-1)",
                                                            "pad(T[6,7]; pads=-5,5)",
                                                            "pad(T[0,3], T[]; pads=1,1,2,0)",
                                                            "pad(T[5]; pads=3,4 mode=reflect)",
                                                            "pad(T[4,1,3]; pads=5,9,2,1,0,3 mode=reflect)",
                                                            "pad(T[4,5]; pads=2,3,1,2 mode=replicate)",
                                                            "pad(T[4,5]; pads=7,11,1,2 mode=wrap)",
                                                            "pad(T[8,6]{1,8}, T[]; pads=1,2) -> T[8,9]{18,2}",
                                                            "pad(T[8,6]{12,2}; pads=1,2,3,1 mode=replicate)",
                                                            "pad(T[])",
                                                            "tile(T[]; repeats=3)",
                                                            "tile(T[5])",
                                                            "tile(T[3,4]; repeats=2)",
                                                            "tile(T[3,1,4]; repeats=2,5,1)",
                                                            "tile(T[4]; repeats=3,2)",
                                                            "tile(T[3,4]; repeats=0,2)",
                                                            "tile(T[8,6]{1,8}; repeats=2,1) -> T[16,6]{12,2}",
                                                            "flip(T[])",
                                                            "flip(T[9]; dims=0)",
                                                            "flip(T[3,4,5]; dims=1)",
                                                            "flip(T[3,4,5]; dims=-1,0)",
                                                            "flip(T[8,6]{1,8}; dims=0) -> T[8,6]{12,2}",
                                                            "flip(T[0,4])",
                                                            "trilu(T[5,5]; diagonal=1)",
                                                            "trilu(T[2,6,3]; diagonal=-2 upper=false)",
                                                            "trilu(T[2,3,6]; upper=false)",
                                                            "trilu(T[3,4]; diagonal=9)",
                                                            "trilu(T[3,4]; diagonal=-9)",
                                                            "trilu(T[8,6]{1,8}; upper=false) -> T[8,6]{12,2}",
                                                            "trilu(T[0,4])",
                                                        });
  list.each({"f32", "bf16"}, {"pad(T[8,30,40,50]; pads=1,1,1,1)", "pad(T[300,700]; pads=9,0,3,1 mode=reflect)",
                              "tile(T[100,300]; repeats=3,4)", "flip(T[300,400]; dims=1)", "trilu(T[2,300,300])"});
  list.each({"f32", "f16", "bf16"}, {"pad(T[20]; pads=1,1)", "flip(T[20])", "tile(T[20]; repeats=2)", "trilu(T[4,5])"},
            oracle::Fill::special);
  for (const char* text :
       {"pad(f32[7]/4; pads=1,2) -> f32[10]/4", "pad(bf16[7], f32[]; pads=1,2)", "pad(bf16[7]; pads=1,2) -> f32[10]",
        "pad(f32[7], i64[]; pads=1,2)", "tile(bf16[7]; repeats=2) -> f32[14]", "flip(bf16[7]) -> f32[7]",
        "trilu(bf16[3,4]) -> f32[3,4]"}) {
    list.add(text);
  }
}

void add_by_lines(List& list) {
  list.each_op({"arg_max", "arg_min"},
               {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8"},
               {"OP(T[7,33])", "OP(T[5,6,9]; dim=1 keepdim=true)", "OP(T[40]; select_last_index=true)"});
  list.each_op({"arg_max", "arg_min"}, {"f32", "bf16", "i64"},
               {
                   "OP(T[1])",
                   "OP(T[0,5])",
                   "OP(T[3,1000])",
                   "OP(T[200,90]; dim=0)",
                   "OP(T[3,20,130]; dim=1 select_last_index=true)",
                   "OP(T[8,6]{1,8}; dim=0)",
                   "OP(T[8,6]{12,2}) -> i64[8]{3}",
                   "OP(T[8,6]) -> i32[8]",
               });
  list.each_op({"arg_max", "arg_min"}, {"f32", "bf16"}, {"OP(T[700,600])", "OP(T[30,130,90]; dim=1)"});
  list.each_op({"arg_max", "arg_min"}, {"f32", "bf16"},
               {"OP(T[20,33])", "OP(T[20,33]; dim=0)", "OP(T[20,33]; select_last_index=true)",
                "OP(T[20,33]; dim=0 select_last_index=true)"},
               oracle::Fill::special);
  list.each({"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8"},
            {"top_k(T[5,20]; k=4)", "top_k(T[5,20]; k=4 largest=false)"});
  list.each({"f32", "bf16", "i64"}, {
                                        "top_k(T[9]; k=9)",
                                        "top_k(T[9]; k=0)",
                                        "top_k(T[9]; k=1 sorted=false)",
                                        "top_k(T[0,9]; k=2)",
                                        "top_k(T[6,5,4]; k=2 dim=1)",
                                        "top_k(T[8,6]{1,8}; k=3 dim=0) -> T[3,6]{12,2}, i64[3,6]{6,1}",
                                        "top_k(T[8,6]; k=3) -> T[8,3], i32[8,3]",
                                        "top_k(T[30,1000]; k=50)",
                                    });
  list.each({"f32", "bf16"}, {"top_k(T[9,33]; k=20)", "top_k(T[9,33]; k=20 largest=false)"}, oracle::Fill::special);
  list.each({"f64", "f32", "f16", "bf16", "i64", "i32"}, {
                                                             "cumsum(T[9])",
                                                             "cumsum(T[5,7]; dim=1)",
                                                             "cumsum(T[5,7]; exclusive=true)",
                                                             "cumsum(T[3,5,7]; dim=1 reverse=true)",
                                                             "cumsum(T[3,5,7]; dim=-1 exclusive=true reverse=true)",
                                                             "cumsum(T[0,3])",
                                                             "cumsum(T[3,0]; dim=1)",
                                                             "cumsum(T[8,6]{1,8}; dim=1) -> T[8,6]{12,2}",
                                                             "cumsum(T[4,300]; dim=1)",
                                                         });
  list.each({"f8e4m3", "f8e5m2", "i16", "i8", "u8"}, {"cumsum(T[1,5])"});
  list.each({"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8"},
            {"reduce_prod(T[2,3]; dim=1)"});
  list.each({"f64", "f32", "f16", "bf16"}, {
                                               "reduce_prod(T[])",
                                               "reduce_prod(T[9])",
                                               "reduce_prod(T[0,3]; dim=0)",
                                               "reduce_prod(T[3,5,7]; dim=0,2 keepdim=true)",
                                               "reduce_prod(T[8,6]{1,8}; dim=1) -> T[8]{2}",
                                           });
}

}  // namespace

std::vector<CaseText> arranging_cases() {
  List list;
  add_moved(list);
  add_by_lines(list);
  return list.take();
}

Checks arranging_checks() {
  return {
      .small =
          {
              "pad(T[9,4]; pads=1,2)",
              "tile(T[9,4]; repeats=2)",
              "flip(T[9,4])",
              "trilu(T[9,9])",
              "arg_max(T[9,14])",
              "arg_min(T[9,14]; dim=0)",
              "top_k(T[9,14]; k=3)",
              "cumsum(T[3,20]; dim=1)",
              "reduce_prod(T[9,3]; dim=1)",
          },
      .mistakes =
          {
              {"flip(i8[9,9]; dims=0)", "flip(i8[9,9]; dims=1)"},
              {"pad(i8[9]; pads=1,2)", "pad(i8[9]; pads=2,1)"},
              {"cumsum(f32[9,9]; dim=1)", "cumsum(f32[9,9]; dim=1 exclusive=true)"},
          },
  };
}

}  // namespace xpuruntime::cases
