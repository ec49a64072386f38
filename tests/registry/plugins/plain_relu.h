#pragma once

#include <algorithm>

#include "xpuruntime/registry/backend.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime {

class ReluPlan final : public Plan {
 public:
  Status run(const RunArguments& arguments) const override {
    const auto* in = arguments.inputs[0]->as<const float>();
    auto* out = arguments.outputs[0]->as<float>();
    const std::int64_t count = element_count(arguments.inputs[0]->spec());
    for (std::int64_t i = 0; i < count; ++i) out[i] = std::max(in[i], 0.0f);
    return {};
  }
  std::string token() const override { return "loop=plain"; }
};

inline Verdict supports_relu(const Problem& problem, const DeviceProfile&) { return is_contiguous(problem); }

inline std::unique_ptr<const Plan> prepare_relu(const Problem&, const PrepareContext&) {
  return std::make_unique<ReluPlan>();
}

}  // namespace xpuruntime
