#include <algorithm>
#include <map>
#include <utility>

#include "graph/passes/passes.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/graph/execution_policy.h"

namespace xpuruntime::native {
namespace {

bool is_narrow(DataType dtype) { return is_floating(dtype) && size_of(dtype) < 4; }

/// What holds both without loss.
DataType joined(DataType a, DataType b) {
  if (a == b) return a;
  return a == DataType::float64 || b == DataType::float64 ? DataType::float64 : DataType::float32;
}

TensorSpec with_dtype(const TensorSpec& spec, DataType dtype) { return make_spec(dtype, spec.shape, spec.strides); }

/// Gives each step the dtype that the rules ask for, with casts between those that differ. What the rules leave as it
/// is follows its inputs; constants follow the others.
class PrecisionLowering {
 public:
  PrecisionLowering(Program& program, const PassContext& context)
      : program_(program), context_(context), views_(program.slots.size()) {
    for (std::size_t i = 0; i < program.slots.size(); ++i) {
      const Slot& slot = program.slots[i];
      dtypes_.push_back(slot.spec.dtype);
      if (slot.kind == Slot::Kind::view) views_[static_cast<std::size_t>(slot.base)].push_back(i);
    }
    for (const Note& note : program.notes) {
      if (!note.name.empty()) names_.emplace(note.slot, note.name);
    }
  }

  void run() {
    std::vector<Step> old = std::exchange(program_.steps, {});
    for (std::size_t i = 0; i < old.size(); ++i) {
      old_ = i;
      add(std::move(old[i]));
    }
    renumber_notes();
  }

 private:
  struct Cast {
    Note note = {};
    bool is_after = false;
  };
  /// The inputs' dtypes of a step, and who asks for them.
  struct Asked {
    std::vector<DataType> inputs = {};
    std::optional<DataType> precision = {};  // what the step computes in
    std::string because = {};
  };

  Slot& slot(int at) { return program_.slots[static_cast<std::size_t>(at)]; }
  const TensorSpec& spec(int at) { return slot(at).spec; }
  bool is_constant(int at) { return slot(at).kind == Slot::Kind::constant; }

  int add_slot(Slot slot) {
    program_.slots.push_back(std::move(slot));
    return static_cast<int>(program_.slots.size() - 1);
  }

  Asked as_in_file(const Step& step) const {
    Asked asked;
    for (const int input : step.inputs) asked.inputs.push_back(dtypes_[static_cast<std::size_t>(input)]);
    return asked;
  }

  Problem problem_of(const Step& step, const std::vector<DataType>& dtypes) {
    std::vector<TensorSpec> specs;
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      const TensorSpec& given = spec(step.inputs[i]);
      specs.push_back(given.dtype == dtypes[i] ? given : with_dtype(given, dtypes[i]));
    }
    return make_problem(step.op, std::move(specs), step.attributes, context_.device);
  }

  /// The dtype of those inputs that are no constants, as they are by now; nothing where all are.
  template <class Counts>
  std::optional<DataType> dtype_of_values(const Step& step, const Counts& counts) {
    std::optional<DataType> dtype;
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const TensorSpec& at = spec(step.inputs[i]);
      if (!is_floating(at.dtype) || is_constant(step.inputs[i]) || !counts(i)) continue;
      dtype = dtype ? joined(*dtype, at.dtype) : at.dtype;
    }
    return dtype;
  }

  /// What moves values moves them in the dtype that they have.
  Asked moved(const Step& step) {
    Asked asked = as_in_file(step);
    const auto dtype = dtype_of_values(step, [](std::size_t) { return true; });
    const auto set_floats = [&](DataType to) {
      for (DataType& input : asked.inputs) {
        if (is_floating(input)) input = to;
      }
    };
    if (dtype) set_floats(*dtype);
    if (overflows(step, asked.inputs)) set_floats(DataType::float32);
    return asked;
  }

