#include <algorithm>
#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/indexing/lines.h"

// Sums, places of extremes and the largest elements along a dim, line by line, in double or in 64-bit integers.

namespace xpuruntime::cpu {
namespace {

bool is_integer(const TensorSpec& spec) { return !is_floating(spec.dtype); }

template <class Value, class Load, class Store>
void add_up(const Problem& problem, const RunArguments& arguments, Load load, Store store) {
  const void* in = arguments.inputs[0]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  const std::int64_t dim = problem.attributes.integer("dim");
  const bool exclusive = problem.attributes.boolean("exclusive"), reverse = problem.attributes.boolean("reverse");
  const LinesOf from(problem.inputs[0], dim), to(problem.outputs[0], dim);
  if (from.length == 0) return;
  for (Walk<2> walk(from.across.shape, from.across, to.across); walk.more(); walk.next()) {
    Value sum = 0;
    for (std::int64_t i = 0; i < from.length; ++i) {
      const std::int64_t at = reverse ? from.length - 1 - i : i;
      const Value value = load(in, walk.offset(0) + at * from.stride);
      const Value before = sum;
      if constexpr (std::is_same_v<Value, double>) {
        sum += value;
      } else {
        sum = multiply_add(sum, value, Value{1});
      }
      store(out, walk.offset(1) + at * to.stride, exclusive ? before : sum);
    }
  }
}

Status run_cumsum(const Problem& problem, const RunArguments& arguments) {
  const DataType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
  if (is_integer(problem.inputs[0]) && is_integer(problem.outputs[0])) {
    add_up<std::int64_t>(problem, arguments, integer_loader_of(from), integer_storer_of(to));
  } else {
    add_up<double>(problem, arguments, loader_of(from), storer_of(to));
  }
  return {};
}

/// Whether a comes before b among the largest, or the smallest: NaN before all.
template <class Value>
bool comes_first(Value a, Value b, bool largest) {
  if constexpr (std::is_same_v<Value, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  }
  return largest ? a > b : a < b;
}

template <class Value, class Load>
void find_extremes(const Problem& problem, const RunArguments& arguments, Load load) {
  const void* in = arguments.inputs[0]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  const bool largest = problem.op == OpId::arg_max, last = problem.attributes.boolean("select_last_index");
  const LinesOf lines(problem.inputs[0], problem.attributes.integer("dim"));
  // The output's elements in their order: a line each, with the dim or without it.
  Walk<1> to(problem.outputs[0].shape, problem.outputs[0]);
  const StoreInteger store = integer_storer_of(problem.outputs[0].dtype);
  for (Walk<1> walk(lines.across.shape, lines.across); walk.more(); walk.next(), to.next()) {
    std::int64_t best = 0;
    Value found = load(in, walk.offset(0));
    for (std::int64_t i = 1; i < lines.length; ++i) {
      const Value value = load(in, walk.offset(0) + i * lines.stride);
      if (comes_first(value, found, largest) || (last && !comes_first(found, value, largest))) {
        best = i;
        found = value;
      }
    }
    store(out, to.offset(0), best);
  }
}

Status run_arg(const Problem& problem, const RunArguments& arguments) {
  const DataType from = problem.inputs[0].dtype;
  if (is_floating(from)) {
    find_extremes<double>(problem, arguments, loader_of(from));
  } else {
    find_extremes<std::int64_t>(problem, arguments, integer_loader_of(from));
  }
  return {};
}

template <class Value>
struct Ranked {
  Value value;
  std::int64_t place;
};

template <class Value, class Load, class Store>
void take_first(const Problem& problem, const RunArguments& arguments, Load load, Store store) {
  const void* in = arguments.inputs[0]->as<void>();
  const bool largest = problem.attributes.boolean("largest");
  const std::int64_t dim = problem.attributes.integer("dim"), k = problem.attributes.integer("k");
  const LinesOf from(problem.inputs[0], dim), values(problem.outputs[0], dim), places(problem.outputs[1], dim);
  const StoreInteger store_place = integer_storer_of(problem.outputs[1].dtype);
  auto* line = static_cast<Ranked<Value>*>(arguments.workspace);
  if (k == 0) return;
  Walk<3> walk(from.across.shape, from.across, values.across, places.across);
  for (; walk.more(); walk.next()) {
    for (std::int64_t i = 0; i < from.length; ++i) line[i] = {load(in, walk.offset(0) + i * from.stride), i};
    const auto before = [&](const Ranked<Value>& a, const Ranked<Value>& b) {
      if constexpr (std::is_same_v<Value, double>) {  // NaN is the largest, so the last of the smallest
        if (std::isnan(a.value) != std::isnan(b.value)) return std::isnan(a.value) == largest;
      }
      if (a.value > b.value || a.value < b.value) return (a.value > b.value) == largest;
      return a.place < b.place;
    };
    std::partial_sort(line, line + k, line + from.length, before);
    for (std::int64_t i = 0; i < k; ++i) {
      store(arguments.outputs[0]->as<void>(), walk.offset(1) + i * values.stride, line[i].value);
      store_place(arguments.outputs[1]->as<void>(), walk.offset(2) + i * places.stride, line[i].place);
    }
  }
}

Status run_top_k(const Problem& problem, const RunArguments& arguments) {
  const DataType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
  if (is_integer(problem.inputs[0]) && is_integer(problem.outputs[0])) {
    take_first<std::int64_t>(problem, arguments, integer_loader_of(from), integer_storer_of(to));
  } else {
    take_first<double>(problem, arguments, loader_of(from), storer_of(to));
  }
  return {};
}

}  // namespace

std::uint64_t workspace_top_k(const Problem& problem, const DeviceProfile&) {
  const LinesOf lines(problem.inputs[0], problem.attributes.integer("dim"));
  return static_cast<std::uint64_t>(lines.length) * sizeof(Ranked<double>);
}

std::unique_ptr<const Plan> prepare_cumsum_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_cumsum);
}

std::unique_ptr<const Plan> prepare_arg_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_arg);
}

std::unique_ptr<const Plan> prepare_top_k_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_top_k);
}

}  // namespace xpuruntime::cpu
