#include "graph/native/report.h"

#include <algorithm>
#include <map>

#include "graph/native/lowering.h"

namespace xpuruntime::native {

std::string node_name(const Model& model, std::size_t index) {
  if (index >= model.graph.nodes.size()) return "outputs";
  const ModelNode& node = model.graph.nodes[index];
  return node.name.empty() ? node.op + " #" + std::to_string(index) : node.name;
}

std::string node_operator(const Model& model, std::size_t index) {
  return index < model.graph.nodes.size() ? operator_name(model.graph.nodes[index]) : "Identity";
}

Transfer transfer_of(const Program& program, const Step& step, Device device) {
  const Slot& made = program.slots[static_cast<std::size_t>(step.outputs[0])];
  return {made.on_cpu ? device : Device{}, made.on_cpu ? Device{} : device, span_bytes(made.spec)};
}

namespace {

/// Says of each call which nodes are parts of it, and of these where they went.
void name_fused(const Program& program, const std::map<std::size_t, std::size_t>& kernels,
                std::vector<SessionStep>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Note& note = program.notes[i];
    const auto into = kernels.find(note.step);
    if (note.kind != StepKind::fused || into == kernels.end()) continue;
    SessionStep& kernel = steps[into->second];
    steps[i].fused_into = kernel.node;
    if (steps[i].node == kernel.node) continue;
    if (kernel.fused.empty() || kernel.fused.back() != steps[i].node) kernel.fused.push_back(steps[i].node);
  }
}

}  // namespace

namespace {

double median_of(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace

std::vector<SessionStep> steps_of(const Model& model, const ReadyProgram& ready,
                                  const std::vector<Decision>& decisions) {
  const Program& program = ready.program();
  std::vector<SessionStep> steps;
  std::map<std::size_t, std::size_t> kernels;  // the steps' places here, by those in the program
  for (const Note& note : program.notes) {
    SessionStep step{.node = node_name(model, note.node),
                     .op = node_operator(model, note.node),
                     .kind = note.kind,
                     .output = program.slots[static_cast<std::size_t>(note.slot)].spec,
                     .output_name = note.name};
    if (note.kind == StepKind::kernel) {
      step.decision = decisions[note.step];
      const std::string& because = program.steps[note.step].because;
      if (!because.empty()) step.decision->precision.because = because;
      const std::string& lacks = program.steps[note.step].lacks;
      if (!lacks.empty()) step.decision->because += "; on cpu:0, as " + lacks;
      kernels[note.step] = steps.size();
    } else if (note.kind == StepKind::transfer) {
      step.transfer = transfer_of(program, program.steps[note.step], ready.device());
    }
    steps.push_back(std::move(step));
  }
  name_fused(program, kernels, steps);
  return steps;
}

namespace {

/// A kernel's name and its problem; of a transfer what it does, and a copy on the session's device.
std::pair<std::string, Problem> call_of(const SessionStep& step, Device device) {
  if (step.decision) return {step.decision->kernel, step.decision->problem};
  return {to_string(*step.transfer), make_problem(OpId::copy, {step.output}, Attributes(OpId::copy), device)};
}

}  // namespace

std::vector<std::size_t> Profiler::rows_of(const ReadyProgram& ready, const std::vector<SessionStep>& steps) {
  std::vector<std::size_t> rows(ready.program().steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Note& note = ready.program().notes[i];
    if (note.kind != StepKind::kernel && note.kind != StepKind::transfer) continue;
    const auto [kernel, problem] = call_of(steps[i], ready.device());
    const std::string key = std::to_string(note.step) + " " + kernel + " " + to_string(problem) + " " + steps[i].node +
                            " " + steps[i].output_name;
    const auto [place, is_new] = places_.try_emplace(key, rows_.size());
    if (is_new) {
      rows_.push_back(
          {{.node = steps[i].node, .op = steps[i].op, .kernel = kernel, .problem = problem, .fused = steps[i].fused}});
    }
    rows[note.step] = place->second;
  }
  return rows;
}

void Profiler::add(const std::shared_ptr<ReadyProgram>& ready, std::span<const double> seconds,
                   const std::function<std::vector<SessionStep>()>& steps) {
  constexpr std::size_t most_programs = 1024;
  if (programs_.size() > most_programs) programs_.clear();
  auto found = programs_.find(ready);
  if (found == programs_.end()) found = programs_.emplace(ready, rows_of(*ready, steps())).first;
  for (std::size_t step = 0; step < seconds.size(); ++step) {
    Row& row = rows_[found->second[step]];
    row.now += seconds[step];
    ++row.count;
  }
}

void Profiler::end_run() {
  ++runs_;
  for (Row& row : rows_) row.of_runs.push_back(std::exchange(row.now, 0));
}

void Profiler::forget() {
  for (Row& row : rows_) row.now = 0, row.count = 0;
}

SessionProfile Profiler::profile() const {
  SessionProfile profile;
  for (const Row& row : rows_) {
    if (row.count == 0) continue;
    CallTime& call = profile.calls.emplace_back(row.call);
    call.time_us = median_of(row.of_runs) * 1e6;
    call.count = std::max<std::int64_t>(row.count / runs_, 1);
    profile.sum_us += call.time_us;
  }
  for (CallTime& call : profile.calls) call.share = profile.sum_us > 0 ? call.time_us / profile.sum_us : 0;
  return profile;
}

}  // namespace xpuruntime::native
