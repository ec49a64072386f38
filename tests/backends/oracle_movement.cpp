#include <algorithm>

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
