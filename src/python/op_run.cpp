// The second half of a call from Python: results are made, the op runs without the GIL, results are handed out.

#include <nanobind/stl/string.h>

#include <algorithm>

#include "python/errors.h"
#include "python/gil.h"
#include "python/kernels.h"
#include "python/op_call.h"
#include "python/scopes.h"
#include "python/types.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

/// Packages that we reach through capsules do not know our stream: what is queued there is waited for.
void wait_for(const BoundArray& array) {
  const Device device = array.tensor().device();
  if (device.type == DeviceType::cpu || array.type().kind != ArrayKind::dlpack) return;
  const Status waited = Runtime::global().devices().driver(device).synchronize(device.index, current_stream(device));
  if (!waited.ok()) fail(waited.code(), "ops", waited.message());
}

std::vector<nb::object> sequence_of(PyObject* out, std::size_t count, const char* function) {
  const nb::object elements = nb::steal(PySequence_Tuple(out));
  PyErr_Clear();
  if (!elements.is_valid() || PyTuple_Size(elements.ptr()) != static_cast<Py_ssize_t>(count)) {
    raise_type_error("[" + std::string(function) + "] out is " + a_python_type(out) + "; pass a tuple of " +
                     std::to_string(count) + " arrays");
  }
  std::vector<nb::object> out_arrays;
  for (const nb::handle element : nb::iter(elements)) out_arrays.push_back(nb::borrow(element));
  return out_arrays;
}

/// What would be lost without a word is refused: who wants that calls cast.
void check_out(OpId op, DataType result, DataType out, const Where& where) {
  const auto refuse = [&](const std::string& why) { where.fail(ErrorCode::invalid_argument, why); };
  if (op == OpId::cast && out != result) {
    refuse("it is " + std::string(to_string(out)) + " and the dtype asked for " + std::string(to_string(result)) +
           "; pass an output of that one");
  }
  if (is_floating(result) && !is_floating(out)) {
    refuse("the result is floating and this output is not; pass a floating one, or call cast on the result");
  }
  if (out == DataType::boolean && result != DataType::boolean) {
    refuse("the result is " + std::string(to_string(result)) + " and this output bool; pass one of integers");
  }
}

void check_shape(const Dims& own, const Dims& wanted, const Where& where) {
  if (own == wanted) return;
  where.fail(ErrorCode::invalid_argument,
             "its shape is " + to_string(own) + "; give one of the result's shape " + to_string(wanted));
}

}  // namespace

void OpCall::Pointers::push_back(const Tensor* tensor) {
  if (size_ < few_.size() && more_.empty()) {
    few_[size_++] = tensor;
    return;
  }
  if (more_.empty()) more_.assign(few_.begin(), few_.end());
  more_.push_back(tensor);
  ++size_;
}

void OpCall::set_input(std::size_t i, const Tensor& tensor) {
  inputs_[i] = own_tensors_.emplace_back(std::make_unique<Tensor>(tensor)).get();
}

void OpCall::add_input(const Tensor& tensor) {
  inputs_.push_back(own_tensors_.emplace_back(std::make_unique<Tensor>(tensor)).get());
}

void OpCall::add_copied_input(const Tensor& host) {
  const WorkStream stream(*first_);
  add_input(Runtime::global().devices().value_on(host, input(0).device()));
}

const Tensor* OpCall::optional_input(std::string_view parameter) const {
  const BoundArray* array = by_parameter_[index_of(parameter)];
  return array == nullptr ? nullptr : &array->tensor();
}

void OpCall::add_hidden_output(const Tensor& tensor) {
  outputs_.push_back(own_tensors_.emplace_back(std::make_unique<Tensor>(tensor)).get());
}

const Tensor& OpCall::written_input(std::string_view parameter) {
  const std::size_t index = index_of(parameter);
  BoundArray writable;
  writable.bind(values_[index], Access::write, where(signature_.parameters[index].name));
  if (writable.stand_in().is_valid()) {
    where(signature_.parameters[index].name)
        .fail(ErrorCode::invalid_argument,
              "it is written in place, and its strides are negative or its elements misaligned; pass a copy of it");
  }
  return written_.emplace_back(by_parameter_[index])->tensor();
}

Call OpCall::call() const {
  return {op_, inputs_.span(), {}, attributes_ ? &*attributes_ : nullptr, Direction::forward, precision_};
}

