#include "graph/passes/rewriter.h"

#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {

Rewriter::Rewriter(Program& program, const PassContext& context)
    : program_(program),
      context_(context),
      alive_(program.steps.size(), true),
      uses_(program.slots.size()),
      notes_of_(program.steps.size()) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    for (const int slot : program.steps[i].inputs) uses_[base(slot)].push_back(i);
    for (const int slot : program.steps[i].outputs) {
      makers_[slot] = i;
      writers_[base(slot)] = i;
    }
  }
  for (std::size_t n = 0; n < program.notes.size(); ++n) {
    const Note& note = program.notes[n];
    if (has_step(note)) {
      notes_of_[note.step].push_back(n);
    } else {
      notes_of_slots_[base(note.slot)].push_back(n);
    }
  }
}

bool Rewriter::is(std::size_t step, OpId op) const {
  return step != none && alive_[step] && program_.steps[step].op == op && program_.steps[step].outputs.size() == 1;
}

std::size_t Rewriter::maker(int slot) const {
  const auto found = makers_.find(slot);
  return found == makers_.end() ? none : found->second;
}

std::size_t Rewriter::maker_of_elements(int slot) const {
  if (this->slot(slot).kind != Slot::Kind::view) return maker(slot);
  const auto viewed = static_cast<int>(base(slot));
  const bool is_whole = element_count(spec(slot)) == element_count(spec(viewed));
  return is_whole && spec(slot).contiguous && spec(viewed).contiguous ? maker(viewed) : none;
}

std::optional<double> Rewriter::number(int at) const {
  if (!is_constant(at) || element_count(spec(at)) != 1) return {};
  return loader_of(spec(at).dtype)(constant(at).as<const void>(), 0);
}

bool Rewriter::is_number(int at, double value) const {
  const auto found = number(at);
  return found && std::fabs(*found - value) <= 2 * epsilon_of(spec(at).dtype) * std::fabs(value);
}

int Rewriter::add_constant(const Tensor& host) {
  program_.slots.push_back({.kind = Slot::Kind::constant, .spec = host.spec(), .constant = host});
  uses_.emplace_back();
  return static_cast<int>(program_.slots.size() - 1);
}

int Rewriter::add_memory(const TensorSpec& spec) {
  program_.slots.push_back({.kind = Slot::Kind::memory, .spec = spec});
  uses_.emplace_back();
  return static_cast<int>(program_.slots.size() - 1);
}

int Rewriter::add_view(int of, const TensorSpec& spec) {
  if (is_constant(of)) {
    const Tensor& host = constant(of);
    Tensor view = Tensor(host.data(), spec, host.device(), host.byte_offset(), host.owner()).as_read_only();
    view.set_version(host.version());
    return add_constant(view);
  }
  program_.slots.push_back(
      {.kind = Slot::Kind::view, .spec = spec, .base = base_of(program_, of), .offset = slot(of).offset});
  uses_.emplace_back();
  return static_cast<int>(program_.slots.size() - 1);
}

bool Rewriter::vanishes_unseen(std::span<const std::size_t> steps, const Step& with) const {
  const std::size_t last = *std::max_element(steps.begin(), steps.end());
  for (const std::size_t at : steps) {
    if (step(at).op != with.op && context_.is_named && context_.is_named(step(at).op)) return false;
    for (const int made : step(at).outputs) {
      const bool stays =
          std::any_of(with.outputs.begin(), with.outputs.end(), [&](int output) { return base(output) == base(made); });
      if (!stays && slot(made).kind != Slot::Kind::memory) return false;
      for (const std::size_t reader : uses_[base(made)]) {
        const bool vanishes = std::find(steps.begin(), steps.end(), reader) != steps.end();
        if (!vanishes && (!stays || reader < last)) return false;
      }
    }
  }
  return true;
}

bool Rewriter::reads_what_stays(std::span<const std::size_t> steps, const Step& with) const {
  const std::size_t last = *std::max_element(steps.begin(), steps.end());
  return std::all_of(with.inputs.begin(), with.inputs.end(), [&](int input) {
    const auto written = writers_.find(base(input));
    if (written == writers_.end()) return true;  // a constant, or the caller's
    const bool vanishes = std::find(steps.begin(), steps.end(), written->second) != steps.end();
    return !vanishes && written->second < last;
  });
}

bool Rewriter::is_right(const Step& with) const {
  std::vector<TensorSpec> inputs, outputs;
  for (const int slot : with.inputs) inputs.push_back(spec(slot));
  for (const int slot : with.outputs) outputs.push_back(spec(slot));
  try {
    Problem problem = make_problem(with.op, inputs, with.attributes, context_.device);
    if (problem.outputs.size() != outputs.size()) return false;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorSpec& made = problem.outputs[i];
      if (made.dtype != outputs[i].dtype || made.shape != outputs[i].shape) return false;
    }
    set_outputs(problem, outputs);
    return !context_.can_run || context_.can_run(problem);
  } catch (const Error&) {  // the pattern was no such call after all
    return false;
  }
}

