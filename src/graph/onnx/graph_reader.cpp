#include "graph/onnx/graph_reader.h"

#include <set>

#include "core/printable.h"
#include "graph/onnx/attribute_reader.h"
#include "graph/onnx/names.h"
#include "graph/onnx/node_order.h"
#include "graph/onnx/value_reader.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

constexpr int most_graphs = 16;  // one in the other

struct GraphAndReads {
  ModelGraph graph = {};
  std::vector<std::string> outer_names = {};  // which it reads and does not make
};

class GraphReader {
 public:
  explicit GraphReader(TensorReader& tensors) : tensors_(tensors) {}

  GraphAndReads read(const WireField& message) {
    if (++depth_ > most_graphs) {
      fail_at(message.offset, "more than " + std::to_string(most_graphs) + " graphs one in the other");
    }
    GraphAndReads out;
    std::vector<NodeReads> reads;
    WireReader fields(message);
    while (const auto field = fields.next()) {
      if (field->number == 1) {  // node
        out.graph.nodes.push_back(read_node(*field, reads.emplace_back()));
      } else {
        read_field(*field, out.graph);
      }
    }
    leave_out_constants(out.graph, message.offset);
    out.outer_names = order_nodes(out.graph, std::move(reads));
    --depth_;
    return out;
  }

 private:
  void read_field(const WireField& field, ModelGraph& graph) {
    switch (field.number) {
      case 2:
        graph.name = field.text();
        return;
      case 5:
        return add_constant(field, graph);
      case 11:
        graph.inputs.push_back(read_value(field, "a graph input"));
        return;
      case 12:
        graph.outputs.push_back(read_value(field, "a graph output"));
        return;
      case 13: {
        ModelValue value = read_value(field, "a value_info");
        std::string name = value.name;
        graph.values.insert_or_assign(std::move(name), std::move(value));
        return;
      }
      case 15:
        fail(ErrorCode::not_supported, reader,
             "byte " + std::to_string(field.offset) +
                 ": a sparse initializer, which is not implemented; export the model with dense ones");
      default:
        return;
    }
  }

  void add_constant(const WireField& field, ModelGraph& graph) {
    NamedTensor constant = tensors_.read(field, "constant");
    if (constant.name.empty()) fail_at(field.offset, "a constant without a name");
    const auto [place, added] = graph.constants.try_emplace(std::move(constant.name), std::move(constant.tensor));
    if (!added) fail_at(field.offset, "constant '" + shown(place->first) + "' is there twice");
  }

  ModelNode read_node(const WireField& message, NodeReads& reads) {
    ModelNode node;
    WireReader fields(message);
    while (const auto field = fields.next()) read_node_field(*field, node);
    if (node.op.empty()) fail_at(message.offset, node_text(node) + " has no op_type");
    // Once the node has its name, which may stand behind them.
    const std::string text = node_text(node);
    WireReader again(message);
    while (const auto field = again.next()) {
      if (field->number == 5) add_attribute(*field, node, text, reads);
    }
    return node;
  }

  static void read_node_field(const WireField& field, ModelNode& node) {
    if (field.number == 1) node.inputs.emplace_back(field.text());
    if (field.number == 2) node.outputs.emplace_back(field.text());
    if (field.number == 3) node.name = field.text();
    if (field.number == 4) node.op = field.text();
    if (field.number == 7) node.domain = field.text() == "ai.onnx" ? "" : field.text();
    if (field.number == 8 && !field.text().empty()) {
      fail(ErrorCode::not_supported, reader,
           "byte " + std::to_string(field.offset) +
               ": a node calls a function by its overload; export the model without functions");
    }
  }

  void add_attribute(const WireField& field, ModelNode& node, const std::string& text, NodeReads& reads) {
    NamedAttribute attribute = read_attribute(field, text, tensors_, [&](const WireField& message) {
      GraphAndReads body = read(message);
      reads.insert(reads.end(), body.outer_names.begin(), body.outer_names.end());
      return std::make_shared<const ModelGraph>(std::move(body.graph));
    });
    const auto [place, added] = node.attributes.try_emplace(std::move(attribute.name), std::move(attribute.value));
    if (!added) fail_at(field.offset, "attribute '" + shown(place->first) + "' of " + text + " is there twice");
  }

  /// Older files list constants among the inputs too.
  static void leave_out_constants(ModelGraph& graph, std::size_t offset) {
    std::set<std::string_view> names;
    for (const ModelValue& input : graph.inputs) {
      if (!names.insert(input.name).second) {
        fail_at(offset, "graph input '" + shown(input.name) + "' is there twice");
      }
      const auto constant = graph.constants.find(input.name);
      if (constant == graph.constants.end() || !input.dtype || input.dtype == constant->second.dtype()) continue;
      fail_at(offset,
              "graph input '" + shown(input.name) + "' is of " + input.type + " and its constant of another type");
    }
    std::erase_if(graph.inputs, [&](const ModelValue& input) { return graph.constants.contains(input.name); });
  }

  TensorReader& tensors_;
  int depth_ = 0;
};

}  // namespace

ModelGraph read_graph(const WireField& message, TensorReader& tensors) {
  return GraphReader(tensors).read(message).graph;
}

}  // namespace xpuruntime::onnx
