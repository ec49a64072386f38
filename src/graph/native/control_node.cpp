#include "graph/native/control_node.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/elements.h"
#include "core/printable.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

[[noreturn]] void refuse(const ModelNode& node, const std::string& why) {
  fail(ErrorCode::corrupt_data, "Session",
       node.op + " '" + printable(node.name) + "' " + why + "; export the model anew");
}

/// Contiguous, on the host.
Tensor on_host(const PieceContext& context, const Tensor& tensor) {
  const Tensor here = context.devices.copy_to(tensor, Device{});
  if (here.contiguous()) return here;
  const Tensor copy = Tensor::empty(here.dtype(), here.shape());
  const Tensor *input = &here, *output = &copy;
  context.dispatcher.dispatch({.op = OpId::copy, .inputs = {&input, 1}, .outputs = {&output, 1}});
  return copy;
}

std::int64_t number_of(const PieceContext& context, const ModelNode& node, const Tensor& tensor) {
  const Tensor here = on_host(context, tensor);
  if (element_count(here.spec()) != 1 || is_floating(here.dtype()))
    refuse(node, "has a condition or count that is no number");
  return integer_loader_of(here.dtype())(here.as<const void>(), 0);
}

template <class T>
Tensor one(DataType dtype, T value) {
  const Tensor tensor = Tensor::empty(dtype, {});
  *tensor.as<T>() = value;
  return tensor;
}

/// Elements before and bytes behind an axis.
struct Blocks {
  std::int64_t outer = 1;
  std::size_t bytes = 1;
};
Blocks blocks_of(const Dims& shape, std::size_t axis, DataType dtype) {
  Blocks blocks{.bytes = size_of(dtype)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d < axis) blocks.outer *= shape[d];
    if (d > axis) blocks.bytes *= static_cast<std::size_t>(shape[d]);
  }
  return blocks;
}

/// Of the shape without that axis.
Tensor without_axis(const Tensor& from, std::size_t axis) {
  std::vector<std::int64_t> shape(from.shape().begin(), from.shape().end());
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return Tensor::empty(from.dtype(), Dims(std::span(shape)));
}

/// One index of an axis, which goes.
Tensor slice_of(const Tensor& from, std::size_t axis, std::int64_t index) {
  const Blocks blocks = blocks_of(from.shape(), axis, from.dtype());
  const std::int64_t extent = from.shape()[axis];
  const Tensor slice = without_axis(from, axis);
  if (element_count(slice.spec()) == 0) return slice;
  for (std::int64_t i = 0; i < blocks.outer; ++i) {
    std::memcpy(slice.as<std::byte>() + static_cast<std::size_t>(i) * blocks.bytes,
                from.as<const std::byte>() + static_cast<std::size_t>(i * extent + index) * blocks.bytes, blocks.bytes);
  }
  return slice;
}

/// All of one shape, along a new axis.
Tensor stacked(const ModelNode& node, std::span<const Tensor> parts, std::size_t axis) {
  std::vector<std::int64_t> shape(parts[0].shape().begin(), parts[0].shape().end());
  const auto count = static_cast<std::int64_t>(parts.size());
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), count);
  const Tensor whole = Tensor::empty(parts[0].dtype(), Dims(std::span(shape)));
  const Blocks blocks = blocks_of(whole.shape(), axis, whole.dtype());
  for (std::int64_t p = 0; p < count; ++p) {
    const Tensor& part = parts[static_cast<std::size_t>(p)];
    if (part.shape() != parts[0].shape() || part.dtype() != whole.dtype()) {
      fail(ErrorCode::invalid_argument, "Session",
           node.op + " '" + printable(node.name) + "' puts results of the shapes " + to_string(parts[0].shape()) +
               " and " + to_string(part.shape()) + " together; give inputs that fit");
    }
    if (element_count(part.spec()) == 0) continue;
    for (std::int64_t i = 0; i < blocks.outer; ++i) {
      std::memcpy(whole.as<std::byte>() + static_cast<std::size_t>(i * count + p) * blocks.bytes,
                  part.as<const std::byte>() + static_cast<std::size_t>(i) * blocks.bytes, blocks.bytes);
    }
  }
  return whole;
}

/// What no step gave anything for: as the body would make it, else as far as the model says what it would be.
Tensor nothing(const ModelValue& value, const std::optional<TensorSpec>& made, std::int64_t axis) {
  std::vector<std::int64_t> shape;
  if (made) {
    shape.assign(made->shape.begin(), made->shape.end());
  } else if (value.shape) {
    for (const ModelExtent& extent : *value.shape) shape.push_back(std::max<std::int64_t>(extent.size, 0));
  }
  const auto rank = static_cast<std::int64_t>(shape.size());
  shape.insert(shape.begin() + std::clamp<std::int64_t>(axis < 0 ? axis + rank + 1 : axis, 0, rank), 0);
  return Tensor::empty(made ? made->dtype : value.dtype.value_or(DataType::float32), Dims(std::span(shape)));
}

