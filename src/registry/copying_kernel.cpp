#include "registry/copying_kernel.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

namespace xpuruntime {
namespace {

constexpr std::size_t most_copies = 16;  // a plan keeps their tensors on the stack
constexpr std::size_t most_tensors = 64;
constexpr std::uint8_t full_alignment = 16;  // of memory that nothing is wrong with
constexpr std::uint64_t line = 64;           // what workspace is aligned to

using Step = CopyingKernel::Step;

std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + line - 1) / line * line; }

/// The spec of the copy, whichever way it goes.
const TensorSpec& copy_of(const Step& step) {
  return step.is_output ? step.problem.inputs[0] : step.problem.outputs[0];
}

/// A tensor of a problem, by its place.
struct Place {
  bool is_output = false;
  std::size_t index = 0;

  TensorSpec& in(Problem& problem) const { return (is_output ? problem.outputs : problem.inputs)[index]; }
  const TensorSpec& in(const Problem& problem) const { return (is_output ? problem.outputs : problem.inputs)[index]; }
};

TensorSpec contiguous(const TensorSpec& spec) { return make_spec(spec.dtype, spec.shape); }

/// Nearly every problem, and every kernel that refuses one asks: it must cost nothing.
bool is_plain(const Problem& problem) {
  const auto plain = [](const TensorSpec& spec) { return spec.contiguous && spec.alignment >= full_alignment; };
  return std::all_of(problem.inputs.begin(), problem.inputs.end(), plain) &&
         std::all_of(problem.outputs.begin(), problem.outputs.end(), plain);
}

/// Whether calls in place write to a part of it alone, such as a cache: a copy would write to all of it.
bool is_written_partly(const Problem& problem, const Place& place) {
  const auto inputs = op_info(problem.op).inputs;
  if (!place.is_output)
    return place.index < inputs.size() && inputs[place.index].partly && inputs[place.index].in_place;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputSpec& input) { return input.partly && (input.in_place >> place.index & 1) != 0; });
}

/// All tensors that a copy would change and that may be copied, inputs first.
std::vector<Place> improvable(const Problem& problem) {
  std::vector<Place> places;
  for (const bool is_output : {false, true}) {
    const auto& specs = is_output ? problem.outputs : problem.inputs;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const Place place{is_output, i};
      if (specs[i] != contiguous(specs[i]) && !is_written_partly(problem, place)) places.push_back(place);
    }
  }
  return places;
}

/// Gives tensors their own layout back, the largest first, as long as the kernel still takes the problem; leaves the
/// places whose copies are needed.
void drop_needless(std::vector<Place>& places, Problem& inner, const Kernel& kernel, const Problem& problem,
                   const DeviceProfile& profile) {
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return span_bytes(places[a].in(inner)) > span_bytes(places[b].in(inner));
  });
  std::vector<bool> needed(places.size(), true);
  for (const std::size_t i : order) {
    TensorSpec& spec = places[i].in(inner);
    const TensorSpec copied = std::exchange(spec, places[i].in(problem));
    needed[i] = !kernel.supports(inner, profile).supported;
    if (needed[i]) spec = copied;
  }
  std::size_t i = 0;
  std::erase_if(places, [&](const Place&) { return !needed[i++]; });
}

Problem copy_problem(const Problem& asked, const TensorSpec& from, const TensorSpec& to) {
  Problem copy = make_problem(OpId::copy, {from}, Attributes(OpId::copy), asked.device);
  set_outputs(copy, {to});
  copy.limits = asked.limits;
  return copy;
}

std::shared_ptr<const Kernel> first_that_copies(const Problem& copy, const DeviceProfile& profile,
                                                std::span<const std::shared_ptr<const Kernel>> kernels) {
  for (const auto& kernel : kernels) {
    // Those of this library alone: a lock's entry holds the version of one kernel, and nobody who brings a kernel for
    // `copy` asks for it under every other op.
    if (!kernel->version().empty()) continue;
    if (copy.limits.deterministic && !kernel->deterministic()) continue;
    if (kernel->supports(copy, profile).supported && kernel->workspace_bytes(copy, profile) == 0) return kernel;
  }
  return nullptr;
}

/// A copy that is prepared.
struct PreparedStep {
  bool is_output = false;
  std::size_t index = 0;
  TensorSpec spec = {};  // of the copy
  std::uint64_t offset = 0;
  std::unique_ptr<const Plan> plan = {};
};

class CopyingPlan final : public Plan {
 public:
  CopyingPlan(std::unique_ptr<const Plan> plan, std::vector<PreparedStep> steps, Device device, std::string token)
      : plan_(std::move(plan)), steps_(std::move(steps)), device_(device), token_(std::move(token)) {}

