#include "graph/onnx/graph_reader.h"

#include <map>
#include <set>
#include <utility>

#include "core/printable.h"
#include "graph/onnx/attribute_reader.h"
#include "graph/onnx/names.h"
#include "graph/onnx/node_order.h"
#include "graph/onnx/operators.h"
#include "graph/onnx/value_reader.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::onnx {
namespace {

constexpr int most_graphs = 16;     // one in the other
constexpr int most_functions = 64;  // one in the other
// What calls of functions become, at most; each call is read anew.
constexpr std::size_t most_inlined_bytes = std::size_t{256} << 20;
constexpr std::size_t bytes_of_node = 1024;  // in memory, about

/// A call of a function, while its nodes are read in the call's place.
struct Inlined {
  const Function& function;
  const Inlined* outer;
  int depth;
  std::string prefix;                                          // of the names that the function has for itself
  std::map<std::string, std::string, std::less<>> names = {};  // of its inputs and outputs: what the call has for them
  std::map<std::string, ModelAttribute, std::less<>> attributes = {};
};

struct GraphAndReads {
  ModelGraph graph = {};
  std::vector<std::string> outer_names = {};  // which it reads and does not make
};

class GraphReader {
 public:
  GraphReader(TensorReader& tensors, const Functions& functions, std::int64_t opset)
      : tensors_(tensors), functions_(functions), opset_(opset) {}

  GraphAndReads read(const WireField& message) {
    if (++depth_ > most_graphs) {
      fail_at(message.offset, "more than " + std::to_string(most_graphs) + " graphs one in the other");
    }
    GraphAndReads out;
    std::vector<NodeReads> reads;
    WireReader fields(message);
    while (const auto field = fields.next()) {
      if (field->number == 1) {  // node
        add_node(*field, out.graph, reads);
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
        graph.inputs.push_back(read_value_here(field, "a graph input"));
        return;
      case 12:
        graph.outputs.push_back(read_value_here(field, "a graph output"));
        return;
      case 13: {
        ModelValue value = read_value_here(field, "a value_info");
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
    if (auto unread = TensorReader::unread(field)) {
      if (unread->name.empty()) fail_at(field.offset, "a constant without a name");
      const auto [place, added] = graph.unread_constants.try_emplace(renamed(unread->name), std::move(unread->type));
      if (!added) fail_at(field.offset, "constant '" + shown(place->first) + "' is there twice");
      tensors_.pass_over(field);
      return;
    }
    NamedTensor constant = tensors_.read(field, "constant");
    if (constant.name.empty()) fail_at(field.offset, "a constant without a name");
    const auto [place, added] = graph.constants.try_emplace(renamed(constant.name), std::move(constant.tensor));
    if (!added) fail_at(field.offset, "constant '" + shown(place->first) + "' is there twice");
  }

  ModelValue read_value_here(const WireField& field, std::string_view subject) {
    ModelValue value = read_value(field, subject);
    if (inlined_ != nullptr) value.name = renamed(value.name);
    return value;
  }

  /// What a name of the graph that is read is called in the model.
  std::string renamed(std::string_view name) {
    if (inlined_ == nullptr || name.empty()) return std::string(name);
    const auto given = inlined_->names.find(name);
    std::string whole = given != inlined_->names.end() ? given->second : inlined_->prefix + std::string(name);
    count(whole.size());
    return whole;
  }

  void count(std::size_t bytes) {
    inlined_bytes_ += bytes;
    if (inlined_bytes_ <= most_inlined_bytes) return;
    fail(ErrorCode::not_supported, reader,
         "the model's functions become more than " + std::to_string(most_inlined_bytes >> 20) +
             " MiB where they are called; export it without functions");
  }

  void add_node(const WireField& message, ModelGraph& graph, std::vector<NodeReads>& reads) {
    ModelNode node;
    std::string overload;
    WireReader fields(message);
    while (const auto field = fields.next()) {
      read_node_field(*field, node);
      if (field->number == 8) overload = field->text();
    }
    if (node.op.empty()) fail_at(message.offset, node_text(node) + " has no op_type");
    // Once the node has its name, which may stand behind them.
    const std::string text = node_text(node);
    const Function* function = functions_.find(node.domain, node.op, overload);
    if (function == nullptr && !overload.empty()) {
      fail_at(message.offset, text + " calls a function by its overload, which the model does not have");
    }
    NodeReads own;
    WireReader again(message);
    while (const auto field = again.next()) {
      if (field->number == 5) add_attribute(*field, node, text, own);
    }
    if (inlined_ != nullptr) {
      count(bytes_of_node);
      if (!node.name.empty()) node.name = inlined_->prefix + node.name;
      for (auto* names : {&node.inputs, &node.outputs}) {
        for (std::string& name : *names) name = renamed(name);
      }
    }
    if (function != nullptr) return inline_call(std::move(node), *function, message.offset, graph, reads);
    check_operator(node);
    graph.nodes.push_back(std::move(node));
    reads.push_back(std::move(own));
  }

  void inline_call(ModelNode call, const Function& function, std::size_t offset, ModelGraph& graph,
                   std::vector<NodeReads>& reads) {
    const std::string subject = "function '" + shown(function.name) + "'";
    check_call(call, function, offset, subject);
    constexpr std::size_t most_name = 64;
    const int depth = inlined_ == nullptr ? 1 : inlined_->depth + 1;
    Inlined inlined{function, inlined_, depth, call.op.substr(0, most_name) + "#" + std::to_string(++calls_) + "/"};
    std::vector<std::pair<std::string, std::string>> copies;  // outputs that are inputs
    for (std::size_t i = 0; i < function.inputs.size(); ++i) {
      inlined.names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    }
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i].empty()) continue;
      const auto [place, added] = inlined.names.try_emplace(function.outputs[i], call.outputs[i]);
      if (!added) copies.emplace_back(place->second, call.outputs[i]);
    }
    for (const WireField& field : function.defaults) {
      NodeReads none;
      NamedAttribute attribute = read_own_attribute(field, subject, none);
      inlined.attributes[attribute.name] = std::move(attribute.value);
    }
    for (auto& [name, value] : call.attributes) inlined.attributes[name] = std::move(value);
    const Inlined* const before = std::exchange(inlined_, &inlined);
    WireReader fields(function.message);
    while (const auto field = fields.next()) {
      if (field->number == 7) add_node(*field, graph, reads);
    }
    inlined_ = before;
    for (const auto& [from, to] : copies) {
      graph.nodes.push_back({.name = inlined.prefix + "copy", .op = "Identity", .inputs = {from}, .outputs = {to}});
      reads.emplace_back();
    }
  }

