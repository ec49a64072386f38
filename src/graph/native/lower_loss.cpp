#include "graph/native/lowering.h"

namespace xpuruntime::native {
namespace {

template <OpId op>
int class_loss(const NodeCall& call) {
  Attributes attributes(op);
  attributes.set_choice("reduction", call.text("reduction", "mean"));
  attributes.set("ignore_index", call.integer("ignore_index", -100));
  std::vector<int> inputs = {call[0], call[1]};
  if (call.has(2)) inputs.push_back(call[2]);
  return call.builder.call(op, inputs, &attributes);
}

Slots nll_loss(const NodeCall& call) { return {class_loss<OpId::nll_loss>(call)}; }

/// The second result is the logarithm of the probabilities.
Slots cross_entropy(const NodeCall& call) {
  Slots results = {class_loss<OpId::cross_entropy>(call)};
  if (call.results() < 2) return results;
  Attributes attributes(OpId::log_softmax);
  attributes.set("dim", 1);
  results.push_back(call.builder.call(OpId::log_softmax, {call[0]}, &attributes));
  return results;
}

constexpr Operator loss_rows[] = {
    {"NegativeLogLikelihoodLoss", nll_loss},
    {"SoftmaxCrossEntropyLoss", cross_entropy},
};

}  // namespace

std::span<const Operator> loss_operators() { return loss_rows; }

}  // namespace xpuruntime::native
