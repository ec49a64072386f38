#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/data_type.h"
#include "xpuruntime/core/tensor.h"

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
  builtin_count,
};

/// What an op is, for policies that speak of kinds rather than names.
enum class OpCategory : std::uint8_t {
  matrix,
  reduction,
  loss,
  normalization,
  activation,
  elementwise,
  pooling,
  lookup,
  movement
};
std::string_view to_string(OpCategory category);

enum class Direction : std::uint8_t { forward, backward };

enum class AttributeKind : std::uint8_t { boolean, integer, real, integers, choice, dtype };

/// One attribute of an op and the words it takes in Attributes. `integers` of length 0 is a list of up to eight.
struct AttributeSpec {
  std::string_view name = {};
  AttributeKind kind = AttributeKind::integer;
  std::uint8_t length = 1;
  std::int64_t default_value = 0;  // every element; for `real` the bits of a double; for `choice` an index
  std::string_view choices = {};   // "none|relu|gelu"
};

class Attributes;

/// Checks the inputs of a forward call and gives the specs of its outputs; mismatches are errors that show the shapes.
using InferOutputs = std::vector<TensorSpec> (*)(std::span<const TensorSpec> inputs, const Attributes& attributes);

/// All there is to know of one op.
struct OpInfo {
  OpId id = {};
  std::string_view name = {};
  std::string_view aliases = {};  // "MatMul|MatrixMultiply|gemm"
  OpCategory category = OpCategory::elementwise;
  std::uint8_t min_inputs = 1;
  std::uint8_t max_inputs = 1;
  std::span<const AttributeSpec> attributes = {};
  InferOutputs infer = nullptr;
  std::uint64_t differentiable = ~std::uint64_t{0};  // bit i: input i has a gradient, if it is floating
};

/// Whether backward gives a gradient for input `i`, were it of this dtype.
inline bool has_gradient(const OpInfo& info, std::size_t i, DataType dtype) {
  return is_floating(dtype) && (info.differentiable >> i & 1) != 0;
}

const OpInfo& op_info(OpId id);
inline std::string_view to_string(OpId id) { return op_info(id).name; }
/// Canonical names and aliases, in any case.
std::optional<OpId> find_op(std::string_view name);
/// Like find_op, but an unknown name is an error that lists the near ones.
OpId parse_op(std::string_view name);
/// All ops, built-in ones first, then in the order they were registered.
std::vector<OpId> all_ops();
/// Adds an op of the caller's own. The name must be new; what the info points to is copied.
OpId register_op(const OpInfo& info);

/// The attributes of one call: every attribute of the op, defaults filled in, as words that compare in place.
class Attributes {
 public:
  static constexpr std::size_t max_words = 16;

  Attributes() = default;
  explicit Attributes(OpId op);

  // Setters return *this so that calls chain. An unknown name or a wrong kind or length is an error.
  Attributes& set(std::string_view name, std::int64_t value);
  Attributes& set_real(std::string_view name, double value);
  /// One value stands for all elements of a fixed-length list.
  Attributes& set_list(std::string_view name, std::span<const std::int64_t> values);
  Attributes& set_choice(std::string_view name, std::string_view value);
  /// Reads the value as problem texts write it: "1,1", "true", "relu", "0.5", "bf16".
  Attributes& parse(std::string_view name, std::string_view value);

  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const { return integer(name) != 0; }
  double real(std::string_view name) const;
  std::vector<std::int64_t> list(std::string_view name) const;
  std::string_view choice(std::string_view name) const;
  DataType data_type(std::string_view name) const;

  OpId op() const { return op_; }
  std::span<const std::int64_t> words() const { return {words_.data(), count_}; }
  /// The op and the number of words in one number: equal tags, equally many words.
  std::uint32_t tag() const { return static_cast<std::uint32_t>(op_) << 16 | count_; }
  /// "stride=1,1 padding=1,1": only what differs from the defaults; empty if nothing does.
  std::string to_string() const;

  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  std::size_t locate(std::string_view name, AttributeKind kind, const AttributeSpec** spec) const;

  OpId op_ = {};
  std::uint16_t count_ = 0;
  std::array<std::int64_t, max_words> words_ = {};
};

}  // namespace xpuruntime
