#include <algorithm>
#include <map>
#include <numeric>

#include "graph/passes/passes.h"
#include "xpuruntime/core/problem.h"

// Images between convolutions with their channels last, where the kernels take them so: nothing changes its layout in
// each of them. What reads such an image and cannot read it as it is gets a copy.

namespace xpuruntime::native {
namespace {

TensorSpec with_channels_last(const TensorSpec& spec) {
  const Dims& shape = spec.shape;
  const std::int64_t row = shape[3] * shape[1];
  return make_spec(spec.dtype, shape, {shape[2] * row, 1, row, shape[1]}, spec.alignment);
}

enum class Role {
  convolution,  // wants its input and makes its result so
  spreading,    // makes its result as it finds its inputs
  reading,      // reads what it finds
  other,        // wants what it reads in line
};

class ChannelsLast {
 public:
  ChannelsLast(Program& program, const PassContext& context)
      : program_(program), context_(context), temporary_(program.steps.size(), -1), has_views_(program.slots.size()) {
    for (const Slot& slot : program.slots) {
      if (slot.kind == Slot::Kind::view) has_views_[static_cast<std::size_t>(slot.base)] = true;
    }
    groups_.resize(program.slots.size());
    std::iota(groups_.begin(), groups_.end(), 0);
    is_last_.resize(program.slots.size());
  }

  void run() {
    for (std::size_t i = 0; i < program_.steps.size(); ++i) look_at(i);
    if (std::find(is_last_.begin(), is_last_.end(), true) != is_last_.end()) rewrite();
  }

 private:
  /// What a group of images that go from call to call costs in copies and saves in convolutions, in elements.
  struct Worth {
    std::int64_t saved = 0, copied = 0;
  };

  const Slot& slot(int at) const { return program_.slots[static_cast<std::size_t>(at)]; }
  std::int64_t count(int at) const { return element_count(slot(at).spec); }
  bool is_last(int at) const { return is_last_[static_cast<std::size_t>(at)]; }

  int group_of(int at) {
    while (groups_[static_cast<std::size_t>(at)] != at) at = groups_[static_cast<std::size_t>(at)];
    return at;
  }
  void join(int one, int other) {
    const int from = group_of(one), to = group_of(other);
    if (from == to) return;
    groups_[static_cast<std::size_t>(from)] = to;
    worth_[to].saved += worth_[from].saved;
    worth_[to].copied += worth_[from].copied;
  }

  static bool is_image(const TensorSpec& spec) {
    return spec.dtype == DataType::float32 && spec.shape.size() == 4 && spec.contiguous && spec.shape[1] > 1 &&
           spec.shape[2] * spec.shape[3] > 1 && element_count(spec) > 0;
  }
  bool may_turn(int at) const {
    return slot(at).kind == Slot::Kind::memory && !has_views_[static_cast<std::size_t>(at)] && is_image(slot(at).spec);
  }

  bool takes_turned(const Step& step) const {
    if (step.op != OpId::conv2d || context_.is_named(step.op)) return false;
    std::vector<TensorSpec> specs;
    for (const int input : step.inputs) specs.push_back(slot(input).spec);
    const bool are_images = specs[0].shape.size() == 4 && specs[0].dtype == DataType::float32 && specs[0].contiguous;
    if (!are_images || !slot(step.outputs[0]).spec.contiguous || element_count(specs[0]) == 0) return false;
    specs[0] = with_channels_last(specs[0]);
    Problem problem = make_problem(step.op, specs, step.attributes, context_.device);
    problem.outputs[0] = with_channels_last(problem.outputs[0]);
    if (specs[0].contiguous || problem.outputs[0].contiguous) return false;
    return context_.takes_channels_last(problem);
  }

  Role role_of(const Step& step) const {
    if (step.outputs.empty()) return Role::other;
    if (takes_turned(step)) return Role::convolution;
    const OpCategory category = op_info(step.op).category;
    const bool by_element = category == OpCategory::elementwise || category == OpCategory::activation;
    if (by_element || category == OpCategory::pooling || step.op == OpId::concat || step.op == OpId::slice) {
      return step.outputs.size() == 1 && may_turn(step.outputs[0]) ? Role::spreading
             : category == OpCategory::pooling                     ? Role::other
                                                                   : Role::reading;
    }
    const bool reads = category == OpCategory::reduction || step.op == OpId::transpose || step.op == OpId::copy;
    return reads ? Role::reading : Role::other;
  }

  int add_slot(const TensorSpec& spec) {
    program_.slots.push_back({.kind = Slot::Kind::memory, .spec = spec});
    has_views_.push_back(false);
    is_last_.push_back(false);
    groups_.push_back(static_cast<int>(program_.slots.size() - 1));
    return groups_.back();
  }