  /// Whether a constant has finite numbers that the dtype has not.
  bool overflows(const Step& step, const std::vector<DataType>& dtypes) {
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      const int input = step.inputs[i];
      if (is_constant(input) && spec(input).dtype != dtypes[i] && !context_.cast(slot(input).constant, dtypes[i])) {
        return true;
      }
    }
    return false;
  }

  Asked computed(const Step& step, const Problem& in_file) {
    const auto governed = [&](std::size_t i) { return is_governed(in_file, i); };
    Asked asked = as_in_file(step);
    const auto set_governed = [&](DataType dtype) {
      for (std::size_t i = 0; i < asked.inputs.size(); ++i) {
        if (governed(i)) asked.inputs[i] = dtype;
      }
      asked.precision = dtype;
    };
    const auto own = dtype_of_values(step, governed);
    if (own) set_governed(*own);
    const auto rule = context_.precision_rules.find(step.op);
    const Precision precision =
        resolve_precision(problem_of(step, asked.inputs),
                          {.policy_rule = rule == context_.precision_rules.end() ? nullptr : &rule->second,
                           .autocast = &context_.autocast});
    constexpr std::string_view who = "autocast, ";
    asked.because = precision.because;
    if (asked.because.starts_with(who)) asked.because.erase(0, who.size());
    asked.because = std::string(engine_precision_name(context_.autocast.config.target_precision)) +
                    " of the execution policy: " + asked.because;
    set_governed(precision.forward);
    if (!is_narrow(precision.forward)) return asked;
    if (overflows(step, asked.inputs)) {
      asked.because += "; a constant is too large for " + std::string(to_string(precision.forward)) + ", so f32";
      set_governed(DataType::float32);
      return asked;
    }
    const Decision decision = context_.decide(problem_of(step, asked.inputs), precision.forward);
    if (!decision.kernel.empty() && decision.precision.forward == precision.forward) return asked;
    asked.because += "; " + (decision.kernel.empty() ? decision.because : decision.precision.because) + "; so f32";
    set_governed(DataType::float32);
    return asked;
  }

  Asked asked_of(const Step& step) {
    const Asked as_is = as_in_file(step);
    const Problem in_file = problem_of(step, as_is.inputs);
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (is_governed(in_file, i)) return computed(step, in_file);
    }
    const OpCategory category = op_info(step.op).category;
    return category == OpCategory::movement || category == OpCategory::lookup ? moved(step) : as_is;
  }

  void add(Step step) {
    Asked asked = asked_of(step);
    std::optional<Problem> problem;
    try {
      problem = problem_of(step, asked.inputs);
    } catch (const Error& error) {  // dtypes that do not go together in this op
      asked = as_in_file(step);
      asked.because = "f32, as " + std::string(error.message());
      problem = problem_of(step, asked.inputs);
    }
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      step.inputs[i] = at_dtype(step.inputs[i], asked.inputs[i], step.node);
    }
    step.precision = asked.precision;
    step.because = asked.because;
    std::vector<std::pair<int, int>> back;  // results, and what they are cast to
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      const int result = step.outputs[i];
      const DataType dtype = problem->outputs[i].dtype;
      if (spec(result).dtype == dtype) continue;
      if (slot(result).kind == Slot::Kind::memory) {
        for (const std::size_t view : views_[static_cast<std::size_t>(result)]) set_dtype(program_.slots[view], dtype);
        set_dtype(slot(result), dtype);
        continue;
      }
      step.outputs[i] = add_slot({.kind = Slot::Kind::memory, .spec = with_dtype(spec(result), dtype)});
      back.emplace_back(step.outputs[i], result);
      casts_[{result, dtype}] = step.outputs[i];
      moved_notes_[result] = step.outputs[i];
    }
    const std::size_t node = step.node;
    place_.push_back(program_.steps.size());
    program_.steps.push_back(std::move(step));
    for (const auto& [from, to] : back) add_cast(from, to, node, true);
  }

  static void set_dtype(Slot& slot, DataType dtype) { slot.spec = with_dtype(slot.spec, dtype); }

  void add_cast(int from, int to, std::size_t node, bool is_after) {
    Attributes attributes(OpId::cast);
    attributes.set("dtype", static_cast<std::int64_t>(spec(to).dtype));
    const auto name = names_.find(is_after ? to : from);
    new_casts_[old_].push_back({{.node = node,
                                 .kind = StepKind::kernel,
                                 .step = program_.steps.size(),
                                 .slot = to,
                                 .name = name == names_.end() ? std::string() : name->second},
                                is_after});
    program_.steps.push_back(
        {.op = OpId::cast, .attributes = attributes, .inputs = {from}, .outputs = {to}, .node = node});
  }

  /// The same values in a dtype: cast once for all that read them, constants now.
  int at_dtype(int from, DataType dtype, std::size_t node) {
    if (spec(from).dtype == dtype) return from;
    if (const auto known = casts_.find({from, dtype}); known != casts_.end()) return known->second;
    int to = -1;
    const TensorSpec given = spec(from);
    if (is_constant(from)) {
      // Unless a kernel asks for it in spite of them, nothing with values too large comes here.
      const Tensor constant = context_.cast(slot(from).constant, dtype).value();
      to = add_slot({.kind = Slot::Kind::constant, .spec = constant.spec(), .constant = constant});
    } else if (slot(from).kind == Slot::Kind::view && spec(slot(from).base).contiguous) {
      const int base = at_dtype(slot(from).base, dtype, node);
      to = add_slot(
          {.kind = Slot::Kind::view, .spec = with_dtype(given, dtype), .base = base, .offset = slot(from).offset});
    } else {
      to = add_slot({.kind = Slot::Kind::memory, .spec = make_spec(dtype, given.shape)});
      add_cast(from, to, node, false);
    }
    casts_[{from, dtype}] = to;
    return to;
  }

  void renumber_notes() {
    std::vector<Note> notes;
    std::map<std::size_t, std::vector<Note>> after;  // by the note's place
    const auto add_casts_of = [&](std::size_t step, bool is_after) {
      for (const Cast& cast : new_casts_[step]) {
        if (cast.is_after == is_after) notes.push_back(cast.note);
      }
    };
    for (Note& note : program_.notes) {
      const std::size_t old = note.step;
      const bool leads = note.kind == StepKind::kernel;
      if (leads) add_casts_of(old, false);
      if (has_step(note)) note.step = place_[old];
      if (const auto found = moved_notes_.find(note.slot); leads && found != moved_notes_.end()) {
        note.slot = found->second;
        note.name.clear();
      }
      notes.push_back(std::move(note));
      if (leads) {
        add_casts_of(old, true);
        new_casts_.erase(old);
      }
    }
    program_.notes = std::move(notes);
  }

  Program& program_;
  const PassContext& context_;
  std::size_t old_ = 0;
  std::vector<DataType> dtypes_ = {};                        // of the slots in the file
  std::vector<std::vector<std::size_t>> views_ = {};         // by slot
  std::map<int, std::string> names_ = {};                    // by slot
  std::map<std::pair<int, DataType>, int> casts_ = {};       // slots, by what they are of
  std::map<std::size_t, std::vector<Cast>> new_casts_ = {};  // by the step that they were made for
  std::vector<std::size_t> place_ = {};                      // of the old steps
  std::map<int, int> moved_notes_ = {};                      // slots
};

}  // namespace

void lower_precision(Program& program, const PassContext& context) {
  if (context.autocast.on()) PrecisionLowering(program, context).run();
}

}  // namespace xpuruntime::native
