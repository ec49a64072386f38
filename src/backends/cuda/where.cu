#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/finish.cuh"

namespace xpuruntime::cuda {
namespace {

/// Elements are units of so many bytes, whatever they mean.
template <class Unit>
__global__ void __launch_bounds__(run_threads, 12) choose_units(const WhereLaunch p, const Pointers x) {
  wait_for_previous();
  constexpr int width = 16 / static_cast<int>(sizeof(Unit));
  const int last = p.shape.rank - 1;
  const std::int64_t step = p.vectors ? 1 : thread_count();
#pragma unroll 1
  for (std::int64_t i = thread_index() * (p.vectors ? width : 1); i < p.shape.count; i += step) {
    const Offsets at = offsets_in(p.shape, i, p.third);
    Unit* const to = static_cast<Unit*>(x.output) + at.output;
    if (p.vectors && i + width <= p.shape.count) {
      const auto chosen = load_operand<std::uint8_t, width>(x.inputs[0], at.first, p.shape.strides[0][last] == 0);
      Vector<Unit> a = load_operand<Unit>(x.inputs[1], at.second, p.shape.strides[1][last] == 0);
      const Vector<Unit> b = load_operand<Unit>(x.inputs[2], at.third, p.third[last] == 0);
#pragma unroll
      for (int j = 0; j < width; ++j) a.values[j] = chosen.values[j] != 0 ? a.values[j] : b.values[j];
      *reinterpret_cast<Vector<Unit>*>(to) = a;
      return;
    }
    const bool chosen = static_cast<const std::uint8_t*>(x.inputs[0])[at.first] != 0;
    *to = chosen ? static_cast<const Unit*>(x.inputs[1])[at.second] : static_cast<const Unit*>(x.inputs[2])[at.third];
  }
}

/// From one dtype to another.
__global__ void __launch_bounds__(run_threads) choose_and_convert(const WhereLaunch p, const Pointers x) {
  wait_for_previous();
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i, p.third);
    const bool chosen = static_cast<const std::uint8_t*>(x.inputs[0])[at.first] != 0;
    convert(x.output, p.to, at.output, x.inputs[chosen ? 1 : 2], p.from, chosen ? at.second : at.third);
  }
}

}  // namespace

cudaError_t launch(const WhereLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.count;
  if (count == 0) return cudaSuccess;
  if (launch.bytes == 0) {
    return queue_overlapping(choose_and_convert, blocks_for(count, run_threads), run_threads, launch, pointers, stream);
  }
  return with_unit(launch.bytes, [&](auto unit) {
    using Unit = decltype(unit);
    const unsigned blocks =
        launch.vectors ? blocks_of_vectors<Unit>(count, run_threads) : blocks_for(count, run_threads);
    return queue_overlapping(choose_units<Unit>, blocks, run_threads, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
