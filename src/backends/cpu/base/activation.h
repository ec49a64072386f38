#pragma once

#include <string_view>

#include "xpuruntime/core/op.h"

namespace xpuruntime::cpu {

/// What a matrix product may apply to its result before storing it.
enum class Activation { none, relu, gelu, silu };

/// The activation that a call of linear asks for.
inline Activation activation_of(const Attributes& attributes) {
  const std::string_view name = attributes.choice("activation");
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  return name == "silu" ? Activation::silu : Activation::none;
}

}  // namespace xpuruntime::cpu
