#include <set>

#include "parsed.h"
#include "xpuruntime/graph/model.h"

namespace {

using namespace xpuruntime;

std::size_t sum_of(const Tensor& tensor) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < tensor.span(); ++i) sum += tensor.as<const unsigned char>()[i];
  return sum;
}

/// Aborts where a name is made twice or read before it is made; reads all bytes of constants.
std::size_t check_graph(const ModelGraph& graph, std::set<std::string> names) {
  std::size_t sum = 0;
  const auto make = [&](const std::string& name) {
    if (!name.empty() && !names.insert(name).second) std::abort();
  };
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !names.contains(name)) std::abort();
  };
  for (const ModelValue& input : graph.inputs) make(input.name);
  for (const auto& [name, tensor] : graph.constants) {
    make(name);
    sum += sum_of(tensor);
  }
  for (const ModelNode& node : graph.nodes) {
    if (node.op.empty()) std::abort();
    for (const std::string& input : node.inputs) read(input);
    for (const auto& [name, value] : node.attributes) {
      if (const auto* tensor = std::get_if<Tensor>(&value)) sum += sum_of(*tensor);
      if (const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value)) sum += check_graph(**body, names);
    }
    for (const std::string& output : node.outputs) make(output);
  }
  for (const ModelValue& output : graph.outputs) read(output.name);
  return sum;
}

}  // namespace

/// Any bytes are refused with an Error, or read as a model that is sound.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = parsed({reinterpret_cast<const char*>(data), size}, [](std::string_view bytes) {
    return parse_onnx(std::as_bytes(std::span(bytes)), "/nowhere");
  });
  // No such sum: it keeps the compiler from leaving out the reading.
  if (model && check_graph(model->graph, {}) == SIZE_MAX) std::abort();
  return 0;
}
