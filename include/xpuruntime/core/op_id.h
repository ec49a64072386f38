#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

// Kept apart and to C++17: CUDA's compiler reads it too.

namespace xpuruntime {

/// Ops that the library knows from the start. Ops registered at run time get the numbers after `builtin_count`.
enum class OpId : std::uint16_t {
  matmul,
  linear,
  conv2d,
  conv3d,
  attention,
  max_pool2d,
  max_pool3d,
  avg_pool2d,
  avg_pool3d,
  batch_norm1d,
  batch_norm2d,
  batch_norm3d,
  layer_norm,
  rms_norm,
  normalize,
  softmax,
  log_softmax,
  dropout,
  relu,
  gelu,
  silu,
  sigmoid,
  tanh,
  add,
  sub,
  mul,
  div,
  log,
  exp,
  sqrt,
  reduce_sum,
  reduce_mean,
  reduce_max,
  reduce_min,
  embedding,
  cross_entropy,
  nll_loss,
  kl_div,
  poisson_nll_loss,
  cast,
  copy,
  transpose,
  concat,
  slice,
  unscale,  // gradients back from a scaled loss, in f32, and whether any of them is not finite
  add_rms_norm,
  silu_mul,
  rope,
  kv_append,
  gather,
  gather_elements,
  gather_nd,
  scatter_elements,
  scatter_nd,
  pad,
  tile,
  flip,
  cumsum,
  arg_max,
  arg_min,
  top_k,
  one_hot,
  trilu,
  reduce_prod,
  reverse_sequence,
  quantize,
  dequantize,
  abs,
  neg,
  sign,
  floor,
  ceil,
  round,
  reciprocal,
  erf,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  softplus,
  isnan,
  isinf,
  maximum,
  minimum,
  pow,
  remainder,
  fmod,
  trunc_div,
  clip,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  logical_not,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_not,
  shift_left,
  shift_right,
  where,
  leaky_relu,
  prelu,
  elu,
  hard_sigmoid,
  hard_swish,
  builtin_count,
};

/// One op, or a few that a kernel computes.
class OpList {
 public:
  static constexpr std::size_t most = 16;

  constexpr OpList() = default;
  constexpr OpList(OpId op) : ops_{op}, size_(1) {}  // NOLINT(google-explicit-constructor)
  constexpr OpList(std::initializer_list<OpId> ops) {
    if (ops.size() > most) fail_too_many();
    for (const OpId op : ops) ops_[size_++] = op;
  }

  constexpr const OpId* begin() const { return ops_.data(); }
  constexpr const OpId* end() const { return ops_.data() + size_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool contains(OpId op) const {
    for (const OpId one : *this) {
      if (one == op) return true;
    }
    return false;
  }

  /// Those of both, which have none in common.
  constexpr OpList operator|(const OpList& other) const {
    if (size_ + other.size_ > most) fail_too_many();
    OpList both = *this;
    for (const OpId op : other) both.ops_[both.size_++] = op;
    return both;
  }

 private:
  [[noreturn]] static void fail_too_many();

  std::array<OpId, most> ops_ = {};
  std::size_t size_ = 0;
};

// Ops that a kernel of one usually computes as well.
inline constexpr OpList product_ops = {OpId::matmul, OpId::linear};
inline constexpr OpList conv_ops = {OpId::conv2d, OpId::conv3d};
inline constexpr OpList pool_ops = {OpId::max_pool2d, OpId::max_pool3d, OpId::avg_pool2d, OpId::avg_pool3d};
inline constexpr OpList batch_norm_ops = {OpId::batch_norm1d, OpId::batch_norm2d, OpId::batch_norm3d};
inline constexpr OpList row_norm_ops = {OpId::layer_norm, OpId::rms_norm};
inline constexpr OpList softmax_ops = {OpId::softmax, OpId::log_softmax};
inline constexpr OpList activation_ops = {OpId::relu, OpId::gelu, OpId::silu, OpId::sigmoid, OpId::tanh};
inline constexpr OpList function_ops = {OpId::log, OpId::exp, OpId::sqrt};
// What the C library computes for one element at a time.
inline constexpr OpList library_ops = {OpId::tan,  OpId::asin,  OpId::acos,  OpId::atan, OpId::sinh,
                                       OpId::cosh, OpId::asinh, OpId::acosh, OpId::atanh};
inline constexpr OpList comparison_ops = {OpId::equal,      OpId::not_equal, OpId::less,
                                          OpId::less_equal, OpId::greater,   OpId::greater_equal};
inline constexpr OpList logical_ops = {OpId::logical_and, OpId::logical_or, OpId::logical_xor};
inline constexpr OpList bitwise_ops = {OpId::bitwise_and, OpId::bitwise_or, OpId::bitwise_xor};
inline constexpr OpList extreme_ops = {OpId::maximum, OpId::minimum};
inline constexpr OpList reduce_ops = {OpId::reduce_sum, OpId::reduce_mean, OpId::reduce_max, OpId::reduce_min};
inline constexpr OpList class_loss_ops = {OpId::cross_entropy, OpId::nll_loss};
inline constexpr OpList pointwise_loss_ops = {OpId::kl_div, OpId::poisson_nll_loss};

}  // namespace xpuruntime
