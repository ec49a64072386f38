#pragma once

#include "backends/cpu/base/elements.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

template <class Load, class Store, class Function>
void map_elements(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, Load load, Store store,
                  const Function& function) {
  Walk<2> walk(to.shape, from, to);
  for (; walk.more(); walk.next()) store(out, walk.offset(1), function(load(in, walk.offset(0))));
}

/// Stores function(x) for each element x; the specs have one shape.
template <class Function>
void map_reals(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, const Function& function) {
  map_elements(from, in, to, out, loader_of(from.dtype), storer_of(to.dtype), function);
}

/// The same between integers, of which a double would lose the last bits of 64-bit values.
template <class Function>
void map_integers(const TensorSpec& from, const void* in, const TensorSpec& to, void* out, const Function& function) {
  map_elements(from, in, to, out, integer_loader_of(from.dtype), integer_storer_of(to.dtype), function);
}

/// For floats of at most 32 bits. The last bit of what a double holds stands for all that it does not, so that
/// rounding the double is rounding the integer, once.
inline double load_int64_to_narrow(const void* base, std::int64_t index) {
  const std::int64_t value = integer_loader_of(DataType::int64)(base, index);
  const std::uint64_t magnitude = value < 0 ? -static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  constexpr std::uint64_t beyond = 0x7ff;
  if (magnitude >> 53 == 0 || (magnitude & beyond) == 0) return static_cast<double>(value);
  const auto held = static_cast<double>((magnitude & ~beyond) | (beyond + 1));
  return value < 0 ? -held : held;
}

/// Stores each element, converted as cast does.
inline void convert_elements(const TensorSpec& from, const void* in, const TensorSpec& to, void* out) {
  if (is_floating(from.dtype) || is_floating(to.dtype)) {
    const bool narrows = from.dtype == DataType::int64 && to.dtype != DataType::float64;
    map_elements(from, in, to, out, narrows ? load_int64_to_narrow : loader_of(from.dtype), storer_of(to.dtype),
                 [](double x) { return x; });
  } else {
    map_integers(from, in, to, out, [](std::int64_t x) { return x; });
  }
}

/// The first output of the first two inputs, broadcast, element by element.
template <class Load, class Store, class Operation>
void combine_elements(const Problem& problem, const RunArguments& arguments, Load load_a, Load load_b, Store store,
                      Operation operation) {
  const void *a = arguments.inputs[0]->as<void>(), *b = arguments.inputs[1]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  Walk<3> walk(problem.outputs[0].shape, problem.inputs[0], problem.inputs[1], problem.outputs[0]);
  for (; walk.more(); walk.next()) {
    store(out, walk.offset(2), operation(load_a(a, walk.offset(0)), load_b(b, walk.offset(1))));
  }
}

template <class Operation>
void combine_reals(const Problem& problem, const RunArguments& arguments, Operation operation) {
  combine_elements(problem, arguments, loader_of(problem.inputs[0].dtype), loader_of(problem.inputs[1].dtype),
                   storer_of(problem.outputs[0].dtype), operation);
}

}  // namespace xpuruntime::cpu
