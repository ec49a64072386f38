#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/decoder/plan.h"
#include "backends/cpu/elementwise/plan.h"
#include "backends/cpu/movement/indices.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {

TensorSpec first_dims(const TensorSpec& spec, std::size_t count) {
  TensorSpec out = spec;
  out.shape = Dims(std::span(spec.shape.begin(), count));
  out.strides = Dims(std::span(spec.strides.begin(), count));
  return out;
}

namespace {

class RopePlan final : public Plan {
 public:
  explicit RopePlan(const Problem& problem)
      : problem_(problem),
        tokens_(problem.inputs[0].shape.size() - 2),
        in_(first_dims(problem.inputs[0], tokens_)),
        out_(first_dims(problem.outputs[0], tokens_)),
        nest_(in_.shape, {&in_, &out_, &problem.inputs[1]}, NestOrder::row_major),
        load_position_(integer_loader_of(problem.inputs[1].dtype)),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* positions = arguments.inputs[1]->as<void>();
    Status status = check_indices(problem_.inputs[1], positions, problem_.inputs[2].shape[0]);
    if (!status.ok()) return status;
    const RopeToken first = first_token(arguments);
    const std::int64_t grain = heavy_grain / (first.heads * first.size + 1) + 1;
    parallel_for(nest_.count(), grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin, end, [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
        for (std::int64_t i = 0; i < rows * columns; ++i) {
          const auto at = [&](std::size_t operand) {
            return offsets[operand] + i / columns * nest_.stride(operand, 1) + i % columns * nest_.stride(operand, 0);
          };
          const std::int64_t position = load_position_(positions, at(2));
          RopeToken token = first;
          token.in.data = element(first.in, at(0));
          token.out.data = element(first.out, at(1));
          token.cos = row_of(first.cos, position);
          token.sin = row_of(first.sin, position);
          rotate_token(token);
        }
      });
    });
    return status;
  }

 private:
  static void* element(const BlockOperand& operand, std::int64_t offset) {
    return static_cast<char*>(operand.data) + offset * static_cast<std::int64_t>(size_of(operand.dtype));
  }

  static BlockOperand last_dims(const Tensor& tensor) {
    const Dims& strides = tensor.strides();
    return {tensor.as<void>(), tensor.dtype(), strides[strides.size() - 2], strides.back()};
  }

  RopeToken first_token(const RunArguments& arguments) const {
    const Dims &shape = problem_.inputs[0].shape, &table = problem_.inputs[2].shape;
    return {last_dims(*arguments.inputs[0]),
            last_dims(*arguments.outputs[0]),
            last_dims(*arguments.inputs[2]),
            last_dims(*arguments.inputs[3]),
            shape[tokens_],
            shape.back(),
            table[1],
            problem_.attributes.boolean("interleaved")};
  }

  Problem problem_;
  std::size_t tokens_;  // how many dims
  TensorSpec in_, out_;
  Nest<3> nest_;
  LoadInteger load_position_;
  int threads_;
};

}  // namespace

Verdict supports_rope_simd(const Problem& problem, const DeviceProfile&) {
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  if (const Verdict verdict = is_same_dtype("output 0", out.dtype, "the input's", in.dtype); !verdict.supported)
    return verdict;
  if (const Verdict verdict = has_contiguous_rows("input 0", in); !verdict.supported) return verdict;
  return has_contiguous_rows("output 0", out);
}

std::unique_ptr<const Plan> prepare_rope_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<RopePlan>(problem);
}

}  // namespace xpuruntime::cpu
