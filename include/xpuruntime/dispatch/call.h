#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "xpuruntime/core/op.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

class HeldConstants;
struct TableEntry;

/// Where a call that a caller repeats was found in a thread's table, so that it is looked for there first. For one
/// thread at a time.
class CallSite {
 private:
  friend struct ThreadState;
  TableEntry* entry_ = nullptr;
  std::uint64_t table_ = 0;  // which thread's
};

/// One call of an op. The tensors' device decides where it runs; they must all be on one.
struct Call {
  OpId op = OpId::matmul;
  std::span<const Tensor* const> inputs = {};
  std::span<const Tensor* const> outputs = {};
  const Attributes* attributes = nullptr;  // null: the op's defaults
  Direction direction = Direction::forward;
  std::optional<DataType> precision = {};  // compute in this, whatever rules say
  HeldConstants* held = nullptr;           // of a caller that repeats it with the same contents of some inputs
};

}  // namespace xpuruntime
