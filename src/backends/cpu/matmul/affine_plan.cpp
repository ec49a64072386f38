#include <algorithm>
#include <array>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/stages.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/finish.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/packed_task.h"
#include "core/forward_call.h"
#include "core/matmul_shape.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

/// The tensors of the last step, in this order.
enum Operand : std::size_t { sums, c, scale_a, scale_b, out, operand_count };

/// How each of them is walked over the output's shape. What is not there is a number that nobody reads.
struct Operands {
  explicit Operands(const Problem& problem, const TensorSpec& sums_spec) {
    specs = {sums_spec, input(problem, 2), input(problem, 3), input(problem, 4), problem.outputs[0]};
    has_c = has_input(problem.inputs, 2) && problem.attributes.real("beta") != 0;
    has_scale_a = has_input(problem.inputs, 3);
    has_scale_b = has_input(problem.inputs, 4);
    // The rows of the result are its last dim but one, unless b is a vector.
    TensorSpec& rows = specs[scale_a];
    if (!rows.shape.empty() && problem.inputs[1].shape.size() > 1) {
      rows = make_spec(rows.dtype, {rows.shape[0], 1}, {rows.strides[0], 1});
    }
    alpha = problem.attributes.real("alpha");
    beta = problem.attributes.real("beta");
  }

  static TensorSpec input(const Problem& problem, std::size_t i) {
    return has_input(problem.inputs, i) ? problem.inputs[i] : make_spec(DataType::int8, {});
  }

  std::array<TensorSpec, operand_count> specs;
  bool has_c = false, has_scale_a = false, has_scale_b = false;
  double alpha = 1, beta = 1;
};

std::array<void*, operand_count> memory_of(const RunArguments& arguments) {
  std::array<void*, operand_count> memory = {};
  for (std::size_t i = 0; i < out; ++i) memory[i] = arguments.inputs[i]->as<void>();
  memory[out] = arguments.outputs[0]->as<void>();
  return memory;
}

/// Any dtypes: floats in double, integers in 64 bits.
template <class Number, class Load, class Store>
class PlainAffinePlan final : public Plan {
 public:
  PlainAffinePlan(const Operands& operands, Load (*loader)(DataType), Store store)
      : operands_(operands), store_(store) {
    for (std::size_t i = 0; i < out; ++i) loads_[i] = loader(operands.specs[i].dtype);
  }

  Status run(const RunArguments& arguments) const override {
    const auto memory = memory_of(arguments);
    Walk<operand_count> walk(operands_.specs[out].shape);
    for (std::size_t i = 0; i < operand_count; ++i) walk.set_operand(i, operands_.specs[i]);
    const auto get = [&](Operand which) { return loads_[which](memory[which], walk.offset(which)); };
    const auto alpha = static_cast<Number>(operands_.alpha), beta = static_cast<Number>(operands_.beta);
    for (; walk.more(); walk.next()) {
      Number value = multiply_add(Number{0}, alpha, get(sums));
      if (operands_.has_scale_a) value *= get(scale_a);
      if (operands_.has_scale_b) value *= get(scale_b);
      store_(memory[out], walk.offset(out), operands_.has_c ? multiply_add(value, beta, get(c)) : value);
    }
    return {};
  }

 private:
  Operands operands_;
  std::array<Load, out> loads_ = {};
  Store store_;
};

/// In f32: sums of f32 or i32, c and the output in f32, f16 or bf16.
class FloatAffinePlan final : public Plan {
 public:
  FloatAffinePlan(const Operands& operands, int threads)
      : operands_(operands), nest_(nest_of(operands.specs)), threads_(threads) {}

  Status run(const RunArguments& arguments) const override {
    constexpr std::int64_t grain = 1 << 14;  // elements that are worth a thread
    const auto memory = memory_of(arguments);
    parallel_for(nest_.count(), grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin, end, [&](const auto& at, std::int64_t rows, std::int64_t columns, std::int64_t) {
        for (std::int64_t row = 0; row < rows; ++row) {
          auto offsets = at;
          for (std::size_t i = 0; i < operand_count; ++i) offsets[i] += row * nest_.stride(i, 1);
          line(memory, offsets, columns);
        }
      });
    });
    return {};
  }

 private:
  static constexpr std::int64_t piece = 256;
  using Offsets = Nest<operand_count>::Offsets;

  static Nest<operand_count> nest_of(const std::array<TensorSpec, operand_count>& specs) {
    std::array<const TensorSpec*, operand_count> pointers = {};
    for (std::size_t i = 0; i < operand_count; ++i) pointers[i] = &specs[i];
    return {specs[out].shape, pointers, NestOrder::by_last_operand};
  }

  void line(const std::array<void*, operand_count>& memory, Offsets at, std::int64_t columns) const {
    for (std::int64_t done = 0; done < columns; done += piece) {
      const std::int64_t count = std::min(piece, columns - done);
      float values[piece], factors[piece], added[piece] = {};
      read(memory[sums], sums, at[sums], count, values);
      std::fill_n(factors, count, static_cast<float>(operands_.alpha));
      if (operands_.has_scale_a) multiply(memory[scale_a], scale_a, at[scale_a], count, factors);
      if (operands_.has_scale_b) multiply(memory[scale_b], scale_b, at[scale_b], count, factors);
      if (operands_.has_c) read(memory[c], c, at[c], count, added);
      write({values, factors, added, static_cast<float>(operands_.beta), count}, memory[out], at[out]);
      for (std::size_t i = 0; i < operand_count; ++i) at[i] += count * nest_.stride(i, 0);
    }
  }

  void read(const void* memory, Operand which, std::int64_t at, std::int64_t count, float* to) const {
    const DataType dtype = operands_.specs[which].dtype;
    const std::int64_t stride = nest_.stride(which, 0);
    if (dtype == DataType::int32) {
      const auto* from = static_cast<const std::int32_t*>(memory) + at;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * stride]);
    } else {
      widen(static_cast<const std::byte*>(memory) + at * static_cast<std::int64_t>(size_of(dtype)), dtype, stride,
            count, to);
    }
  }

  void multiply(const void* memory, Operand which, std::int64_t at, std::int64_t count, float* factors) const {
    const auto* from = static_cast<const float*>(memory) + at;
    const std::int64_t stride = nest_.stride(which, 0);
    for (std::int64_t i = 0; i < count; ++i) factors[i] *= from[i * stride];
  }

  void write(const ScaledSums& row, void* memory, std::int64_t at) const {
    const DataType dtype = operands_.specs[out].dtype;
    const std::int64_t stride = nest_.stride(out, 0);
    std::byte* const to = static_cast<std::byte*>(memory) + at * static_cast<std::int64_t>(size_of(dtype));
    if (stride == 1 || row.count == 1) return scale_and_add(row, to, dtype);
    float results[piece];
    scale_and_add(row, results, DataType::float32);
    const StoreElement store = storer_of(dtype);
    for (std::int64_t i = 0; i < row.count; ++i) store(to, i * stride, static_cast<double>(results[i]));
  }

  Operands operands_;
  Nest<operand_count> nest_;
  int threads_;
};

