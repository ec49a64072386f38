#include "xpuruntime/registry/kernel.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <utility>

#include "core/op_table.h"
#include "core/printable.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime {
namespace {

constexpr std::string_view unversioned = "unversioned";

std::uint64_t random_word() {
  std::uint64_t word = 0;
  if (getentropy(&word, sizeof word) == 0) return word;
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

/// One that no other kernel has: not in another process, nor in a child that goes on from here.
std::string made_up_version() {
  static const std::uint64_t process = random_word();
  static std::atomic<std::uint64_t> next{1};
  char digits[64];
  std::snprintf(digits, sizeof digits, " %016llx-%lld-%llu", static_cast<unsigned long long>(process),
                static_cast<long long>(getpid()), static_cast<unsigned long long>(next++));
  return std::string(unversioned) + digits;
}

class TableKernel final : public Kernel {
 public:
  TableKernel(const KernelSpec& spec, OpId op, DeviceType type, std::optional<std::string> version)
      : spec_(spec), op_(op), type_(type), version_(std::move(version)) {}

  OpId op() const override { return op_; }
  std::string_view name() const override { return spec_.name; }
  DeviceType device_type() const override { return type_; }
  Directions directions() const override { return spec_.directions; }
  std::string_view takes() const override { return spec_.takes; }
  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const override {
    return spec_.accepts(problem, profile);
  }
  std::uint64_t workspace_bytes(const Problem& problem, const DeviceProfile& profile) const override {
    return spec_.workspace_bytes == nullptr ? 0 : spec_.workspace_bytes(problem, profile);
  }
  bool deterministic() const override { return spec_.deterministic; }
  std::string_view version() const override { return version_ ? *version_ : Kernel::version(); }
  std::vector<std::string> variants(const Problem& problem, const PrepareContext& context) const override {
    return spec_.variants == nullptr ? Kernel::variants(problem, context) : spec_.variants(problem, context);
  }
  std::optional<Problem> plan_problem(const Problem& problem) const override {
    return spec_.plan_problem == nullptr ? std::nullopt : spec_.plan_problem(problem);
  }
  std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext& context,
                                        std::string_view token) const override {
    const bool by_token = !token.empty() && spec_.prepare_variant != nullptr;
    return by_token ? spec_.prepare_variant(problem, context, token) : spec_.prepare(problem, context);
  }

 private:
  const KernelSpec& spec_;
  OpId op_;
  DeviceType type_;
  std::optional<std::string> version_;
};

bool has_opt_in(OpId op, std::string_view name) {
  const OpInfo& info = op_info(op);
  const auto is_it = [&](const auto& spec) { return spec.opt_in && spec.name == name; };
  return std::any_of(info.inputs.begin(), info.inputs.end(), is_it) ||
         std::any_of(info.attributes.begin(), info.attributes.end(), is_it);
}

void check_takes(const OpList& ops, std::string_view kernel, std::string_view names) {
  for_each_part(names, [&](std::string_view name) {
    if (std::any_of(ops.begin(), ops.end(), [&](OpId op) { return has_opt_in(op, name); })) return true;
    fail(ErrorCode::invalid_argument, "make_kernel",
         "kernel '" + shown(kernel) + "' takes '" + shown(name) + "', which is not an opt-in input or attribute of " +
             std::string(to_string(*ops.begin())) + "; leave it out");
  });
}

/// Whether the opt-in inputs and attributes that the problem uses are among the names.
Verdict takes_all(std::string_view names, const Problem& problem) {
  for (const std::string_view used : opt_ins_of(problem)) {
    bool named = false;
    for_each_part(names, [&](std::string_view name) { return !(named = name == used); });
    if (problem.direction == Direction::backward) return Verdict::no("no gradients with " + std::string(used));
    if (!named) return Verdict::no("does not compute " + std::string(used));
  }
  return Verdict::yes();
}

/// Keeps the functions alive: a kernel may be removed while one of its plans still runs.
class FunctionPlan final : public Plan {
 public:
  FunctionPlan(std::shared_ptr<const FunctionKernel> function, Problem problem)
      : function_(std::move(function)), problem_(std::move(problem)) {}

  Status run(const RunArguments& arguments) const override {
    try {
      return function_->run(problem_, arguments);
    } catch (...) {
      return Status(ErrorCode::device_error, "the kernel threw: " + exception_text());
    }
  }

