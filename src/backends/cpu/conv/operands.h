#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/base/stages.h"
#include "backends/cpu/conv/shape.h"

namespace xpuruntime::cpu {

/// Hands out 64-byte aligned parts of a workspace, or with no workspace only counts them.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}

  float* floats(std::int64_t count) {
    std::byte* part = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += static_cast<std::size_t>(round_up(count, 16)) * sizeof(float);
    return reinterpret_cast<float*>(part);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

/// Widens f32, f16 or bf16 to f32; writes exactly `count` floats.
void widen_floats(DataType dtype, const void* from, std::int64_t count, float* to);

/// Weight and bias as f32: in place where they are, else widened into the workspace.
class ConvOperands {
 public:
  explicit ConvOperands(const Problem& problem);

  /// Where to find them in this run; takes its room from the workspace.
  struct Floats {
    const float* weight = nullptr;
    const float* bias = nullptr;  // null: none
    float* weight_room = nullptr;
    float* bias_room = nullptr;
  };
  Floats carve(Carver& carver) const;
  /// Points to the tensors, widening what must be; `threads` share the work.
  void fill(const RunArguments& arguments, int threads, Floats& floats) const;

 private:
  DataType weight_dtype_ = {}, bias_dtype_ = {};
  std::int64_t weight_count_ = 0, bias_count_ = 0;
};

/// Adds the stage that sums the output's gradient over images and positions, where a backward problem has a bias.
void add_bias_gradient(const Problem& backward, Stages& stages);

}  // namespace xpuruntime::cpu
