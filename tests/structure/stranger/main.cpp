// A user's whole program, built against the installed package.
#include <algorithm>
#include <array>
#include <iostream>

#include "xpuruntime/runtime/ops.h"
#include "xpuruntime/runtime/runtime.h"

using namespace xpuruntime;

int main() {
  alignas(16) const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
  const Tensor x = Tensor::view(a, {2, 3}), y = Tensor::view(b, {3, 2});  // of const memory, so read-only
  const Tensor z = ops::matmul(x, y);

  Dispatcher& dispatcher = Runtime::global().dispatcher();
  std::cout << dispatcher.explain(parse_problem("matmul(f32[2,3], f32[3,2])")).to_text();
  const std::array expected = {58.f, 64.f, 139.f, 154.f};
  return std::equal(expected.begin(), expected.end(), z.as<float>()) ? 0 : 1;
}
