#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

constexpr int rounds = 10;

/// What a round of Philox adds to its words; `half` is 0 or 1.
__host__ __device__ inline unsigned round_key(std::uint64_t seed, int round, int half) {
  return static_cast<unsigned>(seed >> 32 * half) +
         static_cast<unsigned>(round) * (half == 0 ? 0x9E3779B9 : 0xBB67AE85);
}

/// With `by_tensor` it is read, with an offset. Otherwise the keys of all rounds come as constants.
template <bool by_tensor>
struct Seed {
  unsigned keys[rounds][2];
  std::uint64_t offset = 0;

  __device__ Seed(const DropoutLaunch& p, const Pointers& x) {
    if constexpr (!by_tensor) {
#pragma unroll
      for (int i = 0; i < 2 * rounds; ++i) keys[i / 2][i % 2] = p.round_keys[i / 2][i % 2];
      return;
    }
    const auto* words = static_cast<const std::uint64_t*>(x.inputs[1]);
    offset = words[p.seed_stride];
#pragma unroll
    for (int i = 0; i < 2 * rounds; ++i) keys[i / 2][i % 2] = round_key(words[0], i / 2, i % 2);
  }

  /// Philox 4x32 with 10 rounds: four random words that depend on the key and the counter alone.
  __device__ uint4 philox(std::uint64_t counter) const {
    uint4 c = {static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0, 0};
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t p = std::uint64_t{0xD2511F53} * c.x, q = std::uint64_t{0xCD9E8D57} * c.z;
      c = {static_cast<unsigned>(q >> 32) ^ c.y ^ keys[i][0], static_cast<unsigned>(q),
           static_cast<unsigned>(p >> 32) ^ c.w ^ keys[i][1], static_cast<unsigned>(p)};
    }
    return c;
  }

  /// Of element `index`.
  __device__ unsigned word(std::uint64_t index) const {
    const uint4 words = philox((offset + index) / 4);
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
    for (int i = 0; i < count / 4; ++i) put(philox(counter + static_cast<unsigned>(i)), &all[4 * i]);
    if (skipped != 0) {
      put(philox(counter + static_cast<unsigned>(count / 4)), &all[count]);
#pragma unroll
      for (int i = 0; i + 1 < count + 4; ++i) all[i] = skipped & 1 ? all[i + 1] : all[i];
#pragma unroll
      for (int i = 0; i < count; ++i) all[i] = skipped & 2 ? all[i + 2] : all[i];
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      out[i] = all[i];
      asm volatile("" : "+r"(out[i]));  // computed here, while the elements are on their way
    }
  }

 private:
  static __device__ void put(uint4 four, unsigned* out) {
    out[0] = four.x;
    out[1] = four.y;
    out[2] = four.z;
    out[3] = four.w;
  }
};

__host__ __device__ inline bool drops_all(const DropoutLaunch& p) { return p.threshold >> 32 != 0; }

/// What elements become. Divided as IEEE says, like the CPU, yet by the reciprocal: two steps that take off what is
/// left over give the same bits but for the sign of zero, unless a number is tiny, huge or none.
class Kept {
 public:
  __device__ Kept(const DropoutLaunch& p, bool nothing, bool multiplies)
      : threshold_(static_cast<unsigned>(p.threshold)),
        nothing_(nothing),
        share_(p.kept_share),
        inverse_(p.inverse),
        multiplies_(multiplies) {}

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
      plain = plain & (fabsf(first) < 0x1p100f) & ((fabsf(first) > 0x1p-60f) | (first == 0));
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

template <class T, bool by_tensor>
__device__ inline void drop_one(const Seed<by_tensor>& seed, const Kept& kept, const Pointers& x, std::int64_t index,
                                std::int64_t from, std::int64_t to) {
  float value[1] = {to_float(static_cast<const T*>(x.inputs[0])[from])};
  const unsigned word[1] = {seed.word(static_cast<std::uint64_t>(index))};
  kept.apply(value, word);
  static_cast<T*>(x.output)[to] = from_float<T>(value[0]);
}

template <class T, bool by_tensor>
__device__ inline void drop_vector(const Seed<by_tensor>& seed, const Kept& kept, const Pointers& x, std::int64_t index,
                                   const Vector<T>& loaded, std::int64_t to) {
  float values[per_vector<T>];
  unsigned words[per_vector<T>];
  seed.words(static_cast<std::uint64_t>(index), words);
  unpack<T>(reinterpret_cast<const uint4&>(loaded), values);
  kept.apply(values, words);
  *reinterpret_cast<uint4*>(static_cast<T*>(x.output) + to) = pack<T>(values);
}

/// An element's number is its place in row-major order, so that the mask does not depend on layouts.
template <class T, bool by_tensor>
__global__ void __launch_bounds__(element_threads) drop(const DropoutLaunch p, const Pointers x) {
  constexpr int width = per_vector<T>;
  const Seed<by_tensor> seed(p, x);
  const Kept kept(p, drops_all(p), p.multiplies);
  const std::int64_t vectors = p.vectors ? p.shape.count / width : 0;
  const bool broadcast = vectors > 0 && p.shape.strides[0][p.shape.rank - 1] == 0;
  for (std::int64_t i = thread_index(); i < vectors; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i * width);
    drop_vector<T>(seed, kept, x, i * width, load_operand<T>(x.inputs[0], at.first, broadcast), at.output);
  }
  for (std::int64_t i = vectors * width + thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    drop_one<T>(seed, kept, x, i, at.first, at.output);
  }
}