 private:
  std::shared_ptr<const FunctionKernel> function_;
  Problem problem_;
};

class UserKernel final : public Kernel {
 public:
  explicit UserKernel(FunctionKernel function) : function_(std::make_shared<FunctionKernel>(std::move(function))) {}

  OpId op() const override { return function_->op; }
  std::string_view name() const override { return function_->name; }
  DeviceType device_type() const override { return function_->device_type; }
  Directions directions() const override { return function_->directions; }
  std::string_view takes() const override { return function_->takes; }
  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const override {
    return function_->supports ? function_->supports(problem, profile) : Verdict::yes();
  }
  std::uint64_t workspace_bytes(const Problem&, const DeviceProfile&) const override {
    return function_->workspace_bytes;
  }
  bool deterministic() const override { return function_->deterministic; }
  std::string_view version() const override {
    return function_->version.empty() ? Kernel::version() : function_->version;
  }
  std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext&,
                                        std::string_view) const override {
    return std::make_unique<FunctionPlan>(function_, problem);
  }

 private:
  std::shared_ptr<const FunctionKernel> function_;
};

}  // namespace

std::unique_ptr<const Plan> Plan::with_constants(std::span<const Tensor* const>) const { return nullptr; }

bool is_versioned(std::string_view version) { return !version.starts_with(unversioned); }

std::string written_version(std::string_view version) {
  return std::string(is_versioned(version) ? version : unversioned);
}

Kernel::Kernel() : unversioned_(made_up_version()) {}

Directions Kernel::directions() const { return Directions::forward; }
std::string_view Kernel::takes() const { return {}; }

Verdict Kernel::supports(const Problem& problem, const DeviceProfile& profile) const {
  const Directions other = problem.direction == Direction::forward ? Directions::backward : Directions::forward;
  if (directions() == other) return Verdict::no(other == Directions::forward ? "forward only" : "backward only");
  if (const Verdict verdict = takes_all(takes(), problem); !verdict.supported) return verdict;
  return accepts(problem, profile);
}

std::uint64_t Kernel::workspace_bytes(const Problem&, const DeviceProfile&) const { return 0; }
bool Kernel::deterministic() const { return true; }
std::vector<std::string> Kernel::variants(const Problem&, const PrepareContext&) const { return {}; }
std::optional<Problem> Kernel::plan_problem(const Problem&) const { return std::nullopt; }

std::unique_ptr<const Plan> Kernel::prepare(const Problem& problem, const PrepareContext& context,
                                            std::string_view token) const {
  auto plan = make_plan(problem, context, token);
  if (plan == nullptr) fail(ErrorCode::device_error, "prepare", "the kernel made no plan; ask its author");
  const std::string made = plan->token();
  if (printable(made) != made)  // files and tables hold it
    fail(ErrorCode::device_error, "prepare", "its plan's token '" + shown(made) + "' does not print; ask its author");
  if (!token.empty() && made != token) fail(ErrorCode::not_supported, "prepare", "it plans '" + made + "' here");
  return plan;
}

Verdict KernelSpec::accepts(const Problem& problem, const DeviceProfile& profile) const {
  const Verdict typed = takes_dtypes(problem, dtypes, outputs.empty() ? dtypes : outputs);
  if (!typed.supported) return typed;
  const Verdict aligned = any_alignment ? Verdict::yes() : is_aligned(problem);
  if (!aligned.supported) return aligned;
  return supports == nullptr ? Verdict::yes() : supports(problem, profile);
}

std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec, OpId op, DeviceType device_type,
                                          std::optional<std::string> version) {
  check_takes(spec.ops, spec.name, spec.takes);
  return std::make_shared<TableKernel>(spec, op, device_type, std::move(version));
}

std::shared_ptr<const Kernel> make_kernel(FunctionKernel function) {
  if (!function.run) {
    fail(ErrorCode::invalid_argument, "make_kernel", "kernel '" + function.name + "' has no run function; set its run");
  }
  if (!is_versioned(function.version)) {
    fail(ErrorCode::invalid_argument, "make_kernel",
         "kernel '" + function.name + "': versions must not begin with '" + std::string(unversioned) +
             "', which means no version; give another");
  }
  check_takes(function.op, function.name, function.takes);
  return std::make_shared<UserKernel>(std::move(function));
}

}  // namespace xpuruntime
