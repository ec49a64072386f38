#include <algorithm>
#include <atomic>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

class UnscalePlan final : public Plan {
 public:
  explicit UnscalePlan(const Problem& problem)
      : nest_(problem.outputs[0].shape, {&problem.inputs[0], &problem.outputs[0]}, NestOrder::by_last_operand),
        dtype_(problem.inputs[0].dtype),
        store_found_(storer_of(problem.outputs[1].dtype)),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const float inverse = *arguments.inputs[1]->as<const float>();
    std::atomic<bool> found = false;
    const std::int64_t lines = (nest_.count() + line - 1) / line;
    parallel_for(lines, light_grain / line, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin * line, std::min(end * line, nest_.count()),
                       [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
                         Block block{rows, columns};
                         block.a = operand(*arguments.inputs[0], dtype_, 0, offsets[0]);
                         block.out = operand(*arguments.outputs[0], DataType::float32, 1, offsets[1]);
                         if (unscale_of_block(block, inverse)) found = true;
                       });
    });
    store_found_(arguments.outputs[1]->as<void>(), 0, found ? 1 : 0);
    return {};
  }

 private:
  static constexpr std::int64_t line = 64;  // two threads seldom write to the same one

  BlockOperand operand(const Tensor& tensor, DataType dtype, std::size_t which, std::int64_t offset) const {
    const std::int64_t bytes = offset * static_cast<std::int64_t>(size_of(dtype));
    return {static_cast<char*>(tensor.as<void>()) + bytes, dtype, nest_.stride(which, 1), nest_.stride(which, 0)};
  }

  Nest<2> nest_;
  DataType dtype_;
  StoreElement store_found_;
  int threads_;
};

}  // namespace

Verdict supports_unscale_simd(const Problem& problem, const DeviceProfile&) {
  const DataType inverse = problem.inputs[1].dtype;
  if (inverse != DataType::float32) return refuse_dtype("input 1", inverse, "f32");
  // Narrower results could overflow where those in f32 do not, and then nobody would have seen it.
  const DataType result = problem.outputs[0].dtype;
  return result == DataType::float32 ? Verdict::yes() : refuse_dtype("output 0", result, "f32");
}

std::unique_ptr<const Plan> prepare_unscale_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<UnscalePlan>(problem);
}

}  // namespace xpuruntime::cpu