std::vector<std::int64_t> list_of(const ModelNode& node, std::string_view name, std::size_t size) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return std::vector<std::int64_t>(size, 0);
  const auto* list = std::get_if<std::vector<std::int64_t>>(&found->second);
  if (list == nullptr || list->size() != size)
    refuse(node, "has " + std::string(name) + " of another length than inputs");
  return *list;
}

std::size_t axis_in(const ModelNode& node, std::int64_t axis, std::size_t rank) {
  const std::int64_t from_front = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  if (from_front < 0 || from_front >= static_cast<std::int64_t>(rank))
    refuse(node, "has an axis that its tensors have not");
  return static_cast<std::size_t>(from_front);
}

}  // namespace

ControlNode::ControlNode(const PieceContext& context, const ModelGraph& piece)
    : context_(context), piece_(piece), node_(piece.nodes[0]) {
  const auto opset = context.model.opsets.find("");
  if (node_.op == "Scan" && opset != context.model.opsets.end() && opset->second < 9) {
    throw EngineLacks("Scan of opset 8; export the model with opset 9 or later");
  }
  for (const auto& [name, value] : node_.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
    if (body == nullptr) continue;
    graphs_[name] = body->get();
    bodies_[name] = std::make_unique<PiecedGraph>(context, **body, std::vector{&piece});
  }
  for (const char* name : {"body", "then_branch", "else_branch"}) {
    if ((std::string_view(name) == "body") != (node_.op == "If") && !bodies_.contains(name)) {
      refuse(node_, "has no " + std::string(name));
    }
  }
}
ControlNode::~ControlNode() = default;

Tensor ControlNode::input(const Values& values, std::size_t index) const {
  if (index >= node_.inputs.size() || node_.inputs[index].empty()) refuse(node_, "lacks an input");
  const auto found = values.find(node_.inputs[index]);
  return found != values.end() ? found->second : piece_.constants.at(node_.inputs[index]);
}

std::vector<Tensor> ControlNode::run(std::span<const Tensor> inputs, const Deadline& deadline,
                                     const ProgramHook& hook) const {
  Values values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[piece_.inputs[i].name] = inputs[i];
  std::vector<Tensor> found;
  if (node_.op == "Loop") {
    found = run_loop(values, deadline, hook);
  } else if (node_.op == "Scan") {
    found = run_scan(values, deadline, hook);
  } else {
    const bool taken = number_of(context_, node_, input(values, 0)) != 0;
    found = run_body(*bodies_.at(taken ? "then_branch" : "else_branch"), {}, values, deadline, hook);
  }
  std::vector<Tensor> results;
  for (const ModelValue& output : piece_.outputs) {
    const auto at = std::find(node_.outputs.begin(), node_.outputs.end(), output.name) - node_.outputs.begin();
    if (at >= std::ssize(found)) refuse(node_, "has more results than its body");
    results.push_back(found[static_cast<std::size_t>(at)]);
  }
  return results;
}

std::vector<Tensor> ControlNode::own_and_outer(const PiecedGraph& body, std::vector<Tensor> own,
                                               const Values& values) const {
  const std::vector<std::string>& names = body.inputs();
  for (std::size_t i = own.size(); i < names.size(); ++i) {
    const auto found = values.find(names[i]);
    if (found == values.end()) refuse(node_, "gives its body no '" + printable(names[i]) + "'");
    own.push_back(found->second);
  }
  return own;
}

std::vector<Tensor> ControlNode::run_body(const PiecedGraph& body, std::vector<Tensor> own, const Values& values,
                                          const Deadline& deadline, const ProgramHook& hook) const {
  return body.run(own_and_outer(body, std::move(own), values), deadline, hook);
}

void ControlNode::check_room(std::uint64_t bytes) const {
  const std::uint64_t most = context_.devices.profile(Device{}).global_memory_bytes;
  if (most == 0 || bytes <= most / 2) return;  // they are put together in as much again
  fail(ErrorCode::out_of_memory, "Session",
       node_.op + " '" + printable(node_.name) +
           "' gives more than half of the memory; give inputs with which it ends earlier");
}

