#include "graph/onnx/operators.h"

#include <algorithm>
#include <string_view>

#include "core/printable.h"
#include "graph/onnx/names.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

struct Operator {
  std::string_view name;
  int least_inputs;
  int most_inputs;  // -1: any number
  int most_outputs;
  std::string_view attributes;  // with a space between two
};

constexpr Operator operators[] = {
#include "graph/onnx/operators.inc"
};

bool has_word(std::string_view words, std::string_view word) {
  if (word.find(' ') != std::string_view::npos) return false;
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

/// Names at the end may be empty: those are left out.
int count_of(const std::vector<std::string>& names) {
  const auto last = std::find_if(names.rbegin(), names.rend(), [](const std::string& name) { return !name.empty(); });
  return static_cast<int>(names.rend() - last);
}

[[noreturn]] void refuse(const ModelNode& node, const std::string& what) {
  fail(ErrorCode::corrupt_data, reader, node_text(node) + " " + what + "; export the model again");
}

}  // namespace

void check_operator(const ModelNode& node) {
  if (!node.domain.empty()) return;
  const Operator* const row =
      std::lower_bound(std::begin(operators), std::end(operators), node.op,
                       [](const Operator& one, const std::string& name) { return one.name < name; });
  if (row == std::end(operators) || row->name != node.op) return;
  const int inputs = count_of(node.inputs), outputs = count_of(node.outputs);
  if (inputs < row->least_inputs) {
    refuse(node, "has " + std::to_string(inputs) + " inputs and needs " + std::to_string(row->least_inputs));
  }
  if (row->most_inputs >= 0 && inputs > row->most_inputs) {
    refuse(node, "has " + std::to_string(inputs) + " inputs and takes at most " + std::to_string(row->most_inputs));
  }
  if (row->most_outputs >= 0 && outputs > row->most_outputs) {
    refuse(node, "has " + std::to_string(outputs) + " outputs and makes at most " + std::to_string(row->most_outputs));
  }
  for (const auto& [name, value] : node.attributes) {
    if (has_word(row->attributes, name)) continue;
    refuse(node, "has the attribute '" + shown(name) + "', and " + node.op + " has none of that name" +
                     (row->attributes.empty() ? "" : ", but " + std::string(row->attributes)));
  }
}

}  // namespace xpuruntime::onnx
