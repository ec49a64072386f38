#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/data_type.h"
#include "xpuruntime/core/op_id.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

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
  std::int64_t default_value = 0;     // every element; for `real` the bits of a double; for `choice` an index
  std::string_view choices = {};      // "none|relu|gelu"
  std::string_view note = {};         // for the documentation: "0: the kernel size"
  std::string_view python_name = {};  // where Python has another
  bool opt_in = false;                // another value than the default goes to kernels that declare it: Kernel::takes
};

/// Which numbers an input holds, so that a kernel can be tried on numbers that make sense.
enum class InputValues : std::uint8_t {
  any,
  positive,  // it is divided by, or its logarithm or root is taken
  index,     // integers: rows of a table, or classes; floats: probabilities
  count,     // integers from 0 on; floats: positive
  place,     // like an index, no two alike: something is written there
};

/// For InputSpec::in_place.
inline constexpr std::uint8_t any_output = 0xff;

class Attributes;
struct Problem;

/// One input of an op.
struct InputSpec {
  std::string_view name = {};  // Python's too
  bool optional = false;       // optional ones come last
  bool repeated = false;       // the last one: up to 64 of them
  bool or_number = false;      // Python takes a number in place of the array
  InputValues values = InputValues::any;
  std::string_view logarithm = {};  // a boolean attribute; where it is true, the input holds logarithms, of any sign
  bool gradient = true;             // backward gives its gradient, if it is floating
  bool follows_precision = true;    // it is cast to the dtype that the op is computed in, if it is floating
  std::uint8_t in_place = 0;        // bit i: output i may be written over it
  bool partly = false;              // of it, and of outputs over it, a call uses only what other inputs name
  double fill = 0;                  // the value of an optional input that is left out before one that is given
  bool opt_in = false;              // an optional input that goes to kernels that declare it: Kernel::takes
  std::int64_t (*bound)(const Problem& forward) = nullptr;  // of an index or a place: it is from 0 to this - 1
};

/// Checks the inputs of a forward call and gives the specs of its outputs; mismatches are errors that show the shapes.
using InferOutputs = std::vector<TensorSpec> (*)(std::span<const TensorSpec> inputs, const Attributes& attributes);

/// A size that rules have a word for, such as the k of a matmul.
struct SizeSpec {
  std::string_view name = {};
  AttributeKind kind = AttributeKind::integer;  // or boolean, or integers
  std::uint8_t length = 0;                      // of integers
  /// From the forward call, also where the problem is its backward. One number unless the kind is integers.
  std::vector<std::int64_t> (*read)(const Problem& forward) = nullptr;
  std::string_view summary = {};
  bool free = false;  // differs between calls of one model: batches and lengths, not the sizes of weights
};

/// On which list of automatic mixed precision an op is from the start; `category` is on none, and its category decides.
enum class AutocastSide : std::uint8_t { category, lower, higher };

/// How the rounding errors of a right kernel grow: what a kernel may differ by from the reference (tune/slack.h).
enum class Rounding : std::uint8_t {
  category,        // no analysis of its own: by what the category does
  exact,           // values are chosen or moved
  few_operations,  // relative to the result
  function,        // exp, log and the like, relative to the result
  gelu,            // relative to the input
  largest,         // relative to the largest of the results
  products,        // sums of products of inputs
  attention,
  sum,
  mean,
  row_norm,
  batch_norm,
  power_norm,
  softmax,
  class_loss,
  pointwise_loss,
  rotation,
};

/// All there is to know of one op. Everything else (texts, rules, autocast, Python, documentation) reads it here.
struct OpInfo {
  OpId id = {};
  std::string_view name = {};
  std::string_view aliases = {};  // "MatMul|MatrixMultiply|gemm"
  OpCategory category = OpCategory::elementwise;
  std::string_view summary = {};  // one sentence
  std::span<const InputSpec> inputs = {};
  // How many inputs there are follows from `inputs`, where it is given. Else they are as usual in the category.
  std::uint8_t min_inputs = 1;
  std::uint8_t max_inputs = 1;
  std::span<const AttributeSpec> attributes = {};
  InferOutputs infer = nullptr;
  std::uint8_t outputs = 1;  // that Python hands out: not what is updated in place beside them
  std::span<const SizeSpec> sizes = {};
  /// A usual call: "T[64,64], i64[64]; dim=1", with T for a dtype that is asked about. Empty: matrices of 64x64.
  std::string_view sample = {};
  Rounding rounding = Rounding::category;
  AutocastSide autocast = AutocastSide::category;
  std::string_view autocast_names = {};  // the names on that list, where they are not the op's own
  /// Python's parameters, where they are not the inputs and then the attributes with their defaults. A default may be
  /// replaced (`eps=None`, `dtype=...` for none); what has an annotation is read by a function of its own.
  std::string_view parameters = {};
  /// More functions of Python: "clone", or with parameters of its own "permute(input, dims: Sequence[int] = ())".
  std::string_view functions = {};
};

/// What input `i` is; beyond the named ones, and where none are named, as usual in the op's category.
InputSpec input_spec(const OpInfo& info, std::size_t i);
/// An input without a name, as usual in a category.
InputSpec usual_input(OpCategory category, std::size_t i);

/// Whether backward gives a gradient for input `i`, were it of this dtype.
inline bool has_gradient(const OpInfo& info, std::size_t i, DataType dtype) {
  return is_floating(dtype) && input_spec(info, i).gradient;
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
  // One integer sets all elements of a list of fixed length, and is the only one of a list of any length.
  Attributes& set(std::string_view name, std::int64_t value);
  Attributes& set_real(std::string_view name, double value);
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
  bool is_default(std::string_view name) const;

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
