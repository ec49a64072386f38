// Are the cases enough? Every op has a reference that takes them all, and no kernel of the CPU's table goes untried in
// a dtype that it takes.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backends/cpu/plan_run.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::cpu_tests {
namespace {

/// An op and direction as problem texts write them, and a kernel.
using Tried = std::map<std::pair<std::string, std::string>, std::set<DataType>>;

std::string what_of(const Problem& problem) {
  return std::string(to_string(problem.op)) + (problem.direction == Direction::backward ? ":backward" : "");
}

constexpr DataType dtypes[] = {DataType::float64, DataType::float32, DataType::float16, DataType::bfloat16,
                               DataType::int64,   DataType::int32,   DataType::int16,   DataType::int8,
                               DataType::uint8,   DataType::boolean};

/// The dtype that a case is about: that of its data, not of indices or masks.
std::size_t data_input(const Problem& problem) { return problem.op == OpId::embedding ? 1 : 0; }

/// All data in one dtype: where dtypes are mixed, "in which dtype" has no answer.
bool uniform(const Problem& problem) {
  const DataType dtype = problem.inputs[data_input(problem)].dtype;
  const OpCategory category = op_info(problem.op).category;
  const bool others_are_data = category == OpCategory::elementwise || category == OpCategory::matrix;
  return std::all_of(problem.inputs.begin(), problem.inputs.end(), [&](const TensorSpec& spec) {
    return spec.dtype == dtype || (!others_are_data && spec.dtype != DataType::boolean && !is_floating(spec.dtype));
  });
}

/// The problem with one dtype in the place of another, where the op allows that.
std::optional<Problem> retyped(const Problem& problem, DataType from, DataType to) {
  Problem changed = problem;
  const bool inferred =
      problem == make_problem(problem.op, problem.inputs, problem.attributes, problem.device, problem.direction);
  for (TensorSpec& spec : changed.inputs) {
    if (spec.dtype == from) spec.dtype = to;
  }
  for (TensorSpec& spec : changed.outputs) {
    if (spec.dtype == from) spec.dtype = to;
  }
  if (inferred) changed.outputs.clear();
  try {
    return checked(changed);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::set<DataType> taken(const Kernel& kernel, const Problem& problem, const DeviceProfile& profile) {
  std::set<DataType> out;
  for (const DataType dtype : dtypes) {
    const auto changed = retyped(problem, problem.inputs[data_input(problem)].dtype, dtype);
    if (changed && kernel.supports(*changed, profile).supported) out.insert(dtype);
  }
  return out;
}

TEST(Coverage, EveryOpHasAReferenceThatTakesEveryCase) {
  std::set<OpId> met, without;
  for (const cases::CaseText& text : cases::all()) {
    const Problem problem = parse_problem(text.problem);
    met.insert(problem.op);
    const KernelList kernels = cpu_kernels(problem.op);
    if (kernels.empty() || kernels.back()->name() != "reference") {
      without.insert(problem.op);
      continue;
    }
    const Verdict verdict = kernels.back()->supports(problem, cpu_profile());
    EXPECT_TRUE(verdict.supported) << text.problem << ": " << verdict.reason;
  }
  for (const OpId op : without) ADD_FAILURE() << to_string(op) << " has no kernel reference at its end";
  for (std::uint16_t op = 0; op < static_cast<std::uint16_t>(OpId::builtin_count); ++op) {
    EXPECT_TRUE(met.contains(static_cast<OpId>(op))) << "no case of " << to_string(static_cast<OpId>(op));
  }
}

TEST(Coverage, EveryKernelIsTriedInEveryDtypeItTakes) {
  Tried tried, could;
  for (const cases::CaseText& text : cases::all()) {
    const Problem problem = parse_problem(text.problem);
    const DataType dtype = problem.inputs[data_input(problem)].dtype;
    for (const auto& kernel : cpu_kernels(problem.op)) {
      const auto key = std::pair(what_of(problem), std::string(kernel->name()));
      if (kernel->supports(problem, cpu_profile()).supported) tried[key].insert(dtype);
      if (!uniform(problem)) continue;
      for (const DataType other : taken(*kernel, problem, cpu_profile())) could[key].insert(other);
    }
  }
  for (const auto& [key, list] : could) {
    for (const DataType dtype : list) {
      EXPECT_TRUE(tried[key].contains(dtype))
          << key.first << " " << key.second << " takes " << to_string(dtype) << " and no case tries it";
    }
  }
}

/// This machine, and others that kernels may have been written for.
std::vector<DeviceProfile> profiles() {
  std::vector<DeviceProfile> out = {cpu_profile()};
  for (const char* name : {"xeon_amx", "neoverse_n1", "apple_m2"}) {
    out.push_back(DeviceProfile::load(std::string(XRT_TEST_DATA "/profiles/") + name + ".json"));
  }
  return out;
}

TEST(Coverage, EveryKernelTakesSomeCaseOnSomeMachine) {
  std::set<std::pair<OpId, std::string>> idle;
  for (std::uint16_t op = 0; op < static_cast<std::uint16_t>(OpId::builtin_count); ++op) {
    for (const auto& kernel : cpu_kernels(static_cast<OpId>(op))) idle.emplace(kernel->op(), kernel->name());
  }
  const std::vector<DeviceProfile> machines = profiles();
  for (const cases::CaseText& text : cases::all()) {
    const Problem problem = parse_problem(text.problem);
    for (const auto& kernel : cpu_kernels(problem.op)) {
      for (const DeviceProfile& machine : machines) {
        if (kernel->supports(problem, machine).supported) idle.erase({problem.op, std::string(kernel->name())});
      }
    }
  }
  for (const auto& [op, name] : idle) ADD_FAILURE() << to_string(op) << " " << name << " takes no case anywhere";
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
