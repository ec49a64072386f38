#include "graph/native/builder.h"

#include <algorithm>
#include <cstring>

#include "core/elements.h"
#include "core/views.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

// Of all that is computed before a run; more is left to the runs.
constexpr std::uint64_t most_folded_bytes = std::uint64_t{1} << 30;
constexpr double most_folded_work = 0x1p34;

/// About as many multiplications as a call takes, and no fewer than it has elements.
double work_of(OpId op, std::span<const TensorSpec> inputs, const Attributes& attributes,
               std::span<const TensorSpec> outputs) {
  double elements = 0, each = 1;
  for (const auto& specs : {inputs, outputs}) {
    for (const TensorSpec& spec : specs) elements += static_cast<double>(element_count(spec));
  }
  const auto longest = [](const Dims& shape) {
    double extent = 1;
    for (const std::int64_t one : shape) extent = std::max(extent, static_cast<double>(one));
    return extent;
  };
  if (product_ops.contains(op)) each = longest(inputs[0].shape);
  if (op == OpId::attention) each = longest(inputs[1].shape) * longest(inputs[0].shape);
  if (conv_ops.contains(op)) {
    each = static_cast<double>(element_count(inputs[1])) / std::max(static_cast<double>(inputs[1].shape[0]), 1.0);
  }
  if (pool_ops.contains(op)) {
    for (const std::int64_t one : attributes.list("kernel_size")) each *= static_cast<double>(one);
  }
  return elements * each;
}

bool is_read_by_shapes(DataType dtype) { return !is_floating(dtype); }

Tensor contiguous_copy(Dispatcher& dispatcher, const Tensor& host) {
  Tensor copy = Tensor::empty(host.dtype(), host.shape());
  const Tensor* input = &host;
  const Tensor* output = &copy;
  dispatcher.dispatch({.op = OpId::copy, .inputs = {&input, 1}, .outputs = {&output, 1}});
  return copy;
}

}  // namespace

Builder::Builder(Dispatcher& dispatcher, Device device, std::uint64_t memory_bytes, int optimize_level,
                 bool may_use_cpu)
    : dispatcher_(dispatcher),
      device_(device),
      memory_bytes_(memory_bytes),
      optimize_level_(optimize_level),
      may_use_cpu_(may_use_cpu) {}

void Builder::check_room(std::uint64_t bytes) const {
  if (memory_bytes_ == 0 || bytes <= memory_bytes_) return;
  fail(ErrorCode::out_of_memory, "Session",
       std::to_string(bytes) + " bytes are needed, and " + to_string(device_) + " has " +
           std::to_string(memory_bytes_) + "; give smaller inputs");
}

int Builder::add(Slot slot) {
  program_.slots.push_back(std::move(slot));
  return static_cast<int>(program_.slots.size() - 1);
}

void Builder::note(StepKind kind, int slot, std::size_t step) {
  program_.notes.push_back({.node = node_, .kind = kind, .step = step, .slot = slot});
}

void Builder::name(int slot, std::string_view name) {
  for (auto note = program_.notes.rbegin(); note != program_.notes.rend() && note->node == node_; ++note) {
    if (note->slot == slot) note->name = name;
  }
}

int Builder::input(const TensorSpec& spec) {
  program_.inputs.push_back(spec);
  return add({.kind = Slot::Kind::input, .spec = spec, .input = program_.inputs.size() - 1});
}

int Builder::constant(const Tensor& host) {
  return add({.kind = Slot::Kind::constant, .spec = host.spec(), .constant = host});
}

int Builder::number(DataType dtype, double value) {
  const Tensor host = Tensor::empty(dtype, {});
  storer_of(dtype)(host.data(), 0, value);
  return constant(host);
}

int Builder::integers(std::span<const std::int64_t> values) {
  const Tensor host = Tensor::empty(DataType::int64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), host.as<std::int64_t>());
  return constant(host);
}

bool Builder::may_fold(std::span<const int> inputs, std::span<const TensorSpec> outputs, double work) const {
  std::uint64_t bytes = folded_bytes_;
  for (const TensorSpec& output : outputs) {
    bytes += span_bytes(output);
    if (optimize_level_ == 0 && !is_read_by_shapes(output.dtype)) return false;
  }
  if (bytes > most_folded_bytes || folded_work_ + work > most_folded_work) return false;
  return std::all_of(inputs.begin(), inputs.end(), [&](int slot) { return is_constant(slot); });
}

