#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

/// Philox 4x32 with 10 rounds: four random words that depend on the key and the counter alone.
__device__ inline uint4 philox(std::uint64_t key, std::uint64_t counter) {
  uint4 c = {static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0, 0};
  auto key_0 = static_cast<unsigned>(key), key_1 = static_cast<unsigned>(key >> 32);
#pragma unroll
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * c.x, q = std::uint64_t{0xCD9E8D57} * c.z;
    c = {static_cast<unsigned>(q >> 32) ^ c.y ^ key_0, static_cast<unsigned>(q),
         static_cast<unsigned>(p >> 32) ^ c.w ^ key_1, static_cast<unsigned>(p)};
    key_0 += 0x9E3779B9;
    key_1 += 0xBB67AE85;
  }
  return c;
}

/// With `by_tensor` it is read, with an offset. Otherwise the compiler knows that keys are the same for all threads.
template <bool by_tensor>
struct Seed {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;

  __device__ Seed(const DropoutLaunch& p, const Pointers& x) : key(p.seed) {
    if constexpr (!by_tensor) return;
    const auto* words = static_cast<const std::uint64_t*>(x.inputs[1]);
    key = words[0];
    offset = words[p.seed_stride];
  }

  /// Of element `index`.
  __device__ unsigned word(std::uint64_t index) const {
    const uint4 words = philox(key, (offset + index) / 4);
    const auto at = static_cast<unsigned>(offset + index);
    const unsigned low = at & 1 ? words.y : words.x, high = at & 1 ? words.w : words.z;
    return at & 2 ? high : low;
  }

  /// Of neighbours from element `index` on, which may begin anywhere inside a counter's words.
  template <int count>
  __device__ void words(std::uint64_t index, unsigned (&out)[count]) const {
    const std::uint64_t counter = (offset + index) / 4;
    const auto skipped = static_cast<unsigned>(offset + index) % 4;  // the same for all threads
    unsigned all[count + 4];
#pragma unroll
    for (int i = 0; i < count / 4; ++i) put(philox(key, counter + static_cast<unsigned>(i)), &all[4 * i]);
    if (skipped != 0) {
      put(philox(key, counter + static_cast<unsigned>(count / 4)), &all[count]);
#pragma unroll
      for (int i = 0; i + 1 < count + 4; ++i) all[i] = skipped & 1 ? all[i + 1] : all[i];
#pragma unroll
      for (int i = 0; i < count; ++i) all[i] = skipped & 2 ? all[i + 2] : all[i];
    }
#pragma unroll
    for (int i = 0; i < count; ++i) out[i] = all[i];
  }

 private:
  static __device__ void put(uint4 four, unsigned* out) {
    out[0] = four.x;
    out[1] = four.y;
    out[2] = four.z;
    out[3] = four.w;
  }
};

/// What elements become. Divided as IEEE says, like the CPU, yet by the reciprocal: two steps that take off what is
/// left over give the same bits but for the sign of zero, unless a number is tiny, huge or none.
class Kept {
 public:
  explicit __device__ Kept(const DropoutLaunch& p)
      : threshold_(static_cast<unsigned>(p.threshold)),
        nothing_(p.threshold >> 32 != 0),
        share_(p.kept_share),
        inverse_(p.inverse),
        multiplies_(p.multiplies) {}

  template <int count>
  __device__ void apply(float (&values)[count], const unsigned (&words)[count]) const {
    float results[count];
    if (multiplies_) {
#pragma unroll
      for (int i = 0; i < count; ++i) results[i] = values[i] * inverse_;
    } else {
      divide(values, results);
    }
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = words[i] >= threshold_ && !nothing_ ? results[i] : 0.0f;
  }

 private:
  template <int count>
  __device__ void divide(const float (&values)[count], float (&results)[count]) const {
    bool plain = true;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float first = values[i] * inverse_;
      plain = plain && fabsf(first) < 0x1p100f && (fabsf(first) > 0x1p-60f || first == 0);
      const float second = fmaf(fmaf(-first, share_, values[i]), inverse_, first);
      const float third = fmaf(fmaf(-second, share_, values[i]), inverse_, second);
      results[i] = __uint_as_float(__float_as_uint(third) | (__float_as_uint(values[i]) & 0x80000000u));
    }
    if (!plain) {
#pragma unroll
      for (int i = 0; i < count; ++i) results[i] = values[i] / share_;
    }
  }

  unsigned threshold_;
  bool nothing_;
  float share_;
  float inverse_;
  bool multiplies_;
};

/// An element's number is its place in row-major order, so that the mask does not depend on layouts.
template <class T, bool by_tensor>
__global__ void __launch_bounds__(element_threads) drop(const DropoutLaunch p, const Pointers x) {
  constexpr int width = per_vector<T>;
  const Seed<by_tensor> seed(p, x);
  const Kept kept(p);
  const std::int64_t vectors = p.vectors ? p.shape.count / width : 0;
  const bool broadcast = vectors > 0 && p.shape.strides[0][p.shape.rank - 1] == 0;
  for (std::int64_t i = thread_index(); i < vectors; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i * width);
    const Vector<T> loaded = load_operand<T>(x.inputs[0], at.first, broadcast);
    float values[width];
    unpack<T>(reinterpret_cast<const uint4&>(loaded), values);
    unsigned words[width];
    seed.words(static_cast<std::uint64_t>(i * width), words);
    kept.apply(values, words);
    *reinterpret_cast<uint4*>(static_cast<T*>(x.output) + at.output) = pack<T>(values);
  }
  for (std::int64_t i = vectors * width + thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    float value[1] = {to_float(static_cast<const T*>(x.inputs[0])[at.first])};
    const unsigned word[1] = {seed.word(static_cast<std::uint64_t>(i))};
    kept.apply(value, word);
    static_cast<T*>(x.output)[at.output] = from_float<T>(value[0]);
  }
}

}  // namespace

cudaError_t launch(const DropoutLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count == 0) return cudaSuccess;
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    // Four vectors a thread, as what comes before the first takes as long as half a vector.
    const std::int64_t width = launch.vectors ? 4 * per_vector<T> : 1;
    const std::int64_t work = (launch.shape.count + width - 1) / width;
    const auto kernel = pointers.inputs[1] != nullptr ? drop<T, true> : drop<T, false>;
    return queue(kernel, blocks_for(work, element_threads), element_threads, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
