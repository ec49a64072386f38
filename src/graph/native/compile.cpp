#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/printable.h"
#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

std::string describe(const Model& model, std::size_t index) {
  const ModelNode& node = model.graph.nodes[index];
  const std::string name = node.name.empty() ? "#" + std::to_string(index) : "'" + printable(node.name) + "'";
  return "node " + name + " (" + printable(operator_name(node)) + "): ";
}

std::int64_t opset_of(const Model& model) {
  const auto found = model.opsets.find("");
  return found == model.opsets.end() ? 0 : found->second;
}

class Compiler {
 public:
  Compiler(const Model& model, Builder& builder) : model_(model), builder_(builder) {}

  void add_inputs(std::span<const TensorSpec> inputs, Values values) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const int slot = builder_.input(inputs[i]);
      const bool is_known = i < values.size() && values[i];
      slots_[model_.graph.inputs[i].name] = is_known ? builder_.constant(*values[i]) : slot;
    }
  }

  void add_node(std::size_t index) {
    const ModelNode& node = model_.graph.nodes[index];
    builder_.begin_node(index);
    try {
      keep_results(node, lower(node));
    } catch (const NeedsValues& error) {
      NeedsValues described(error.code(), "Session", describe(model_, index) + std::string(error.message()));
      described.node = index;
      throw described;
    } catch (const EngineLacks& error) {
      throw EngineLacks(describe(model_, index) + std::string(error.message()));
    } catch (const Error& error) {
      fail(error.code(), "Session", describe(model_, index) + std::string(error.message()));
    }
  }

  std::vector<int> outputs() {
    std::vector<int> found;
    for (const ModelValue& output : model_.graph.outputs) {
      found.push_back(slot_of(output.name));
      const DataType dtype = builder_.spec(found.back()).dtype;
      if (output.dtype && *output.dtype != dtype) {
        fail(ErrorCode::corrupt_data, "Session",
             "output '" + printable(output.name) + "' is declared as " + std::string(to_string(*output.dtype)) +
                 ", and the model computes " + std::string(to_string(dtype)) + "; export the model anew");
      }
      check_declared_shape(output, builder_.shape(found.back()), fixes_shapes(model_));
    }
    return found;
  }

 private:
  int slot_of(const std::string& name) {
    if (name.empty()) return -1;
    if (const auto found = slots_.find(name); found != slots_.end()) return found->second;
    if (absent_.contains(name)) {
      throw EngineLacks("'" + printable(name) +
                        "' is a result that is not computed in this version; export the model without it");
    }
    for (auto graph = graphs_.rbegin(); graph != graphs_.rend(); ++graph) {
      const auto constant = (*graph)->constants.find(name);
      if (constant != (*graph)->constants.end()) return slots_[name] = builder_.constant(constant->second);
    }
    fail(ErrorCode::corrupt_data, "Session", "'" + printable(name) + "' is made by nothing; export the model anew");
  }

  /// Names of the branch end with it.
  Slots lower_branch(const ModelNode& node) {
    const NodeCall call(node, opset_of(model_), {node.inputs.empty() ? -1 : slot_of(node.inputs[0])}, builder_);
    const bool taken = call.values(0) != std::vector<std::int64_t>{0};
    const auto* branch = call.attribute(taken ? "then_branch" : "else_branch");
    if (branch == nullptr || !std::holds_alternative<std::shared_ptr<const ModelGraph>>(*branch)) {
      fail(ErrorCode::corrupt_data, "Session", "it has no branch; export the model anew");
    }
    const ModelGraph& graph = *std::get<std::shared_ptr<const ModelGraph>>(*branch);
    const auto outer = slots_;
    graphs_.push_back(&graph);
    for (const auto& [name, constant] : graph.constants) slots_.erase(name);
    for (const ModelNode& inner : graph.nodes) keep_results(inner, lower(inner));
    Slots results;
    for (const ModelValue& output : graph.outputs) results.push_back(slot_of(output.name));
    graphs_.pop_back();
    slots_ = outer;
    return results;
  }

  Slots lower(const ModelNode& node) {
    if (is_branch(node)) return lower_branch(node);
    const Operator* found = find_operator(node);
    if (found == nullptr) throw EngineLacks("there is no kernel for it in this version");
    std::vector<int> inputs;
    for (const std::string& name : node.inputs) inputs.push_back(slot_of(name));
    const NodeCall call(node, opset_of(model_), std::move(inputs), builder_);
    check_types(call);
    return found->lower(call);
  }

  void keep_results(const ModelNode& node, const Slots& results) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= results.size() || results[i] < 0) {  // an error where something reads it
        absent_.insert(node.outputs[i]);
        continue;
      }
      if (builder_.is_constant(results[i])) builder_.note_constant(results[i]);
      builder_.name(results[i], node.outputs[i]);
      slots_[node.outputs[i]] = results[i];
    }
  }

  const Model& model_;
  Builder& builder_;
  std::vector<const ModelGraph*> graphs_ = {&model_.graph};  // the innermost last
  std::unordered_map<std::string, int> slots_ = {};
  std::set<std::string, std::less<>> absent_ = {};  // results that the operators' functions leave out
};

}  // namespace

bool fixes_shapes(const Model& model) {
  return std::all_of(model.graph.inputs.begin(), model.graph.inputs.end(), [](const ModelValue& input) {
    return input.dtype && is_floating(*input.dtype) && input.shape &&
           std::all_of(input.shape->begin(), input.shape->end(),
                       [](const ModelExtent& extent) { return extent.size >= 0; });
  });
}

void check_declared_shape(const ModelValue& output, const Dims& computed, bool all_fixed) {
  if (!output.shape) return;
  bool fits = output.shape->size() == computed.size();
  for (std::size_t d = 0; fits && all_fixed && d < computed.size(); ++d) {
    const std::int64_t size = (*output.shape)[d].size;
    fits = size < 0 || size == computed[d];
  }
  if (fits) return;
  std::string declared;
  for (const ModelExtent& extent : *output.shape) {
    declared += (declared.empty() ? "" : ",") + (extent.size >= 0 ? std::to_string(extent.size) : "?");
  }
  fail(ErrorCode::corrupt_data, "Session",
       "output '" + printable(output.name) + "' is declared with the shape [" + declared +
           "], and the model computes " + to_string(computed) + "; export the model anew");
}

Program compile(const Model& model, std::span<const TensorSpec> inputs, Values values, Builder builder,
                const PassContext& passes, const Deadline& deadline) {
  Compiler compiler(model, builder);
  compiler.add_inputs(inputs, values);
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    deadline.check();
    compiler.add_node(i);
  }
  return builder.finish(compiler.outputs(), passes);
}

}  // namespace xpuruntime::native