Problem OpCall::problem(bool as_run) {
  const auto specs_of = [](const Pointers& tensors) {
    std::vector<TensorSpec> specs;
    for (const Tensor* tensor : tensors.span()) specs.push_back(tensor->spec());
    return specs;
  };
  const Device device = input(0).device();
  Problem problem = make_problem(op_, specs_of(inputs_), attributes_ ? *attributes_ : Attributes(op_), device);
  if (out_ != nullptr && out_ != Py_None) {
    bind_outputs(call());
    set_outputs(problem, specs_of(outputs_));
  } else if (as_run) {
    const WithoutGil released;
    set_outputs(problem, Runtime::global().dispatcher().output_specs(call()));
  }
  return problem;
}

// Copies of the specs: making an array may run any code of Python's, another call of an op among it. To decide, the GIL
// is let go: another thread may be deciding the same, with a rule in Python.
void OpCall::make_results(const Call& call) {
  Dispatcher& dispatcher = Runtime::global().dispatcher();
  const std::vector<TensorSpec>* known = dispatcher.known_output_specs(call);
  if (known != nullptr && known->size() == 1) [[likely]] {
    const TensorSpec only = known->front();
    return make_results({&only, 1});
  }
  std::vector<TensorSpec> specs;
  {
    const WorkStream stream(*first_);
    const WithoutGil released;
    specs = dispatcher.output_specs(call);
  }
  make_results(specs);
}

void OpCall::make_results(std::span<const TensorSpec> specs) {
  const std::size_t visible = specs.size() - outputs_.size();
  Pointers hidden = outputs_;
  outputs_ = {};
  const bool given = out_ != nullptr && out_ != Py_None;
  std::vector<nb::object> outs;
  if (given && visible != 1) outs = sequence_of(out_, visible, function());
  more_results_.resize(visible > 1 ? visible - 1 : 0);
  for (std::size_t i = 0; i < visible; ++i) {
    Result& result = i == 0 ? result_.emplace() : more_results_[i - 1];
    if (given) {
      result.use(visible == 1 ? out_ : outs[i].ptr(), where("out"));
      check_out(op_, specs[i].dtype, result.tensor().dtype(), where("out"));
      if (!dropped_.empty()) check_shape(result.tensor().shape(), without_dropped(specs[i].shape), where("out"));
    } else if (dropped_.empty()) {
      result.make(*first_, specs[i], input(0).device());
    } else {
      result.make(*first_, make_spec(specs[i].dtype, without_dropped(specs[i].shape)), input(0).device());
    }
    if (dropped_.empty()) {
      outputs_.push_back(&result.tensor());
    } else {
      add_hidden_output(kernel_view(i));
    }
  }
  for (const Tensor* tensor : hidden.span()) outputs_.push_back(tensor);
  if (given) check_stand_ins();
}

// What is computed elsewhere is copied into its array after the call, one output after the other: no element may be
// written twice. The dispatcher sees to all that is written in place.
void OpCall::check_stand_ins() const {
  std::vector<const BoundArray*> outs = {&result_->bound()};
  for (const Result& result : more_results_) outs.push_back(&result.bound());
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (outs[i]->is_copy() && overlaps_itself(outs[i]->region())) {
      where("out").fail(ErrorCode::invalid_argument, "its elements overlap; pass an array of its own");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!outs[i]->is_copy() && !outs[j]->is_copy()) continue;
      if (!share_bytes(outs[i]->region(), outs[j]->region())) continue;
      where("out").fail(ErrorCode::invalid_argument, "output " + std::to_string(i) + " overlaps output " +
                                                         std::to_string(j) + "; pass arrays that share no memory");
    }
  }
}

Dims OpCall::without_dropped(const Dims& shape) const {
  std::vector<std::int64_t> extents(shape.begin(), shape.end());
  for (const std::size_t dim : dropped_) extents.erase(extents.end() - static_cast<std::ptrdiff_t>(dim));
  return Dims(extents);
}

// The result as the kernel has it: with the dims of extent 1 that the caller does not see. Put in from the last removed
// to the first, each stands again where it was.
Tensor OpCall::kernel_view(std::size_t result) const {
  const Tensor& seen = result == 0 ? result_->tensor() : more_results_[result - 1].tensor();
  std::vector<std::int64_t> extents(seen.shape().begin(), seen.shape().end());
  std::vector<std::int64_t> strides(seen.strides().begin(), seen.strides().end());
  for (auto dim = dropped_.rbegin(); dim != dropped_.rend(); ++dim) {
    const auto before = static_cast<std::ptrdiff_t>(*dim) - 1;
    extents.insert(extents.end() - before, 1);
    strides.insert(strides.end() - before, 1);
  }
  return Tensor(seen.data(), make_spec(seen.dtype(), Dims(extents), Dims(strides)), seen.device(), seen.byte_offset());
}

