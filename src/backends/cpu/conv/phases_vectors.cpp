#include "backends/cpu/conv/phases.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/phases_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/conv/rows.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// One phase: its residues in the three dims say where it starts.
template <class T>
void fill_phase(const Phases& phases, const Extents& residues, const T* plane, const T* end, float* to) {
  const auto& [z_axis, y_axis, x_axis] = phases.axes;
  for (std::int64_t z = 0; z < z_axis.extent; ++z) {
    const std::int64_t from_z = z * z_axis.stride + residues[0] - z_axis.padding;
    for (std::int64_t y = 0; y < y_axis.extent; ++y, to += x_axis.extent) {
      const std::int64_t from_y = y * y_axis.stride + residues[1] - y_axis.padding;
      if (from_z < 0 || from_z >= z_axis.in || from_y < 0 || from_y >= y_axis.in) {
        pad_values(to, x_axis.extent, 0.0f);
        continue;
      }
      take_padded(plane + (from_z * y_axis.in + from_y) * x_axis.in, end, x_axis.in, residues[2] - x_axis.padding,
                  x_axis.stride, x_axis.extent, to);
    }
  }
}

template <class T>
void fill_all_phases(const Phases& phases, const void* plane, const void* end, float* to) {
  float* const stop = to + phases.channel_size;
  for (const std::int64_t z : phases.axes[0].residues) {
    for (const std::int64_t y : phases.axes[1].residues) {
      for (const std::int64_t x : phases.axes[2].residues) {
        fill_phase(phases, {z, y, x}, static_cast<const T*>(plane), static_cast<const T*>(end), to);
        to += phases.phase_size();
      }
    }
  }
  std::fill(to, stop, 0.0f);
}

void fill_f32(const Phases& phases, const void* plane, const void* end, float* to) {
  fill_all_phases<float>(phases, plane, end, to);
}
void fill_f16(const Phases& phases, const void* plane, const void* end, float* to) {
  fill_all_phases<Half>(phases, plane, end, to);
}
void fill_bf16(const Phases& phases, const void* plane, const void* end, float* to) {
  fill_all_phases<Bfloat>(phases, plane, end, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(fill_f32);
HWY_EXPORT(fill_f16);
HWY_EXPORT(fill_bf16);

void fill_phases(const Phases& phases, DataType dtype, const void* plane, const void* end, float* to) {
  if (dtype == DataType::float16) return HWY_DYNAMIC_DISPATCH(fill_f16)(phases, plane, end, to);
  if (dtype == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(fill_bf16)(phases, plane, end, to);
  HWY_DYNAMIC_DISPATCH(fill_f32)(phases, plane, end, to);
}

PhaseAxis::PhaseAxis(std::int64_t in_extent, std::int64_t kernel, std::int64_t out, std::int64_t step,
                     std::int64_t before, std::int64_t dilation)
    : in(in_extent), stride(step), padding(before) {
  for (std::int64_t tap = 0; tap < kernel; ++tap) {
    const std::int64_t residue = tap * dilation % stride;
    const auto found = std::find(residues.begin(), residues.end(), residue);
    phase_of.push_back(found - residues.begin());
    if (found == residues.end()) residues.push_back(residue);
    shift_of.push_back(tap * dilation / stride);
  }
  extent = out + shift_of.back();
}

Phases::Phases(const ConvShape& shape) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    axes[i] =
        PhaseAxis(shape.in[i], shape.kernel[i], shape.out[i], shape.stride[i], shape.padding[i], shape.dilation[i]);
    count *= static_cast<std::int64_t>(axes[i].residues.size());
  }
  constexpr std::int64_t line = 16;
  channel_size = round_up(count * phase_size() + vector_slack, line);
  // An odd number of cache lines: channels a power of two apart would share few lines of the cache.
  if (channel_size / line % 2 == 0) channel_size += line;
}

std::int64_t Phases::offset(std::int64_t z, std::int64_t y, std::int64_t x) const {
  const auto& [z_axis, y_axis, x_axis] = axes;
  const auto count = [](const PhaseAxis& axis) { return static_cast<std::int64_t>(axis.residues.size()); };
  const std::int64_t phase =
      (z_axis.phase_of[z] * count(y_axis) + y_axis.phase_of[y]) * count(x_axis) + x_axis.phase_of[x];
  return phase * phase_size() + (z_axis.shift_of[z] * y_axis.extent + y_axis.shift_of[y]) * x_axis.extent +
         x_axis.shift_of[x];
}

std::vector<std::int64_t> Phases::tap_offsets() const {
  std::vector<std::int64_t> offsets;
  for (std::size_t z = 0; z < axes[0].shift_of.size(); ++z) {
    for (std::size_t y = 0; y < axes[1].shift_of.size(); ++y) {
      for (std::size_t x = 0; x < axes[2].shift_of.size(); ++x) offsets.push_back(offset(z, y, x));
    }
  }
  return offsets;
}

Verdict supports_phases(const ConvShape& shape) {
  constexpr double most = 2147483647;
  double floats = static_cast<double>(shape.in_channels);
  for (std::size_t i = 0; i < 3; ++i) {
    const double reach = static_cast<double>(shape.kernel[i] - 1) * static_cast<double>(shape.dilation[i]);
    const double stride = static_cast<double>(shape.stride[i]);
    const double phases = std::min(static_cast<double>(shape.kernel[i]), stride);
    floats *= phases * (static_cast<double>(shape.out[i]) + reach / stride);
    if (reach > most || static_cast<double>(shape.padding[i]) > most) floats = 2 * most;
  }
  floats += static_cast<double>(shape.in_channels) * 3 * vector_slack;
  if (floats > most) return Verdict::no("one group's padded input has more than 2147483647 elements");
  return Verdict::yes();
}

}  // namespace xpuruntime::cpu
#endif
