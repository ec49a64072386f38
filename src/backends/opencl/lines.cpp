#include "backends/opencl/lines.h"

#include <algorithm>
#include <limits>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

constexpr int cpu_row_width = 16;   // several vector registers: their latencies overlap
constexpr int cpu_line_width = 16;  // a line of a cache
constexpr int cpu_group = 16;       // of single lines
constexpr int most_held_floats = 64;
constexpr int usual_group = 128;
constexpr int most_lanes = 256;

bool has_rows(const LineShape& shape) {
  const Nest& along = shape.nest.along;
  if (along.count == 1) return true;
  for (std::size_t slot = 0; slot < nest_tensors; ++slot)
    if ((shape.slots >> slot & 1) != 0 && along.stride[slot][0] != 1) return false;
  return along.rank == 1;
}

/// Whether lines are neighbours in all tensors that have some.
bool has_neighbours(const LineShape& shape) {
  const Nest& across = shape.nest.across;
  if (across.last_extent() < cpu_line_width || (shape.slots & bit(line_other)) != 0) return false;
  for (const LineSlot slot : {line_x, line_second, line_y})
    if ((shape.slots & bit(slot)) != 0 && across.last_stride(slot) != 1) return false;
  return true;
}

bool is_aligned_to(const LineShape& shape, const Problem& problem, int width) {
  const auto loose = [](const TensorSpec& spec) { return is_floating(spec.dtype) && spec.alignment < 16; };
  if (std::any_of(problem.inputs.begin(), problem.inputs.end(), loose)) return false;
  if (std::any_of(problem.outputs.begin(), problem.outputs.end(), loose)) return false;
  if (shape.nest.along.count % width != 0) return false;
  for (std::size_t slot = 0; slot < nest_tensors; ++slot)
    for (const std::int64_t stride : shape.nest.across.stride[slot])
      if ((shape.slots >> slot & 1) != 0 && stride % width != 0) return false;
  return true;
}

int power_of_two(std::int64_t least) {
  int power = 1;
  while (power < least) power *= 2;
  return power;
}

/// With so many lanes; as much as registers hold is held.
LineTeam shared_team(const LineShape& shape, const Problem& problem, const DeviceProfile& profile, int lanes) {
  LineTeam team{.rows = true, .lanes = lanes};
  const auto width = static_cast<int>(16 / size_of(problem.inputs[0].dtype));
  team.aligned = is_aligned_to(shape, problem, width);
  if (team.aligned) team.width = width;
  team.group = std::max(lanes, allowed_items(usual_group, profile));  // powers of two: whole teams
  const int held = power_of_two(divided_up(divided_up(shape.nest.along.count, team.width), lanes));
  if (held * team.width <= most_held_floats) team.held = held;
  return team;
}

/// Enough that each holds a few vectors, and more where there are too few rows to keep the device busy.
int lanes_for(const LineShape& shape, const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t wanted_vectors = 4, busy_items = 1024;
  const auto width = static_cast<std::int64_t>(16 / size_of(problem.inputs[0].dtype));
  const std::int64_t vectors = divided_up(shape.nest.along.count, width);
  int lanes = power_of_two(divided_up(vectors, wanted_vectors));
  const std::int64_t enough = busy_items * std::max(profile.compute_units, 1);
  while (shape.nest.across.count * lanes < enough && lanes < vectors) lanes *= 2;
  return std::min(lanes, allowed_items(most_lanes, profile));
}

}  // namespace

int allowed_items(int items, const DeviceProfile& profile) {
  while (items > 1 && items > largest_group(profile)) items /= 2;
  return items;
}

std::string token_of(const LineTeam& team) {
  std::string token = (team.rows ? "rows width=" : "lines width=") + std::to_string(team.width);
  if (team.lanes > 1) token += " lanes=" + std::to_string(team.lanes);
  if (team.held > 0) token += " held=" + std::to_string(team.held);
  return token;
}

LineTeam team_for(const LineShape& shape, const Problem& problem, const DeviceProfile& profile) {
  if (has_rows(shape)) {
    if (is_cpu(profile)) return {.rows = true, .width = cpu_row_width, .group = 1};
    return shared_team(shape, problem, profile, lanes_for(shape, problem, profile));
  }
  if (!is_cpu(profile)) return {};
  return {.width = has_neighbours(shape) ? cpu_line_width : 1, .group = has_neighbours(shape) ? 1 : cpu_group};
}

