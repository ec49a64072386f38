#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "xpuruntime/core/op.h"
#include "xpuruntime/core/tensor.h"

// What the functions of ops.h are made of. They also call ops that have no function there, such as a plugin's.

namespace xpuruntime::ops {

/// The value of an attribute that is a list. One integer sets all elements of a list of fixed length.
class Ints {
 public:
  Ints() = default;
  Ints(std::int64_t value) : values_{value} {}
  Ints(std::initializer_list<std::int64_t> values) : values_(values) {}
  Ints(const Dims& values) : values_(values) {}

  std::span<const std::int64_t> values() const { return {values_.data(), values_.size()}; }

 private:
  Dims values_ = {};
};

/// An input: a tensor, a list of them, or a number in the place of one. A null pointer is an input that is left out.
/// A number has the dtype of the tensor next to it (f32 for a fraction next to integers) and is refused if it does not
/// fit: integers are exact, and of floats under 32 bits only rounding may be lost.
/// For the length of a call: it points to the caller's tensors.
class Operand {
 public:
  Operand(const Tensor& tensor) : tensors_(&tensor, 1) {}
  Operand(const Tensor* tensor) : tensors_(tensor, tensor == nullptr ? 0 : 1), left_out_(tensor == nullptr) {}
  Operand(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> Operand(Number number)
      : number_(static_cast<double>(number)), kind_(std::is_integral_v<Number> ? Kind::integer : Kind::real) {
    if constexpr (std::is_integral_v<Number>) integer_ = static_cast<std::int64_t>(number);
  }

  std::span<const Tensor> tensors() const { return tensors_; }
  bool left_out() const { return left_out_; }
  bool is_number() const { return kind_ != Kind::tensors; }
  bool is_integer() const { return kind_ == Kind::integer; }
  double number() const { return number_; }
  /// The exact value, where is_integer() and it fits 64 bits.
  std::int64_t integer() const { return integer_; }

 private:
  enum class Kind : std::uint8_t { tensors, integer, real };

  std::span<const Tensor> tensors_ = {};
  double number_ = 0;
  std::int64_t integer_ = 0;
  Kind kind_ = Kind::tensors;
  bool left_out_ = false;
};

using Value = std::variant<bool, std::int64_t, double, Ints, std::string_view, DataType>;
using Operands = std::initializer_list<Operand>;
using Values = std::initializer_list<Value>;

// Operands and attributes are in the order of the op's row; attributes past the last one given keep their defaults. The
// call goes through Runtime::global() and runs on the tensors' device and its current stream. Running statistics of a
// batch norm that is given them in training are updated in place, as in PyTorch.

/// Into new tensors, as many as `results` has.
void call_new(std::span<Tensor> results, OpId op, Operands operands, Values attributes = {});
/// Into memory of the caller's.
void call_out(std::span<const Tensor> outputs, OpId op, Operands operands, Values attributes = {});

inline Tensor call(OpId op, Operands operands, Values attributes = {}) {
  Tensor result;
  call_new({&result, 1}, op, operands, attributes);
  return result;
}

template <std::size_t count>
std::array<Tensor, count> call_all(OpId op, Operands operands, Values attributes = {}) {
  std::array<Tensor, count> results;
  call_new(results, op, operands, attributes);
  return results;
}

}  // namespace xpuruntime::ops