  Status run(const RunArguments& arguments) const override {
    std::array<const Tensor*, most_tensors> inputs = {}, outputs = {};
    std::copy(arguments.inputs.begin(), arguments.inputs.end(), inputs.begin());
    std::copy(arguments.outputs.begin(), arguments.outputs.end(), outputs.begin());
    std::array<std::optional<Tensor>, most_copies> copies;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PreparedStep& step = steps_[i];
      // By offset, as on some devices the workspace is a handle.
      const Tensor& copy = copies[i].emplace(Tensor::on(arguments.workspace, step.spec, device_, step.offset));
      (step.is_output ? outputs : inputs)[step.index] = &copy;
      if (step.is_output) continue;
      if (Status status = copied(step, *arguments.inputs[step.index], copy, arguments); !status.ok()) return status;
    }
    RunArguments inner = arguments;
    inner.inputs = {inputs.data(), arguments.inputs.size()};
    inner.outputs = {outputs.data(), arguments.outputs.size()};
    if (Status status = plan_->run(inner); !status.ok()) return status;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PreparedStep& step = steps_[i];
      if (!step.is_output) continue;
      Status status = copied(step, *copies[i], *arguments.outputs[step.index], arguments);
      if (!status.ok()) return status;
    }
    return {};
  }

  std::string token() const override { return token_; }
  std::optional<bool> deterministic() const override { return plan_->deterministic(); }
  bool outlives_its_work() const override {
    return plan_->outlives_its_work() || std::any_of(steps_.begin(), steps_.end(), [](const PreparedStep& step) {
             return step.plan->outlives_its_work();
           });
  }

 private:
  static Status copied(const PreparedStep& step, const Tensor& from, const Tensor& to, const RunArguments& arguments) {
    const Tensor* const input = &from;
    const Tensor* const output = &to;
    return step.plan->run({{&input, 1}, {&output, 1}, nullptr, arguments.stream});
  }

  std::unique_ptr<const Plan> plan_;
  std::vector<PreparedStep> steps_;
  Device device_;
  std::string token_;
};

/// `copies=input0:blocked,output0:blocked`, before what the kernel itself says.
std::string token_of(const std::vector<Step>& steps, const std::string& inner) {
  std::string token = "copies=";
  for (const Step& step : steps) {
    if (&step != &steps.front()) token += ",";
    token +=
        (step.is_output ? "output" : "input") + std::to_string(step.index) + ":" + std::string(step.kernel->name());
  }
  return inner.empty() ? token : token + " " + inner;
}

}  // namespace

std::shared_ptr<const CopyingKernel> CopyingKernel::around(std::shared_ptr<const Kernel> kernel, const Problem& problem,
                                                           const DeviceProfile& profile,
                                                           std::span<const std::shared_ptr<const Kernel>> copy_kernels,
                                                           std::string& refusal) {
  if (is_plain(problem) || problem.op == OpId::copy || copy_kernels.empty()) return nullptr;
  if (problem.inputs.size() > most_tensors || problem.outputs.size() > most_tensors) return nullptr;
  std::vector<Place> places = improvable(problem);
  if (places.empty()) return nullptr;
  Problem inner = problem;
  for (const Place& place : places) place.in(inner) = contiguous(place.in(problem));
  if (Verdict verdict = kernel->supports(inner, profile); !verdict.supported) {
    refusal = std::move(verdict.reason);
    return nullptr;
  }
  drop_needless(places, inner, *kernel, problem, profile);
  if (places.empty() || places.size() > most_copies) return nullptr;
  std::shared_ptr<CopyingKernel> made(new CopyingKernel(std::move(kernel), problem, inner));
  for (const Place& place : places) {
    const TensorSpec &own = place.in(problem), &copy = place.in(inner);
    const Problem moves = place.is_output ? copy_problem(problem, copy, own) : copy_problem(problem, own, copy);
    Step step{place.is_output, place.index, moves};
    step.kernel = first_that_copies(step.problem, profile, copy_kernels);
    if (step.kernel == nullptr) return nullptr;
    made->steps_.push_back(std::move(step));
  }
  return made;
}

std::uint64_t CopyingKernel::copied_bytes() const {
  std::uint64_t bytes = 0;
  for (const Step& step : steps_) bytes += span_bytes(copy_of(step));
  return bytes;
}

Verdict CopyingKernel::accepts(const Problem& problem, const DeviceProfile&) const {
  return problem == problem_ ? Verdict::yes() : Verdict::no("its copies are made for another problem");
}

// The kernel's own comes first: where a workspace is a handle, only that part has no offset.
std::uint64_t CopyingKernel::workspace_bytes(const Problem& problem, const DeviceProfile& profile) const {
  Problem inner = inner_;
  inner.limits = problem.limits;
  std::uint64_t bytes = whole_lines(kernel_->workspace_bytes(inner, profile));
  for (const Step& step : steps_) bytes += whole_lines(span_bytes(copy_of(step)));
  return bytes;
}

std::vector<std::string> CopyingKernel::variants(const Problem&, const PrepareContext& context) const {
  std::vector<std::string> tokens = kernel_->variants(inner_, context);
  for (std::string& token : tokens) token = token_of(steps_, token);
  return tokens;
}

std::unique_ptr<const Plan> CopyingKernel::make_plan(const Problem&, const PrepareContext& context,
                                                     std::string_view token) const {
  const std::string own = token_of(steps_, {}) + " ";
  const std::string_view inner_token = token.starts_with(own) ? token.substr(own.size()) : std::string_view();
  std::vector<PreparedStep> prepared;
  std::uint64_t offset = whole_lines(kernel_->workspace_bytes(inner_, context.profile));
  for (const Step& step : steps_) {
    const TensorSpec& copy = copy_of(step);
    prepared.push_back({step.is_output, step.index, copy, offset, step.kernel->prepare(step.problem, context)});
    offset += whole_lines(span_bytes(copy));
  }
  auto plan = kernel_->prepare(inner_, context, inner_token);
  std::string made = token_of(steps_, plan->token());
  return std::make_unique<CopyingPlan>(std::move(plan), std::move(prepared), context.device, std::move(made));
}

const std::shared_ptr<const Kernel>& registered_kernel(const std::shared_ptr<const Kernel>& kernel) {
  const auto* copying = dynamic_cast<const CopyingKernel*>(kernel.get());
  return copying == nullptr ? kernel : copying->kernel();
}

}  // namespace xpuruntime