std::vector<LineTeam> teams_for(const LineShape& shape, const Problem& problem, const DeviceProfile& profile) {
  std::vector<LineTeam> teams = {team_for(shape, problem, profile)};
  const auto offer = [&](const LineTeam& team) {
    if (std::find(teams.begin(), teams.end(), team) == teams.end()) teams.push_back(team);
  };
  if (is_cpu(profile) || !has_rows(shape)) return teams;  // one item a row is what a CPU's code is made for
  const int most = std::min(allowed_items(most_lanes, profile), power_of_two(shape.nest.along.count));
  for (int lanes = 4; lanes <= most && lanes <= shape.nest.along.count; lanes *= 4) {
    offer(shared_team(shape, problem, profile, lanes));
  }
  return teams;
}

LineTeam team_of(std::string_view token, const LineShape& shape, const Problem& problem, const DeviceProfile& profile) {
  for (const LineTeam& team : teams_for(shape, problem, profile))
    if (token.empty() || token_of(team) == token) return team;
  fail(ErrorCode::not_supported, "opencl::lines", "there is no variant '" + std::string(token) + "' of this problem");
}

std::string line_source(std::string_view kernels) { return std::string(vectors_cl) + lines_cl + std::string(kernels); }

std::string width_option(int width, bool aligned) {
  const std::string option = " -D WIDTH=" + std::to_string(width);
  if (aligned) return option + " -D ALIGNED";
  return width == 1 ? option : option + " -D CPU_DEVICE";
}

std::string alike_option(const Problem& problem, std::size_t inputs, const DeviceProfile& profile) {
  const auto alike = [&](const TensorSpec& spec) { return spec.dtype == problem.inputs[0].dtype; };
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!has_input(problem.inputs, i)) return {};
  }
  const bool all = std::all_of(problem.inputs.begin(), problem.inputs.end(), alike) &&
                   std::all_of(problem.outputs.begin(), problem.outputs.end(), alike);
  return all && !is_cpu(profile) ? " -D ALIKE" : "";
}

std::string line_options(const LineTeam& team, const SplitNest& nest, DataType x, DataType second) {
  std::string options = width_option(team.width, team.aligned) + type_option('A', x) + type_option('B', second);
  // The places of a row's elements are not looked up.
  options += team.rows ? dims_option({&nest.across}) : dims_option({&nest.across, &nest.along});
  if (team.rows) options += team.lanes == 1 ? " -D ROWS -D ALONE" : " -D ROWS";
  if (team.held > 0) options += " -D HELD=" + std::to_string(team.held);
  if (nest.along.count > std::int64_t{1} << 16) options += " -D LONG_SUMS";
  return options;
}

std::int64_t line_items(const LineShape& shape, const LineTeam& team) {
  const Nest& across = shape.nest.across;
  if (across.count == 0 || shape.nest.along.count == 0) return 0;
  if (team.rows) return across.count * team.lanes;
  return across.count / across.last_extent() * divided_up(across.last_extent(), team.width);
}

Launch& bind_lines(Launch& launch, const SplitNest& nest, const LineTeam& team) {
  launch.constant(nest.across).constant(nest.along);
  if (!team.rows || team.lanes == 1) return launch;
  return launch.constant(team.lanes).local(2 * sizeof(float) * static_cast<std::size_t>(team.group));
}

Verdict takes_lines(const SplitNest& nest) {
  return is_at_most("elements of a line", nest.along.count, std::numeric_limits<std::int32_t>::max() / 4);
}

Launch& bind_output(Launch& launch, const Problem& problem, std::size_t output) {
  return launch.output(output).constant(type_number(problem.outputs[output].dtype));
}

Launch& bind_parameter(Launch& launch, const Problem& problem, std::size_t input, bool given) {
  return launch.input(given ? input : 0).constant(given ? type_number(problem.inputs[input].dtype) : no_type);
}

}  // namespace xpuruntime::opencl
