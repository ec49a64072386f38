#pragma once

#include "backends/cuda/launch.h"
#include "xpuruntime/device/profile.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cuda {

/// How a tensor looks as rows of its last dims.
struct Rows {
  bool dense = true;  // the elements of a row are neighbours
  bool even = true;   // all rows are equally far apart
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t stride = 0;   // from row to row, in elements
  std::int64_t vectors = 0;  // of 16 bytes that a row holds at most
  int least_lanes = 1;       // enough for the elements beside whole vectors
};
Rows rows_of(const TensorSpec& spec, std::size_t row_dims);

/// Yes where rows_of says dense and even, and the kernels can count so far.
Verdict takes_rows(const Rows& rows);

/// What is done with a row.
enum class RowUse : std::uint8_t { reduce, loss, norm, softmax };

/// Few threads and much in registers where there are many rows, many threads for few rows, and several blocks for a row
/// that is too long for one.
RowTeam team_for(const Rows& rows, const DeviceProfile& profile, RowUse use);

/// How many blocks such a team's grid needs at most to keep the device busy, where blocks go from row to row.
int busy_blocks(const RowTeam& team, const DeviceProfile& profile);

std::string token_of(const RowTeam& team);

}  // namespace xpuruntime::cuda
