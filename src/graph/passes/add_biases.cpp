#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "graph/passes/products.h"

namespace xpuruntime::native {
namespace {

/// A matrix under its two dims in the other order: linear wants [out, in].
int turned(Rewriter& program, int slot) {
  const TensorSpec from = program.spec(slot);
  const Dims &shape = from.shape, &strides = from.strides;
  return program.add_view(slot, make_spec(from.dtype, {shape[1], shape[0]}, {strides[1], strides[0]}, from.alignment));
}

bool is_bias(const Rewriter& program, int slot, std::int64_t features) {
  return program.shape(slot).size() == 1 && program.shape(slot)[0] == features;
}

bool join_bias(Rewriter& program, std::size_t root) {
  return either_order(program.step(root), [&](int product, int bias) {
    const std::size_t maker = program.maker(product);
    if (!program.is(maker, OpId::matmul) && !program.is(maker, OpId::linear)) return false;
    const std::int64_t features = program.shape(product).empty() ? 0 : program.shape(product).back();
    const int line = with_shape(program, bias, {features});
    std::optional<Step> with = line < 0 ? std::nullopt : as_linear(program, maker);
    if (!with || with->inputs.size() != 2 || !with->attributes.is_default("activation")) return false;
    with->inputs.push_back(line);
    with->outputs = program.step(root).outputs;
    const Steps steps = {maker, root};
    return program.replace(steps, maker, *with);
  });
}

}  // namespace

std::optional<Step> as_linear(Rewriter& program, std::size_t step) {
  const Step from = program.step(step);
  if (from.op == OpId::linear) return from;
  if (from.op != OpId::matmul || from.inputs.size() > 3 || program.shape(from.inputs[1]).size() != 2) return {};
  const Attributes& of = from.attributes;
  if (of.boolean("transpose_a") || !of.is_default("alpha") || !of.is_default("beta")) return {};
  const std::int64_t features = program.shape(from.outputs[0]).empty() ? 0 : program.shape(from.outputs[0]).back();
  if (from.inputs.size() == 3 && !is_bias(program, from.inputs[2], features)) return {};
  Step with{.op = OpId::linear, .attributes = Attributes(OpId::linear), .inputs = from.inputs, .outputs = from.outputs};
  if (!of.boolean("transpose_b")) with.inputs[1] = turned(program, from.inputs[1]);
  return with;
}

void add_biases(Rewriter& program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program.is(i, OpId::add)) join_bias(program, i);
  }
}

}  // namespace xpuruntime::native
