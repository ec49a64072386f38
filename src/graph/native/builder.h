#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/passes/passes.h"
#include "graph/program/program.h"
#include "xpuruntime/device/device_manager.h"

namespace xpuruntime::native {

/// The integers that a slot's floats were made of: (codes - zero) * scale.
struct Codes {
  int codes = -1;
  int scale = -1;
  int zero = -1;         // below 0: none
  std::int64_t dim = 1;  // of the scales, where there is more than one
};

/// Makes a program, call by call. What depends on constants alone is computed at once, on the CPU.
class Builder {
 public:
  /// `memory_bytes`: more than the device has is an error before anything is allocated; 0: not known. `may_use_cpu`:
  /// for calls that the device has no kernel for.
  Builder(Dispatcher& dispatcher, Device device, std::uint64_t memory_bytes, int optimize_level, bool may_use_cpu);

  int input(const TensorSpec& spec);
  int constant(const Tensor& host);
  /// A constant with one element of a dtype.
  int number(DataType dtype, double value);
  /// A constant of rank 1.
  int integers(std::span<const std::int64_t> values);

  int call(OpId op, std::initializer_list<int> inputs, const Attributes* attributes = nullptr);
  int call(OpId op, std::span<const int> inputs, const Attributes* attributes = nullptr);
  /// Of an op with several results.
  std::vector<int> call_all(OpId op, std::span<const int> inputs, const Attributes& attributes);
  /// Whether the device has a kernel of the op.
  bool has_kernel(OpId op) const;
  /// Whether a call of the op can run, there or on the CPU.
  bool may_call(OpId op) const { return may_use_cpu_ || has_kernel(op); }
  /// The same elements in order, under another shape: a view, of a copy where they are not neighbours.
  int reshaped(int slot, const Dims& shape);
  /// The same bytes as elements of another type of the same size: a view.
  int reinterpreted(int slot, DataType dtype);
  /// Its elements as neighbours: itself, or a copy.
  int contiguous(int slot);
  /// Repeated to a larger shape: a view.
  int broadcast(int slot, const Dims& shape);

  const TensorSpec& spec(int slot) const { return slots()[static_cast<std::size_t>(slot)].spec; }
  const Dims& shape(int slot) const { return spec(slot).shape; }
  bool is_constant(int slot) const { return slots()[static_cast<std::size_t>(slot)].kind == Slot::Kind::constant; }
  const Tensor& constant_of(int slot) const { return slots()[static_cast<std::size_t>(slot)].constant; }

  /// For operators that can go on with the integers.
  void remember(int slot, const Codes& codes) { codes_[slot] = codes; }
  /// Null: it was not made of integers.
  const Codes* codes_of(int slot) const {
    const auto found = codes_.find(slot);
    return found == codes_.end() ? nullptr : &found->second;
  }

  /// The node that what follows is for.
  void begin_node(std::size_t node) { node_ = node; }
  void note_constant(int slot) { note(StepKind::constant, slot, 0); }
  /// The name that the model has for a slot, for notes.
  void name(int slot, std::string_view name);

  /// The program with these outputs, each in memory of its own, after the passes of its level.
  Program finish(std::span<const int> outputs, const PassContext& passes);

 private:
  const std::vector<Slot>& slots() const { return program_.slots; }
  int add(Slot slot);
  /// From element `offset` of it on.
  int add_view(int of, const TensorSpec& spec, std::int64_t offset = 0);
  /// What slice or transpose makes, where its elements stand in line already and are well aligned.
  std::optional<int> moved_view(const Problem& problem, int of);
  void note(StepKind kind, int slot, std::size_t step);
  bool may_fold(std::span<const int> inputs, std::span<const TensorSpec> outputs, double work) const;
  /// The slots that others are views of.
  std::vector<bool> bases() const;
  void align_constants(const PassContext& passes);
  void check_room(std::uint64_t bytes) const;
  std::vector<int> fold(OpId op, std::span<const int> inputs, const Attributes& attributes,
                        std::span<const TensorSpec> outputs);

  Dispatcher& dispatcher_;
  Device device_;
  std::uint64_t memory_bytes_;
  int optimize_level_;
  bool may_use_cpu_;
  std::uint64_t folded_bytes_ = 0;
  double folded_work_ = 0;  // multiplications, about
  std::size_t node_ = 0;
  Program program_ = {};
  std::unordered_map<int, Codes> codes_ = {};
};

}  // namespace xpuruntime::native