void OpCall::dispatch(Call& call) {
  call.outputs = outputs_.span();
  GraphObject* const graph = GraphObject::recording(input(0).device());
  const WorkStream stream(*first_);
  try {
    const WithoutGil released;
    Runtime::global().dispatcher().dispatch(call);
    if (graph == nullptr) wait_for(*first_);
  } catch (const Error& error) {
    raise_with_cause(error);
  }
  if (python_kernels_in_use()) take_raised();  // another kernel has taken over
  if (graph != nullptr) [[unlikely]]
    keep_with(*graph);
}

/// Tensors on arrays of other packages do not own their memory.
void OpCall::keep_with(GraphObject& graph) const {
  for (std::size_t i = 0; i < std::min(array_count_, few); ++i) graph.keep(*arrays_[i]);
  for (const auto& array : more_arrays_) graph.keep(*array);
  if (result_ && result_->array().is_valid()) graph.keep(result_->array());
  for (const Result& result : more_results_) {
    if (result.array().is_valid()) graph.keep(result.array());
  }
}

nb::object OpCall::hand_out() {
  for (const BoundArray* array : written_) array->note_write();
  if (more_results_.empty()) return result_->finish();
  nb::list results;
  results.append(result_->finish());
  for (Result& result : more_results_) results.append(result.finish());
  return nb::tuple(results);
}

void OpCall::bind_outputs(const Call& call) {
  const bool one = out_ != nullptr && out_ != Py_None && PyTuple_Check(out_) == 0 && signature_.outputs == 1;
  if (one && outputs_.size() == 0 && dropped_.empty()) [[likely]] {
    result_.emplace().use(out_, where("out"));
    const DataType out = result_->tensor().dtype();
    check_out(op_, dtype_of_result(out), out, where("out"));
    outputs_.push_back(&result_->tensor());
    if (result_->bound().is_copy()) check_stand_ins();
  } else {
    make_results(call);
  }
}

// What the result would be without `out`, as far as it decides which `out` may be given. Ops that give integers or
// booleans of floats are asked where it does.
DataType OpCall::dtype_of_result(DataType out) const {
  if (op_ == OpId::cast) return static_cast<DataType>(attributes_->integer("dtype"));
  if (!is_floating(out)) {
    std::vector<TensorSpec> specs;
    for (const Tensor* tensor : inputs_.span()) specs.push_back(tensor->spec());
    return make_problem(op_, specs, attributes_ ? *attributes_ : Attributes(op_), input(0).device()).outputs[0].dtype;
  }
  for (const Tensor* tensor : inputs_.span()) {
    if (is_floating(tensor->dtype())) return tensor->dtype();
  }
  return input(0).dtype();
}

nb::object OpCall::run() {
  sync_scope();
  Call call = this->call();
  bind_outputs(call);
  dispatch(call);
  return hand_out();
}

nb::object OpCall::run_backward(PyObject* grad_output) {
  if (outputs_.size() != 0 || !dropped_.empty()) {
    fail(ErrorCode::not_supported, "backward",
         std::string(function()) + " with these arguments has no backward; see the op's page for what has");
  }
  sync_scope();
  BoundArray& gradient = new_array();
  gradient.bind(grad_output, Access::read, where("grad_output"));
  inputs_.push_back(&gradient.tensor());
  Call call = this->call();
  call.direction = Direction::backward;
  make_results(call);
  dispatch(call);
  const nb::object results = hand_out();
  const nb::tuple gradients = more_results_.empty() ? nb::make_tuple(results) : nb::cast<nb::tuple>(results);
  return constants_.empty() ? gradients : without_constants(gradients);
}

nb::tuple OpCall::without_constants(const nb::tuple& gradients) const {
  nb::list kept;
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < inputs_.size(); ++i) {  // the last is the gradient of the output
    if (!has_gradient(op_info(op_), i, input(i).dtype())) continue;
    const nb::object gradient = gradients[next++];
    if (std::find(constants_.begin(), constants_.end(), i) == constants_.end()) kept.append(gradient);
  }
  return nb::tuple(kept);
}

}  // namespace xpuruntime::python
