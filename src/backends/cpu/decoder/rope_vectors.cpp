#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/decoder/rope_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/base/block.h"
#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/plan.h"
#include "backends/cpu/movement/indices.h"
#include "xpuruntime/registry/refusals.h"

#ifndef XRT_CPU_ROPE_TOKEN  // this file is included once for each target
#define XRT_CPU_ROPE_TOKEN
namespace xpuruntime::cpu {

/// One token: its heads are rows, those of the tables the ones of its position.
struct RopeToken {
  BlockOperand in = {}, out = {}, cos = {}, sin = {};
  std::int64_t heads = 0;
  std::int64_t size = 0;  // of a head
  std::int64_t pairs = 0;
  bool interleaved = false;
};

}  // namespace xpuruntime::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// a becomes a cos - b sin, and b becomes b cos + a sin.
HWY_INLINE void rotate(F32Vec& a, F32Vec& b, F32Vec cos, F32Vec sin) {
  const F32Vec first = hn::NegMulAdd(b, sin, hn::Mul(a, cos));
  b = hn::MulAdd(a, sin, hn::Mul(b, cos));
  a = first;
}

template <class T>
void rotate_halves(const T* a, const T* b, T* out_a, T* out_b, const float* cos, const float* sin, std::int64_t n) {
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    F32Vec x = get(a + i), y = get(b + i);
    rotate(x, y, get(cos + i), get(sin + i));
    put(x, out_a + i);
    put(y, out_b + i);
  });
}

/// Pairs of neighbours, at most chunk_size of them, by way of a buffer in f32.
template <class T>
void rotate_neighbours(const T* in, T* out, const float* cos, const float* sin, std::int64_t n) {
  HWY_ALIGN float pairs[2 * (chunk_size + hn::MaxLanes(F32()))];
  const auto elements = static_cast<std::size_t>(2 * n);
  std::fill_n(pairs + elements, 2 * f32_lanes(), 0.0f);
  for_vectors(elements, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(get(in + i), pairs + i); });
  for_vectors(n, [&](std::size_t i, auto get, auto) HWY_ATTR {
    F32Vec x, y;
    hn::LoadInterleaved2(F32(), pairs + 2 * i, x, y);
    rotate(x, y, get(cos + i), get(sin + i));
    hn::StoreInterleaved2(x, y, F32(), pairs + 2 * i);
  });
  for_vectors(elements, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(get(pairs + i), out + i); });
}

template <class T>
void rotate_heads(const RopeToken& token) {
  HWY_ALIGN float cos_buffer[chunk_size], sin_buffer[chunk_size];
  for (std::int64_t at = 0; at < token.pairs; at += chunk_size) {
    const std::int64_t n = std::min(chunk_size, token.pairs - at);
    const float* cos = widened(row_of(token.cos, 0, at), n, cos_buffer);
    const float* sin = widened(row_of(token.sin, 0, at), n, sin_buffer);
    for (std::int64_t head = 0; head < token.heads; ++head) {
      const auto* in = static_cast<const T*>(token.in.data) + head * token.in.row;
      auto* out = static_cast<T*>(token.out.data) + head * token.out.row;
      if (token.interleaved) {
        rotate_neighbours(in + 2 * at, out + 2 * at, cos, sin, n);
      } else {
        rotate_halves(in + at, in + token.pairs + at, out + at, out + token.pairs + at, cos, sin, n);
      }
    }
  }
  if (token.in.data == token.out.data) return;
  const std::int64_t turned = 2 * token.pairs;
  for (std::int64_t head = 0; head < token.heads; ++head) {
    std::memcpy(static_cast<T*>(token.out.data) + head * token.out.row + turned,
                static_cast<const T*>(token.in.data) + head * token.in.row + turned,
                static_cast<std::size_t>(token.size - turned) * sizeof(T));
  }
}

}  // namespace

