#include <string>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/packed_layout.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

class PackedPlan final : public Plan {
 public:
  PackedPlan(const Product& product, std::uint64_t l2_bytes) : layout_(packed_layout(product, l2_bytes)) {}

  Status run(const RunArguments& arguments) const override {
    run_packed(layout_, arguments);
    return {};
  }

  std::string token() const override {
    return std::string(layout_.lanes_are_columns ? "lanes=columns" : "lanes=rows") +
           " tasks=" + std::to_string(layout_.row_tasks) + "x" + std::to_string(layout_.lane_tasks);
  }

 private:
  PackedLayout layout_;
};

}  // namespace

Verdict supports_product_packed(const Problem& problem, const DeviceProfile&) {
  constexpr std::int64_t most = 1 << 26;  // of more, the f32 sum of the blocks' sums would lose too many digits
  return is_at_most("k", product_of(problem).shape.k, most);
}

std::uint64_t workspace_product_packed(const Problem& problem, const DeviceProfile& profile) {
  return packed_workspace_bytes(packed_layout(product_of(problem), profile.l2_bytes));
}

std::unique_ptr<const Plan> prepare_product_packed(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<PackedPlan>(product_of(problem), context.profile.l2_bytes);
}

}  // namespace xpuruntime::cpu
