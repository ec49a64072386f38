#pragma once

#include "backends/opencl/launch.h"
#include "backends/opencl/nest.h"

namespace xpuruntime::opencl {

/// What a fold reads or writes: a tensor of the call, or bytes of the workspace.
struct FoldOperand {
  enum class Where : std::uint8_t { input, output, workspace };
  Where where = Where::workspace;
  std::uint64_t index = 0;  // of the tensor, or bytes into the workspace
  DataType dtype = DataType::float32;
};

/// A reduction of one tensor over some dims (kernels/reduce.cl).
struct Fold {
  FoldOperand x = {};
  FoldOperand y = {};
  Nest kept = {};        // x, centre and y in its first places
  Nest reduced = {};     // x
  bool aligned = false;  // x starts at a multiple of 16 bytes
  bool columns = false;  // the last kept dim is the innermost of x
  bool highest = false;  // else the sum
  bool negated = false;  // the lowest
  bool squares = false;
  std::int64_t repeats = 1;  // how often each term of a sum counts
  double divisor = 1;
  std::optional<std::uint64_t> centre = {};  // where in the workspace
};

/// The dims of x in the order of its memory; those with a bit in `reduced` go. `centre` and `y` have the rank of x.
Fold fold_of(const TensorSpec& x, unsigned reduced, const Dims& centre, const Dims& y);

/// Workspace that add_fold needs from its offset on: none where the fold is not cut into parts.
std::uint64_t fold_bytes(const Fold& fold, const DeviceProfile& profile);
void add_fold(LaunchPlan& plan, const Fold& fold, const DeviceProfile& profile, std::uint64_t offset);

/// Adds up [rows, columns] floats of the workspace, column by column, into an output of that many elements.
void add_column_sum(LaunchPlan& plan, const DeviceProfile& profile, std::uint64_t offset, std::int64_t rows,
                    std::int64_t columns, const Problem& problem, std::size_t output);

}  // namespace xpuruntime::opencl
