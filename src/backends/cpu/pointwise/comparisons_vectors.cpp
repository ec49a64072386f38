#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/comparisons_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/plan.h"
#include "backends/cpu/pointwise/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// Tests of two elements, as masks and one by one. A test of one gets it twice.

struct Equal {
  static HWY_INLINE auto of(auto, auto a, auto b) { return hn::Eq(a, b); }
  static bool one(auto a, auto b) { return a == b; }
};
struct NotEqual {  // and of one: whether it is NaN
  static HWY_INLINE auto of(auto, auto a, auto b) { return hn::Not(hn::Eq(a, b)); }
  static bool one(auto a, auto b) { return a != b; }
};
struct Less {
  static HWY_INLINE auto of(auto, auto a, auto b) { return hn::Lt(a, b); }
  static bool one(auto a, auto b) { return a < b; }
};
struct Greater {
  static HWY_INLINE auto of(auto, auto a, auto b) { return hn::Lt(b, a); }
  static bool one(auto a, auto b) { return a > b; }
};
/// Integers have no vectors of it, and floats are not below nor above NaN.
template <class D, class V>
HWY_INLINE auto not_above(D, V a, V b) {
  if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    return hn::Le(a, b);
  } else {
    return hn::Not(hn::Lt(b, a));
  }
}
struct LessEqual {
  static HWY_INLINE auto of(auto d, auto a, auto b) { return not_above(d, a, b); }
  static bool one(auto a, auto b) { return a <= b; }
};
struct GreaterEqual {
  static HWY_INLINE auto of(auto d, auto a, auto b) { return not_above(d, b, a); }
  static bool one(auto a, auto b) { return a >= b; }
};
struct IsInfinite {
  static HWY_INLINE auto of(auto d, auto a, auto) { return hn::Eq(hn::Abs(a), hn::Inf(d)); }
  static bool one(float a, float) { return std::isinf(a); }
};
struct IsZero {
  static HWY_INLINE auto of(auto d, auto a, auto) { return hn::Eq(a, hn::Zero(d)); }
  static bool one(auto a, auto) { return a == 0; }
};

/// A mask as bytes of 0 and 1.
template <class D, class M>
HWY_INLINE void store_mask(D, M mask, std::uint8_t* to) {
  const hn::RebindToUnsigned<D> bits;
  const auto ones = hn::IfThenElseZero(hn::RebindMask(bits, mask), hn::Set(bits, 1));
  if constexpr (sizeof(hn::TFromD<D>) == 1) {
    hn::StoreU(ones, bits, to);
  } else {
    const hn::Rebind<std::uint8_t, D> bytes;
    hn::StoreU(hn::TruncateTo(bytes, ones), bytes, to);
  }
}

template <class Test, class T>
void test_row(const T* a, const T* b, std::uint8_t* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    store_mask(d, Test::of(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), out + i);
  }
  for (; i < n; ++i) out[i] = Test::one(a[i], b[i]) ? 1 : 0;
}

const float* operand_of(const BlockOperand& row, std::int64_t n, float* buffer) { return widened(row, n, buffer); }
template <class T>
const T* operand_of(const BlockOperand& row, std::int64_t n, T* buffer) {
  return in_line(row, n, buffer);
}

template <class Test, class T>
void test_block(const Block& block) {
  HWY_ALIGN T a[chunk_size], b[chunk_size];
  std::uint8_t out[chunk_size];
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    const BlockOperand to = row_of(block.out, i, j);
    auto* const target = static_cast<std::uint8_t*>(to.data);
    std::uint8_t* const row = to.column == 1 ? target : out;
    test_row<Test>(operand_of(row_of(block.a, i, j), n, a), operand_of(row_of(block.b, i, j), n, b), row, n);
    for (std::int64_t k = 0; to.column != 1 && k < n; ++k) target[k * to.column] = out[k];
  });
}

template <class T>
RunBlock find_comparison(OpId op) {
  switch (op) {
    case OpId::equal:
      return test_block<Equal, T>;
    case OpId::not_equal:
      return test_block<NotEqual, T>;
    case OpId::less:
      return test_block<Less, T>;
    case OpId::less_equal:
      return test_block<LessEqual, T>;
    case OpId::greater:
      return test_block<Greater, T>;
    default:
      return test_block<GreaterEqual, T>;
  }
}

}  // namespace

RunBlock find_test(OpId op, DataType dtype) {
  if (op == OpId::isnan) return test_block<NotEqual, float>;
  if (op == OpId::isinf) return test_block<IsInfinite, float>;
  if (op == OpId::logical_not) return test_block<IsZero, std::uint8_t>;
  switch (dtype) {
    case DataType::int64:
      return find_comparison<std::int64_t>(op);
    case DataType::int32:
      return find_comparison<std::int32_t>(op);
    case DataType::int8:
      return find_comparison<std::int8_t>(op);
    case DataType::uint8:
    case DataType::boolean:
      return find_comparison<std::uint8_t>(op);
    default:
      return find_comparison<float>(op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_test);

Verdict supports_tests_simd(const Problem& problem, const DeviceProfile&) {
  if (problem.outputs[0].dtype != DataType::boolean) {
    return Verdict::no("output 0 is " + std::string(to_string(problem.outputs[0].dtype)) +
                       ", and this kernel gives booleans");
  }
  const DataType first = problem.inputs.front().dtype, last = problem.inputs.back().dtype;
  const bool floats = fast_floats.contains(first) && fast_floats.contains(last);
  if (floats || first == last) return Verdict::yes();
  return Verdict::no("the inputs are " + std::string(to_string(first)) + " and " + std::string(to_string(last)) +
                     ", and this kernel compares floats or one integer type");
}

std::unique_ptr<const Plan> prepare_tests_simd(const Problem& problem, const PrepareContext&) {
  return make_block_plan(problem, HWY_DYNAMIC_DISPATCH(find_test)(problem.op, problem.inputs[0].dtype), light_grain);
}

}  // namespace xpuruntime::cpu
#endif