/// Where both are one run of memory, see by_runs, and something may be kept. It has no branch that would keep it from
/// making words while the elements are on their way.
template <class T, bool by_tensor, bool multiplies>
__global__ void __launch_bounds__(run_threads) drop_run(const DropoutLaunch p, const Pointers x) {
  constexpr int width = per_vector<T>;
  const std::int64_t first = thread_index() * width;
  const Seed<by_tensor> seed(p, x);
  const Kept kept(p, false, multiplies);
  if (first + width <= p.shape.count) {
    return drop_vector<T>(seed, kept, x, first, load_operand<T>(x.inputs[0], first, false), first);
  }
#pragma unroll 1
  for (std::int64_t i = first; i < p.shape.count; ++i) drop_one<T>(seed, kept, x, i, i, i);
}

/// The same where all are whole blocks of two vectors a thread: without a check the elements are asked for sooner.
template <class T, bool by_tensor, bool multiplies>
__global__ void __launch_bounds__(run_threads) drop_blocks(const DropoutLaunch p, const Pointers x) {
  constexpr int width = per_vector<T>, step = run_threads * width;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (2 * step) + threadIdx.x * width;
  const Seed<by_tensor> seed(p, x);
  const Kept kept(p, false, multiplies);
  const Vector<T> one = load_operand<T>(x.inputs[0], first, false);
  const Vector<T> other = load_operand<T>(x.inputs[0], first + step, false);
  drop_vector<T>(seed, kept, x, first, one, first);
  drop_vector<T>(seed, kept, x, first + step, other, first + step);
}

template <class T, bool by_tensor>
cudaError_t launch_as(const DropoutLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.count;
  if (launch.shape.contiguous && !drops_all(launch)) {
    constexpr bool may_multiply = sizeof(T) == 2;
    constexpr std::int64_t block = 2 * run_threads * per_vector<T>;
    if (count % block == 0) {
      const auto blocks =
          launch.multiplies ? drop_blocks<T, by_tensor, may_multiply> : drop_blocks<T, by_tensor, false>;
      return queue(blocks, static_cast<unsigned>(count / block), run_threads, launch, pointers, stream);
    }
    const auto kernel = launch.multiplies ? drop_run<T, by_tensor, may_multiply> : drop_run<T, by_tensor, false>;
    return queue(kernel, blocks_of_vectors<T>(count, run_threads), run_threads, launch, pointers, stream);
  }
  // Four vectors a thread, as what comes before the first takes as long as half a vector.
  const std::int64_t width = launch.vectors ? 4 * per_vector<T> : 1;
  return queue(drop<T, by_tensor>, blocks_for((count + width - 1) / width, element_threads), element_threads, launch,
               pointers, stream);
}

}  // namespace

void set_seed(DropoutLaunch& launch, std::uint64_t seed) {
  for (int round = 0; round < rounds; ++round) {
    for (const int half : {0, 1}) launch.round_keys[round][half] = round_key(seed, round, half);
  }
}

cudaError_t launch(const DropoutLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count == 0) return cudaSuccess;
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    return pointers.inputs[1] != nullptr ? launch_as<T, true>(launch, pointers, stream)
                                         : launch_as<T, false>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
