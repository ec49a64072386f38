#include "graph/native/report.h"

#include <algorithm>
#include <map>

#include "graph/native/lowering.h"

namespace xpuruntime::native {
namespace {

std::string node_name(const Model& model, std::size_t index) {
  const ModelNode& node = model.graph.nodes[index];
  return node.name.empty() ? node.op + " #" + std::to_string(index) : node.name;
}

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

std::vector<SessionStep> steps_of(const Model& model, const Program& program, const std::vector<Decision>& decisions) {
  std::vector<SessionStep> steps;
  std::map<std::size_t, std::size_t> kernels;  // the steps' places here, by those in the program
  for (const Note& note : program.notes) {
    SessionStep step{.node = node_name(model, note.node),
                     .op = operator_name(model.graph.nodes[note.node]),
                     .kind = note.kind,
                     .output = program.slots[static_cast<std::size_t>(note.slot)].spec,
                     .output_name = note.name};
    if (note.kind == StepKind::kernel) {
      step.decision = decisions[note.step];
      const std::string& because = program.steps[note.step].because;
      if (!because.empty()) step.decision->precision.because = because;
      kernels[note.step] = steps.size();
    }
    steps.push_back(std::move(step));
  }
  name_fused(program, kernels, steps);
  return steps;
}

SessionProfile profile_of(const std::vector<SessionStep>& steps, const Program& program,
                          std::span<const double> seconds) {
  SessionProfile profile;
  std::map<std::size_t, CallTime> calls;  // by step
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Note& note = program.notes[i];
    if (note.kind != StepKind::kernel) continue;
    calls[note.step] = {.node = steps[i].node,
                        .op = steps[i].op,
                        .kernel = steps[i].decision->kernel,
                        .problem = steps[i].decision->problem,
                        .time_us = seconds[note.step] * 1e6,
                        .fused = steps[i].fused};
    profile.sum_us += seconds[note.step] * 1e6;
  }
  for (auto& [step, call] : calls) {
    call.share = profile.sum_us > 0 ? call.time_us / profile.sum_us : 0;
    profile.calls.push_back(std::move(call));
  }
  return profile;
}

double median_of(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace xpuruntime::native
