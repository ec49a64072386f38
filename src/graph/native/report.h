#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/native/programs.h"
#include "graph/program/program.h"
#include "xpuruntime/graph/model.h"
#include "xpuruntime/graph/session.h"

// What is said of a program.

namespace xpuruntime::native {

/// The model's name for a node, or "MatMul #3".
std::string node_name(const Model& model, std::size_t index);
/// "MatMul". Past the last node, as in a model without any: the copies that its outputs are.
std::string node_operator(const Model& model, std::size_t index);

/// What a step of the program on this device is that is_transfer.
Transfer transfer_of(const Program& program, const Step& step, Device device);

/// What became of each node; `decisions` are those of the program's steps.
std::vector<SessionStep> steps_of(const Model& model, const ReadyProgram& ready,
                                  const std::vector<Decision>& decisions);

/// Gathers what calls take in some runs. A call of a loop's body is one, however often a run makes it.
class Profiler {
 public:
  /// The seconds of a program's steps, once that it ran; `steps` tells what they are, and is asked once for a program.
  void add(const std::shared_ptr<ReadyProgram>& ready, std::span<const double> seconds,
           const std::function<std::vector<SessionStep>()>& steps);
  void end_run();
  /// Drops all times so far.
  void forget();
  /// In the order that they first ran in.
  SessionProfile profile() const;

 private:
  struct Row {
    CallTime call = {};
    double now = 0;          // seconds in the run that goes on
    std::int64_t count = 0;  // of all runs
    std::vector<double> of_runs = {};
  };
  std::vector<std::size_t> rows_of(const ReadyProgram& ready, const std::vector<SessionStep>& steps);

  std::vector<Row> rows_ = {};
  std::map<std::string, std::size_t> places_ = {};  // of rows, by node, step, kernel and problem
  // Their rows by step; a program that is in use may be dropped and made anew.
  std::map<std::shared_ptr<ReadyProgram>, std::vector<std::size_t>> programs_ = {};
  std::int64_t runs_ = 0;
};

}  // namespace xpuruntime::native
