#include <algorithm>
#include <cmath>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/elements.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/decoder/plan.h"
#include "backends/cpu/movement/indices.h"

namespace xpuruntime::cpu {
namespace {

/// In double: gate and factor are the two inputs.
class SiluMulPlan final : public Plan {
 public:
  explicit SiluMulPlan(const Problem& problem) : problem_(problem) {}

  Status run(const RunArguments& arguments) const override {
    const TensorSpec &gate = problem_.inputs[0], &factor = problem_.inputs[1], &out = problem_.outputs[0];
    const LoadElement load_gate = loader_of(gate.dtype), load_factor = loader_of(factor.dtype);
    const StoreElement store = storer_of(out.dtype);
    Walk<3> walk(out.shape);
    walk.set_operand(0, gate);
    walk.set_operand(1, factor);
    walk.set_operand(2, out);
    for (; walk.more(); walk.next()) {
      const double x = load_gate(arguments.inputs[0]->as<void>(), walk.offset(0));
      const double y = load_factor(arguments.inputs[1]->as<void>(), walk.offset(1));
      store(arguments.outputs[0]->as<void>(), walk.offset(2), x / (1 + std::exp(-x)) * y);
    }
    return {};
  }

 private:
  Problem problem_;
};

/// In double, head by head.
class RopePlan final : public Plan {
 public:
  explicit RopePlan(const Problem& problem) : problem_(problem) {}

  Status run(const RunArguments& arguments) const override {
    const TensorSpec& positions = problem_.inputs[1];
    const Status status = check_indices(positions, arguments.inputs[1]->as<void>(), problem_.inputs[2].shape[0]);
    if (!status.ok()) return status;
    const std::size_t dims = problem_.inputs[0].shape.size() - 1;
    TensorSpec for_heads = positions;  // all heads of a token have its position
    for_heads.shape = Dims::filled(positions.shape.size() + 1, 1);
    for_heads.strides = Dims::filled(positions.shape.size() + 1, 0);
    std::copy(positions.shape.begin(), positions.shape.end(), &for_heads.shape[0]);
    std::copy(positions.strides.begin(), positions.strides.end(), &for_heads.strides[0]);
    const TensorSpec in = first_dims(problem_.inputs[0], dims), out = first_dims(problem_.outputs[0], dims);
    Walk<3> walk(in.shape);
    walk.set_operand(0, in);
    walk.set_operand(1, out);
    walk.set_operand(2, for_heads);
    const LoadInteger load = integer_loader_of(positions.dtype);
    for (; walk.more(); walk.next()) {
      head(arguments, walk.offset(0), walk.offset(1), load(arguments.inputs[1]->as<void>(), walk.offset(2)));
    }
    return status;
  }

 private:
  double load(const RunArguments& arguments, std::size_t input, std::int64_t offset) const {
    return loader_of(problem_.inputs[input].dtype)(arguments.inputs[input]->as<void>(), offset);
  }

  double angle(const RunArguments& arguments, std::size_t table, std::int64_t position, std::int64_t pair) const {
    const Dims& strides = problem_.inputs[table].strides;
    return load(arguments, table, position * strides[0] + pair * strides[1]);
  }

  void head(const RunArguments& arguments, std::int64_t from, std::int64_t to, std::int64_t position) const {
    const bool interleaved = problem_.attributes.boolean("interleaved");
    const std::int64_t pairs = problem_.inputs[2].shape[1], size = problem_.inputs[0].shape.back();
    const auto get = [&](std::int64_t i) { return load(arguments, 0, from + i * problem_.inputs[0].strides.back()); };
    const auto put = [&](std::int64_t i, double value) {
      const TensorSpec& out = problem_.outputs[0];
      storer_of(out.dtype)(arguments.outputs[0]->as<void>(), to + i * out.strides.back(), value);
    };
    for (std::int64_t p = 0; p < pairs; ++p) {
      const std::int64_t first = interleaved ? 2 * p : p, second = interleaved ? first + 1 : p + pairs;
      const double a = get(first), b = get(second);
      const double cos = angle(arguments, 2, position, p), sin = angle(arguments, 3, position, p);
      put(first, a * cos - b * sin);
      put(second, b * cos + a * sin);
    }
    for (std::int64_t i = 2 * pairs; i < size; ++i) put(i, get(i));
  }

  Problem problem_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_silu_mul_reference(const Problem& problem, const PrepareContext&) {
  return prepare_on_halves(
      problem, [](const Problem& two) -> std::unique_ptr<const Plan> { return std::make_unique<SiluMulPlan>(two); });
}

std::unique_ptr<const Plan> prepare_rope_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<RopePlan>(problem);
}

std::unique_ptr<const Plan> prepare_kv_append_reference(const Problem& problem, const PrepareContext&) {
  const MoveElements convert = [](const TensorSpec& from, const void* in, const TensorSpec& to, void* out, int) {
    convert_elements(from, in, to, out);
  };
  return prepare_append(problem, convert, convert, 1);
}

}  // namespace xpuruntime::cpu
