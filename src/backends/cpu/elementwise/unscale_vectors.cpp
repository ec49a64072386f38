#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/unscale_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"
#include "xpuruntime/registry/refusals.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Returns whether a product is not finite. A gradient that is not finite has no finite product with anything, so the
/// products alone tell. Zero times a finite number is zero, and NaN otherwise, which stays in a sum.
template <class T>
bool unscale_row(const T* in, float inverse, float* out, std::size_t n) {
  const F32Vec factor = hn::Set(F32(), inverse), zero = hn::Zero(F32());
  F32Vec spoiled = zero;
  for_vectors(n, [&](std::size_t i, auto load, auto store) HWY_ATTR {
    const F32Vec product = hn::Mul(load(in + i), factor);
    store(product, out + i);
    spoiled = hn::MulAdd(product, zero, spoiled);
  });
  return !hn::AllFalse(F32(), hn::IsNaN(spoiled));
}

}  // namespace

bool unscale_block(const Block& block, float inverse) {
  HWY_ALIGN float in[chunk_size], out[chunk_size];
  bool found = false;
  if (block.a.column == 1 && block.out.column == 1) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      with_storage(block.a.dtype, [&](auto type) {
        found |= unscale_row(static_cast<const decltype(type)*>(row_of(block.a, i).data), inverse,
                             static_cast<float*>(row_of(block.out, i).data), block.columns);
      });
    }
    return found;
  }
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    found |= unscale_row(widened(row_of(block.a, i, j), n, in), inverse, out, n);
    narrowed(out, row_of(block.out, i, j), n);
  });
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(unscale_block);

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
                         if (HWY_DYNAMIC_DISPATCH(unscale_block)(block, inverse)) found = true;
                       });
    });
    store_found_(arguments.outputs[1]->as<void>(), 0, found ? 1 : 0);
    return {};
  }

 private:
  static constexpr std::int64_t line = 64;  // two threads seldom write to the same one

  BlockOperand operand(const Tensor& tensor, DataType dtype, std::size_t which, std::int64_t offset) const {
    const std::int64_t bytes = offset * static_cast<std::int64_t>(size_of(dtype));
    return {tensor.as<char>() + bytes, dtype, nest_.stride(which, 1), nest_.stride(which, 0)};
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
#endif
