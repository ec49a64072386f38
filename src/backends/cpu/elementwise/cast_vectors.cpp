#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/cast_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstring>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

using I32 = hn::RebindToSigned<F32>;
using I32Vec = hn::Vec<I32>;

/// bool, which is stored in a byte of 0 or 1.
struct Boolean {
  std::uint8_t bits;
};

// Every value of these is an f32, but for those of i32, which are rounded once.

HWY_INLINE F32Vec read(const float* from) { return load(from); }
HWY_INLINE F32Vec read(const Half* from) { return load(from); }
HWY_INLINE F32Vec read(const Bfloat* from) { return load(from); }
HWY_INLINE F32Vec read(const std::int32_t* from) { return hn::ConvertTo(F32(), hn::LoadU(I32(), from)); }
template <class Byte>
HWY_INLINE F32Vec read_byte(const Byte* from) {
  const hn::Rebind<Byte, F32> d8;
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(d8, from)));
}
HWY_INLINE F32Vec read(const std::int8_t* from) { return read_byte(from); }
HWY_INLINE F32Vec read(const std::uint8_t* from) { return read_byte(from); }
HWY_INLINE F32Vec read(const Boolean* from) { return read_byte(reinterpret_cast<const std::uint8_t*>(from)); }

/// Cut off towards zero and clamped; NaN becomes 0.
HWY_INLINE I32Vec clamped(F32Vec value, float low, float high) {
  const F32Vec zero = hn::Zero(F32());
  const F32Vec number = hn::IfThenElse(hn::IsNaN(value), zero, value);
  return hn::ConvertTo(I32(), hn::Min(hn::Max(number, hn::Set(F32(), low)), hn::Set(F32(), high)));
}

HWY_INLINE void write(F32Vec value, float* to) { store(value, to); }
HWY_INLINE void write(F32Vec value, Half* to) { store(value, to); }
HWY_INLINE void write(F32Vec value, Bfloat* to) { store(value, to); }
HWY_INLINE void write(F32Vec value, std::int32_t* to) {
  // 2^31 - 1 is no f32: what reaches 2^31 is replaced.
  const auto over = hn::RebindMask(I32(), hn::Ge(value, hn::Set(F32(), 0x1p31f)));
  const I32Vec inside = clamped(value, -0x1p31f, 0x1.fffffep30f);
  hn::StoreU(hn::IfThenElse(over, hn::Set(I32(), 0x7fffffff), inside), I32(), to);
}
template <class Byte>
HWY_INLINE void write_byte(I32Vec value, Byte* to) {
  const hn::Rebind<Byte, F32> d8;
  hn::StoreU(hn::DemoteTo(d8, value), d8, to);
}
HWY_INLINE void write(F32Vec value, std::int8_t* to) { write_byte(clamped(value, -128, 127), to); }
HWY_INLINE void write(F32Vec value, std::uint8_t* to) { write_byte(clamped(value, 0, 255), to); }
HWY_INLINE void write(F32Vec value, Boolean* to) {
  // NaN counts as true, and is not equal to 0.
  const auto nonzero = hn::RebindMask(I32(), hn::Not(hn::Eq(value, hn::Zero(F32()))));
  write_byte(hn::IfThenElseZero(nonzero, hn::Set(I32(), 1)), reinterpret_cast<std::uint8_t*>(to));
}

template <class From, class To>
void cast_row(const From* from, To* to, std::size_t n) {
  const std::size_t lanes = f32_lanes();
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) write(read(from + i), to + i);
  if (i == n) return;
  From in[hn::MaxLanes(F32())] = {};
  To out[hn::MaxLanes(F32())];
  std::memcpy(in, from + i, (n - i) * sizeof(From));
  write(read(in), out);
  std::memcpy(to + i, out, (n - i) * sizeof(To));
}

template <class From, class To>
void cast_repeated(const From* from, To* to, std::size_t n) {
  constexpr std::size_t most = hn::MaxLanes(F32());
  From in[most];
  To out[most];
  std::fill_n(in, most, *from);
  const F32Vec value = read(in);
  const std::size_t lanes = f32_lanes();
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) write(value, to + i);
  write(value, out);
  std::memcpy(to + i, out, (n - i) * sizeof(To));
}

template <class From, class To>
void cast_block(const Block& block) {
  constexpr std::int64_t chunk = 512;
  From in[chunk];
  To out[chunk];
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const BlockOperand a = row_of(block.a, i), to = row_of(block.out, i);
    if (a.column == 1 && to.column == 1) {
      cast_row(static_cast<const From*>(a.data), static_cast<To*>(to.data), block.columns);
      continue;
    }
    if (a.column == 0 && to.column == 1) {
      cast_repeated(static_cast<const From*>(a.data), static_cast<To*>(to.data), block.columns);
      continue;
    }
    for (std::int64_t j = 0; j < block.columns; j += chunk) {
      const std::int64_t n = std::min(chunk, block.columns - j);
      To* const row = static_cast<To*>(to.data) + j * to.column;
      gather(static_cast<const From*>(a.data) + j * a.column, a.column, n, in);
      cast_row(in, to.column == 1 ? row : out, n);
      for (std::int64_t k = 0; to.column != 1 && k < n; ++k) row[k * to.column] = out[k];
    }
  }
}

template <class From>
RunBlock find_from(DataType to) {
  switch (to) {
    case DataType::float32:
      return cast_block<From, float>;
    case DataType::float16:
      return cast_block<From, Half>;
    case DataType::bfloat16:
      return cast_block<From, Bfloat>;
    case DataType::int32:
      return cast_block<From, std::int32_t>;
    case DataType::int8:
      return cast_block<From, std::int8_t>;
    case DataType::uint8:
      return cast_block<From, std::uint8_t>;
    case DataType::boolean:
      return cast_block<From, Boolean>;
    default:
      return nullptr;
  }
}

}  // namespace

RunBlock find_cast_of(DataType from, DataType to) {
  // Between integers values wrap and do not go through f32, nor may an i32 be rounded twice.
  const bool to_float = fast_floats.contains(to);
  switch (from) {
    case DataType::float32:
      return find_from<float>(to);
    case DataType::float16:
      return find_from<Half>(to);
    case DataType::bfloat16:
      return find_from<Bfloat>(to);
    case DataType::int32:
      return to == DataType::float32 ? cast_block<std::int32_t, float> : nullptr;
    case DataType::int8:
      return to_float ? find_from<std::int8_t>(to) : nullptr;
    case DataType::uint8:
      return to_float ? find_from<std::uint8_t>(to) : nullptr;
    case DataType::boolean:
      return to_float ? find_from<Boolean>(to) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_cast_of);

RunBlock find_cast(DataType from, DataType to) { return HWY_DYNAMIC_DISPATCH(find_cast_of)(from, to); }

Verdict supports_cast_simd(const Problem& problem, const DeviceProfile&) {
  const DataType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
  if (find_cast(from, to) != nullptr) return Verdict::yes();
  return Verdict::no("no vector code from " + std::string(to_string(from)) + " to " + std::string(to_string(to)));
}

std::unique_ptr<const Plan> prepare_cast_simd(const Problem& problem, const PrepareContext&) {
  return make_block_plan(problem, find_cast(problem.inputs[0].dtype, problem.outputs[0].dtype), light_grain);
}

}  // namespace xpuruntime::cpu
#endif
