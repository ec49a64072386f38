#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/onednn/library.h"
#include "xpuruntime/registry/kernel.h"

// What a oneDNN kernel is here: primitives made for one thread, and tasks of the pool that each run some of them on
// their own parts of the tensors. oneDNN never starts a thread.

namespace xpuruntime::cpu {

const dnnl::engine& onednn_engine();
/// Scratch memory from us, so that one primitive can run on several threads at once.
dnnl::primitive_attr onednn_attributes();

/// Where an argument lies: in a tensor of the call, in the workspace, or in what a plan made of constants.
struct Place {
  enum class Base : std::uint8_t { input, output, workspace, held };
  Base base = Base::workspace;
  std::uint8_t tensor = 0;
  std::int64_t bytes = 0;

  bool operator==(const Place&) const = default;
};

/// A primitive that is still to be made, and what it is called with.
struct Piece {
  dnnl::primitive_desc_base description = {};
  std::vector<std::pair<int, dnnl::memory::desc>> arguments = {};
};

/// One call of a piece; the places follow its arguments.
struct Step {
  std::size_t piece = 0;
  std::vector<Place> places = {};
};

/// What is done to a finished task's part of the output; empty: nothing.
using FinishTask = std::function<void(const RunArguments&, std::int64_t task)>;

struct Program {
  std::vector<Piece> pieces = {};
  std::vector<std::vector<Step>> tasks = {};
  FinishTask finish = {};
  std::uint64_t workspace_bytes = 0;
  int threads = 1;
  std::string token = {};
};

/// A change of layout; 0 bytes: none is needed.
struct Conversion {
  std::size_t piece = 0;
  std::uint64_t bytes = 0;
};

/// Builds a program; the workspace is handed out task by task, as tasks run side by side.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(int threads) { program_.threads = threads; }

  /// The piece with these arguments; its scratch memory comes in addition.
  std::size_t piece(const dnnl::primitive_desc_base& description,
                    std::vector<std::pair<int, dnnl::memory::desc>> arguments);
  /// The piece that changes one layout to another; `buffer` is how much room that takes.
  Conversion conversion(const dnnl::memory::desc& from, const dnnl::memory::desc& to, const dnnl::memory::desc& buffer);
  void begin_task();
  /// Memory that is the current task's alone.
  Place workspace(std::uint64_t bytes);
  void step(std::size_t piece, std::vector<Place> places);
  /// Where what lies at `from` is after the conversion.
  Place converted(const Conversion& conversion, const Place& from);
  Program& program() { return program_; }

 private:
  Program program_ = {};
  // The steps of a task follow each other: they share the scratch memory.
  Place scratch_ = {};
  std::uint64_t scratch_bytes_ = 0;
};

using MakeProgram = Program (*)(const Problem& problem);

/// What a kernel's workspace_bytes and prepare answer; an error where oneDNN turns the problem down, or where the
/// profile is of another processor: what is installed here would answer for it.
std::uint64_t program_workspace(const Problem& problem, const DeviceProfile& profile, MakeProgram make);
/// `make_held`: the program to hold constants' layouts of (Plan::with_constants), where input 1 is one; null: the same.
std::unique_ptr<const Plan> prepare_program(const Problem& problem, MakeProgram make, MakeProgram make_held = nullptr);

}  // namespace xpuruntime::cpu
