#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/conv/shape.h"

// A copy of the input in which every tap of the kernel meets the outputs at stride 1, whatever the convolution's own
// stride and dilation: positions are sorted by their residue modulo the stride (their phase), the padding is in place
// as zeros and values are f32. The output at position p, counted in rows of the copy, needs for tap t the element
// offset(t) + p: so vectors run over outputs with plain loads and across the ends of rows. Positions past the end of
// an output row are computed for nothing; they are the price.

namespace xpuruntime::cpu {

/// Loads of whole vectors may read this many floats past the last position.
constexpr std::int64_t vector_slack = 16;

/// One dim of the copy.
struct PhaseAxis {
  std::int64_t in = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t extent = 1;               // of one phase
  std::vector<std::int64_t> residues{};  // the phases that some tap needs
  std::vector<std::int64_t> phase_of{};  // by tap: index into residues
  std::vector<std::int64_t> shift_of{};  // by tap: positions ahead of the output's

  PhaseAxis() = default;
  PhaseAxis(std::int64_t in, std::int64_t kernel, std::int64_t out, std::int64_t stride, std::int64_t padding,
            std::int64_t dilation);
};

struct Phases {
  PhaseAxis axes[3];
  std::int64_t channel_size = 0;  // floats from one channel's copy to the next, slack and all

  Phases() = default;
  explicit Phases(const ConvShape& shape);

  std::int64_t phase_size() const { return axes[0].extent * axes[1].extent * axes[2].extent; }
  std::int64_t offset(std::int64_t z, std::int64_t y, std::int64_t x) const;
  /// Of all taps, in the weight's order.
  std::vector<std::int64_t> tap_offsets() const;
};

/// Whether offsets into one group's copy fit 32 bits.
Verdict supports_phases(const ConvShape& shape);

/// Fills one channel's copy. `plane` is the channel, `end` the end of the whole tensor, up to which may be read.
void fill_phases(const Phases& phases, DataType dtype, const void* plane, const void* end, float* to);

}  // namespace xpuruntime::cpu
