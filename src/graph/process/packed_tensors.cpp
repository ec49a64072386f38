#include "graph/process/packed_tensors.h"

#include <cstring>

#include "xpuruntime/core/error.h"

namespace xpuruntime::process {
namespace {

constexpr std::size_t alignment = 64;

std::size_t bytes_in(const TensorSpec& spec) {
  return static_cast<std::size_t>(element_count(spec)) * size_of(spec.dtype);
}
std::size_t rounded_up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// One element after another; returns where the next one goes.
std::byte* copy_strided(const Tensor& tensor, std::size_t dim, const std::byte* from, std::byte* to) {
  const std::size_t size = size_of(tensor.dtype());
  if (dim == tensor.shape().size()) {
    std::memcpy(to, from, size);
    return to + size;
  }
  for (std::int64_t i = 0; i < tensor.shape()[dim]; ++i) {
    to = copy_strided(tensor, dim + 1, from + i * tensor.strides()[dim] * static_cast<std::int64_t>(size), to);
  }
  return to;
}

}  // namespace

std::size_t packed_bytes(std::span<const Tensor> tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += rounded_up(bytes_in(tensor.spec()));
  return bytes;
}

Json pack(std::span<const Tensor> tensors, std::byte* to) {
  Json specs = Json::array();
  std::size_t at = 0;
  for (const Tensor& tensor : tensors) {
    Json shape = Json::array();
    for (const std::int64_t extent : tensor.shape()) shape.push_back(extent);
    specs.push_back({{"dtype", to_string(tensor.dtype())}, {"shape", shape}, {"offset", at}});
    const std::size_t bytes = bytes_in(tensor.spec());
    if (tensor.contiguous() && bytes > 0) {
      std::memcpy(to + at, tensor.as<const void>(), bytes);
    } else if (bytes > 0) {
      copy_strided(tensor, 0, tensor.as<const std::byte>(), to + at);
    }
    at += rounded_up(bytes);
  }
  return specs;
}

std::vector<Tensor> unpack(const Json& specs, std::span<const std::byte> bytes) {
  std::vector<Tensor> tensors;
  for (const Json& spec : specs) {
    const auto shape = spec.at("shape").get<std::vector<std::int64_t>>();
    const auto offset = spec.at("offset").get<std::size_t>();
    Tensor tensor = Tensor::empty(parse_data_type(spec.at("dtype").get<std::string>()), Dims(std::span(shape)));
    if (offset > bytes.size() || tensor.span() > bytes.size() - offset) {
      fail(ErrorCode::device_error, "Session", "the engine's results are not those that it announced");
    }
    if (tensor.span() > 0) std::memcpy(tensor.data(), bytes.data() + offset, tensor.span());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace xpuruntime::process