  void check_call(const ModelNode& call, const Function& function, std::size_t offset, const std::string& subject) {
    count(function.message.bytes.size() + bytes_of_node);
    for (const Inlined* at = inlined_; at != nullptr; at = at->outer) {
      if (&at->function == &function) fail_at(offset, subject + " calls itself");
    }
    if (inlined_ != nullptr && inlined_->depth == most_functions) {
      fail_at(offset, "more than " + std::to_string(most_functions) + " functions one in the other");
    }
    if (call.inputs.size() > function.inputs.size() || call.outputs.size() > function.outputs.size()) {
      fail_at(offset, node_text(call) + " has more inputs or outputs than " + subject + " that it calls");
    }
    for (const auto& [name, value] : call.attributes) {
      if (!std::holds_alternative<std::shared_ptr<const ModelGraph>>(value)) continue;
      fail(ErrorCode::not_supported, reader,
           node_text(call) + " gives " + subject +
               " a graph, which is not implemented; export the model without functions");
    }
    if (function.opset == 0 || function.opset == opset_) return;
    fail(ErrorCode::not_supported, reader,
         subject + " is of opset " + std::to_string(function.opset) + " and the model of " + std::to_string(opset_) +
             "; inline it, for instance with onnx.inliner.inline_local_functions(model, convert_version=True)");
  }

  static void read_node_field(const WireField& field, ModelNode& node) {
    if (field.number == 1) node.inputs.emplace_back(field.text());
    if (field.number == 2) node.outputs.emplace_back(field.text());
    if (field.number == 3) node.name = field.text();
    if (field.number == 4) node.op = field.text();
    if (field.number == 7) node.domain = field.text() == "ai.onnx" ? "" : field.text();
  }

  void add_attribute(const WireField& field, ModelNode& node, const std::string& text, NodeReads& reads) {
    const std::string_view referred = inlined_ == nullptr ? std::string_view() : referred_attribute(field);
    NamedAttribute attribute;
    if (referred.empty()) {
      attribute = read_own_attribute(field, text, reads);
    } else {
      const auto given = inlined_->attributes.find(referred);
      if (given == inlined_->attributes.end()) return;  // the call leaves it out: so does the node
      attribute = {std::string(name_of(field)), given->second};
    }
    const auto [place, added] = node.attributes.try_emplace(std::move(attribute.name), std::move(attribute.value));
    if (!added) fail_at(field.offset, "attribute '" + shown(place->first) + "' of " + text + " is there twice");
  }

  NamedAttribute read_own_attribute(const WireField& field, const std::string& text, NodeReads& reads) {
    return read_attribute(field, text, tensors_, [&](const WireField& message) {
      GraphAndReads body = read(message);
      reads.insert(reads.end(), body.outer_names.begin(), body.outer_names.end());
      return std::make_shared<const ModelGraph>(std::move(body.graph));
    });
  }

  static std::string_view name_of(const WireField& attribute) {
    std::string_view name;
    WireReader fields(attribute);
    while (const auto field = fields.next()) {
      if (field->number == 1) name = field->text();
    }
    if (name.empty()) fail_at(attribute.offset, "attribute without a name");
    return name;
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
    std::erase_if(graph.inputs, [&](const ModelValue& input) {
      return graph.constants.contains(input.name) || graph.unread_constants.contains(input.name);
    });
  }

  TensorReader& tensors_;
  const Functions& functions_;
  const std::int64_t opset_;
  int depth_ = 0;
  const Inlined* inlined_ = nullptr;  // the innermost
  std::size_t calls_ = 0;
  std::size_t inlined_bytes_ = 0;
};

}  // namespace

ModelGraph read_graph(const WireField& message, TensorReader& tensors, const Functions& functions, std::int64_t opset) {
  return GraphReader(tensors, functions, opset).read(message).graph;
}

}  // namespace xpuruntime::onnx
