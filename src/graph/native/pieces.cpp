#include "graph/native/pieces.h"

#include <algorithm>

#include "core/printable.h"
#include "graph/native/control_node.h"
#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

template <class Use>
void each_body(const ModelNode& node, const Use& use) {
  for (const auto& [name, value] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
    if (body != nullptr) use(**body);
  }
}

/// Names that a node reads, those of its bodies too.
std::vector<std::string> names_read(const ModelNode& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.inputs) {
    if (!input.empty()) names.push_back(input);
  }
  each_body(node, [&](const ModelGraph& body) {
    for (std::string& name : names_from_outside(body)) names.push_back(std::move(name));
  });
  return names;
}

bool has_control(const ModelGraph& graph) { return std::any_of(graph.nodes.begin(), graph.nodes.end(), is_control); }

}  // namespace

bool is_control(const ModelNode& node) {
  if (!node.domain.empty()) return false;
  if (node.op == "Loop" || node.op == "Scan") return true;
  bool found = false;
  if (node.op == "If") each_body(node, [&](const ModelGraph& body) { found = found || has_control(body); });
  return found;
}

std::vector<std::string> names_from_outside(const ModelGraph& graph) {
  std::set<std::string> known;
  std::vector<std::string> names;
  for (const ModelValue& input : graph.inputs) known.insert(input.name);
  const auto read = [&](const std::string& name) {
    if (!graph.constants.contains(name) && known.insert(name).second) names.push_back(name);
  };
  for (const ModelNode& node : graph.nodes) {
    for (const std::string& name : names_read(node)) read(name);
    known.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ModelValue& output : graph.outputs) read(output.name);
  return names;
}

Piece::Piece(const PieceContext& context, Model of, std::size_t begin, std::size_t end)
    : model(std::move(of)), begin(begin), end(end) {
  if (model.graph.nodes.size() == 1 && is_control(model.graph.nodes[0])) {
    control = std::make_unique<ControlNode>(context, model.graph);
  } else {
    programs = std::make_unique<Programs>(model, context.dispatcher, context.devices, context.device, context.execution,
                                          context.on_cpu);
  }
}
Piece::~Piece() = default;

PiecedGraph::PiecedGraph(const PieceContext& context, const ModelGraph& graph, std::vector<const ModelGraph*> around)
    : context_(context), graph_(graph), graphs_([&] {
        around.push_back(&graph);
        return std::move(around);
      }()) {
  for (const ModelValue& input : graph.inputs) inputs_.push_back(input.name);
  const auto is_constant = [&](const std::string& name) {
    return std::any_of(graphs_.begin(), graphs_.end(), [&](const auto* one) { return one->constants.contains(name); });
  };
  for (std::string& name : names_from_outside(graph)) {
    if (!is_constant(name)) inputs_.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (is_control(graph.nodes[i])) cuts_.insert({i, i + 1});
  }
}
PiecedGraph::~PiecedGraph() = default;

std::shared_ptr<const PiecedGraph::Pieces> PiecedGraph::pieces() const {
  const std::lock_guard lock(mutex_);
  if (pieces_ == nullptr) pieces_ = made(cuts_, {});
  return pieces_;
}

std::shared_ptr<const PiecedGraph::Pieces> PiecedGraph::cut_at(std::size_t node) const {
  const std::lock_guard lock(mutex_);
  if (cuts_.insert(node).second) pieces_ = made(cuts_, *pieces_);
  return pieces_;
}

std::shared_ptr<const PiecedGraph::Pieces> PiecedGraph::made(const std::set<std::size_t>& cuts,
                                                             const Pieces& known) const {
  std::vector<std::size_t> ends(cuts.begin(), cuts.end());
  ends.push_back(graph_.nodes.size());
  auto pieces = std::make_shared<Pieces>();
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    if (end <= begin && !(graph_.nodes.empty() && pieces->empty())) continue;
    const auto same = std::find_if(known.begin(), known.end(),
                                   [=](const auto& piece) { return piece->begin == begin && piece->end == end; });
    pieces->push_back(same == known.end() ? piece_of(begin, end) : *same);
    begin = end;
  }
  return pieces;
}

