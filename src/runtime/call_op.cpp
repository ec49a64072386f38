#include "xpuruntime/runtime/call_op.h"

#include <memory>
#include <optional>
#include <string>

#include "core/elements.h"
#include "core/forward_call.h"
#include "core/names.h"
#include "runtime/constant.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

Tensor on_device(const Tensor& made, Device device) { return Runtime::global().devices().value_on(made, device); }

}  // namespace

Tensor constant(DataType dtype, const Dims& shape, double value, Device device) {
  const Tensor out = Tensor::empty(dtype, shape);
  const StoreElement store = storer_of(dtype);
  for (std::int64_t i = 0; i < element_count(out.spec()); ++i) store(out.data(), i, value);
  return on_device(out, device);
}

namespace ops {
namespace {

/// Pointers to the tensors of a call, in place: a warm call into memory that is there allocates nothing.
class Pointers {
 public:
  static constexpr std::size_t most = 64;

  std::size_t size() const { return size_; }
  const Tensor& operator[](std::size_t i) const { return *pointers_[i]; }
  std::span<const Tensor* const> span() const { return {pointers_.data(), size_}; }
  void push_back(const Tensor* tensor) { pointers_[size_++] = tensor; }

 private:
  std::size_t size_ = 0;
  std::array<const Tensor*, most> pointers_;
};

/// One call, from operands to tensors.
class Operation {
 public:
  Operation(OpId op, Operands operands, Values values) : op_(op), info_(op_info(op)) {
    set_attributes(values);
    for (const Operand& operand : operands) add_operand(operand);
  }

  void run_into_new(std::span<Tensor> results);
  void run_into(std::span<const Tensor> outputs);

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    fail(ErrorCode::invalid_argument, "ops::" + std::string(info_.name), message);
  }
  Call call() const { return {op_, inputs_.span(), outputs_.span(), attributes_ ? &*attributes_ : nullptr}; }

  void set_attributes(Values values);
  void set_attribute(std::string_view name, const Value& value);
  void add_operand(const Operand& operand);
  void add(const Tensor* tensor);
  void add_made(const Tensor& tensor);
  void add_number(const Operand& operand);
  void fill_gap(const Tensor& next);
  const Tensor* state_of(std::size_t output) const;

