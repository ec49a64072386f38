#include "xpuruntime/registry/kernel.h"

#include <utility>

namespace xpuruntime {
namespace {

class TableKernel final : public Kernel {
 public:
  TableKernel(const KernelSpec& spec, DeviceType type) : spec_(spec), type_(type) {}

  OpId op() const override { return spec_.op; }
  std::string_view name() const override { return spec_.name; }
  DeviceType device_type() const override { return type_; }
  Verdict supports(const Problem& problem, const DeviceProfile& profile) const override {
    return spec_.supports(problem, profile);
  }
  bool prefers(const Problem& problem, const DeviceProfile& profile) const override {
    return spec_.prefers != nullptr && spec_.prefers(problem, profile);
  }
  std::uint64_t workspace_bytes(const Problem& problem, const DeviceProfile& profile) const override {
    return spec_.workspace_bytes == nullptr ? 0 : spec_.workspace_bytes(problem, profile);
  }
  bool deterministic() const override { return spec_.deterministic; }
  std::unique_ptr<const Plan> prepare(const Problem& problem, const PrepareContext& context) const override {
    return spec_.prepare(problem, context);
  }

 private:
  const KernelSpec& spec_;
  DeviceType type_;
};

/// Keeps the functions alive: a kernel may be removed while one of its plans still runs.
class FunctionPlan final : public Plan {
 public:
  FunctionPlan(std::shared_ptr<const FunctionKernel> function, Problem problem)
      : function_(std::move(function)), problem_(std::move(problem)) {}

  Status run(const RunArguments& arguments) const override {
    try {
      return function_->run(problem_, arguments);
    } catch (const std::exception& error) {
      return Status(ErrorCode::device_error, std::string("the kernel threw: ") + error.what());
    } catch (...) {
      return Status(ErrorCode::device_error, "the kernel threw something that is no std::exception");
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
  Verdict supports(const Problem& problem, const DeviceProfile& profile) const override {
    return function_->supports ? function_->supports(problem, profile) : Verdict::yes();
  }
  std::uint64_t workspace_bytes(const Problem&, const DeviceProfile&) const override {
    return function_->workspace_bytes;
  }
  bool deterministic() const override { return function_->deterministic; }
  std::unique_ptr<const Plan> prepare(const Problem& problem, const PrepareContext&) const override {
    return std::make_unique<FunctionPlan>(function_, problem);
  }

 private:
  std::shared_ptr<const FunctionKernel> function_;
};

}  // namespace

bool Kernel::prefers(const Problem&, const DeviceProfile&) const { return false; }
std::uint64_t Kernel::workspace_bytes(const Problem&, const DeviceProfile&) const { return 0; }
bool Kernel::deterministic() const { return true; }

std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec, DeviceType device_type) {
  return std::make_shared<TableKernel>(spec, device_type);
}

std::shared_ptr<const Kernel> make_kernel(FunctionKernel function) {
  if (!function.run) {
    fail(ErrorCode::invalid_argument, "make_kernel",
         "kernel '" + function.name + "' has no run function; set FunctionKernel::run");
  }
  return std::make_shared<UserKernel>(std::move(function));
}

}  // namespace xpuruntime
