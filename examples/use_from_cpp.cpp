// The library without Python: choose a kernel, run it, and print who decided and why.
#include <iostream>
#include <vector>

#include "xpuruntime/runtime/ops.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

using namespace xpuruntime;

namespace {

// A rule is a name, a condition that reads the whole problem, and the kernel to use where it holds.
bool few_rows(const Problem& problem, const DeviceProfile&) { return problem.inputs[0].shape[0] <= 2; }

}  // namespace

int main() {
  const std::vector<float> a(8 * 16, 1.0F), b(16 * 4, 2.0F);
  const Tensor out = ops::matmul(Tensor::view(a.data(), {8, 16}), Tensor::view(b.data(), {16, 4}));

  // What was chosen, and why: a question about the problem, which needs no tensors.
  Runtime& runtime = Runtime::global();
  Dispatcher& dispatcher = runtime.dispatcher();
  const Problem called = parse_problem("matmul(f32[8,16], f32[16,4])");
  std::cout << "all 32: " << out.as<float>()[0] << "\n" << dispatcher.explain(called).to_text();

  // For a block on this thread, whatever the policy says elsewhere.
  {
    const ScopedPolicy scope(dispatcher, KernelPolicy().force("matmul", "reference"));
    std::cout << dispatcher.explain(called).because << "\n";
  }

  const Problem problem = parse_problem("matmul(f32[2,64], f32[64,64])");
  runtime.registry().get_or_create_selector({})->register_rule(OpId::matmul, few_rows, "reference", 0, "few rows");
  std::cout << dispatcher.explain(problem).because << "\n";
  return out.as<float>()[0] == 32.0F ? 0 : 1;
}
