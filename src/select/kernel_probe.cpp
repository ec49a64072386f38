#include "select/kernel_probe.h"

#include <algorithm>
#include <string>

namespace xpuruntime {
namespace {

// Tried in turn for an op that has no sample: most take a matrix, an op of the caller's own may want something else.
constexpr std::string_view usual_inputs[] = {"T[64,64]", "T[64]", "T[4,64,64]", "T[1,32,16,16]", "T[1,32,8,16,16]"};

std::string repeated(std::string_view input, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += (i ? ", " : "") + std::string(input);
  return out;
}

std::string filled_in(std::string_view arguments, std::span<const DataType> dtypes) {
  std::string out;
  std::size_t next = 0;
  for (const char c : arguments) {
    if (c != 'T') {
      out += c;
    } else {
      out += to_string(dtypes[next]);
      next = std::min(next + 1, dtypes.size() - 1);
    }
  }
  return out;
}

std::optional<Problem> made_of(OpId op, std::string_view arguments, std::span<const DataType> dtypes, Device device) {
  try {
    return parse_problem(std::string(to_string(op)) + "(" + filled_in(arguments, dtypes) + ")", device);
  } catch (const Error&) {
    return std::nullopt;  // the op does not take such inputs
  }
}

bool supports(const Kernel& kernel, const Problem& problem, const DeviceProfile& profile) {
  try {
    return kernel.supports(problem, profile).supported;
  } catch (...) {
    return false;  // as in a choice: one that throws is refused
  }
}

}  // namespace

std::optional<Problem> usual_problem(OpId op, std::span<const DataType> dtypes, Device device) {
  const std::string_view sample = op_info(op).sample;
  if (!sample.empty()) return made_of(op, sample, dtypes, device);
  const int inputs = std::max<int>(op_info(op).min_inputs, static_cast<int>(dtypes.size()));
  for (const std::string_view input : usual_inputs) {
    if (auto problem = made_of(op, repeated(input, inputs), dtypes, device)) return problem;
  }
  return std::nullopt;
}

bool KernelProbe::takes(OpId op, KernelDtype dtype) const {
  const std::uint32_t generation = registry_.generation();  // before asking: what changes meanwhile is asked again
  {
    const std::lock_guard lock(mutex_);
    const auto found = answers_.find({op, dtype});
    if (found != answers_.end() && found->second.generation == generation) return found->second.taken;
  }
  const bool taken = ask(op, dtype);
  const std::lock_guard lock(mutex_);
  answers_[{op, dtype}] = {generation, taken};
  return taken;
}

bool KernelProbe::ask(OpId op, KernelDtype dtype) const {
  if (const auto one = to_data_type(dtype)) return ask(op, std::span(&*one, 1));
  constexpr DataType half[] = {DataType::float16, DataType::float32};
  constexpr DataType brain[] = {DataType::bfloat16, DataType::float32};
  return ask(op, half) || ask(op, brain);
}

bool KernelProbe::ask(OpId op, std::span<const DataType> dtypes) const {
  const std::optional<Problem> problem = usual_problem(op, dtypes, device_);
  if (!problem) return false;
  // Where only one input is a float, two dtypes are one: that is not mixed.
  const auto used = [&](DataType dtype) {
    return std::any_of(problem->inputs.begin(), problem->inputs.end(),
                       [&](const TensorSpec& spec) { return spec.dtype == dtype; });
  };
  if (!std::all_of(dtypes.begin(), dtypes.end(), used)) return false;
  const DeviceProfile& profile = registry_.devices().profile(device_);
  const KernelList kernels = registry_.kernels(op, device_.type);
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const auto& kernel) { return supports(*kernel, *problem, profile); });
}

}  // namespace xpuruntime
