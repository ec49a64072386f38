#include "python/input_copies.h"

#include <algorithm>
#include <cstring>

#include "dispatch/aliasing.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

bool is_overwritten(const Tensor& input, std::span<const Tensor* const> outputs) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const Tensor* output) { return share_memory(input, *output); });
}

/// Not what lies between the elements: another thread may be writing there.
void copy_elements(std::byte* to, const std::byte* from, const TensorSpec& spec, std::size_t dim = 0) {
  const std::size_t size = size_of(spec.dtype);
  if (dim == spec.shape.size()) {
    std::memcpy(to, from, size);
    return;
  }
  const std::size_t step = static_cast<std::size_t>(spec.strides[dim]) * size;
  for (std::int64_t i = 0; i < spec.shape[dim]; ++i, to += step, from += step) copy_elements(to, from, spec, dim + 1);
}

/// The memory from the first element to the last, wherever it is.
Tensor bytes_of(const Tensor& tensor) {
  const Dims span{static_cast<std::int64_t>(tensor.span())};
  return Tensor::on(tensor.data(), make_spec(DataType::uint8, span), tensor.device(), tensor.byte_offset());
}

Tensor copied_bytes(const Tensor& tensor) {
  const Device device = tensor.device();
  const DeviceManager& devices = Runtime::global().devices();
  if (devices.driver(device).capturing(device.index, current_stream(device))) {
    fail(ErrorCode::not_supported, "register_kernel",
         "an output overwrites an input, which cannot be copied while a graph is captured; write to memory of its own, "
         "or register the kernel with in_place=True");
  }
  return devices.copy_to(bytes_of(tensor), device);
}

Tensor copied_elements(const Tensor& tensor) {
  Tensor bytes = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(tensor.span())});
  copy_elements(bytes.as<std::byte>(), tensor.as<const std::byte>(), tensor.spec());
  return bytes;
}

/// In memory of its own, with the same strides: the kernel was asked about these.
Tensor copy_of(const Tensor& tensor) {
  const std::size_t elements = static_cast<std::size_t>(element_count(tensor.spec())) * size_of(tensor.dtype());
  const bool has_gaps = tensor.span() > elements;
  const bool on_host = tensor.device().type == DeviceType::cpu;
  const Tensor bytes = on_host && has_gaps ? copied_elements(tensor) : copied_bytes(tensor);
  return Tensor::on(bytes.data(), tensor.spec(), tensor.device(), 0, bytes.owner());
}

}  // namespace

InputCopies::InputCopies(const RunArguments& arguments) : inputs_(arguments.inputs) {
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    const Tensor& input = *arguments.inputs[i];
    if (!is_overwritten(input, arguments.outputs)) continue;
    if (replaced_.empty()) {
      replaced_.assign(arguments.inputs.begin(), arguments.inputs.end());
      copies_.reserve(replaced_.size());  // they are pointed to
      inputs_ = replaced_;
    }
    replaced_[i] = &copies_.emplace_back(copy_of(input));
  }
}

}  // namespace xpuruntime::python
