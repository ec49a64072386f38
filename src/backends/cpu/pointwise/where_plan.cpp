#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/elementwise/plan.h"
#include "backends/cpu/pointwise/kernels.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

/// Without a branch, as conditions follow no pattern.
template <class T>
T chosen(std::uint8_t condition, T a, T b) {
  const auto mask = static_cast<T>(-static_cast<T>(condition != 0));
  return static_cast<T>((a & mask) | (b & static_cast<T>(~mask)));
}

/// A row of the condition, of the two inputs and of the output, each with the step to the next element.
template <class T>
void choose_row(const std::array<std::byte*, 4>& rows, const std::array<std::int64_t, 4>& steps, std::int64_t n) {
  const auto* condition = reinterpret_cast<const std::uint8_t*>(rows[0]);
  const T *a = reinterpret_cast<const T*>(rows[1]), *b = reinterpret_cast<const T*>(rows[2]);
  T* out = reinterpret_cast<T*>(rows[3]);
  if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1 && steps[3] == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = chosen(condition[i], a[i], b[i]);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    out[i * steps[3]] = chosen(condition[i * steps[0]], a[i * steps[1]], b[i * steps[2]]);
  }
}

using ChooseRow = decltype(choose_row<std::uint8_t>)*;
ChooseRow choose_row_of(std::size_t size) {
  if (size == 8) return choose_row<std::uint64_t>;
  if (size == 4) return choose_row<std::uint32_t>;
  return size == 2 ? choose_row<std::uint16_t> : choose_row<std::uint8_t>;
}

class WherePlan final : public Plan {
 public:
  explicit WherePlan(const Problem& problem)
      : nest_(problem.outputs[0].shape,
              {&problem.inputs[0], &problem.inputs[1], &problem.inputs[2], &problem.outputs[0]},
              NestOrder::by_last_operand),
        size_(static_cast<std::int64_t>(size_of(problem.outputs[0].dtype))),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const ChooseRow choose = choose_row_of(static_cast<std::size_t>(size_));
    const std::array<const Tensor*, 4> tensors = {arguments.inputs[0], arguments.inputs[1], arguments.inputs[2],
                                                  arguments.outputs[0]};
    constexpr std::int64_t line = 64;  // two threads seldom write to the same one
    parallel_for((nest_.count() + line - 1) / line, light_grain / line, threads_, [&](auto begin, auto end) {
      const auto body = [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
        for (std::int64_t row = 0; row < rows; ++row) {
          std::array<std::byte*, 4> at = {};
          std::array<std::int64_t, 4> steps = {};
          for (std::size_t k = 0; k < 4; ++k) {
            const std::int64_t elements = offsets[k] + row * nest_.stride(k, 1);
            at[k] = static_cast<std::byte*>(tensors[k]->as<void>()) + elements * (k == 0 ? 1 : size_);
            steps[k] = nest_.stride(k, 0);
          }
          choose(at, steps, columns);
        }
      };
      nest_.for_blocks(begin * line, std::min(end * line, nest_.count()), body);
    });
    return {};
  }

 private:
  Nest<4> nest_;
  std::int64_t size_;
  int threads_;
};

/// From one dtype to another too.
Status run_where(const Problem& problem, const RunArguments& arguments) {
  Walk<4> walk(problem.outputs[0].shape, problem.inputs[0], problem.inputs[1], problem.inputs[2], problem.outputs[0]);
  const auto* condition = arguments.inputs[0]->as<const std::uint8_t>();
  const DataType from = problem.inputs[1].dtype, to = problem.outputs[0].dtype;
  void* out = arguments.outputs[0]->as<void>();
  for (; walk.more(); walk.next()) {
    const std::size_t which = condition[walk.offset(0)] != 0 ? 1 : 2;
    const void* in = arguments.inputs[which]->as<const void>();
    if (is_floating(from) || is_floating(to)) {
      storer_of(to)(out, walk.offset(3), loader_of(from)(in, walk.offset(which)));
    } else {
      integer_storer_of(to)(out, walk.offset(3), integer_loader_of(from)(in, walk.offset(which)));
    }
  }
  return {};
}

}  // namespace

Verdict supports_where_rows(const Problem& problem, const DeviceProfile&) { return has_one_dtype(problem, 1); }

std::unique_ptr<const Plan> prepare_where_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<WherePlan>(problem);
}

std::unique_ptr<const Plan> prepare_where_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_where);
}

}  // namespace xpuruntime::cpu
