#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// Makes varied valid problems: ops of every kind, layouts, alignments, attributes, outputs, limits, devices.
class ProblemMaker {
 public:
  explicit ProblemMaker(std::uint64_t seed) : random_(seed) {}

  Problem make() {
    while (true) {
      try {
        return attempt();
      } catch (const Error&) {  // a mean of integers, say: another throw of the dice
      }
    }
  }

 private:
  using Shapes = std::vector<Dims>;

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::int64_t extent() { return chance(3) ? 0 : chance(20) ? 1 : between(1, 5000); }
  DataType dtype() { return static_cast<DataType>(between(0, data_type_count - 1)); }

  Dims any_shape(std::int64_t most) {
    Dims shape = Dims::filled(static_cast<std::size_t>(between(0, most)), 0);
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = extent();
    return shape;
  }

  // Strides of a random order of the dims, with gaps.
  TensorSpec spec(DataType type, const Dims& shape) {
    const auto alignment = static_cast<std::uint8_t>(1 << (chance(70) ? 4 : between(0, 4)));
    Dims strides = contiguous_strides(shape);
    if (chance(40)) {
      std::vector<std::size_t> order(shape.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random_);
      std::int64_t next = between(1, 2);
      for (const std::size_t i : order) {
        strides[i] = next;
        // Past 63 bits make_spec would refuse the shape anyway.
        if (__builtin_mul_overflow(next, std::max<std::int64_t>(shape[i], 1) + between(0, 1), &next)) next = 1;
      }
    }
    return make_spec(type, shape, strides, alignment);
  }

  Shapes shapes_for(OpId op) {
    const std::int64_t n = extent(), c = extent(), k = extent(), m = extent();
    if (op_info(op).rounding == Rounding::row_norm) return {{n, k}, {k}};
    switch (op) {
      case OpId::matmul:
        return chance(50) ? Shapes{{n, k}, {k, m}} : Shapes{{c, n, k}, {k, m}};
      case OpId::linear:
        return chance(50) ? Shapes{{n, k}, {m, k}} : Shapes{{n, k}, {m, k}, {m}};
      case OpId::conv2d:
        return {{n, c, between(8, 99), between(8, 99)}, {k, c, between(1, 3), between(1, 3)}};
      case OpId::conv3d:
        return {{n, c, between(8, 20), between(8, 20), 9}, {k, c, between(1, 3), 2, 3}};
      case OpId::attention:
        return {{n, 8, c, 64}, {n, 2, m, 64}, {n, 2, m, 64}};
      case OpId::max_pool2d:
      case OpId::avg_pool2d:
        return {{n, c, between(4, 99), between(4, 99)}};
      case OpId::embedding:
        return {any_shape(3), {n, k}};
      case OpId::cross_entropy:
      case OpId::nll_loss:
        return {{n, c}, {n}};
      case OpId::add:
      case OpId::mul:
        return {{n, 1}, {1, k}};
      case OpId::concat:
        return Shapes(static_cast<std::size_t>(between(1, 8)), Dims{n, k});
      default:
        return {any_shape(6)};
    }
  }

  void vary(Attributes& attributes, const AttributeSpec& spec) {
    switch (spec.kind) {
      case AttributeKind::boolean:
        attributes.set(spec.name, between(0, 1));
        return;
      case AttributeKind::integer:
        attributes.set(spec.name, between(-3, 3));
        return;
      case AttributeKind::real:
        attributes.set_real(spec.name, std::uniform_real_distribution<double>(0, 1)(random_));
        return;
      case AttributeKind::integers: {
        std::vector<std::int64_t> values(spec.length == 0 ? static_cast<std::size_t>(between(0, 2)) : spec.length);
        for (std::int64_t& value : values) value = between(0, 3);
        attributes.set_list(spec.name, values);
        return;
      }
      case AttributeKind::choice:
        attributes.set_choice(spec.name, spec.choices.substr(0, spec.choices.find('|')));
        return;
      case AttributeKind::dtype:
        attributes.set(spec.name, static_cast<std::int64_t>(dtype()));
    }
  }

  Attributes attributes_for(OpId op) {
    Attributes attributes(op);
    if (op == OpId::max_pool2d || op == OpId::avg_pool2d) attributes.parse("kernel_size", "2");
    for (const AttributeSpec& spec : op_info(op).attributes) {
      if (chance(40)) vary(attributes, spec);
    }
    return attributes;
  }

  Problem attempt() {
    const OpId op = static_cast<OpId>(between(0, static_cast<std::int64_t>(OpId::builtin_count) - 1));
    const DataType type = dtype();
    std::vector<TensorSpec> inputs;
    for (const Dims& shape : shapes_for(op)) inputs.push_back(spec(chance(80) ? type : dtype(), shape));
    const Attributes attributes = attributes_for(op);
    const Device device = {static_cast<DeviceType>(between(0, 6)), static_cast<std::uint8_t>(between(0, 255))};
    Problem problem = make_problem(op, inputs, attributes, device);
    if (chance(25)) {
      inputs.push_back(spec(chance(80) ? type : dtype(), problem.outputs[0].shape));
      problem = make_problem(op, inputs, attributes, device, Direction::backward);
    }
    if (chance(30)) {
      std::vector<TensorSpec> outputs;
      for (const TensorSpec& output : problem.outputs) outputs.push_back(spec(dtype(), output.shape));
      set_outputs(problem, outputs);
    }
    problem.limits.deterministic = chance(20);
    if (chance(20)) problem.limits.workspace_bytes = chance(20) ? 0 : random_();
    return problem;
  }

  std::mt19937_64 random_;
};

}  // namespace xpuruntime
