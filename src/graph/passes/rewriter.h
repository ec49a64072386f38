#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/program/program.h"
#include "xpuruntime/precision/autocast.h"
#include "xpuruntime/precision/precision.h"

namespace xpuruntime::native {

/// What a pass must know beside the program.
struct PassContext {
  Device device = {};
  /// Whether the policy in force says something of all calls of an op: they stay calls of their own.
  std::function<bool(OpId)> is_named = {};  // empty: of none
  /// Whether the device has a kernel for a problem.
  std::function<bool(const Problem&)> can_run = {};  // empty: for all
  /// What would run a problem, in that precision whatever rules say.
  std::function<Decision(const Problem&, std::optional<DataType> precision)> decide = {};
  bool may_use_cpu = false;  // for what a device of another type lacks
  /// Whether a convolution of images with channels last is as fast as any.
  std::function<bool(const Problem&)> takes_channels_last = {};  // empty: none is
  /// A constant as kernels like it: aligned.
  std::function<Tensor(const Tensor&)> aligned = {};  // empty: as it is

  // What computing in f16 or bf16 needs.
  Autocast autocast = {};  // off: each call keeps its dtypes
  std::map<OpId, DirectionPrecisions> precision_rules = {};
  /// A constant in another dtype; nothing where some of its finite numbers are none there.
  std::function<std::optional<Tensor>(const Tensor&, DataType)> cast = {};
};

/// A program while passes change it: who makes and who reads each tensor. Steps keep their numbers until the end.
class Rewriter {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  Rewriter(Program& program, const PassContext& context);
  /// Leaves the program without the steps that others took in.
  void finish();

  std::size_t size() const { return program_.steps.size(); }
  bool is_alive(std::size_t step) const { return alive_[step]; }
  const Step& step(std::size_t at) const { return program_.steps[at]; }
  /// Alive and of this op, with one output.
  bool is(std::size_t step, OpId op) const;
  const Slot& slot(int at) const { return program_.slots[static_cast<std::size_t>(at)]; }
  const TensorSpec& spec(int at) const { return slot(at).spec; }
  const Dims& shape(int at) const { return spec(at).shape; }

  /// The step whose result a slot is; none: it is a view, a constant or an input.
  std::size_t maker(int slot) const;
  /// The same also where the slot is a view of that result's elements in order.
  std::size_t maker_of_elements(int slot) const;
  /// How often the steps read the memory of a slot.
  std::size_t reads(int slot) const { return uses_[base(slot)].size(); }

  bool is_constant(int at) const { return slot(at).kind == Slot::Kind::constant; }
  const Tensor& constant(int at) const { return slot(at).constant; }
  /// The number that a constant of one element holds.
  std::optional<double> number(int at) const;
  /// Whether it is this number, but for its rounding.
  bool is_number(int at, double value) const;

  int add_constant(const Tensor& host);
  int add_memory(const TensorSpec& spec);
  /// The memory of a slot under other strides.
  int add_view(int of, const TensorSpec& spec);

  /// Puts a call in the place of the last of these steps, for all of them; it is of the node of step `of`. False, and
  /// nothing is changed, where another step, the caller or the call itself needs a result that would vanish or come too
  /// late, where that is no right call, the device cannot run it, or the policy names an op that would vanish.
  bool replace(std::span<const std::size_t> steps, std::size_t of, Step with);
  /// Whether the device can run a call whose inputs and outputs are slots.
  bool is_right(const Step& with) const;
  /// Puts calls, each of which reads the one before, right after what makes `value`, or where nothing does at the
  /// start; and the result of the last where a step reads `value`. They are of the node of that step.
  void put_between(int value, std::vector<Step> calls, std::size_t reader);

 private:
  std::size_t base(int slot) const { return static_cast<std::size_t>(base_of(program_, slot)); }
  bool vanishes_unseen(std::span<const std::size_t> steps, const Step& with) const;
  bool reads_what_stays(std::span<const std::size_t> steps, const Step& with) const;
  void forget(std::size_t step);
  void move_notes(std::span<const std::size_t> steps, std::size_t of, std::size_t last);
  void fuse_notes_of_unread(const Step& gone, std::size_t into);

  /// Calls that are in no place yet.
  struct Between {
    int value = -1;
    std::vector<Step> calls = {};
  };

  Program& program_;
  const PassContext& context_;
  std::vector<bool> alive_ = {};
  std::unordered_map<int, std::size_t> makers_ = {};                               // by slot
  std::unordered_map<std::size_t, std::size_t> writers_ = {};                      // steps, by slot that is no view
  std::vector<std::vector<std::size_t>> uses_ = {};                                // steps, by slot that is no view
  std::vector<std::vector<std::size_t>> notes_of_ = {};                            // by step
  std::unordered_map<std::size_t, std::vector<std::size_t>> notes_of_slots_ = {};  // views and constants, by base
  std::vector<Between> between_ = {};
};

}  // namespace xpuruntime::native