std::vector<int> Builder::fold(OpId op, std::span<const int> inputs, const Attributes& attributes,
                               std::span<const TensorSpec> outputs) {
  std::vector<const Tensor*> given, made;
  for (const int slot : inputs) given.push_back(&constant_of(slot));
  std::vector<Tensor> results;
  for (const TensorSpec& output : outputs) {
    folded_bytes_ += span_bytes(output);
    results.push_back(Tensor::empty(output.dtype, output.shape));
  }
  for (const Tensor& result : results) made.push_back(&result);
  dispatcher_.dispatch({.op = op, .inputs = given, .outputs = made, .attributes = &attributes});
  std::vector<int> slots;
  for (const Tensor& result : results) slots.push_back(constant(result));
  return slots;
}

bool Builder::has_kernel(OpId op) const { return !dispatcher_.registry().kernels(op, device_.type).empty(); }

int Builder::call(OpId op, std::initializer_list<int> inputs, const Attributes* attributes) {
  return call(op, std::span(inputs.begin(), inputs.size()), attributes);
}

int Builder::call(OpId op, std::span<const int> inputs, const Attributes* attributes) {
  return call_all(op, inputs, attributes != nullptr ? *attributes : Attributes(op))[0];
}

namespace {

/// An op that would take the same in f32 lacks a dtype that ONNX allows: no mistake, and another engine may have it.
bool lacks_dtype(OpId op, const std::vector<TensorSpec>& specs, const Attributes& attributes, Device device) {
  return std::any_of(specs.begin(), specs.end(), [&](const TensorSpec& lacking) {
    std::vector<TensorSpec> others = specs;
    for (TensorSpec& spec : others) {
      if (spec.dtype == lacking.dtype) spec.dtype = DataType::float32;
    }
    try {
      make_problem(op, others, attributes, device);
      return true;
    } catch (const Error&) {
      return false;
    }
  });
}

Problem checked_problem(OpId op, const std::vector<TensorSpec>& specs, const Attributes& attributes, Device device) {
  try {
    return make_problem(op, specs, attributes, device);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument || !lacks_dtype(op, specs, attributes, device)) throw;
    throw EngineLacks(error.message());
  }
}

}  // namespace

std::vector<int> Builder::call_all(OpId op, std::span<const int> inputs, const Attributes& attributes) {
  std::vector<TensorSpec> specs;
  for (const int slot : inputs) specs.push_back(spec(slot));
  const Problem problem = checked_problem(op, specs, attributes, device_);
  std::size_t count = op_info(op).outputs;  // the others are updated in place
  count = std::min(count, problem.outputs.size());
  const std::span outputs(problem.outputs.data(), count);
  for (const TensorSpec& output : outputs) check_room(span_bytes(output));
  const double work = work_of(op, specs, attributes, outputs);
  if (may_fold(inputs, outputs, work)) {
    folded_work_ += work;
    return fold(op, inputs, attributes, outputs);
  }
  constexpr std::size_t most_calls = std::size_t{1} << 19;
  if (op == OpId::slice || op == OpId::transpose) {
    if (const auto view = moved_view(problem, inputs[0])) return {*view};
  }
  if (program_.steps.size() >= most_calls) {
    fail(ErrorCode::not_supported, "Session",
         "a run of more than " + std::to_string(most_calls) + " calls; give shorter sequences");
  }
  std::vector<int> results;
  for (const TensorSpec& output : outputs) results.push_back(add({.kind = Slot::Kind::memory, .spec = output}));
  program_.steps.push_back({op, attributes, {inputs.begin(), inputs.end()}, results, node_});
  for (const int result : results) note(StepKind::kernel, result, program_.steps.size() - 1);
  return results;
}

int Builder::add_view(int of, const TensorSpec& spec, std::int64_t offset) {
  if (is_constant(of)) {
    const Tensor& host = constant_of(of);
    return constant(Tensor(host.data(), spec, host.device(), host.byte_offset(), host.owner()).as_read_only());
  }
  const std::int64_t before = slots()[static_cast<std::size_t>(of)].offset;
  const int view =
      add({.kind = Slot::Kind::view, .spec = spec, .base = base_of(program_, of), .offset = before + offset});
  note(StepKind::view, view, 0);
  return view;
}

std::optional<int> Builder::moved_view(const Problem& problem, int of) {
  constexpr std::int64_t aligned = 64;  // of every dtype that a pass may choose
  const View view = source_view(problem);
  if (std::any_of(view.spec.strides.begin(), view.spec.strides.end(), [](std::int64_t stride) { return stride < 0; })) {
    return {};
  }
  const TensorSpec made = make_spec(view.spec.dtype, view.spec.shape, view.spec.strides, spec(of).alignment);
  if (is_constant(of) || !made.contiguous || element_count(made) == 0) return {};
  if (view.offset * static_cast<std::int64_t>(size_of(made.dtype)) % aligned != 0) return {};
  return add_view(of, make_spec(made.dtype, made.shape, contiguous_strides(made.shape), made.alignment), view.offset);
}