std::vector<Tensor> ControlNode::run_loop(const Values& values, const Deadline& deadline,
                                          const ProgramHook& hook) const {
  const PiecedGraph& body = *bodies_.at("body");
  const ModelGraph& graph = *graphs_.at("body");
  const std::size_t carried = std::max<std::size_t>(node_.inputs.size(), 2) - 2;
  if (graph.inputs.size() != carried + 2 || graph.outputs.size() < carried + 1) {
    refuse(node_, "has a body of other inputs or results than its own");
  }
  const auto is_given = [&](std::size_t i) { return i < node_.inputs.size() && !node_.inputs[i].empty(); };
  const std::int64_t most =
      is_given(0) ? number_of(context_, node_, input(values, 0)) : std::numeric_limits<std::int64_t>::max();
  bool goes_on = !is_given(1) || number_of(context_, node_, input(values, 1)) != 0;
  std::vector<Tensor> states;
  for (std::size_t i = 0; i < carried; ++i) states.push_back(input(values, i + 2));
  std::vector<std::vector<Tensor>> parts(graph.outputs.size() - carried - 1);
  std::uint64_t held = 0;
  for (std::int64_t i = 0; i < most && goes_on; ++i) {
    deadline.check();
    std::vector<Tensor> own = {one(DataType::int64, i), one(DataType::boolean, goes_on)};
    own.insert(own.end(), states.begin(), states.end());
    const std::vector<Tensor> results = run_body(body, std::move(own), values, deadline, hook);
    goes_on = number_of(context_, node_, results[0]) != 0;
    for (std::size_t s = 0; s < carried; ++s) states[s] = results[s + 1];
    for (std::size_t s = 0; s < parts.size(); ++s) {
      parts[s].push_back(on_host(context_, results[carried + 1 + s]));
      check_room(held += parts[s].back().span());
    }
  }
  std::vector<std::optional<TensorSpec>> made(graph.outputs.size());
  if (!parts.empty() && parts[0].empty()) {
    std::vector<Tensor> own = {one(DataType::int64, std::int64_t{0}), one(DataType::boolean, true)};
    own.insert(own.end(), states.begin(), states.end());
    made = body.specs(own_and_outer(body, std::move(own), values));
  }
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const std::size_t result = carried + 1 + s;
    states.push_back(parts[s].empty() ? nothing(graph.outputs[result], made[result], 0) : stacked(node_, parts[s], 0));
  }
  return states;
}

std::vector<Tensor> ControlNode::run_scan(const Values& values, const Deadline& deadline,
                                          const ProgramHook& hook) const {
  const PiecedGraph& body = *bodies_.at("body");
  const ModelGraph& graph = *graphs_.at("body");
  const auto asked = node_.attributes.find("num_scan_inputs");
  const auto* count = asked == node_.attributes.end() ? nullptr : std::get_if<std::int64_t>(&asked->second);
  if (count == nullptr || *count < 1 || *count > std::ssize(node_.inputs))
    refuse(node_, "has no num_scan_inputs that fits");
  const auto scanned = static_cast<std::size_t>(*count), carried = node_.inputs.size() - scanned;
  if (graph.inputs.size() != node_.inputs.size() || graph.outputs.size() < carried) {
    refuse(node_, "has a body of other inputs or results than its own");
  }
  const std::size_t made = graph.outputs.size() - carried;
  const auto axes = list_of(node_, "scan_input_axes", scanned),
             backwards = list_of(node_, "scan_input_directions", scanned);
  const auto result_axes = list_of(node_, "scan_output_axes", made),
             result_backwards = list_of(node_, "scan_output_directions", made);
  std::vector<Tensor> states, wholes;
  for (std::size_t i = 0; i < carried; ++i) states.push_back(input(values, i));
  std::vector<std::size_t> places;
  std::int64_t steps = -1;
  for (std::size_t i = 0; i < scanned; ++i) {
    wholes.push_back(on_host(context_, input(values, carried + i)));
    places.push_back(axis_in(node_, axes[i], wholes[i].shape().size()));
    const std::int64_t extent = wholes[i].shape()[places[i]];
    if (steps >= 0 && extent != steps) {
      fail(ErrorCode::invalid_argument, "Session",
           "Scan '" + printable(node_.name) + "' goes through " + std::to_string(steps) + " and " +
               std::to_string(extent) + " elements at once; give inputs that fit");
    }
    steps = extent;
  }
  std::vector<std::optional<TensorSpec>> specs(graph.outputs.size());
  if (steps == 0) {
    std::vector<Tensor> own = states;
    for (std::size_t i = 0; i < scanned; ++i) own.push_back(without_axis(wholes[i], places[i]));
    specs = body.specs(own_and_outer(body, std::move(own), values));
  }
  std::vector<std::vector<Tensor>> parts(made);
  for (std::int64_t step = 0; step < steps; ++step) {
    deadline.check();
    std::vector<Tensor> own = states;
    for (std::size_t i = 0; i < scanned; ++i) {
      own.push_back(slice_of(wholes[i], places[i], backwards[i] != 0 ? steps - 1 - step : step));
    }
    const std::vector<Tensor> results = run_body(body, std::move(own), values, deadline, hook);
    for (std::size_t s = 0; s < carried; ++s) states[s] = results[s];
    for (std::size_t s = 0; s < made; ++s) parts[s].push_back(on_host(context_, results[carried + s]));
  }
  for (std::size_t s = 0; s < made; ++s) {
    if (parts[s].empty()) {
      states.push_back(nothing(graph.outputs[carried + s], specs[carried + s], result_axes[s]));
      continue;
    }
    if (result_backwards[s] != 0) std::reverse(parts[s].begin(), parts[s].end());
    states.push_back(stacked(node_, parts[s], axis_in(node_, result_axes[s], parts[s][0].shape().size() + 1)));
  }
  return states;
}

}  // namespace xpuruntime::native