  void look_at(std::size_t i) {
    const Step& step = program_.steps[i];
    const Role role = role_of(step);
    roles_.push_back(role);
    if (role == Role::convolution) return look_at_convolution(i);
    int found = -1;
    for (const int input : step.inputs) {
      if (!is_last(input)) continue;
      if (found >= 0) join(found, input);
      found = input;
      if (role == Role::other && in_line_.emplace(input, -1).second) worth_[group_of(input)].copied += count(input);
    }
    if (found < 0 || role != Role::spreading) return;
    is_last_[static_cast<std::size_t>(step.outputs[0])] = true;
    join(step.outputs[0], found);
  }

  void look_at_convolution(std::size_t i) {
    const int input = program_.steps[i].inputs[0], output = program_.steps[i].outputs[0];
    int made = output;
    std::int64_t copied = 0;
    if (!may_turn(output)) {
      made = temporary_[i] = add_slot(slot(output).spec);
      copied += count(output);
    }
    is_last_[static_cast<std::size_t>(made)] = true;
    if (is_last(input)) {
      join(made, input);
    } else if (turned_.emplace(input, -1).second) {
      copied += count(input);
    }
    Worth& worth = worth_[group_of(made)];
    worth.copied += copied;
    worth.saved += count(input) + count(output);
  }

  bool pays(int at) {
    const Worth& worth = worth_[group_of(at)];
    return is_last(at) && worth.copied < worth.saved;
  }

  /// A copy of a slot before the step that is written next, once for all.
  int copy_of(int from, const TensorSpec& spec, std::map<int, int>& known) {
    int& to = known.emplace(from, -1).first->second;
    if (to < 0) {
      to = add_slot(spec);
      add_copy(from, to);
    }
    return to;
  }
  void add_copy(int from, int to) {
    copies_[at_].push_back({.node = node_, .step = steps_.size(), .slot = to});
    steps_.push_back({OpId::copy, Attributes(OpId::copy), {from}, {to}, node_});
  }

  void rewrite() {
    std::vector<bool> turned(program_.slots.size());
    for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = pays(static_cast<int>(i));
    for (std::size_t i = 0; i < turned.size(); ++i) {
      if (turned[i]) program_.slots[i].spec = with_channels_last(program_.slots[i].spec);
    }
    std::vector<Step> old = std::move(program_.steps);
    for (at_ = 0; at_ < old.size(); ++at_) {
      Step step = std::move(old[at_]);
      node_ = step.node;
      const int output = step.outputs.empty() ? -1 : step.outputs[0];
      const int made = temporary_[at_] >= 0 ? temporary_[at_] : output;
      const bool turns = roles_[at_] == Role::convolution && turned[static_cast<std::size_t>(made)];
      if (turns) {
        if (!turned[static_cast<std::size_t>(step.inputs[0])]) {
          step.inputs[0] = copy_of(step.inputs[0], with_channels_last(slot(step.inputs[0]).spec), turned_);
        }
        step.outputs[0] = made;
      } else if (roles_[at_] == Role::other || roles_[at_] == Role::convolution) {
        for (int& input : step.inputs) {
          if (!turned[static_cast<std::size_t>(input)]) continue;
          const TensorSpec& spec = slot(input).spec;
          input = copy_of(input, make_spec(spec.dtype, spec.shape), in_line_);
        }
      }
      place_.push_back(steps_.size());
      steps_.push_back(std::move(step));
      if (turns && made != output) add_copy(made, output);
    }
    program_.steps = std::move(steps_);
    write_notes();
  }

  /// Each copy stands beside the call that it is made for.
  void write_notes() {
    std::vector<Note> notes;
    for (Note& note : program_.notes) {
      const std::size_t old = note.step;
      if (has_step(note)) note.step = place_[old];
      const bool leads = note.kind == StepKind::kernel;
      notes.push_back(std::move(note));
      if (!leads) continue;
      for (Note& copy : copies_[old]) notes.push_back(std::move(copy));
      copies_.erase(old);
    }
    program_.notes = std::move(notes);
  }

  Program& program_;
  const PassContext& context_;
  std::vector<Role> roles_ = {};                          // by step
  std::vector<int> temporary_;                            // by step: what a convolution makes instead of its output
  std::vector<bool> has_views_, is_last_;                 // by slot
  std::vector<int> groups_ = {};                          // by slot
  std::map<int, Worth> worth_ = {};                       // by group
  std::map<int, int> turned_ = {};                        // copies with channels last, by slot; below 0: not made yet
  std::map<int, int> in_line_ = {};                       // copies in line, the same
  std::vector<Step> steps_ = {};                          // written anew
  std::vector<std::size_t> place_ = {};                   // of the old steps
  std::map<std::size_t, std::vector<Note>> copies_ = {};  // by the old step that they were made for
  std::size_t at_ = 0, node_ = 0;
};

}  // namespace

void turn_channels_last(Program& program, const PassContext& context) {
  if (context.takes_channels_last && !context.autocast.on()) ChannelsLast(program, context).run();
}

}  // namespace xpuruntime::native
