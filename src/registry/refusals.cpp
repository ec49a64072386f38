#include "xpuruntime/registry/refusals.h"

#include <string>
#include <vector>

namespace xpuruntime {
namespace {

/// Asks `holds(spec)` for each tensor from number `first` on, and says no in the name of the first that fails it.
template <class Holds>
Verdict each_tensor(const Problem& problem, const Holds& holds, std::string_view failing, std::size_t first = 0) {
  for (const bool is_output : {false, true}) {
    const std::vector<TensorSpec>& specs = is_output ? problem.outputs : problem.inputs;
    for (std::size_t i = first; i < specs.size(); ++i) {
      if (holds(specs[i])) continue;
      return Verdict::no((is_output ? "output " : "input ") + std::to_string(i) + " " + std::string(failing));
    }
  }
  return Verdict::yes();
}

/// Integers and booleans are asked about only where they are what the op computes with or moves: not indices, nor what
/// stands beside the op's precision, such as a mask.
bool is_asked(const OpInfo& info, const InputSpec& input, DataType dtype) {
  if (is_floating(dtype)) return true;
  if (input.values >= InputValues::index) return false;
  return input.follows_precision || !input_spec(info, 0).follows_precision;
}

}  // namespace

std::string to_string(DataTypeSet dtypes) {
  if (dtypes == any_dtype) return "any dtype";
  if (dtypes == floats) return "floating types";
  std::vector<std::string_view> names;
  for (int i = 0; i < data_type_count; ++i) {
    if (dtypes.contains(static_cast<DataType>(i))) names.push_back(to_string(static_cast<DataType>(i)));
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text.empty() ? "no dtype" : text;
}

Verdict first_refusal(std::initializer_list<Check> checks, const Problem& problem, const DeviceProfile& profile) {
  for (const Check check : checks) {
    if (Verdict verdict = check(problem, profile); !verdict.supported) return verdict;
  }
  return Verdict::yes();
}

Verdict takes_dtypes(const Problem& problem, DataTypeSet inputs, DataTypeSet outputs) {
  if (inputs == any_dtype && outputs == any_dtype) return Verdict::yes();
  const OpInfo& info = op_info(problem.op);
  const bool backward = problem.direction == Direction::backward;
  const DataTypeSet either = inputs | outputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (!has_input(problem.inputs, i)) continue;
    const bool gradient = backward && i + 1 == problem.inputs.size();
    const InputSpec input = gradient ? InputSpec{.optional = true} : input_spec(info, i);
    const DataTypeSet takes = input.optional ? either : inputs;
    const DataType dtype = problem.inputs[i].dtype;
    if (takes.contains(dtype) || !is_asked(info, input, dtype)) continue;
    return refuse_dtype("input " + std::to_string(i), dtype, to_string(takes));
  }
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    const DataTypeSet takes = backward ? either : outputs;
    const DataType dtype = problem.outputs[i].dtype;
    if (!takes.contains(dtype)) return refuse_dtype("output " + std::to_string(i), dtype, to_string(takes));
  }
  return Verdict::yes();
}

Verdict refuse_dtype(std::string_view which, DataType dtype, std::string_view takes) {
  return Verdict::no(std::string(which) + " is " + std::string(to_string(dtype)) + ", and this kernel takes " +
                     std::string(takes));
}

Verdict is_same_dtype(std::string_view which, DataType dtype, std::string_view whose, DataType other) {
  if (dtype == other) return Verdict::yes();
  return refuse_dtype(which, dtype, std::string(whose) + " " + std::string(to_string(other)));
}

Verdict has_one_dtype(const Problem& problem, std::size_t first) {
  for (std::size_t i = first; i < problem.inputs.size(); ++i) {
    const DataType dtype = problem.inputs[i].dtype, to = problem.outputs[0].dtype;
    if (dtype != to) return is_same_dtype("input " + std::to_string(i), dtype, "the output's", to);
  }
  return Verdict::yes();
}

Verdict is_not_empty(const Problem& problem) {
  return each_tensor(
      problem,
      [](const TensorSpec& spec) {
        return element_count(spec) > 0 || !has_input({&spec, 1}, 0);
      },
      "is empty");
}

Verdict is_contiguous(const Problem& problem) { return is_contiguous(problem, 0); }

Verdict is_contiguous(const Problem& problem, std::size_t first) {
  return each_tensor(
      problem, [](const TensorSpec& spec) { return spec.contiguous; }, "is not contiguous", first);
}

Verdict is_contiguous(std::string_view which, const TensorSpec& spec) {
  return spec.contiguous ? Verdict::yes() : Verdict::no(std::string(which) + " is not contiguous");
}

Verdict has_contiguous_rows(std::string_view which, const TensorSpec& spec) {
  if (spec.shape.back() <= 1 || spec.strides.back() == 1) return Verdict::yes();
  return Verdict::no("the rows of " + std::string(which) + " are not contiguous");
}

Verdict is_aligned(const Problem& problem) {
  return each_tensor(
      problem, [](const TensorSpec& spec) { return spec.alignment >= size_of(spec.dtype); },
      "is not aligned to its elements");
}

Verdict is_at_most(std::string_view what, std::int64_t value, std::int64_t limit) {
  if (value <= limit) return Verdict::yes();
  return Verdict::no(std::string(what) + " = " + std::to_string(value) + " is over " + std::to_string(limit));
}

Verdict has_compute_capability(const DeviceProfile& profile, int major, int minor) {
  const int has_major = profile.compute_capability_major, has_minor = profile.compute_capability_minor;
  if (has_major > major || (has_major == major && has_minor >= minor)) return Verdict::yes();
  return Verdict::no("compute capability " + std::to_string(has_major) + "." + std::to_string(has_minor) +
                     " is below " + std::to_string(major) + "." + std::to_string(minor));
}

Verdict has_cpu_features(const DeviceProfile& profile, std::initializer_list<const char*> features) {
  for (const char* feature : features) {
    if (!profile.has_cpu_feature(feature)) return Verdict::no("the CPU has no " + std::string(feature));
  }
  return Verdict::yes();
}

Verdict has_library(const DeviceProfile& profile, const char* name) {
  if (profile.library_versions.contains(name)) return Verdict::yes();
  return Verdict::no("lib" + std::string(name) + " is not installed");
}

}  // namespace xpuruntime
