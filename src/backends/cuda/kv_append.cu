#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

/// The block and the slot of a token; a block of -1 where there is none.
struct Slot {
  std::int64_t block = -1;
  std::int64_t slot = 0;
};

template <class Index>
__device__ Slot slot_of(const AppendShape& p, const Pointers& x, std::int64_t sequence, std::int64_t token) {
  const std::int64_t length = load_index(x.inputs[4], p.length, sequence * p.length_stride);
  if (length < 0 || length >= p.room) return {};
  if (!p.paged) return {sequence, length + token};
  const auto position = static_cast<Index>(length + token);
  const Index entry = position / static_cast<Index>(p.slots);
  const std::int64_t at = sequence * p.page_strides[0] + static_cast<std::int64_t>(entry) * p.page_strides[1];
  const std::int64_t page = load_index(x.inputs[5], p.page, at);
  if (page < 0 || page >= p.blocks) return {};
  return {page, static_cast<std::int64_t>(position - entry * static_cast<Index>(p.slots))};
}

/// Into `count` caches that are alike. What is moved is on its way before its slot is known.
template <class Unit, class Index, int count>
__global__ void __launch_bounds__(element_threads) append(const AppendShape p, const Pointers x) {
  wait_for_previous();
  const std::int64_t units = p.caches[0].units;
  if (thread_index() >= p.sequences * p.tokens * p.heads * units) return;
  auto rest = static_cast<Index>(thread_index());
  const auto next = [&](std::int64_t extent) {
    const Index before = rest / static_cast<Index>(extent), at = rest - before * static_cast<Index>(extent);
    rest = before;
    return static_cast<std::int64_t>(at);
  };
  const std::int64_t unit = next(units), head = next(p.heads), token = next(p.tokens);
  const auto sequence = static_cast<std::int64_t>(rest);
  Unit moved[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const auto& from = p.caches[i].from;
    moved[i] = static_cast<const Unit*>(
        x.inputs[2 + i])[sequence * from[0] + token * from[1] + head * from[2] + unit * from[3]];
  }
  const Slot slot = slot_of<Index>(p, x, sequence, token);
  if (slot.block < 0) {
    *static_cast<volatile std::uint32_t*>(x.fault) = 1;
    return;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const auto& to = p.caches[i].to;
    static_cast<Unit*>(i == 0 ? x.output
                              : x.second_output)[slot.block * to[0] + slot.slot * to[1] + head * to[2] + unit * to[3]] =
        moved[i];
  }
}

template <int count>
cudaError_t append_to(const AppendShape& shape, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t work = shape.sequences * shape.tokens * shape.heads * shape.caches[0].units;
  if (work == 0) return cudaSuccess;
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const bool narrow = work < most && shape.room < most - shape.tokens;
  const auto blocks = static_cast<unsigned>((work + element_threads - 1) / element_threads);
  return with_unit(shape.caches[0].unit, [&](auto unit) {
    using Unit = decltype(unit);
    const auto kernel = narrow ? append<Unit, std::uint32_t, count> : append<Unit, std::uint64_t, count>;
    return queue_overlapping(kernel, blocks, element_threads, shape, pointers, stream);
  });
}

cudaError_t append_tokens(const AppendShape& shape, const Pointers& pointers, cudaStream_t stream) {
  const AppendShape::Cache &keys = shape.caches[0], &values = shape.caches[1];
  if (keys.unit == values.unit && keys.units == values.units) return append_to<2>(shape, pointers, stream);
  if (const cudaError_t error = append_to<1>(shape, pointers, stream); error != cudaSuccess) return error;
  AppendShape second = shape;
  second.caches[0] = values;
  Pointers its = pointers;
  its.inputs[2] = pointers.inputs[3];
  its.output = pointers.second_output;
  return append_to<1>(second, its, stream);
}

}  // namespace

cudaError_t launch(const AppendLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  void* const outputs[] = {pointers.output, pointers.second_output};
  for (int cache = 0; cache < 2; ++cache) {
    if (pointers.inputs[cache] == outputs[cache]) continue;
    Pointers copied;
    copied.inputs[0] = pointers.inputs[cache];
    copied.output = outputs[cache];
    const cudaError_t error = cuda::launch(launch.copies[cache], copied, stream);
    if (error != cudaSuccess) return error;
  }
  return append_tokens(launch.shape, pointers, stream);
}

}  // namespace xpuruntime::cuda
