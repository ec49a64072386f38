#include <algorithm>

#include "backends/opencl/conv.h"
#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::int64_t tile_channels = 8;  // of the output; CHANNELS in conv_tiled.cl

/// As in conv_tiled.cl.
struct Tiling {
  std::int64_t tile[2] = {8, 16};
  std::int64_t patch[2] = {};
  std::int64_t together = 1;

  std::int64_t items() const { return tile[0] * tile[1]; }
  std::int64_t patch_elements() const { return patch[0] * patch[1]; }
};

std::uint64_t tiling_bytes(const Tiling& tiling, const ConvShape& shape) {
  const std::int64_t elements = tiling.together * (tiling.patch_elements() + shape.taps() * tile_channels);
  return static_cast<std::uint64_t>(elements) * sizeof(float);
}

Tiling tiling_of(const ConvShape& shape, const DeviceProfile& profile) {
  Tiling tiling;
  if (largest_group(profile) < tiling.items()) tiling.tile[0] = 4;
  for (int d = 0; d < 2; ++d)
    tiling.patch[d] =
        (tiling.tile[d] - 1) * shape.stride[d + 1] + (shape.kernel[d + 1] - 1) * shape.dilation[d + 1] + 1;
  // Half of the local memory: two groups can then be at work on one compute unit.
  for (const std::int64_t together : {8, 4, 2}) {
    tiling.together = together;
    if (together <= shape.in_channels && 2 * tiling_bytes(tiling, shape) <= profile.local_memory_bytes) return tiling;
  }
  tiling.together = 1;
  return tiling;
}

}  // namespace

Verdict supports_conv_tiled(const Problem& problem, const DeviceProfile& profile) {
  if (problem.op != OpId::conv2d) return Verdict::no("takes 2 spatial dims");
  const ConvShape shape = strided_conv_shape(problem);
  std::int64_t largest = 0;
  for (int d = 0; d < 3; ++d)
    largest = std::max({largest, shape.kernel[d], shape.stride[d], shape.padding[d], shape.dilation[d]});
  const Verdict windows = is_at_most("the largest of kernel size, stride, padding and dilation", largest, 1 << 12);
  if (!windows.supported) return windows;
  const Tiling tiling = tiling_of(shape, profile);
  const Verdict groups = has_work_groups(profile, tiling.items());
  return groups.supported ? has_local_memory(profile, tiling_bytes(tiling, shape)) : groups;
}

std::unique_ptr<const Plan> prepare_conv_tiled(const Problem& problem, const PrepareContext& context) {
  const ConvShape shape = strided_conv_shape(problem);
  const Tiling tiling = tiling_of(shape, context.profile);
  const std::int64_t groups = shape.batch * shape.groups * divided_up(shape.out_channels, tile_channels) *
                              divided_up(shape.out[1], tiling.tile[0]) * divided_up(shape.out[2], tiling.tile[1]);
  auto plan = std::make_unique<LaunchPlan>(context_of(context));
  Launch& launch = plan->add({.source = conv_source(conv_tiled_cl),
                              .function = "conv_tiled",
                              .options = conv_types(problem) + " -D CHANNELS=" + std::to_string(tile_channels),
                              .items = groups * tiling.items(),
                              .local = static_cast<std::size_t>(tiling.items())});
  const auto together = static_cast<std::size_t>(tiling.together) * sizeof(float);
  bind(launch.input(0).input(1), bias_of(problem))
      .output(0)
      .constant(shape)
      .constant(tiling)
      .local(together * static_cast<std::size_t>(tiling.patch_elements()))
      .local(together * static_cast<std::size_t>(shape.taps() * tile_channels));
  return plan;
}

}  // namespace xpuruntime::opencl
