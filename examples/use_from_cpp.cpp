// The library without Python: choose a kernel, run it, and print who decided and why.
#include <iostream>
#include <vector>

#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

using namespace xpuruntime;

namespace {

// A rule is a name, a condition that reads the whole problem, and the kernel to use where it holds.
bool few_rows(const Problem& problem, const DeviceProfile&) { return problem.inputs[0].shape[0] <= 2; }

}  // namespace

int main() {
  std::vector<float> a(8 * 16, 1.0F), b(16 * 4, 2.0F), out(8 * 4);
  const Tensor x = Tensor::view(a.data(), DataType::float32, {8, 16});
  const Tensor y = Tensor::view(b.data(), DataType::float32, {16, 4});
  const Tensor z = Tensor::view(out.data(), DataType::float32, {8, 4});
  const Tensor* inputs[] = {&x, &y};
  const Tensor* outputs[] = {&z};
  const Call call{OpId::matmul, inputs, outputs};

  Runtime& runtime = Runtime::global();
  Dispatcher& dispatcher = runtime.dispatcher();
  dispatcher.dispatch(call);
  std::cout << "all 32: " << out[0] << "\n" << dispatcher.decide(call).to_text();

  // For a block on this thread, whatever the policy says elsewhere.
  {
    const ScopedPolicy scope(dispatcher, KernelPolicy().force("matmul", "reference"));
    std::cout << dispatcher.decide(call).because << "\n";
  }

  // A question about a problem that has no tensors yet.
  const Problem problem = parse_problem("matmul(f32[2,64], f32[64,64])");
  runtime.registry().get_or_create_selector({})->register_rule(OpId::matmul, few_rows, "reference", 0, "few rows");
  std::cout << dispatcher.explain(problem).because << "\n";
  return out[0] == 32.0F ? 0 : 1;
}
