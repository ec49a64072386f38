#include <cmath>
#include <numbers>

#include "graph/passes/match.h"
#include "graph/passes/passes.h"

// gelu, silu, hard_sigmoid and hard_swish as exporters write them, and silu times a second factor.

namespace xpuruntime::native {
namespace {

constexpr double gelu_cubic = 0.044715;

/// One plus what a step makes of its one input: that input, with the steps in between; -1: it is not that.
int argument_of_one_plus(const Rewriter& program, int slot, OpId function, Steps& steps) {
  const std::size_t sum = program.maker(slot);
  if (!program.is(sum, OpId::add)) return -1;
  int argument = -1;
  either_order(program.step(sum), [&](int value, int one) {
    const std::size_t of = program.maker(value);
    if (!program.is(of, function) || !program.is_number(one, 1)) return false;
    steps.insert(steps.end(), {sum, of});
    argument = program.step(of).inputs[0];
    return true;
  });
  return argument;
}

/// x / sqrt(2)
bool is_scaled_for_erf(const Rewriter& program, int slot, int x, Steps& steps) {
  const std::size_t step = program.maker(slot);
  if (step == Rewriter::none) return false;
  const Step& at = program.step(step);
  steps.push_back(step);
  if (program.is(step, OpId::div)) return at.inputs[0] == x && program.is_number(at.inputs[1], std::numbers::sqrt2);
  return program.is(step, OpId::mul) && either_order(at, [&](int value, int scale) {
           return value == x && program.is_number(scale, std::numbers::sqrt2 / 2);
         });
}

/// 0.044715 x^3
bool is_cubic_term(const Rewriter& program, int slot, int x, Steps& steps) {
  const std::size_t product = program.maker(slot);
  if (!program.is(product, OpId::mul)) return false;
  std::vector<int> factors;
  collect_factors(program, product, steps, factors);
  if (!take(factors, [&](int factor) { return program.is_number(factor, gelu_cubic); })) return false;
  if (factors.size() == 3) return take(factors, x) && take(factors, x) && take(factors, x);
  if (factors.size() != 1) return false;
  const std::size_t cube = program.maker(factors[0]);
  if (program.is(cube, OpId::mul)) {  // a product that is read more than once is no factor of this one
    std::vector<int> inner;
    collect_factors(program, cube, steps, inner);
    return inner.size() == 3 && take(inner, x) && take(inner, x) && take(inner, x);
  }
  if (!program.is(cube, OpId::pow)) return false;
  steps.push_back(cube);
  const Step& at = program.step(cube);
  return at.inputs.size() == 2 && at.inputs[0] == x && program.is_number(at.inputs[1], 3);
}

/// sqrt(2 / pi) * (x + 0.044715 x^3)
bool is_scaled_for_tanh(const Rewriter& program, int slot, int x, Steps& steps) {
  const std::size_t product = program.maker(slot);
  if (!program.is(product, OpId::mul)) return false;
  steps.push_back(product);
  return either_order(program.step(product), [&](int sum, int scale) {
    const std::size_t inner = program.maker(sum);
    if (!program.is_number(scale, std::sqrt(2 / std::numbers::pi)) || !program.is(inner, OpId::add)) return false;
    steps.push_back(inner);
    return either_order(program.step(inner),
                        [&](int linear, int cubic) { return linear == x && is_cubic_term(program, cubic, x, steps); });
  });
}

/// 0.5 x (1 + erf(...)), or with tanh; in any order of the factors.
bool is_gelu_of(const Rewriter& program, std::vector<int> factors, int x, int sum, Steps& steps, bool& by_tanh) {
  if (!take(factors, x) || !take(factors, sum) || factors.size() != 1 || !program.is_number(factors[0], 0.5)) {
    return false;
  }
  for (const bool approximate : {false, true}) {
    Steps more = steps;
    const int argument = argument_of_one_plus(program, sum, approximate ? OpId::tanh : OpId::erf, more);
    if (argument < 0) continue;
    const bool fits =
        approximate ? is_scaled_for_tanh(program, argument, x, more) : is_scaled_for_erf(program, argument, x, more);
    if (!fits) continue;
    steps = more;
    by_tanh = approximate;
    return true;
  }
  return false;
}

bool find_gelu(Rewriter& program, std::size_t root) {
  Steps steps;
  std::vector<int> factors;
  collect_factors(program, root, steps, factors);
  if (factors.size() != 3) return false;
  for (const int x : factors) {
    for (const int sum : factors) {
      Steps all = steps;
      bool by_tanh = false;
      if (x == sum || !is_gelu_of(program, factors, x, sum, all, by_tanh)) continue;
      Step gelu{.op = OpId::gelu, .attributes = Attributes(OpId::gelu), .inputs = {x}};
      gelu.attributes.set_choice("approximate", by_tanh ? "tanh" : "none");
      gelu.outputs = program.step(root).outputs;
      return program.replace(all, root, gelu);
    }
  }
  return false;
}

/// x * sigmoid(x)
bool find_silu(Rewriter& program, std::size_t root) {
  return either_order(program.step(root), [&](int x, int gate) {
    const std::size_t sigmoid = program.maker(gate);
    if (!program.is(sigmoid, OpId::sigmoid) || program.step(sigmoid).inputs[0] != x) return false;
    const Steps steps = {root, sigmoid};
    return program.replace(
        steps, root,
        {.op = OpId::silu, .attributes = Attributes(OpId::silu), .inputs = {x}, .outputs = program.step(root).outputs});
  });
}

/// silu(x) * factor, of one shape
bool find_silu_mul(Rewriter& program, std::size_t root) {
  return either_order(program.step(root), [&](int gate, int factor) {
    const std::size_t silu = program.maker(gate);
    if (!program.is(silu, OpId::silu)) return false;
    const Steps steps = {root, silu};
    return program.replace(steps, silu,
                           {.op = OpId::silu_mul,
                            .attributes = Attributes(OpId::silu_mul),
                            .inputs = {program.step(silu).inputs[0], factor},
                            .outputs = program.step(root).outputs});
  });
}

/// x + 3, held between 0 and 6: x, with the steps in between; -1: it is not that.
int argument_of_relu6(const Rewriter& program, int slot, Steps& steps) {
  const std::size_t clip = program.maker(slot);
  if (!program.is(clip, OpId::clip)) return -1;
  const Attributes& bounds = program.step(clip).attributes;
  const std::size_t sum = program.maker(program.step(clip).inputs[0]);
  if (bounds.real("min") != 0 || bounds.real("max") != 6 || !program.is(sum, OpId::add)) return -1;
  int argument = -1;
  either_order(program.step(sum), [&](int x, int three) {
    if (!program.is_number(three, 3)) return false;
    argument = x;
    return true;
  });
  if (argument >= 0) steps.insert(steps.end(), {clip, sum});
  return argument;
}

/// What is divided by six; -1: nothing is.
int sixfold(const Rewriter& program, std::size_t root) {
  const Step& at = program.step(root);
  if (program.is(root, OpId::div)) return program.is_number(at.inputs[1], 6) ? at.inputs[0] : -1;
  int found = -1;
  either_order(at, [&](int value, int share) {
    if (!program.is_number(share, 1.0 / 6)) return false;
    found = value;
    return true;
  });
  return found;
}

/// (x relu6(x + 3)) / 6, or relu6(x + 3) / 6
bool find_divided_relu6(Rewriter& program, std::size_t root) {
  const int dividend = sixfold(program, root);
  if (dividend < 0) return false;
  Steps steps = {root};
  int x = argument_of_relu6(program, dividend, steps);
  OpId op = OpId::hard_sigmoid;
  if (const std::size_t product = program.maker(dividend); x < 0 && program.is(product, OpId::mul)) {
    op = OpId::hard_swish;
    steps.push_back(product);
    either_order(program.step(product), [&](int linear, int gate) {
      x = argument_of_relu6(program, gate, steps);
      if (x != linear) x = -1, steps.resize(2);
      return x >= 0;
    });
  }
  if (x < 0) return false;
  return program.replace(
      steps, root, {.op = op, .attributes = Attributes(op), .inputs = {x}, .outputs = program.step(root).outputs});
}

/// x hard_sigmoid(x)
bool find_hard_swish(Rewriter& program, std::size_t root) {
  return either_order(program.step(root), [&](int x, int gate) {
    const std::size_t line = program.maker(gate);
    if (!program.is(line, OpId::hard_sigmoid) || program.step(line).inputs[0] != x) return false;
    const Attributes& of = program.step(line).attributes;
    const bool is_sixth = std::fabs(of.real("alpha") - 1.0 / 6) < 1e-7 && of.real("beta") == 0.5;
    const Steps steps = {root, line};
    return is_sixth && program.replace(steps, root,
                                       {.op = OpId::hard_swish,
                                        .attributes = Attributes(OpId::hard_swish),
                                        .inputs = {x},
                                        .outputs = program.step(root).outputs});
  });
}

}  // namespace

void find_activations(Rewriter& program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if ((program.is(i, OpId::mul) || program.is(i, OpId::div)) && find_divided_relu6(program, i)) continue;
    if (program.is(i, OpId::mul) && find_hard_swish(program, i)) continue;
    if (program.is(i, OpId::mul) && !find_silu(program, i) && !find_gelu(program, i)) find_silu_mul(program, i);
  }
}

}  // namespace xpuruntime::native