/// Writes the two stages of one call by one kernel, or finds out why that kernel cannot do it.
class AffineStages {
 public:
  AffineStages(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile) : kernel_(kernel) {
    const TensorSpec& to = problem.outputs[0];
    const DataType dtype = sums_dtype(problem);
    const StageTensor result = output_of(problem, 0);
    const StageTensor between = dtype == to.dtype ? result : stages_.room(dtype, to.shape);
    Attributes attributes(OpId::matmul);
    for (const char* flag : {"transpose_a", "transpose_b"}) attributes.set(flag, problem.attributes.integer(flag));
    const std::vector<StageTensor> factors = {input_of(problem, 0), input_of(problem, 1)};
    const Problem product = stage_problem(problem, attributes, factors, between);
    verdict_ = kernel.accepts(product, profile);
    if (verdict_.supported) verdict_ = check(problem, dtype);
    if (!verdict_.supported) return;
    stages_.add(kernel, product, factors, {between});
    std::vector<StageTensor> read = {between};
    for (std::size_t i = 2; i < 5; ++i) {
      read.push_back(has_input(problem.inputs, i) ? input_of(problem, i) : between.seen_as(no_input()));
    }
    static constexpr KernelSpec last = {.ops = OpId::matmul, .name = "affine", .prepare = prepare_last};
    stages_.add(last, last_problem(problem, between), std::move(read), {result});
  }

  const Verdict& verdict() const { return verdict_; }
  const Stages& stages() const { return stages_; }

 private:
  /// What the sums of a kernel are kept in: its own arithmetic's, so that they are rounded to the output once.
  DataType sums_dtype(const Problem& problem) const {
    const DataType own = product_dtype(std::span(problem.inputs).first(2));
    if (kernel_.dtypes == any_dtype) return is_floating(own) ? DataType::float64 : DataType::int64;
    return is_floating(own) && own != DataType::float64 ? DataType::float32 : own;
  }

  static Verdict check(const Problem& problem, DataType sums_dtype) {
    const DataType to = problem.outputs[0].dtype;
    const bool has_c = has_input(problem.inputs, 2);
    if (!fast_floats.contains(sums_dtype) && sums_dtype != DataType::int32) return Verdict::yes();  // any dtype goes
    if (!fast_floats.contains(to))
      return refuse_dtype("the output", to, "f32, f16 and bf16 with alpha, beta or scales");
    if (has_c && !fast_floats.contains(problem.inputs[2].dtype)) {
      return refuse_dtype("c", problem.inputs[2].dtype, "f32, f16 and bf16");
    }
    return Verdict::yes();
  }

  /// The call, with the sums in the place of `a`: what the last stage is prepared from.
  static Problem last_problem(const Problem& problem, const StageTensor& between) {
    Problem last = problem;
    last.inputs[0] = between.spec;
    return last;
  }

  static std::unique_ptr<const Plan> prepare_last(const Problem& problem, const PrepareContext&) {
    const Operands operands(problem, problem.inputs[0]);
    const DataType dtype = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
    if ((dtype == DataType::float32 || dtype == DataType::int32) && has_float_scalars(problem)) {
      return std::make_unique<FloatAffinePlan>(operands, threads_for(problem));
    }
    const bool floats = std::any_of(operands.specs.begin(), operands.specs.end(),
                                    [](const TensorSpec& spec) { return is_floating(spec.dtype); });
    if (floats) {
      return std::make_unique<PlainAffinePlan<double, LoadElement, StoreElement>>(operands, loader_of, storer_of(to));
    }
    return std::make_unique<PlainAffinePlan<std::int64_t, LoadInteger, StoreInteger>>(operands, integer_loader_of,
                                                                                      integer_storer_of(to));
  }

  const KernelSpec& kernel_;
  Verdict verdict_ = {};
  Stages stages_ = {};
};

}  // namespace

Verdict supports_product_affine(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile) {
  return AffineStages(kernel, problem, profile).verdict();
}

std::uint64_t workspace_product_affine(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile) {
  return AffineStages(kernel, problem, profile).stages().workspace_bytes(profile);
}

std::unique_ptr<const Plan> prepare_product_affine(const KernelSpec& kernel, const Problem& problem,
                                                   const PrepareContext& context) {
  return AffineStages(kernel, problem, context.profile).stages().prepare(context);
}

}  // namespace xpuruntime::cpu
