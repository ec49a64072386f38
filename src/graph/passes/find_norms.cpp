#include "graph/passes/match.h"
#include "graph/passes/passes.h"

// layer_norm and rms_norm as exporters write them, first without their weights, which the products and sums after them
// then become.

namespace xpuruntime::native {
namespace {

/// What a root is taken of: the mean of squares and eps.
struct Deviation {
  int squared = -1;  // what is squared
  double eps = 0;
  std::size_t dims = 0;
};

/// sqrt(mean(x * x) + eps)
std::optional<Deviation> deviation_of(const Rewriter& program, int slot, Steps& steps) {
  const std::size_t root = program.maker(slot);
  if (!program.is(root, OpId::sqrt)) return {};
  const std::size_t sum = program.maker(program.step(root).inputs[0]);
  if (!program.is(sum, OpId::add)) return {};
  std::optional<Deviation> found;
  either_order(program.step(sum), [&](int mean, int eps) {
    const std::size_t reduced = program.maker(mean);
    const auto number = program.number(eps);
    if (!program.is(reduced, OpId::reduce_mean) || !number || *number < 0) return false;
    const std::size_t square = program.maker(program.step(reduced).inputs[0]);
    const std::size_t dims = reduced_last_dims(program, reduced);
    if (!program.is(square, OpId::mul) || dims == 0) return false;
    const Step& at = program.step(square);
    if (at.inputs[0] != at.inputs[1]) return false;
    steps.insert(steps.end(), {root, sum, reduced, square});
    found = Deviation{at.inputs[0], *number, dims};
    return true;
  });
  return found;
}

/// x over its deviation, or times its inverse; x is `Deviation::squared`.
std::optional<Deviation> normalized_by(const Rewriter& program, std::size_t root, Steps& steps) {
  steps = {root};
  const Step& at = program.step(root);
  if (program.is(root, OpId::div)) {
    const auto found = deviation_of(program, at.inputs[1], steps);
    return found && found->squared == at.inputs[0] ? found : std::nullopt;
  }
  std::optional<Deviation> found;
  either_order(at, [&](int x, int inverse) {
    const std::size_t quotient = program.maker(inverse);
    if (!program.is(quotient, OpId::div) || !program.is_number(program.step(quotient).inputs[0], 1)) return false;
    Steps more = {root, quotient};
    found = deviation_of(program, program.step(quotient).inputs[1], more);
    if (found && found->squared == x) steps = more;
    return found && found->squared == x;
  });
  return found && steps.size() > 1 ? found : std::nullopt;
}

/// x - mean(x) over the last dims.
int centred_input(const Rewriter& program, int slot, std::size_t dims, Steps& steps) {
  const std::size_t difference = program.maker(slot);
  if (!program.is(difference, OpId::sub)) return -1;
  const Step& at = program.step(difference);
  const std::size_t mean = program.maker(at.inputs[1]);
  if (!program.is(mean, OpId::reduce_mean) || program.step(mean).inputs[0] != at.inputs[0]) return -1;
  if (reduced_last_dims(program, mean) != dims) return -1;
  steps.insert(steps.end(), {difference, mean});
  return at.inputs[0];
}

bool find_plain_norm(Rewriter& program, std::size_t root) {
  Steps steps;
  const auto found = normalized_by(program, root, steps);
  if (!found) return false;
  const int x = centred_input(program, found->squared, found->dims, steps);
  if (x < 0 && found->dims != 1) return false;  // rms_norm is over the last dim
  const OpId op = x < 0 ? OpId::rms_norm : OpId::layer_norm;
  Step norm{.op = op, .attributes = Attributes(op), .inputs = {x < 0 ? found->squared : x}};
  norm.attributes.set_real("eps", found->eps);
  if (x >= 0) norm.attributes.set("normalized_rank", static_cast<std::int64_t>(found->dims));
  norm.outputs = program.step(root).outputs;
  return program.replace(steps, root, norm);
}

/// A product after a norm is its weight, a sum after that its bias.
bool add_input(Rewriter& program, std::size_t root, std::size_t inputs, std::initializer_list<OpId> norms) {
  return either_order(program.step(root), [&](int normed, int weight) {
    const std::size_t norm = program.maker(normed);
    const auto is_norm = [&](OpId op) { return program.is(norm, op); };
    if (!std::any_of(norms.begin(), norms.end(), is_norm) || program.step(norm).inputs.size() != inputs) return false;
    Step with = program.step(norm);
    const Dims& shape = program.shape(with.inputs[0]);
    const auto dims =
        with.op == OpId::layer_norm ? static_cast<std::size_t>(with.attributes.integer("normalized_rank")) : 1;
    const int whole = with_shape(program, weight, Dims(std::span(shape.end() - dims, dims)));
    if (whole < 0) return false;
    with.inputs.push_back(whole);
    with.outputs = program.step(root).outputs;
    const Steps steps = {norm, root};
    return program.replace(steps, norm, with);
  });
}

}  // namespace

void find_norms(Rewriter& program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program.is(i, OpId::div)) find_plain_norm(program, i);
    if (program.is(i, OpId::mul) && !find_plain_norm(program, i)) {
      add_input(program, i, 1, {OpId::layer_norm, OpId::rms_norm});
    }
    if (program.is(i, OpId::add)) add_input(program, i, 2, {OpId::layer_norm});
  }
}

}  // namespace xpuruntime::native