  const OpId op_;
  const OpInfo& info_;
  std::optional<Attributes> attributes_ = {};
  Pointers inputs_ = {};
  Pointers outputs_ = {};
  std::size_t left_out_ = 0;  // since the last operand that was given
  std::vector<std::unique_ptr<Tensor>> constants_ = {};
};

void Operation::set_attributes(Values values) {
  if (values.size() > info_.attributes.size()) {
    refuse(std::to_string(values.size()) + " attributes, and it has " + std::to_string(info_.attributes.size()) +
           "; leave out the last ones");
  }
  if (values.size() == 0) return;
  attributes_.emplace(op_);
  for (std::size_t i = 0; i < values.size(); ++i) set_attribute(info_.attributes[i].name, values.begin()[i]);
}

void Operation::set_attribute(std::string_view name, const Value& value) {
  struct Setter {
    void operator()(bool flag) const { to.set(name, flag); }
    void operator()(std::int64_t number) const { to.set(name, number); }
    void operator()(double number) const { to.set_real(name, number); }
    void operator()(const Ints& list) const { to.set_list(name, list.values()); }
    void operator()(std::string_view choice) const { to.set_choice(name, choice); }
    void operator()(DataType dtype) const { to.set(name, static_cast<std::int64_t>(dtype)); }
    Attributes& to;
    std::string_view name;
  };
  std::visit(Setter{*attributes_, name}, value);
}

void Operation::add(const Tensor* tensor) {
  if (inputs_.size() == Pointers::most) refuse("more than 64 inputs; split the call");
  inputs_.push_back(tensor);
}

void Operation::add_operand(const Operand& operand) {
  if (operand.left_out()) {
    ++left_out_;
    return;
  }
  if (operand.is_number()) return add_number(operand);
  for (const Tensor& tensor : operand.tensors()) {
    for (; left_out_ > 0; --left_out_) fill_gap(tensor);
    add(&tensor);
  }
}

void Operation::add_made(const Tensor& tensor) { add(constants_.emplace_back(std::make_unique<Tensor>(tensor)).get()); }

bool store(const Operand& from, DataType dtype, std::byte* to) {
  if (is_floating(dtype)) return store_number(dtype, to, from.number());
  // The integer() of an unsigned one of 64 bits may be another.
  return static_cast<double>(from.integer()) == from.number() && store_number(dtype, to, from.integer());
}

// In the dtype of the first input; a fraction beside integers is f32, and so is what has a dtype of its own.
void Operation::add_number(const Operand& operand) {
  if (inputs_.size() == 0) refuse("the first input is a number; pass a tensor there");
  DataType dtype = inputs_[0].dtype();
  const bool fraction = !is_floating(dtype) && !operand.is_integer();
  if (fraction || !input_spec(info_, inputs_.size()).follows_precision) dtype = DataType::float32;
  const Tensor made = Tensor::empty(dtype, {});
  if (!store(operand, dtype, made.as<std::byte>())) {
    refuse("the number does not fit " + std::string(to_string(dtype)) + "; pass a tensor of a wider dtype");
  }
  add_made(on_device(made, inputs_[0].device()));
}

// Ops know their inputs by place. Weights that are left out before a bias are ones of its shape.
void Operation::fill_gap(const Tensor& next) {
  if (may_be_none(info_, inputs_.size())) {
    return add_made(Tensor(nullptr, no_input(), inputs_[0].device()));
  }
  const InputSpec spec = input_spec(info_, inputs_.size());
  if (inputs_.size() == 0 || spec.fill == 0 || spec.in_place != 0) {
    refuse(std::string(spec.name) + " is left out before an input that is given; give both");
  }
  add_made(constant(inputs_[0].dtype(), next.shape(), spec.fill, inputs_[0].device()));
}

/// The input that an output past the first is written over: an optional one, which the op brings up to date.
const Tensor* Operation::state_of(std::size_t output) const {
  for (std::size_t i = 0; output > 0 && i < inputs_.size(); ++i) {
    const InputSpec spec = input_spec(info_, i);
    if (spec.optional && spec.in_place == 1U << output) return &inputs_[i];
  }
  return nullptr;
}

void Operation::run_into_new(std::span<Tensor> results) {
  Runtime& runtime = Runtime::global();
  const std::vector<TensorSpec>& specs = runtime.dispatcher().output_specs(call());
  std::size_t made = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Tensor* output = state_of(i);
    if (output == nullptr && made++ < results.size()) {
      results[made - 1] = runtime.devices().allocate(specs[i], inputs_[0].device());
      output = &results[made - 1];
    }
    outputs_.push_back(output);
  }
  if (made != results.size()) {
    const std::string count = std::to_string(made);
    refuse("it has " + counted(made, "result") + " with these options, and " + std::to_string(results.size()) +
           " are taken; take all with call_all<" + count + ">");
  }
  runtime.dispatcher().dispatch(call());
}

void Operation::run_into(std::span<const Tensor> outputs) {
  if (outputs.size() > Pointers::most / 2) refuse("more than 32 outputs; pass those that the op has");
  for (const Tensor& output : outputs) outputs_.push_back(&output);
  Dispatcher& dispatcher = Runtime::global().dispatcher();
  if (state_of(outputs.size()) != nullptr) {
    const std::size_t all = dispatcher.output_specs(call()).size();
    for (std::size_t i = outputs.size(); i < all; ++i) outputs_.push_back(state_of(i));
  }
  dispatcher.dispatch(call());
}

}  // namespace

void call_new(std::span<Tensor> results, OpId op, Operands operands, Values attributes) {
  Operation(op, operands, attributes).run_into_new(results);
}

void call_out(std::span<const Tensor> outputs, OpId op, Operands operands, Values attributes) {
  Operation(op, operands, attributes).run_into(outputs);
}

}  // namespace ops
}  // namespace xpuruntime
