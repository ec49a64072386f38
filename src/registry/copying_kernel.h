#pragma once

#include <memory>
#include <span>
#include <vector>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

/// A kernel on contiguous copies of those tensors whose layout or alignment it refuses. It goes by the kernel's name
/// and version and is made for one problem; its plan makes the copies in the workspace, so that they are counted,
/// limited, measured and logged with the kernel they are made for.
class CopyingKernel final : public Kernel {
 public:
  /// One tensor that is copied before the kernel runs, or back after it.
  struct Step {
    bool is_output = false;
    std::size_t index = 0;  // among the problem's inputs or outputs
    Problem problem = {};   // of the op copy
    std::shared_ptr<const Kernel> kernel = {};
  };

  /// Null where the kernel takes the problem as it is, refuses it for more than layout and alignment, which `refusal`
  /// then says, or no kernel of `copy_kernels` can make the copies. Copies as few bytes as it finds enough.
  static std::shared_ptr<const CopyingKernel> around(std::shared_ptr<const Kernel> kernel, const Problem& problem,
                                                     const DeviceProfile& profile,
                                                     std::span<const std::shared_ptr<const Kernel>> copy_kernels,
                                                     std::string& refusal);

  const std::shared_ptr<const Kernel>& kernel() const { return kernel_; }
  /// What the kernel gets.
  const Problem& inner() const { return inner_; }
  const std::vector<Step>& steps() const { return steps_; }  // inputs first
  /// Bytes of all copies together.
  std::uint64_t copied_bytes() const;

  OpId op() const override { return kernel_->op(); }
  std::string_view name() const override { return kernel_->name(); }
  DeviceType device_type() const override { return kernel_->device_type(); }
  Directions directions() const override { return kernel_->directions(); }
  std::string_view takes() const override { return kernel_->takes(); }
  Verdict accepts(const Problem& problem, const DeviceProfile& profile) const override;
  std::uint64_t workspace_bytes(const Problem& problem, const DeviceProfile& profile) const override;
  bool deterministic() const override { return kernel_->deterministic(); }
  std::string_view version() const override { return kernel_->version(); }
  std::vector<std::string> variants(const Problem& problem, const PrepareContext& context) const override;
  std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext& context,
                                        std::string_view token) const override;

 private:
  CopyingKernel(std::shared_ptr<const Kernel> kernel, Problem problem, Problem inner)
      : kernel_(std::move(kernel)), problem_(std::move(problem)), inner_(std::move(inner)) {}

  std::shared_ptr<const Kernel> kernel_;
  Problem problem_;
  Problem inner_;
  std::vector<Step> steps_ = {};
};

/// The kernel that is in the registry: the one inside, of one that copies.
const std::shared_ptr<const Kernel>& registered_kernel(const std::shared_ptr<const Kernel>& kernel);

}  // namespace xpuruntime
