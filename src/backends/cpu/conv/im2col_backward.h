#pragma once

#include "backends/cpu/conv/operands.h"
#include "backends/cpu/conv/shape.h"

namespace xpuruntime::cpu {

/// How the gradients are cut into products: outputs into tiles, and the input channels of a group into parts, of which
/// a task makes or spreads the columns. No sum is cut by it, so the threads never show in the result.
struct Im2colParts {
  explicit Im2colParts(const Problem& backward);

  std::int64_t tiles() const { return divide_up(positions, tile); }
  std::int64_t parts() const { return divide_up(shape.in_channels, channels); }
  std::int64_t part_channels(std::int64_t part) const {
    return std::min(channels, shape.in_channels - part * channels);
  }
  std::int64_t tile_positions(std::int64_t t) const { return std::min(tile, positions - t * tile); }

  ConvShape shape = {};
  int threads = 1;
  std::int64_t positions = 0, tile = 1, channels = 1;
  DataType gradient = {};
};

// Each writes one gradient of a backward problem, whose tensors they get all.
std::uint64_t workspace_conv_data_im2col(const Problem& backward, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_data_im2col(const Problem& backward, const PrepareContext& context);
std::uint64_t workspace_conv_weight_im2col(const Problem& backward, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_weight_im2col(const Problem& backward, const PrepareContext& context);
inline constexpr KernelSpec conv_data_im2col = {.prepare = prepare_conv_data_im2col,
                                                .workspace_bytes = workspace_conv_data_im2col};
inline constexpr KernelSpec conv_weight_im2col = {.prepare = prepare_conv_weight_im2col,
                                                  .workspace_bytes = workspace_conv_weight_im2col};

}  // namespace xpuruntime::cpu
