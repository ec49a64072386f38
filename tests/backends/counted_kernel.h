#pragma once

#include <memory>
#include <string>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

/// A kernel of a table under another name that counts the plans it makes: for classes of problems, as the table's does,
/// or for each problem.
class CountedKernel final : public Kernel {
 public:
  explicit CountedKernel(std::shared_ptr<const Kernel> kernel, std::string name = "counted", bool by_class = true)
      : kernel_(std::move(kernel)), name_(std::move(name)), by_class_(by_class) {}

  OpId op() const override { return kernel_->op(); }
  std::string_view name() const override { return name_; }
  DeviceType device_type() const override { return kernel_->device_type(); }
  Directions directions() const override { return kernel_->directions(); }
  std::string_view takes() const override { return kernel_->takes(); }
  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const override {
    return kernel_->accepts(problem, profile);
  }
  std::uint64_t workspace_bytes(const Problem& problem, const DeviceProfile& profile) const override {
    return kernel_->workspace_bytes(problem, profile);
  }
  std::optional<Problem> plan_problem(const Problem& problem) const override {
    return by_class_ ? kernel_->plan_problem(problem) : std::nullopt;
  }
  std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext& context,
                                        std::string_view token) const override {
    ++made;
    return kernel_->prepare(problem, context, token);
  }

  mutable int made = 0;

 private:
  std::shared_ptr<const Kernel> kernel_;
  std::string name_;
  bool by_class_;
};

}  // namespace xpuruntime
