#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/launch.h"
#include "backends/opencl/nest.h"

namespace xpuruntime::opencl {

// Kernels that compute with lines of elements (kernels/lines.cl).

/// What a tensor is in the nests of a line kernel.
enum LineSlot : std::uint8_t { line_x, line_second, line_y, line_weight, line_other };
constexpr unsigned bit(LineSlot slot) { return 1U << slot; }

/// Who computes a line.
struct LineTeam {
  bool rows = false;     // elements of a line are neighbours, else lines may be
  bool aligned = false;  // all vectors are, to 16 bytes
  int width = 1;         // floats of a vector
  int lanes = 1;         // items that share a row
  int held = 0;          // vectors that each of them holds; 0: lines are read again for each pass
  int group = 0;         // items of a work-group; 0: a usual one

  bool operator==(const LineTeam&) const = default;
};
std::string token_of(const LineTeam& team);

/// `items`, a power of two, or the largest smaller one that the device has work-groups of.
int allowed_items(int items, const DeviceProfile& profile);

/// The lines of a problem and the slots of its tensors.
struct LineShape {
  SplitNest nest = {};
  unsigned slots = 0;  // bits of those in use
};

/// The team that a kernel chooses itself, and all to choose from.
LineTeam team_for(const LineShape& shape, const Problem& problem, const DeviceProfile& profile);
std::vector<LineTeam> teams_for(const LineShape& shape, const Problem& problem, const DeviceProfile& profile);
/// The one with this token, or the kernel's own where the token is empty.
LineTeam team_of(std::string_view token, const LineShape& shape, const Problem& problem, const DeviceProfile& profile);

/// vectors.cl, lines.cl and this one.
std::string line_source(std::string_view kernels);
std::string line_options(const LineTeam& team, const SplitNest& nest, DataType x, DataType second);
/// ALIKE in lines.cl, for GPUs: asking each vector's type costs them up to a fifth. `inputs`: as many as can be given.
std::string alike_option(const Problem& problem, std::size_t inputs, const DeviceProfile& profile);
/// Vectors of so many floats; on GPUs they are aligned.
std::string width_option(int width, bool aligned = false);
/// Work-items of a launch with one team for each line.
std::int64_t line_items(const LineShape& shape, const LineTeam& team);
/// LINE_PARAMS.
Launch& bind_lines(Launch& launch, const SplitNest& nest, const LineTeam& team);

/// Lines whose elements are counted in 31 bits.
Verdict takes_lines(const SplitNest& nest);

/// OUTPUT_PARAM and PARAMETER_PARAM; an input that is not given is input 0, and not looked at.
Launch& bind_output(Launch& launch, const Problem& problem, std::size_t output);
Launch& bind_parameter(Launch& launch, const Problem& problem, std::size_t input, bool given);

}  // namespace xpuruntime::opencl
