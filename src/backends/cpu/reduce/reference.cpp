#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/scalar_extremes.h"
#include "backends/cpu/reduce/kernels.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

// Wraps as two's complement does, without undefined behaviour.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
double sum(double a, double b) { return a + b; }

std::int64_t product(std::int64_t a, std::int64_t b) { return multiply_add(std::int64_t{0}, a, b); }
double product(double a, double b) { return a * b; }

/// What is kept of a and b.
template <class Value>
Value fold(OpId op, Value a, Value b) {
  switch (op) {
    case OpId::reduce_max:
      return maximum(a, b);
    case OpId::reduce_min:
      return minimum(a, b);
    case OpId::reduce_prod:
      return product(a, b);
    default:
      return sum(a, b);
  }
}

/// One output after the other, in double, or in 64-bit integers where all are integers.
class ReducePlan final : public Plan {
 public:
  explicit ReducePlan(const Problem& problem)
      : op_(problem.op),
        in_(problem.inputs[0]),
        out_(kept_output(problem)),
        parts_(parts_of(in_, reduced_dims(problem))),
        integers_(!is_floating(in_.dtype) && !is_floating(out_.dtype) && out_.dtype != DataType::boolean) {}

  Status run(const RunArguments& arguments) const override {
    const void* in = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    if (integers_) {
      reduce<std::int64_t>(integer_loader_of(in_.dtype), integer_storer_of(out_.dtype), in, out);
    } else {
      reduce<double>(loader_of(in_.dtype), storer_of(out_.dtype), in, out);
    }
    return {};
  }

 private:
  template <class Value, class Load, class Store>
  void reduce(Load load, Store store, const void* in, void* out) const {
    Walk<2> across(parts_.across.shape, parts_.across, out_);
    for (; across.more(); across.next()) {
      store(out, across.offset(1), finished(folded<Value>(load, in, across.offset(0))));
    }
  }

  template <class Value, class Load>
  Value folded(Load load, const void* in, std::int64_t from) const {
    Walk<1> along(parts_.along.shape, parts_.along);
    if (!along.more()) return op_ == OpId::reduce_prod ? Value{1} : Value{0};  // extremes have an element
    Value value = load(in, from);
    for (along.next(); along.more(); along.next()) value = fold(op_, value, load(in, from + along.offset(0)));
    return value;
  }

  std::int64_t finished(std::int64_t value) const { return value; }
  double finished(double value) const {
    return op_ == OpId::reduce_mean ? value / static_cast<double>(element_count(parts_.along)) : value;
  }

  OpId op_;
  TensorSpec in_;
  TensorSpec out_;
  Parts parts_;
  bool integers_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_reduce_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ReducePlan>(problem);
}

}  // namespace xpuruntime::cpu