int Builder::contiguous(int slot) {
  if (spec(slot).contiguous) return slot;
  const std::uint64_t bytes = static_cast<std::uint64_t>(element_count(spec(slot))) * size_of(spec(slot).dtype);
  check_room(bytes);
  if (!is_constant(slot)) return call(OpId::copy, {slot});
  if (bytes > most_folded_bytes - std::min(folded_bytes_, most_folded_bytes)) {
    fail(ErrorCode::out_of_memory, "Session",
         "constants of more than 1 GiB would be made before a run; give smaller shapes, or make them inputs");
  }
  folded_bytes_ += bytes;
  return constant(contiguous_copy(dispatcher_, constant_of(slot)));
}

int Builder::reshaped(int slot, const Dims& shape) {
  const TensorSpec from = spec(slot);
  if (element_count(from) != checked_count(shape, size_of(from.dtype))) {
    fail(ErrorCode::invalid_argument, "Session",
         "shape " + to_string(from.shape) + " has other elements than " + to_string(shape) + "; give inputs that fit");
  }
  slot = contiguous(slot);
  return add_view(slot, make_spec(from.dtype, shape, contiguous_strides(shape), spec(slot).alignment));
}

int Builder::reinterpreted(int slot, DataType dtype) {
  slot = contiguous(slot);
  return add_view(slot, make_spec(dtype, shape(slot), contiguous_strides(shape(slot)), spec(slot).alignment));
}

int Builder::broadcast(int slot, const Dims& shape) {
  const TensorSpec from = spec(slot);
  const Dims to = broadcast_shapes(from.shape, shape);
  if (to == from.shape) return slot;
  Dims strides = Dims::filled(to.size(), 0);
  const std::size_t missing = to.size() - from.shape.size();
  for (std::size_t d = 0; d < from.shape.size(); ++d) {
    if (from.shape[d] == to[missing + d]) strides[missing + d] = from.strides[d];
  }
  return add_view(slot, make_spec(from.dtype, to, strides, from.alignment));
}

std::vector<bool> Builder::bases() const {
  std::vector<bool> found(slots().size(), false);
  for (const Slot& slot : slots()) {
    if (slot.kind == Slot::Kind::view) found[static_cast<std::size_t>(slot.base)] = true;
  }
  return found;
}

void Builder::align_constants(const PassContext& passes) {
  for (const Step& step : program_.steps) {
    for (const int input : step.inputs) {
      Slot& slot = program_.slots[static_cast<std::size_t>(input)];
      if (!passes.aligned || slot.kind != Slot::Kind::constant || slot.spec.alignment >= 16) continue;
      if (slot.constant.span() == 0) continue;
      slot.constant = passes.aligned(slot.constant);
      slot.spec = slot.constant.spec();
    }
  }
}

Program Builder::finish(std::span<const int> outputs, const PassContext& passes) {
  std::vector<bool> is_taken = bases();  // viewed by others, or an output already
  for (int slot : outputs) {
    const auto& at = slots()[static_cast<std::size_t>(slot)];
    const bool is_read = at.kind != Slot::Kind::memory;
    const bool is_base = is_taken[static_cast<std::size_t>(slot)];
    if (is_read || is_base) {  // the caller gets memory that nothing else has
      const int copy = add({.kind = Slot::Kind::memory, .spec = make_spec(spec(slot).dtype, shape(slot))});
      program_.steps.push_back({OpId::copy, Attributes(OpId::copy), {slot}, {copy}, node_});
      note(StepKind::kernel, copy, program_.steps.size() - 1);
      slot = copy;
    } else {
      is_taken[static_cast<std::size_t>(slot)] = true;
    }
    program_.slots[static_cast<std::size_t>(slot)].kind = Slot::Kind::output;
    program_.outputs.push_back(slot);
  }
  drop_unused(program_);
  run_passes(program_, optimize_level_, passes);
  drop_unused(program_);
  align_constants(passes);
  if (optimize_level_ >= 3) turn_channels_last(program_, passes);
  lower_precision(program_, passes);
  place_steps(program_, passes);
  drop_unread_constants(program_);
  plan_memory(program_);
  check_room(program_.memory_bytes);
  return std::move(program_);
}

}  // namespace xpuruntime::native
