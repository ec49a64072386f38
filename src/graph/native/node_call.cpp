#include <algorithm>

#include "core/elements.h"
#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

/// Null where there is none; of another type it is an error.
template <class T>
const T* as(const ModelAttribute* attribute, std::string_view name) {
  if (attribute == nullptr) return nullptr;
  const T* value = std::get_if<T>(attribute);
  if (value == nullptr) {
    fail(ErrorCode::corrupt_data, "Session",
         "attribute '" + std::string(name) + "' is not of the type that the operator takes; export the model anew");
  }
  return value;
}

}  // namespace

std::string operator_name(const ModelNode& node) {
  return node.domain.empty() ? node.op : node.domain + "::" + node.op;
}

const Operator* find_operator(const ModelNode& node) {
  if (node.domain == "com.microsoft") {
    for (const Operator& one : contrib_operators()) {
      if (one.name == node.op) return &one;
    }
  }
  if (!node.domain.empty()) return nullptr;
  for (const auto& family :
       {arithmetic_operators(), activation_operators(), attention_operators(), loss_operators(),
        logic_operators(),      product_operators(),    window_operators(),    transposed_operators(),
        resize_operators(),     recurrent_operators(),  quantized_operators(), norm_operators(),
        shape_operators(),      movement_operators(),   pad_operators(),       indexing_operators(),
        choosing_operators(),   einsum_operators(),     selecting_operators(), patch_operators(),
        sampling_operators(),   spectrum_operators(),   sequence_operators()}) {
    for (const Operator& one : family) {
      if (one.name == node.op) return &one;
    }
  }
  return nullptr;
}

void NodeCall::lacks(const std::string& message) const { throw EngineLacks(message); }
void NodeCall::wrong(const std::string& message) const {
  fail(ErrorCode::invalid_argument, "Session", message + "; export the model anew");
}
void NodeCall::refuse(const std::string& message) const { fail(ErrorCode::not_supported, "Session", message); }

int NodeCall::operator[](std::size_t input) const {
  if (!has(input)) {
    fail(ErrorCode::corrupt_data, "Session", "input " + std::to_string(input) + " is missing; export the model anew");
  }
  return inputs_[input];
}

std::size_t NodeCall::results() const {
  std::size_t count = node_.outputs.size();
  while (count > 0 && node_.outputs[count - 1].empty()) --count;
  return count;
}

const ModelAttribute* NodeCall::attribute(std::string_view name) const {
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

std::int64_t NodeCall::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* value = as<std::int64_t>(attribute(name), name);
  return value == nullptr ? otherwise : *value;
}

double NodeCall::real(std::string_view name, double otherwise) const {
  const auto* value = as<float>(attribute(name), name);
  return value == nullptr ? otherwise : static_cast<double>(*value);
}

std::string NodeCall::text(std::string_view name, std::string_view otherwise) const {
  const auto* value = as<std::string>(attribute(name), name);
  return value == nullptr ? std::string(otherwise) : *value;
}

std::optional<std::vector<std::int64_t>> NodeCall::list(std::string_view name) const {
  const auto* value = as<std::vector<std::int64_t>>(attribute(name), name);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

void NodeCall::need_constant(std::size_t input) const {
  if (builder.is_constant((*this)[input])) return;
  throw NeedsValues(ErrorCode::not_supported, "Session",
                    "input " + std::to_string(input) +
                        " depends on the values of the model's inputs, not only on their shapes; this version takes "
                        "such values from inputs of up to 8 MiB");
}

std::int64_t NodeCall::number(std::size_t input) const {
  need_constant(input);
  const Tensor& tensor = builder.constant_of(builder.contiguous((*this)[input]));
  if (element_count(tensor.spec()) != 1) refuse("input " + std::to_string(input) + " is not one number");
  const void* data = tensor.as<const void>();
  if (!is_floating(tensor.dtype())) return integer_loader_of(tensor.dtype())(data, 0);
  const double value = loader_of(tensor.dtype())(data, 0);
  if (!(value > -0x1p62 && value < 0x1p62)) refuse("input " + std::to_string(input) + " is no integer");
  return static_cast<std::int64_t>(value);
}

std::vector<std::int64_t> NodeCall::values(std::size_t input) const {
  const int slot = (*this)[input];
  const std::string which = "input " + std::to_string(input);
  need_constant(input);
  const Tensor& tensor = builder.constant_of(builder.contiguous(slot));
  if (is_floating(tensor.dtype())) refuse(which + " is " + std::string(to_string(tensor.dtype())) + " and not integer");
  if (tensor.shape().size() > 1) refuse(which + " has " + to_string(tensor.shape()) + " elements; it must be a list");
  std::vector<std::int64_t> values;
  const LoadInteger load = integer_loader_of(tensor.dtype());
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) values.push_back(load(tensor.as<const void>(), i));
  return values;
}

std::optional<std::vector<std::int64_t>> NodeCall::values_or_list(std::size_t input, std::string_view name) const {
  return has(input) ? std::optional(values(input)) : list(name);
}

std::size_t NodeCall::axis(std::int64_t axis, std::size_t rank) const {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= std::max<std::int64_t>(signed_rank, 1)) {
    fail(ErrorCode::invalid_argument, "Session",
         "axis " + std::to_string(axis) + " is not one of " + std::to_string(rank) + " dims; give inputs that fit");
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace xpuruntime::native
