#include "core/result_layouts.h"

#include <algorithm>
#include <vector>

namespace xpuruntime {
namespace {

/// Whether the second dim is the innermost in memory and the others are in their order. Not of what is contiguous
/// anyhow.
bool channels_are_last(const TensorSpec& spec) {
  if (spec.contiguous || spec.shape.size() < 3 || spec.shape[1] < 2 || spec.strides[1] != 1) return false;
  std::size_t inner = 1;
  for (std::size_t i = spec.shape.size(); i-- > 0;) {
    if (i == 1 || spec.shape[i] == 1) continue;
    if (spec.strides[i] / spec.shape[inner] < spec.strides[inner]) return false;
    inner = i;
  }
  return true;
}

}  // namespace

TensorSpec in_layout_of(const TensorSpec& other, DataType dtype) {
  if (other.contiguous) return make_spec(dtype, other.shape);
  std::vector<std::size_t> dims;
  for (std::size_t i = 0; i < other.shape.size(); ++i) {
    if (other.shape[i] == 1) continue;
    if (other.strides[i] == 0) return make_spec(dtype, other.shape);
    dims.push_back(i);
  }
  std::stable_sort(dims.begin(), dims.end(), [&](auto a, auto b) { return other.strides[a] > other.strides[b]; });
  Dims strides = contiguous_strides(other.shape);
  std::int64_t stride = 1;
  for (auto i = dims.rbegin(); i != dims.rend(); ++i) {
    strides[*i] = stride;
    stride *= other.shape[*i];
  }
  return make_spec(dtype, other.shape, strides);
}

TensorSpec like_inputs(std::span<const TensorSpec> inputs, DataType dtype, const Dims& shape) {
  for (const TensorSpec& input : inputs) {
    if (input.shape == shape) return in_layout_of(input, dtype);
  }
  return make_spec(dtype, shape);
}

TensorSpec like_image(const TensorSpec& image, DataType dtype, const Dims& shape) {
  if (!channels_are_last(image)) return make_spec(dtype, shape);
  return make_spec(dtype, shape, channels_last_strides(shape));
}

TensorSpec like_images(std::span<const TensorSpec> images, DataType dtype, const Dims& shape) {
  const auto may_be = [](const TensorSpec& spec) { return channels_are_last(spec) || has_channels_last(spec); };
  const auto one = std::find_if(images.begin(), images.end(), channels_are_last);
  if (one == images.end() || !std::all_of(images.begin(), images.end(), may_be)) return make_spec(dtype, shape);
  return like_image(*one, dtype, shape);
}

}  // namespace xpuruntime