std::shared_ptr<Piece> PiecedGraph::piece_of(std::size_t begin, std::size_t end) const {
  Model model{.opsets = context_.model.opsets};
  std::set<std::string> made, known;
  for (std::size_t i = begin; i < end; ++i) {
    const ModelNode& node = graph_.nodes[i];
    for (const std::string& name : names_read(node)) {
      if (made.contains(name) || !known.insert(name).second) continue;
      if (const Tensor* known_before = constant(name)) {
        model.graph.constants.emplace(name, *known_before);
      } else {
        model.graph.inputs.push_back({.name = name});
      }
    }
    made.insert(node.outputs.begin(), node.outputs.end());
    model.graph.nodes.push_back(node);
  }
  std::set<std::string> read_later;
  for (std::size_t i = end; i < graph_.nodes.size(); ++i) {
    for (std::string& name : names_read(graph_.nodes[i])) read_later.insert(std::move(name));
  }
  for (const ModelValue& output : graph_.outputs) read_later.insert(output.name);
  for (const std::string& name : made) {
    if (!name.empty() && read_later.contains(name)) model.graph.outputs.push_back({.name = name});
  }
  std::vector<std::string> drops;
  for (const ModelValue& input : model.graph.inputs) {
    if (!read_later.contains(input.name)) drops.push_back(input.name);
  }
  auto piece = std::make_shared<Piece>(context_, std::move(model), begin, end);
  piece->drops = std::move(drops);
  return piece;
}

std::vector<Tensor> PiecedGraph::run_piece(const Piece& piece, std::span<const Tensor> inputs, const Deadline& deadline,
                                           const ProgramHook& hook) const {
  if (piece.control != nullptr) return piece.control->run(inputs, deadline, hook);
  const auto ready = piece.programs->for_inputs(inputs);
  return hook ? hook(piece.model, ready, inputs, deadline) : ready->run(inputs, deadline);
}

const Tensor* PiecedGraph::constant(const std::string& name) const {
  const Tensor* constant = nullptr;
  for (const ModelGraph* graph : graphs_) {
    const auto found = graph->constants.find(name);
    if (found != graph->constants.end()) constant = &found->second;
  }
  return constant;
}

std::vector<std::optional<TensorSpec>> PiecedGraph::specs(std::span<const Tensor> inputs) const {
  std::map<std::string, TensorSpec> known;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    known[inputs_[i]] = make_spec(inputs[i].dtype(), inputs[i].shape());
  }
  const auto learn = [&](const Piece& piece) {
    std::vector<TensorSpec> given;
    for (const ModelValue& input : piece.model.graph.inputs) {
      if (!known.contains(input.name)) return;
      given.push_back(known[input.name]);
    }
    try {
      const Program& program = piece.programs->for_specs(given)->program();
      for (std::size_t i = 0; i < program.outputs.size(); ++i) {
        known[piece.model.graph.outputs[i].name] = program.slots[static_cast<std::size_t>(program.outputs[i])].spec;
      }
    } catch (const Error&) {  // only a run tells
    }
  };
  if (!graph_.nodes.empty()) {
    for (const auto& piece : *pieces()) {
      if (piece->programs != nullptr) learn(*piece);
    }
  }
  std::vector<std::optional<TensorSpec>> results;
  for (const ModelValue& output : graph_.outputs) {
    const Tensor* made = constant(output.name);
    results.emplace_back();
    if (const auto found = known.find(output.name); found != known.end()) {
      results.back() = found->second;
    } else if (made != nullptr) {
      results.back() = made->spec();
    }
  }
  return results;
}

std::vector<Tensor> PiecedGraph::run(std::span<const Tensor> inputs, const Deadline& deadline,
                                     const ProgramHook& hook) const {
  std::map<std::string, Tensor> values;
  for (std::size_t i = 0; i < inputs_.size(); ++i) values[inputs_[i]] = inputs[i];
  auto pieces = this->pieces();
  for (std::size_t node = 0; node < graph_.nodes.size();) {
    deadline.check();
    const auto found =
        std::find_if(pieces->begin(), pieces->end(), [&](const auto& piece) { return piece->begin == node; });
    const Piece& piece = **found;
    std::vector<Tensor> given;
    for (const ModelValue& input : piece.model.graph.inputs) given.push_back(values.at(input.name));
    try {
      const std::vector<Tensor> results = run_piece(piece, given, deadline, hook);
      for (std::size_t i = 0; i < results.size(); ++i) values[piece.model.graph.outputs[i].name] = results[i];
    } catch (const NeedsValues& error) {
      const std::size_t count = piece.end - piece.begin;
      if (piece.control != nullptr || count == 1 || error.node >= count) throw;
      // What it needs is made by the nodes before it, or is given: then it is a piece of its own.
      pieces = cut_at(piece.begin + std::max<std::size_t>(error.node, 1));
      continue;
    }
    for (const std::string& name : piece.drops) values.erase(name);
    node = piece.end;
  }
  std::vector<Tensor> results;
  for (const ModelValue& output : graph_.outputs) {
    const auto found = values.find(output.name);
    if (found != values.end()) {
      results.push_back(found->second);
      continue;
    }
    const Tensor* made = constant(output.name);
    if (made == nullptr) {
      throw EngineLacks("result '" + printable(output.name) + "' is not computed in this version");
    }
    results.push_back(*made);
  }
  return results;
}

}  // namespace xpuruntime::native
