#include "graph/native/lowering.h"
#include "graph/native/quantized.h"

namespace xpuruntime::native {
namespace {

Slots matmul(const NodeCall& call) {
  if (const auto quantized = matmul_of_codes(call, false, -1)) return {*quantized};
  return {call.builder.call(OpId::matmul, {call[0], call[1]})};
}

bool is_one(double value) { return value == 1; }

/// alpha A B + beta C; a linear layer where it is one.
Slots gemm(const NodeCall& call) {
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  const bool flip_a = call.integer("transA", 0) != 0, flip_b = call.integer("transB", 0) != 0;
  const bool has_c = call.has(2) && beta != 0;
  const bool is_bias = !has_c || (is_one(beta) && call.shape(2).size() == 1 && call.shape(1).size() == 2 &&
                                  call.shape(2)[0] == call.shape(1)[0]);
  if (is_one(alpha) && !flip_a && is_bias) {
    if (const auto quantized = matmul_of_codes(call, flip_b, has_c ? call[2] : -1)) return {*quantized};
  }
  if (is_one(alpha) && !flip_a && flip_b && is_bias) {
    if (has_c) return {call.builder.call(OpId::linear, {call[0], call[1], call[2]})};
    return {call.builder.call(OpId::linear, {call[0], call[1]})};
  }
  Attributes attributes(OpId::matmul);
  attributes.set("transpose_a", flip_a).set("transpose_b", flip_b);
  if (!is_one(alpha)) attributes.set_real("alpha", alpha);
  if (!has_c) return {call.builder.call(OpId::matmul, {call[0], call[1]}, &attributes)};
  if (!is_one(beta)) attributes.set_real("beta", beta);
  return {call.builder.call(OpId::matmul, {call[0], call[1], call[2]}, &attributes)};
}

constexpr Operator product_rows[] = {{"MatMul", matmul}, {"Gemm", gemm}};

}  // namespace

std::span<const Operator> product_operators() { return product_rows; }

}  // namespace xpuruntime::native
