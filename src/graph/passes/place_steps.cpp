#include <map>
#include <unordered_map>
#include <utility>

#include "graph/passes/passes.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {
namespace {

Problem problem_of(const Program& program, const Step& step, Device device) {
  const auto specs_of = [&](const std::vector<int>& slots) {
    std::vector<TensorSpec> specs;
    for (const int slot : slots) specs.push_back(program.slots[static_cast<std::size_t>(slot)].spec);
    return specs;
  };
  Problem problem = make_problem(step.op, specs_of(step.inputs), step.attributes, device);
  set_outputs(problem, specs_of(step.outputs));
  return problem;
}

/// Calls of an op that a device cannot run: the first's problem, and how many there are.
struct Lacked {
  std::string problem = {};
  std::size_t calls = 0;
};

/// Says of each step whether the device lacks it and the CPU does not.
class Lacking {
 public:
  Lacking(Program& program, const PassContext& context) : program_(program), context_(context) {}

  void mark() {
    for (Step& step : program_.steps) {
      const Problem problem = problem_of(program_, step, context_.device);
      const std::string why = why_not(problem, step.precision);
      if (why.empty()) continue;
      Problem on_cpu = problem;
      on_cpu.device = Device{};
      if (!why_not(on_cpu, step.precision).empty()) continue;  // its run says so
      step.lacks = why;
      Lacked& lacked = lacked_[step.op];
      if (lacked.calls++ == 0) lacked.problem = to_string(problem);
    }
    if (!lacked_.empty() && !context_.may_use_cpu) refuse();
    program_.is_mixed = !lacked_.empty();
  }

 private:
  const std::string& why_not(const Problem& problem, const std::optional<DataType>& precision) {
    const auto [known, is_new] = known_[precision].try_emplace(problem);
    if (is_new) {
      const Decision decision = context_.decide(problem, precision);
      if (decision.kernel.empty()) known->second = decision.because;
    }
    return known->second;
  }

  [[noreturn]] void refuse() const {
    std::string text;
    for (const auto& [op, lacked] : lacked_) {
      text += (text.empty() ? "" : ", ") + lacked.problem + " (" + std::to_string(lacked.calls) +
              (lacked.calls == 1 ? " call)" : " calls)");
    }
    throw EngineLacks(to_string(context_.device) + " has no kernels for " + text +
                      "; with allow_fallback cpu in the execution policy these run on the CPU, with copies");
  }

  Program& program_;
  const PassContext& context_;
  std::map<std::optional<DataType>, std::unordered_map<Problem, std::string>> known_ = {};  // by precision
  std::map<OpId, Lacked> lacked_ = {};
};

/// Moves the steps that the device lacks to the CPU. A value is copied where the other side reads it for the first time
/// after it was written.
class Placement {
 public:
  explicit Placement(Program& program) : program_(program), sides_(program.slots.size()) {
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      if (program.slots[i].kind == Slot::Kind::input) sides_[i].has(false) = true;
    }
    for (const Note& note : program.notes) {
      if (!note.name.empty()) names_.emplace(note.slot, note.name);
    }
  }

  void run() {
    std::vector<Step> old = std::exchange(program_.steps, {});
    for (Step& step : old) add(std::move(step));
    renumber_notes();
  }

 private:
  /// Where what was written last into a slot's memory is.
  struct Side {
    bool on_device = false, on_cpu = false;
    bool& has(bool cpu) { return cpu ? on_cpu : on_device; }
    bool is_written() const { return on_device || on_cpu; }
  };
  using Transfers = std::vector<Note>;

  Slot& slot(int at) { return program_.slots[static_cast<std::size_t>(at)]; }
  Side& side(int base) { return sides_[static_cast<std::size_t>(base)]; }

  int add_slot(Slot slot) {
    slot.on_cpu = true;
    program_.slots.push_back(std::move(slot));
    return static_cast<int>(program_.slots.size() - 1);
  }

  /// The slot of the same value in the CPU's memory.
  int on_cpu(int of) {
    if (const auto known = on_cpu_.find(of); known != on_cpu_.end()) return known->second;
    const Slot from = slot(of);
    const TensorSpec spec = make_spec(from.spec.dtype, from.spec.shape, from.spec.strides);
    int made = -1;
    if (from.kind == Slot::Kind::constant) {
      made = add_slot({.kind = from.kind, .spec = from.spec, .constant = from.constant});
    } else if (from.kind == Slot::Kind::view) {
      made = add_slot({.kind = from.kind, .spec = from.spec, .base = on_cpu(from.base), .offset = from.offset});
    } else {
      made = add_slot({.kind = Slot::Kind::memory, .spec = spec});
    }
    return on_cpu_[of] = made;
  }

  void bring(int value, bool to_cpu, std::size_t node, Transfers& transfers) {
    const int base = base_of(program_, value);
    if (slot(base).kind == Slot::Kind::constant || side(base).has(to_cpu) || !side(base).is_written()) return;
    const int there = on_cpu(base), from = to_cpu ? base : there, to = to_cpu ? there : base;
    const auto name = names_.find(base);
    transfers.push_back({.node = node,
                         .kind = StepKind::transfer,
                         .step = program_.steps.size(),
                         .slot = to,
                         .name = name == names_.end() ? std::string() : name->second});
    program_.steps.push_back({.inputs = {from}, .outputs = {to}, .node = node, .is_transfer = true});
    side(base).has(to_cpu) = true;
  }

  void add(Step step) {
    const bool to_cpu = !step.lacks.empty();
    const std::size_t node = step.node;
    Transfers& before = before_.emplace_back();
    for (const int input : step.inputs) bring(input, to_cpu, node, before);
    const std::vector<int> results = step.outputs;
    for (const int result : results) bring(result, to_cpu, node, before);  // the rest of what it writes a part of
    for (const int result : results) side(base_of(program_, result)) = {!to_cpu, to_cpu};
    if (to_cpu) {
      for (auto* slots : {&step.inputs, &step.outputs}) {
        for (int& one : *slots) one = on_cpu(one);
      }
    }
    place_.push_back(program_.steps.size());
    program_.steps.push_back(std::move(step));
    Transfers& after = after_.emplace_back();
    for (const int result : results) {
      if (slot(base_of(program_, result)).kind == Slot::Kind::output) bring(result, false, node, after);
    }
  }

  void renumber_notes() {
    std::vector<Note> notes;
    const auto move_in = [&](Transfers& from) {
      for (Note& note : from) notes.push_back(std::move(note));
      from.clear();
    };
    for (Note& note : program_.notes) {
      const std::size_t old = note.step;
      const bool leads = note.kind == StepKind::kernel;
      if (leads) move_in(before_[old]);
      if (has_step(note)) note.step = place_[old];
      notes.push_back(std::move(note));
      if (leads) move_in(after_[old]);
    }
    program_.notes = std::move(notes);
  }

  Program& program_;
  std::vector<Side> sides_;                          // of the slots that are no views
  std::map<int, int> on_cpu_ = {};                   // slots, by those that they stand for
  std::map<int, std::string> names_ = {};            // by slot
  std::vector<Transfers> before_ = {}, after_ = {};  // by old step
  std::vector<std::size_t> place_ = {};              // of the old steps
};

}  // namespace

void place_steps(Program& program, const PassContext& context) {
  if (context.device.type == DeviceType::cpu) return;
  Lacking(program, context).mark();
  if (program.is_mixed) Placement(program).run();
}

}  // namespace xpuruntime::native
