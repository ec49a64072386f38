#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/cases.h"
#include "backends/oracle.h"

namespace xpuruntime::cpu_tests {

/// Where a plan finds its memory: `slot` counts inputs, then outputs, then the workspace.
using Place = std::function<std::byte*(std::size_t slot, std::size_t bytes, std::size_t alignment)>;

/// The class that the problem is in (Kernel::plan_problem), as a dispatcher prepares, or the problem alone; or its
/// class with inputs after the first that keep their contents (Plan::with_constants), where the plan gains by it.
enum class PreparedFor : std::uint8_t { its_class, the_problem, constants };

/// Prepares a kernel for a problem and runs the plan once on the inputs of a case, without any dispatcher.
/// `problem` is the case's, or differs from it in alignment and limits alone.
struct PlanRun {
  Status status = {};
  bool holds_constants = false;
  std::vector<std::vector<std::byte>> outputs = {};
};
PlanRun run_plan(const Kernel& kernel, const Problem& problem, const oracle::Case& run, const Place& place,
                 PreparedFor prepared_for = PreparedFor::its_class);

/// Empty if the outputs are right, else what is wrong.
std::string compare(const PlanRun& run, const Kernel& kernel, const oracle::Case& one);

inline constexpr std::size_t workspace_alignment = 64;
/// The kernels of the CPU for an op.
KernelList cpu_kernels(OpId op);
const DeviceProfile& cpu_profile();

/// Calls `use(kernel, case)` for each case to run and each CPU kernel that takes it.
void for_each_subject(const std::function<void(const Kernel&, const oracle::Case&)>& use);

/// "matmul packed on matmul(...)"
std::string text_of(const Kernel& kernel, const Problem& problem);

/// A call whose shapes are right and where one of the indices is not.
struct BadIndex {
  const char* problem;
  std::size_t input;     // that holds the indices
  std::size_t position;  // of the bad one
  double value;
};
/// The kernel refuses the call before it writes, and takes the next one.
void expect_index_refused(const BadIndex& bad, const Kernel& kernel);

/// Reports the first failure of each kernel and counts the others, so that a broken one does not drown the rest.
class FirstFailures {
 public:
  ~FirstFailures();
  void add(const Kernel& kernel, const std::string& what);

 private:
  std::vector<std::pair<std::string, std::size_t>> kernels_;
};

}  // namespace xpuruntime::cpu_tests
