#pragma once

#include "graph/native/pieces.h"

namespace xpuruntime::native {

/// Runs the bodies of a control node.
class ControlNode {
 public:
  /// `piece`: the node alone, with its inputs, those that its bodies read, and constants. It outlives this.
  ControlNode(const PieceContext& context, const ModelGraph& piece);
  ~ControlNode();

  /// The piece's outputs for its inputs.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const Deadline& deadline, const ProgramHook& hook) const;

 private:
  using Values = std::map<std::string, Tensor>;
  /// What a body takes: its own inputs, then what it reads of the graphs around it.
  std::vector<Tensor> own_and_outer(const PiecedGraph& body, std::vector<Tensor> own, const Values& values) const;
  std::vector<Tensor> run_body(const PiecedGraph& body, std::vector<Tensor> own, const Values& values,
                               const Deadline& deadline, const ProgramHook& hook) const;
  std::vector<Tensor> run_loop(const Values& values, const Deadline& deadline, const ProgramHook& hook) const;
  std::vector<Tensor> run_scan(const Values& values, const Deadline& deadline, const ProgramHook& hook) const;
  void check_room(std::uint64_t bytes) const;
  Tensor input(const Values& values, std::size_t index) const;

  const PieceContext context_;
  const ModelGraph& piece_;
  const ModelNode& node_;
  std::map<std::string, const ModelGraph*> graphs_ = {};  // the bodies, by attribute
  std::map<std::string, std::unique_ptr<PiecedGraph>> bodies_ = {};
};

}  // namespace xpuruntime::native
