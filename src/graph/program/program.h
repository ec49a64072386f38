#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "xpuruntime/core/op.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::native {

/// A tensor of a program.
struct Slot {
  enum class Kind : std::uint8_t {
    input,     // the caller's
    constant,  // known when the shapes are
    memory,    // a part of the run's memory
    output,    // new in each run
    view,      // the memory of another slot, or a part of it
  };
  Kind kind = Kind::memory;
  TensorSpec spec = {};
  int base = -1;            // of a view: a slot that is none
  std::int64_t offset = 0;  // of a view: where it begins there, in elements
  std::size_t input = 0;    // of an input: which
  Tensor constant = {};     // on the host
  std::uint64_t place = 0;  // bytes into the run's memory
  bool on_cpu = false;      // in a program of another device: in the CPU's memory
};

/// One call, or a copy between the device's memory and the CPU's.
struct Step {
  OpId op = OpId::copy;
  Attributes attributes = {};
  std::vector<int> inputs = {};  // slots
  std::vector<int> outputs = {};
  std::size_t node = 0;                    // of the model
  std::optional<DataType> precision = {};  // computed in this, whatever rules say
  std::string because = {};                // who says so
  std::string lacks = {};                  // why the program's device cannot run it; it is on the CPU. Empty: it can
  bool is_transfer = false;                // of its input's memory into its output's, on the other side
};

/// What became of a node, in the order of the model.
struct Note {
  std::size_t node = 0;
  StepKind kind = StepKind::kernel;
  std::size_t step = 0;   // of a kernel or transfer; of what is fused, the step that it is a part of
  int slot = -1;          // its result
  std::string name = {};  // the result's, in the model
};

/// A model for inputs of given specs: calls in order, and where their tensors lie.
struct Program {
  std::vector<TensorSpec> inputs = {};
  std::vector<Slot> slots = {};
  std::vector<Step> steps = {};
  std::vector<int> outputs = {};
  std::vector<Note> notes = {};
  std::uint64_t memory_bytes = 0;
  bool is_mixed = false;               // some steps are on the CPU, and the program's device is another
  std::uint64_t cpu_memory_bytes = 0;  // of these steps
};

/// The slot whose memory a slot has.
inline int base_of(const Program& program, int slot) {
  const Slot& at = program.slots[static_cast<std::size_t>(slot)];
  return at.kind == Slot::Kind::view ? at.base : slot;
}

/// Whether a note belongs to a step.
inline bool has_step(const Note& note) { return note.kind != StepKind::view && note.kind != StepKind::constant; }

/// Leaves out the steps that no output needs.
void drop_unused(Program& program);
/// Lets go of the constants that no step reads.
void drop_unread_constants(Program& program);
/// Gives slots their places in the run's memory, the device's or the CPU's: two share bytes where no step needs both.
void plan_memory(Program& program);

}  // namespace xpuruntime::native
