#include "backends/cpu/elements.h"
#include "backends/cpu/kernels.h"

namespace xpuruntime::cpu {
namespace {

bool all_integers(const Problem& problem) {
  for (const TensorSpec& spec : problem.inputs) {
    if (is_floating(spec.dtype)) return false;
  }
  return !is_floating(problem.outputs[0].dtype);
}

/// Adds in double, which no sum of two floats of at most 32 bits can tell from exact, or in 64-bit integers, which
/// wrap.
class AddPlan final : public Plan {
 public:
  explicit AddPlan(const Problem& problem) : problem_(problem), integers_(all_integers(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* a = arguments.inputs[0]->as<const std::byte>();
    const void* b = arguments.inputs[1]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    if (integers_) {
      add(integer_loader_of(problem_.inputs[0].dtype), integer_loader_of(problem_.inputs[1].dtype),
          integer_storer_of(problem_.outputs[0].dtype), a, b, out);
    } else {
      add(loader_of(problem_.inputs[0].dtype), loader_of(problem_.inputs[1].dtype),
          storer_of(problem_.outputs[0].dtype), a, b, out);
    }
    return {};
  }

 private:
  static double sum(double a, double b) { return a + b; }
  // Wraps as two's complement does, without undefined behaviour.
  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }

  template <class Load, class Store>
  void add(Load load_a, Load load_b, Store store, const void* a, const void* b, void* out) const {
    Walk<3> walk(problem_.outputs[0].shape);
    walk.set_operand(0, problem_.inputs[0]);
    walk.set_operand(1, problem_.inputs[1]);
    walk.set_operand(2, problem_.outputs[0]);
    for (; walk.more(); walk.next()) {
      store(out, walk.offset(2), sum(load_a(a, walk.offset(0)), load_b(b, walk.offset(1))));
    }
  }

  Problem problem_;
  bool integers_;
};

/// One value in, one value out, through a function of doubles.
class UnaryPlan final : public Plan {
 public:
  UnaryPlan(const Problem& problem, double (*function)(double)) : problem_(problem), function_(function) {}

  Status run(const RunArguments& arguments) const override {
    const void* in = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    Walk<2> walk(problem_.outputs[0].shape);
    walk.set_operand(0, problem_.inputs[0]);
    walk.set_operand(1, problem_.outputs[0]);
    if (all_integers(problem_) && function_ == same) {
      copy(walk, in, out, integer_loader_of(problem_.inputs[0].dtype), problem_.outputs[0].dtype);
      return {};
    }
    const LoadElement load = loader_of(problem_.inputs[0].dtype);
    const StoreElement store = storer_of(problem_.outputs[0].dtype);
    for (; walk.more(); walk.next()) store(out, walk.offset(1), function_(load(in, walk.offset(0))));
    return {};
  }

  static double same(double x) { return x; }
  // NaN passes through: it is not greater than 0, and must not become 0.
  static double relu(double x) { return x > 0 || x != x ? x : 0.0; }

 private:
  // Between integers a double would lose the last bits of 64-bit values.
  static void copy(Walk<2>& walk, const void* in, void* out, LoadInteger load, DataType to) {
    const bool boolean = to == DataType::boolean;
    const StoreInteger store = integer_storer_of(boolean ? DataType::uint8 : to);
    for (; walk.more(); walk.next()) {
      const std::int64_t value = load(in, walk.offset(0));
      store(out, walk.offset(1), boolean ? value != 0 : value);
    }
  }

  Problem problem_;
  double (*function_)(double);
};

}  // namespace

std::unique_ptr<const Plan> prepare_add_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<AddPlan>(problem);
}

std::unique_ptr<const Plan> prepare_relu_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<UnaryPlan>(problem, UnaryPlan::relu);
}

std::unique_ptr<const Plan> prepare_cast_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<UnaryPlan>(problem, UnaryPlan::same);
}

}  // namespace xpuruntime::cpu
