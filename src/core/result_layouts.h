#pragma once

#include <span>

#include "xpuruntime/core/tensor.h"

// The layouts of results that nobody gave memory for: as in PyTorch.

namespace xpuruntime {

/// Without gaps, its dims in the order that the other tensor's have in memory; contiguous where that repeats elements.
TensorSpec in_layout_of(const TensorSpec& other, DataType dtype);

/// Of an op that goes element by element: in the layout of the first input of this shape.
TensorSpec like_inputs(std::span<const TensorSpec> inputs, DataType dtype, const Dims& shape);

/// Of an op over images: its channels are last where those of the image are, with gaps or without.
TensorSpec like_image(const TensorSpec& image, DataType dtype, const Dims& shape);
/// The same of several images: where all can be taken to be so, and one is.
TensorSpec like_images(std::span<const TensorSpec> images, DataType dtype, const Dims& shape);

}  // namespace xpuruntime