void rope_token(const RopeToken& token) {
  with_storage(token.in.dtype, [&](auto storage) { rotate_heads<decltype(storage)>(token); });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
namespace {

HWY_EXPORT(rope_token);

/// The first `count` dims of a tensor, to go over them alone.
TensorSpec first_dims(const TensorSpec& spec, std::size_t count) {
  TensorSpec out = spec;
  out.shape = Dims(std::span(spec.shape.begin(), count));
  out.strides = Dims(std::span(spec.strides.begin(), count));
  return out;
}

/// Cuts the work by tokens.
class RopePlan final : public Plan {
 public:
  explicit RopePlan(const Problem& problem)
      : problem_(problem),
        tokens_(problem.inputs[0].shape.size() - 2),
        in_(first_dims(problem.inputs[0], tokens_)),
        out_(first_dims(problem.outputs[0], tokens_)),
        nest_(in_.shape, {&in_, &out_, &problem.inputs[1]}, NestOrder::row_major),
        load_position_(integer_loader_of(problem.inputs[1].dtype)),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* positions = arguments.inputs[1]->as<void>();
    Status status = check_indices(problem_.inputs[1], positions, problem_.inputs[2].shape[0]);
    if (!status.ok()) return status;
    const RopeToken first = first_token(arguments);
    const std::int64_t grain = heavy_grain / (first.heads * first.size + 1) + 1;
    parallel_for(nest_.count(), grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin, end, [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
        for (std::int64_t i = 0; i < rows * columns; ++i) {
          const auto at = [&](std::size_t operand) {
            return offsets[operand] + i / columns * nest_.stride(operand, 1) + i % columns * nest_.stride(operand, 0);
          };
          const std::int64_t position = load_position_(positions, at(2));
          RopeToken token = first;
          token.in.data = element(first.in, at(0));
          token.out.data = element(first.out, at(1));
          token.cos = row_of(first.cos, position);
          token.sin = row_of(first.sin, position);
          HWY_DYNAMIC_DISPATCH(rope_token)(token);
        }
      });
    });
    return status;
  }

 private:
  static void* element(const BlockOperand& operand, std::int64_t offset) {
    return static_cast<char*>(operand.data) + offset * static_cast<std::int64_t>(size_of(operand.dtype));
  }

  static BlockOperand last_dims(const Tensor& tensor) {
    const Dims& strides = tensor.strides();
    return {tensor.as<void>(), tensor.dtype(), strides[strides.size() - 2], strides.back()};
  }

  RopeToken first_token(const RunArguments& arguments) const {
    const Dims &shape = problem_.inputs[0].shape, &table = problem_.inputs[2].shape;
    return {last_dims(*arguments.inputs[0]),
            last_dims(*arguments.outputs[0]),
            last_dims(*arguments.inputs[2]),
            last_dims(*arguments.inputs[3]),
            shape[tokens_],
            shape.back(),
            table[1],
            problem_.attributes.boolean("interleaved")};
  }

  Problem problem_;
  std::size_t tokens_;  // how many dims
  TensorSpec in_, out_;
  Nest<3> nest_;
  LoadInteger load_position_;
  int threads_;
};

/// The reference, in double, head by head.
class RopeReference final : public Plan {
 public:
  explicit RopeReference(const Problem& problem) : problem_(problem) {}

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
    Walk<3> walk(in.shape, in, out, for_heads);
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

Verdict supports_rope_simd(const Problem& problem, const DeviceProfile&) {
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  if (const Verdict verdict = is_same_dtype("output 0", out.dtype, "the input's", in.dtype); !verdict.supported)
    return verdict;
  if (const Verdict verdict = has_contiguous_rows("input 0", in); !verdict.supported) return verdict;
  return has_contiguous_rows("output 0", out);
}

std::unique_ptr<const Plan> prepare_rope_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<RopePlan>(problem);
}

std::unique_ptr<const Plan> prepare_rope_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<RopeReference>(problem);
}

}  // namespace xpuruntime::cpu
#endif
