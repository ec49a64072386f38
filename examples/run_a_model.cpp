// A model without Python: run_a_model MODEL.onnx N C H W runs it on ones of that shape and says what ran its nodes.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <vector>

#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"

using namespace xpuruntime;

int main(int count, char** words) try {
  if (count < 3) {
    std::cerr << "usage: run_a_model MODEL.onnx EXTENT...\n";
    return 2;
  }
  std::vector<std::int64_t> extents;
  for (int i = 2; i < count; ++i) extents.push_back(std::atoll(words[i]));

  Runtime& runtime = Runtime::global();
  const Session session = Session::load(words[1], runtime.dispatcher(), runtime.devices());
  const Tensor x = Tensor::empty(DataType::float32, Dims(std::span(extents)));
  std::fill_n(x.as<float>(), element_count(x.spec()), 1.0F);

  const std::vector<Tensor> results = session.run({&x, 1});
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::cout << session.outputs()[i].name << " " << to_string(results[i].spec()) << " begins with "
              << results[i].as<float>()[0] << "\n";
  }

  std::map<std::string, int> kernels;
  for (const SessionStep& step : session.explain({&x, 1})) {
    if (step.decision) ++kernels[step.decision->kernel];
  }
  for (const auto& [kernel, calls] : kernels) std::cout << calls << " calls by " << kernel << "\n";
  std::cout << session.memory_bytes({&x, 1}) << " bytes between inputs and outputs\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
