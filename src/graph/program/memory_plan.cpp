#include <algorithm>
#include <map>

#include "graph/program/program.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime::native {
namespace {

constexpr std::uint64_t alignment = 64;

/// The free parts of a run's memory while its steps are gone through in order.
class FreeParts {
 public:
  /// The smallest part that is large enough, else at the end.
  std::uint64_t take(std::uint64_t bytes) {
    auto best = parts_.end();
    for (auto at = parts_.begin(); at != parts_.end(); ++at) {
      if (at->second >= bytes && (best == parts_.end() || at->second < best->second)) best = at;
    }
    if (best == parts_.end()) return take_at_end(bytes);
    const auto [place, size] = *best;
    parts_.erase(best);
    if (size > bytes) parts_[place + bytes] = size - bytes;
    return place;
  }

  void give_back(std::uint64_t place, std::uint64_t bytes) {
    if (bytes == 0) return;
    auto next = parts_.emplace(place, bytes).first;
    if (next != parts_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == next->first) {
        before->second += next->second;
        parts_.erase(next);
        next = before;
      }
    }
    const auto after = std::next(next);
    if (after == parts_.end() || next->first + next->second != after->first) return;
    next->second += after->second;
    parts_.erase(after);
  }

  std::uint64_t end() const { return end_; }

 private:
  std::uint64_t take_at_end(std::uint64_t bytes) {
    std::uint64_t place = end_;
    if (!parts_.empty()) {
      const auto last = std::prev(parts_.end());
      if (last->first + last->second == end_) {  // the last part grows
        place = last->first;
        parts_.erase(last);
      }
    }
    end_ = place + bytes;
    return place;
  }

  std::map<std::uint64_t, std::uint64_t> parts_ = {};  // bytes by place
  std::uint64_t end_ = 0;
};

std::uint64_t bytes_of(const Slot& slot) { return (span_bytes(slot.spec) + alignment - 1) / alignment * alignment; }

/// For each slot the last step that needs its memory; -1: none does.
std::vector<std::ptrdiff_t> last_uses(const Program& program) {
  std::vector<std::ptrdiff_t> last(program.slots.size(), -1);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    for (const auto* slots : {&program.steps[i].inputs, &program.steps[i].outputs}) {
      for (const int slot : *slots)
        last[static_cast<std::size_t>(base_of(program, slot))] = static_cast<std::ptrdiff_t>(i);
    }
  }
  return last;
}

/// An input that the call may write its output over and that nothing reads later; -1: there is none. Small ones gain
/// nothing by it.
int written_over(const Program& program, const Step& step, std::size_t output, const std::vector<std::ptrdiff_t>& last,
                 std::ptrdiff_t now) {
  constexpr std::size_t least_bytes = 16384;
  const auto slot = [&](int at) -> const Slot& { return program.slots[static_cast<std::size_t>(at)]; };
  const TensorSpec& made = slot(step.outputs[output]).spec;
  if (span_bytes(made) < least_bytes || output >= 8) return -1;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const int base = base_of(program, step.inputs[i]);
    const bool fits = slot(base).kind == Slot::Kind::memory && !step.is_transfer &&
                      last[static_cast<std::size_t>(base)] == now && slot(step.inputs[i]).spec == made &&
                      span_bytes(slot(base).spec) == span_bytes(made);
    if (!fits || (input_spec(op_info(step.op), i).in_place >> output & 1) == 0) continue;
    const auto is_other_part = [&](int other) { return base_of(program, other) == base && other != step.inputs[i]; };
    if (std::none_of(step.inputs.begin(), step.inputs.end(), is_other_part) &&
        std::none_of(step.outputs.begin(), step.outputs.end(),
                     [&](int other) { return base_of(program, other) == base; })) {
      return base;
    }
  }
  return -1;
}

}  // namespace

void drop_unused(Program& program) {
  std::vector<bool> needed(program.slots.size(), false);
  for (const int slot : program.outputs) needed[static_cast<std::size_t>(base_of(program, slot))] = true;
  std::vector<bool> kept(program.steps.size(), false);
  for (std::size_t i = program.steps.size(); i-- > 0;) {
    const Step& step = program.steps[i];
    kept[i] = std::any_of(step.outputs.begin(), step.outputs.end(),
                          [&](int slot) { return needed[static_cast<std::size_t>(base_of(program, slot))]; });
    if (!kept[i]) continue;
    for (const int slot : step.inputs) needed[static_cast<std::size_t>(base_of(program, slot))] = true;
  }
  std::vector<std::size_t> place(program.steps.size(), 0);
  std::vector<Step> steps;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    place[i] = steps.size();
    if (kept[i]) steps.push_back(std::move(program.steps[i]));
  }
  std::vector<Note> notes;
  for (Note& note : program.notes) {
    const bool stays = has_step(note) ? kept[note.step] : needed[static_cast<std::size_t>(base_of(program, note.slot))];
    if (!stays) continue;
    if (has_step(note)) note.step = place[note.step];
    notes.push_back(std::move(note));
  }
  program.steps = std::move(steps);
  program.notes = std::move(notes);
}

void drop_unread_constants(Program& program) {
  std::vector<bool> is_read(program.slots.size(), false);
  for (const Step& step : program.steps) {
    for (const int slot : step.inputs) is_read[static_cast<std::size_t>(slot)] = true;
  }
  for (std::size_t i = 0; i < program.slots.size(); ++i) {
    if (!is_read[i]) program.slots[i].constant = {};
  }
}

void plan_memory(Program& program) {
  const std::vector<std::ptrdiff_t> last = last_uses(program);
  FreeParts of_device, of_cpu;
  const auto parts_of = [&](const Slot& slot) -> FreeParts& { return slot.on_cpu ? of_cpu : of_device; };
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    std::vector<int> taken;  // whose bytes an output has now
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      Slot& slot = program.slots[static_cast<std::size_t>(base_of(program, step.outputs[o]))];
      if (slot.kind != Slot::Kind::memory) continue;
      const int over =
          slot.base < 0 && taken.empty() ? written_over(program, step, o, last, static_cast<std::ptrdiff_t>(i)) : -1;
      slot.place = over < 0 ? parts_of(slot).take(bytes_of(slot)) : program.slots[static_cast<std::size_t>(over)].place;
      if (over >= 0) taken.push_back(over);
    }
    std::vector<int> ended = taken;
    for (const auto* slots : {&step.inputs, &step.outputs}) {
      for (const int used : *slots) {
        const int base = base_of(program, used);
        const bool ends = last[static_cast<std::size_t>(base)] == static_cast<std::ptrdiff_t>(i);
        if (ends && std::find(ended.begin(), ended.end(), base) == ended.end()) ended.push_back(base);
      }
    }
    ended.erase(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(taken.size()));
    for (const int base : ended) {
      const Slot& slot = program.slots[static_cast<std::size_t>(base)];
      if (slot.kind == Slot::Kind::memory) parts_of(slot).give_back(slot.place, bytes_of(slot));
    }
  }
  program.memory_bytes = of_device.end();
  program.cpu_memory_bytes = of_cpu.end();
}

}  // namespace xpuruntime::native