void Rewriter::forget(std::size_t step) {
  for (const int slot : program_.steps[step].inputs) {
    auto& uses = uses_[base(slot)];
    uses.erase(std::find(uses.begin(), uses.end(), step));
  }
  for (const int slot : program_.steps[step].outputs) {
    makers_.erase(slot);
    writers_.erase(base(slot));
  }
  alive_[step] = false;
}

bool Rewriter::replace(std::span<const std::size_t> found, std::size_t of, Step with) {
  std::vector<std::size_t> steps(found.begin(), found.end());
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  if (!vanishes_unseen(steps, with) || !reads_what_stays(steps, with) || !is_right(with)) return false;
  const std::size_t last = steps.back();
  with.node = step(of).node;
  std::vector<Step> gone;
  for (const std::size_t at : steps) {
    forget(at);
    gone.push_back(std::move(program_.steps[at]));
  }
  for (const int slot : with.inputs) uses_[base(slot)].push_back(last);
  for (const int slot : with.outputs) {
    makers_[slot] = last;
    writers_[base(slot)] = last;
  }
  program_.steps[last] = std::move(with);
  alive_[last] = true;
  move_notes(steps, of, last);
  for (const Step& one : gone) fuse_notes_of_unread(one, last);
  return true;
}

/// Views and constants that only what vanished has read.
void Rewriter::fuse_notes_of_unread(const Step& gone, std::size_t into) {
  for (const auto* slots : {&gone.inputs, &gone.outputs}) {
    for (const int one : *slots) {
      const std::size_t viewed = base(one);
      if (!uses_[viewed].empty() || program_.slots[viewed].kind == Slot::Kind::output) continue;
      for (const std::size_t n : notes_of_slots_[viewed]) {
        program_.notes[n].kind = StepKind::fused;
        program_.notes[n].step = into;
        notes_of_[into].push_back(n);
      }
      notes_of_slots_.erase(viewed);
    }
  }
}

void Rewriter::move_notes(std::span<const std::size_t> steps, std::size_t of, std::size_t last) {
  std::string name;
  for (const std::size_t n : notes_of_[last]) name = program_.notes[n].name;
  std::vector<std::size_t> all;
  for (const std::size_t at : steps) {
    for (const std::size_t n : notes_of_[at]) {
      Note& note = program_.notes[n];
      const bool leads = at == of && note.kind == StepKind::kernel;
      note.kind = leads ? StepKind::kernel : StepKind::fused;
      note.step = last;
      if (leads) {
        note.slot = program_.steps[last].outputs[0];
        note.name = name;
      }
      all.push_back(n);
    }
    notes_of_[at].clear();
  }
  notes_of_[last] = std::move(all);
}

void Rewriter::put_between(int value, std::vector<Step> calls, std::size_t reader) {
  for (Step& call : calls) call.node = step(reader).node;
  const int made = calls.back().outputs[0];
  auto& uses = uses_[base(value)];
  for (int& input : program_.steps[reader].inputs) {
    if (input == value) input = made;
  }
  // The reader stays a reader of `value`, by way of them: what makes that comes before it.
  if (std::find(uses.begin(), uses.end(), reader) == uses.end()) uses.push_back(reader);
  uses_[base(made)].push_back(reader);
  const auto is_there = [&](const Between& one) { return one.calls.back().outputs[0] == made; };
  if (std::none_of(between_.begin(), between_.end(), is_there)) between_.push_back({value, std::move(calls)});
}

void Rewriter::finish() {
  std::vector<std::vector<const Between*>> before(program_.steps.size() + 1);
  for (const Between& one : between_) {
    const auto written = writers_.find(base(one.value));
    before[written == writers_.end() ? 0 : written->second + 1].push_back(&one);
  }
  std::vector<std::size_t> place(program_.steps.size(), 0);
  std::vector<Step> steps;
  std::vector<Note> notes;
  for (std::size_t i = 0; i <= place.size(); ++i) {
    for (const Between* one : before[i]) {
      for (const Step& call : one->calls) {
        notes.push_back({.node = call.node, .kind = StepKind::kernel, .step = steps.size(), .slot = call.outputs[0]});
        steps.push_back(call);
      }
    }
    if (i == place.size()) break;
    place[i] = steps.size();
    if (alive_[i]) steps.push_back(std::move(program_.steps[i]));
  }
  program_.steps = std::move(steps);
  for (Note& note : program_.notes) {
    if (has_step(note)) note.step = place[note.step];
  }
  for (const Note& note : notes) {
    const auto first = std::find_if(program_.notes.begin(), program_.notes.end(), [&](const Note& other) {
      return other.node == note.node && other.step > note.step;
    });
    program_.notes.insert(first, note);
  }
}

}  // namespace xpuruntime::native
