#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/native/programs.h"
#include "xpuruntime/graph/model.h"

// Graphs that no single program can stand for: what a loop runs and how large its results are, only a run knows.

namespace xpuruntime::native {

/// What all pieces of a model share. What it names outlives them.
struct PieceContext {
  const Model& model;
  Dispatcher& dispatcher;
  const DeviceManager& devices;
  Device device = {};
  const ExecutionPolicy& execution;
  NodesOnCpu& on_cpu;
};

/// Runs each program in the place of ReadyProgram::run.
using ProgramHook = std::function<std::vector<Tensor>(const Model& piece, const std::shared_ptr<ReadyProgram>& ready,
                                                      std::span<const Tensor> inputs, const Deadline& deadline)>;

/// A node whose bodies are run as often as it says: Loop, Scan, or If with one of these in a branch.
class ControlNode;
bool is_control(const ModelNode& node);

/// Names that a graph reads and neither makes nor has as constants, in order.
std::vector<std::string> names_from_outside(const ModelGraph& graph);

/// Nodes that stand in a row, as a model of their own, or one control node.
struct Piece {
  Piece(const PieceContext& context, Model model, std::size_t begin, std::size_t end);
  ~Piece();

  const Model model;             // inputs and outputs are what others give and read
  const std::size_t begin, end;  // among the graph's nodes
  std::unique_ptr<Programs> programs;
  std::unique_ptr<ControlNode> control;
  std::vector<std::string> drops = {};  // what nothing reads any more afterwards
};

/// A graph, run piece by piece: each piece's program is made for what the pieces before it gave.
class PiecedGraph {
 public:
  /// `constants`: of the graphs around it.
  PiecedGraph(const PieceContext& context, const ModelGraph& graph, std::vector<const ModelGraph*> around);
  ~PiecedGraph();

  /// The graph's inputs, then what it reads of those around it.
  const std::vector<std::string>& inputs() const { return inputs_; }
  std::vector<Tensor> run(std::span<const Tensor> inputs, const Deadline& deadline, const ProgramHook& hook) const;
  /// What a run would give, as far as that is known without one.
  std::vector<std::optional<TensorSpec>> specs(std::span<const Tensor> inputs) const;

 private:
  using Pieces = std::vector<std::shared_ptr<Piece>>;
  std::shared_ptr<const Pieces> pieces() const;
  std::shared_ptr<const Pieces> cut_at(std::size_t node) const;
  std::shared_ptr<const Pieces> made(const std::set<std::size_t>& cuts, const Pieces& known) const;
  /// That of the innermost graph that has one of the name; null: none has.
  const Tensor* constant(const std::string& name) const;
  std::shared_ptr<Piece> piece_of(std::size_t begin, std::size_t end) const;
  std::vector<Tensor> run_piece(const Piece& piece, std::span<const Tensor> inputs, const Deadline& deadline,
                                const ProgramHook& hook) const;

  const PieceContext context_;
  const ModelGraph& graph_;
  const std::vector<const ModelGraph*> graphs_;  // this one last
  std::vector<std::string> inputs_ = {};
  mutable Mutex mutex_ = {};
  mutable std::set<std::size_t> cuts_ = {};  // nodes that pieces begin with
  mutable std::shared_ptr<const Pieces> pieces_ = {};
};

}  // namespace xpuruntime::native
