// A user's whole program, built against the installed package.
#include <algorithm>
#include <array>
#include <iostream>

#include "xpuruntime/runtime/runtime.h"

using namespace xpuruntime;

int main() {
  alignas(16) float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12}, out[4] = {};
  const Tensor x = Tensor::view(a, DataType::float32, {2, 3});
  const Tensor y = Tensor::view(b, DataType::float32, {3, 2});
  const Tensor z = Tensor::view(out, DataType::float32, {2, 2});
  const Tensor* inputs[] = {&x, &y};
  const Tensor* outputs[] = {&z};
  const Call call{OpId::matmul, inputs, outputs};

  Dispatcher& dispatcher = Runtime::global().dispatcher();
  dispatcher.dispatch(call);
  std::cout << dispatcher.decide(call).to_text();
  return std::ranges::equal(out, std::array{58.f, 64.f, 139.f, 154.f}) ? 0 : 1;
}
