#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/native/builder.h"
#include "graph/native/deadline.h"

namespace xpuruntime::native {

/// A node of a model whose inputs are in a program already.
class NodeCall {
 public:
  NodeCall(const ModelNode& node, std::int64_t opset, std::vector<int> inputs, Builder& builder)
      : builder(builder), opset(opset), node_(node), inputs_(std::move(inputs)) {}

  const ModelNode& node() const { return node_; }
  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t input) const { return input < inputs_.size() && inputs_[input] >= 0; }
  /// The slot of an input that must be there.
  int operator[](std::size_t input) const;
  std::span<const int> inputs() const { return inputs_; }
  const Dims& shape(std::size_t input) const { return builder.shape((*this)[input]); }
  DataType dtype(std::size_t input) const { return builder.spec((*this)[input]).dtype; }
  /// How many results are asked for; later ones are left out.
  std::size_t results() const;

  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::optional<std::vector<std::int64_t>> list(std::string_view name) const;
  const ModelAttribute* attribute(std::string_view name) const;

  /// Fails with NeedsValues where an input is only known in a run.
  void need_constant(std::size_t input) const;
  /// The one number of an input, cut off where it is floating, which must be known when shapes are.
  std::int64_t number(std::size_t input) const;
  /// The numbers of an integer input, which must be known when shapes are.
  std::vector<std::int64_t> values(std::size_t input) const;
  /// The same of an input, or of an attribute in older opsets.
  std::optional<std::vector<std::int64_t>> values_or_list(std::size_t input, std::string_view name) const;
  /// Counted from either end, as one counted from the front.
  std::size_t axis(std::int64_t axis, std::size_t rank) const;

  /// Of values that do not fit each other or their input.
  [[noreturn]] void wrong(const std::string& message) const;
  /// Of what is too large.
  [[noreturn]] void refuse(const std::string& message) const;
  /// Of what ONNX allows and is not built: another engine may have it.
  [[noreturn]] void lacks(const std::string& message) const;

  Builder& builder;
  const std::int64_t opset;

 private:
  const ModelNode& node_;
  std::vector<int> inputs_;
};

using Slots = std::vector<int>;
/// Puts what a node does into the program, and gives its results.
using Lower = Slots (*)(const NodeCall& call);

struct Operator {
  std::string_view name = {};
  Lower lower = nullptr;
};

// The families, each a file.
std::span<const Operator> arithmetic_operators();
std::span<const Operator> activation_operators();
std::span<const Operator> product_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> logic_operators();
std::span<const Operator> window_operators();
std::span<const Operator> transposed_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> quantized_operators();
/// Of the domain com.microsoft.
std::span<const Operator> contrib_operators();
std::span<const Operator> norm_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> movement_operators();
std::span<const Operator> pad_operators();
std::span<const Operator> indexing_operators();
std::span<const Operator> choosing_operators();
std::span<const Operator> selecting_operators();
std::span<const Operator> patch_operators();
std::span<const Operator> sampling_operators();
std::span<const Operator> spectrum_operators();
std::span<const Operator> sequence_operators();
std::span<const Operator> einsum_operators();

/// Refuses inputs of types that ONNX does not let its operator have together.
void check_types(const NodeCall& call);
/// Null: there is none.
const Operator* find_operator(const ModelNode& node);
/// If: its condition is known before a run, and the branch that it names becomes part of the program.
inline bool is_branch(const ModelNode& node) { return node.domain.empty() && node.op == "If"; }
/// "Conv", "com.microsoft::Gelu"
std::string operator_name(const ModelNode& node);

/// The inputs whose contents shapes may depend on, on the host; nothing for the others. Or none at all.
using Values = std::span<const std::optional<Tensor>>;

/// A shape depends on what is in the model's inputs.
class NeedsValues : public Error {
 public:
  using Error::Error;
  std::size_t node = 0;  // of the graph, which asks for it
};

/// Whether the model's inputs determine all shapes before a run: they are floats, whose values shape nothing, of fixed
/// shapes. Where they are not, exporters write the sizes of their example as those of outputs.
bool fixes_shapes(const Model& model);
/// Refuses a shape of another rank than the model declares, and if `all_fixed` of other sizes.
void check_declared_shape(const ModelValue& output, const Dims& computed, bool all_fixed);

/// A model's program for inputs of these specs. Fails with NeedsValues where `values` are not enough.
Program compile(const Model& model, std::span<const TensorSpec> inputs, Values values, Builder builder,
                const PassContext& passes, const Deadline& deadline);

}  // namespace xpuruntime::native
