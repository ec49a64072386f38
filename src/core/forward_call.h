#pragma once

#include <span>
#include <string>
#include <string_view>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// One forward call under check. Its refusals all read alike: "matmul(f32[2,3], f32[4,5]): why; what to do".
class ForwardCall {
 public:
  /// The number of inputs is checked here, so that the rules may index what the op's row promises.
  ForwardCall(std::span<const TensorSpec> inputs, const Attributes& attributes);

  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t input) const { return has_input(inputs_, input); }
  const TensorSpec& operator[](std::size_t i) const { return inputs_[i]; }
  const Dims& shape(std::size_t i) const { return inputs_[i].shape; }
  std::span<const TensorSpec> inputs() const { return inputs_; }
  const Attributes& attributes() const { return attributes_; }

  [[noreturn]] void refuse(const std::string& why_and_what_to_do) const;

  void need_rank(std::size_t input, std::size_t rank, std::string_view layout) const;
  void need_floating(std::size_t input) const;
  void need_numeric(std::size_t input) const;
  /// Index types: 64 or 32 bits, as PyTorch takes them.
  void need_index(std::size_t input) const;
  void need_shape(std::size_t input, const Dims& shape, std::string_view what) const;
  /// An axis counted from either end, as one counted from the front.
  std::size_t axis(std::int64_t dim, std::size_t rank) const;
  Dims broadcast(const Dims& a, const Dims& b) const;

 private:
  std::span<const TensorSpec> inputs_;
  const Attributes& attributes_;
};

/// "(f32[2,3], f32[3,4])"
std::string list_text(std::span<const TensorSpec> specs);
/// The same of an op's inputs, where `none` may stand among them.
std::string list_text(const OpInfo& info, std::span<const TensorSpec> inputs);
/// Whether `none` may stand at place `i` of an op's inputs.
bool may_be_none(const OpInfo& info, std::size_t i);
/// Of a forward call: as many inputs as the op takes, none of them missing that must be there.
void check_input_count(const OpInfo& info, std::span<const TensorSpec> inputs);

/// The narrowest type that holds all of them without loss. Integers are ignored next to floats.
DataType promote(std::span<const TensorSpec> specs);
/// What products of these types are summed in: 8-bit integers give i32, 8-bit floats f32.
DataType product_dtype(std::span<const TensorSpec> specs);

}  // namespace xpuruntime
