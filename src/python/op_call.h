#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "python/graph.h"
#include "python/results.h"
#include "python/signatures.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime::python {

/// A number of Python as one element of a dtype; one that does not fit is an error.
void write_number(std::byte* memory, DataType dtype, PyObject* value, const Where& where);

/// One call of an op from Python: arguments are parsed, arrays read, attributes set, then it runs or is asked about.
/// Lives on the stack of that call. The caller keeps the arguments.
class OpCall {
 public:
  explicit OpCall(const Signature& signature) : signature_(signature), op_(signature.op) {}

  /// As Python's vectorcall has them: keywords after the positional ones, named by a tuple.
  void parse(PyObject* const* values, std::size_t count, PyObject* keywords);
  void parse(const nb::tuple& positional, const nb::dict& keywords);
  /// Reads arrays and attributes.
  void bind();

  /// The result, or a tuple of them.
  nb::object run();
  /// The gradients of the inputs that have one.
  nb::object run_backward(PyObject* grad_output);
  /// `as_run`: where no output is given, with those that the call makes in the precision of its scope.
  Problem problem(bool as_run = false);
  std::optional<DataType> precision() const { return precision_; }

  // For the signature's own functions.

  const char* function() const { return signature_.name; }
  Where where(const char* argument) const { return {signature_.name, argument}; }
  /// Null where it was not given or is None.
  PyObject* value(std::string_view parameter) const;
  /// Whether a parameter has this default, as Python prints it.
  bool has_default(std::string_view parameter, std::string_view text) const;
  /// Another object in its place, kept for the length of the call.
  void replace(std::string_view parameter, nb::object object);
  /// Before bind: the op that it is, where one function stands for several.
  void set_op(OpId op) { op_ = op; }
  OpId op() const { return op_; }
  Attributes& attributes();

  std::size_t input_count() const { return inputs_.size(); }
  const Tensor& input(std::size_t i) const { return *inputs_[i]; }
  void set_input(std::size_t i, const Tensor& tensor);
  void add_input(const Tensor& tensor);
  /// The tensor of an optional input; null where it was not given.
  const Tensor* optional_input(std::string_view parameter) const;
  /// A number or a seed where the op runs: a copy, and an error where a graph is recorded.
  void add_copied_input(const Tensor& host);
  /// Behind the results: memory that the op writes too and that is not handed out.
  void add_hidden_output(const Tensor& tensor);
  /// The tensor of an input that is written: an error where that cannot be.
  const Tensor& written_input(std::string_view parameter);
  /// An input that the caller did not give: it has no gradient to hand out.
  void mark_constant(std::size_t input) { constants_.push_back(input); }
  /// The op's first result has this dim (from the end, 1 is the last), of extent 1, and the caller's has not.
  void drop_dim_from_end(std::size_t dim) { dropped_.push_back(dim); }

 private:
  void place(std::size_t parameter, PyObject* value);
  void place_keyword(PyObject* name, PyObject* value);
  void check_given() const;
  std::size_t index_of(std::string_view parameter) const;
  void bind_array(std::size_t parameter);
  void bind_number(std::size_t parameter);
  void bind_sequence(std::size_t parameter);
  void add_none();
  void set_attribute(const Parameter& parameter, PyObject* value);
  void read_precision();
  BoundArray& new_array();
  Call call() const;
  void bind_outputs(const Call& call);
  DataType dtype_of_result(DataType out) const;
  Dims without_dropped(const Dims& shape) const;
  void make_results(const Call& call);
  void make_results(std::span<const TensorSpec> specs);
  void check_stand_ins() const;
  Tensor kernel_view(std::size_t result) const;
  void dispatch(Call& call);
  void keep_with(GraphObject& graph) const;
  nb::object hand_out();
  nb::tuple without_constants(const nb::tuple& gradients) const;

  const Signature& signature_;
  OpId op_;
  std::array<PyObject*, max_parameters> values_ = {};
  PyObject* dtype_ = nullptr;
  PyObject* out_ = nullptr;

  // Most calls have a few arrays: their memory is here, and grows elsewhere.
  static constexpr std::size_t few = 5;
  std::size_t array_count_ = 0;
  std::array<std::optional<BoundArray>, few> arrays_;  // with {} all of its memory would be zeroed
  std::vector<std::unique_ptr<BoundArray>> more_arrays_ = {};
  std::array<BoundArray*, max_parameters> by_parameter_ = {};
  std::vector<const BoundArray*> written_ = {};
  const BoundArray* first_ = nullptr;  // of the caller's arrays: results are like it

  /// A list of pointers that lies in place while it is short.
  class Pointers {
   public:
    void push_back(const Tensor* tensor);
    const Tensor*& operator[](std::size_t i) { return data()[i]; }
    const Tensor* operator[](std::size_t i) const { return more_.empty() ? few_[i] : more_[i]; }
    std::size_t size() const { return size_; }
    std::span<const Tensor* const> span() const { return {more_.empty() ? few_.data() : more_.data(), size_}; }

   private:
    const Tensor** data() { return more_.empty() ? few_.data() : more_.data(); }

    std::size_t size_ = 0;
    std::array<const Tensor*, few + 3> few_ = {};
    std::vector<const Tensor*> more_ = {};
  };

  Pointers inputs_ = {};
  Pointers outputs_ = {};
  std::optional<Attributes> attributes_ = {};
  std::optional<DataType> precision_ = {};
  std::optional<Result> result_ = {};
  std::vector<Result> more_results_ = {};
  std::vector<std::unique_ptr<Tensor>> own_tensors_ = {};
  std::vector<nb::object> kept_ = {};
  std::vector<std::size_t> dropped_ = {};
  std::vector<std::size_t> constants_ = {};
  alignas(8) std::array<std::byte, 8> number_ = {};
};

}  // namespace xpuruntime::python
