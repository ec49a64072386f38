#pragma once

#include <atomic>

#include "graph/native/pieces.h"

namespace xpuruntime::native {

/// How a model runs: as one program for its inputs' shapes, or piece by piece where only a run tells more.
class GraphRuns {
 public:
  /// Everything that the context names outlives it.
  explicit GraphRuns(const PieceContext& context);

  /// Results are new memory, but those of one program that may be in the caller's. Enter the session's scope first,
  /// here and below.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const Deadline& deadline, const ProgramHook& hook = {},
                          GivenOutputs outputs = {}) const;
  /// Each program that a run with these inputs uses, once.
  using UseProgram = std::function<void(const Model& piece, const std::shared_ptr<ReadyProgram>& ready,
                                        std::span<const Tensor> inputs)>;
  void each_program(std::span<const Tensor> inputs, const UseProgram& use) const;

  /// The one program for such inputs. Where there is none it is an error that ends with what to do instead.
  std::shared_ptr<ReadyProgram> for_specs(std::span<const TensorSpec> specs, const char* instead) const;

 private:
  std::shared_ptr<ReadyProgram> find_whole(std::span<const Tensor> inputs) const;
  const PieceContext context_;
  mutable Programs whole_;
  const PiecedGraph pieces_;
  mutable std::atomic<bool> in_pieces_;
};

}  // namespace xpuruntime::native
