#include "backends/cpu/base/elements.h"
#include "backends/cpu/elementwise/dropout.h"
#include "backends/cpu/elementwise/kernels.h"

namespace xpuruntime::cpu {

namespace {

class DropoutPlan final : public Plan {
 public:
  explicit DropoutPlan(const Problem& problem) : problem_(problem) {}

  Status run(const RunArguments& arguments) const override {
    const DropoutCall call = dropout_call(problem_, arguments);
    const LoadElement load = loader_of(problem_.inputs[0].dtype);
    const StoreElement store = storer_of(problem_.outputs[0].dtype);
    const void* in = arguments.inputs[0]->as<void>();
    void* out = arguments.outputs[0]->as<void>();
    Walk<2> walk(problem_.outputs[0].shape);
    walk.set_operand(0, problem_.inputs[0]);
    walk.set_operand(1, problem_.outputs[0]);
    for (std::uint64_t index = call.offset; walk.more(); walk.next(), ++index) {
      const bool kept = Philox::words(call.seed, index / 4)[index % 4] >= call.threshold;
      store(out, walk.offset(1), kept ? load(in, walk.offset(0)) / call.kept_share : 0);
    }
    return {};
  }

 private:
  Problem problem_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_dropout_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<DropoutPlan>(problem);
}

}  // namespace xpuruntime::cpu
