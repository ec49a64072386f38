#pragma once

#include <span>

#include "select/rule_terms.h"

namespace xpuruntime {

/// A size that an op has a word for. Read from the forward call, also where the problem is its backward.
struct SizeTerm {
  OpId op = OpId::matmul;
  std::string_view name = {};
  TermKind kind = TermKind::integer;
  std::uint8_t length = 0;  // of integers
  Fact (*read)(const Problem& forward) = nullptr;
  std::string_view summary = {};
};

std::span<const SizeTerm> size_terms();

}  // namespace xpuruntime
