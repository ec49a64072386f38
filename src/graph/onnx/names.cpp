#include "graph/onnx/names.h"

#include <set>
#include <string_view>

#include "core/printable.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

/// The names that can be read at one place of a model.
class Scope {
 public:
  /// Bounded: the reader takes few graphs one in the other.
  void check(const ModelGraph& graph) {
    std::vector<std::string_view> own;
    const auto make = [&](std::string_view name, const auto& maker) {
      if (!names_.insert(name).second) refuse(maker() + " makes '" + shown(name) + "', which is made before");
      own.push_back(name);
    };
    for (const ModelValue& input : graph.inputs) make(input.name, [] { return std::string("a graph input"); });
    for (const auto& constant : graph.constants) make(constant.first, [] { return std::string("a constant"); });
    for (const auto& constant : graph.unread_constants) make(constant.first, [] { return std::string("a constant"); });
    for (const ModelNode& node : graph.nodes) {
      check_reads(node);
      for (const std::string& output : node.outputs) {
        if (!output.empty()) make(output, [&] { return node_text(node); });
      }
    }
    for (const ModelValue& output : graph.outputs) {
      if (!names_.contains(output.name)) refuse("graph output '" + shown(output.name) + "' is made by no node");
    }
    for (const std::string_view name : own) names_.erase(name);
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    fail(ErrorCode::corrupt_data, reader, what + "; export the model again");
  }

  void check_reads(const ModelNode& node) {
    for (const std::string& input : node.inputs) {
      if (input.empty() || names_.contains(input)) continue;
      refuse(node_text(node) + " reads '" + shown(input) + "', which no node, input or constant makes");
    }
    for (const auto& [name, value] : node.attributes) {
      if (const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value)) check(**body);
    }
  }

  std::set<std::string_view> names_ = {};  // no hash table: a file can choose names whose hashes collide
};

}  // namespace

std::string node_text(const ModelNode& node) {
  const std::string op = node.op.empty() ? "" : " (" + shown(node.op) + ")";
  if (!node.name.empty()) return "node '" + shown(node.name) + "'" + op;
  for (const std::string& output : node.outputs) {
    if (!output.empty()) return "the node" + op + " of '" + shown(output) + "'";
  }
  return "a node" + op;
}

void check_names(const ModelGraph& graph) { Scope().check(graph); }

}  // namespace xpuruntime::onnx
