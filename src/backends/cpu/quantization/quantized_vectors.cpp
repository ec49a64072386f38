#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/quantization/quantized_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstring>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/quantization/kernels.h"
#include "backends/cpu/quantization/rows.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

using I32 = hn::RebindToSigned<F32>;
using I32Vec = hn::Vec<I32>;

template <class Float>
HWY_INLINE F32Vec read(const Float* from) {
  return load(from);
}
HWY_INLINE F32Vec read(const std::int32_t* from) { return hn::ConvertTo(F32(), hn::LoadU(I32(), from)); }
template <class Byte>
HWY_INLINE F32Vec read_byte(const Byte* from) {
  const hn::Rebind<Byte, F32> d8;
  return hn::ConvertTo(F32(), hn::PromoteTo(I32(), hn::LoadU(d8, from)));
}
HWY_INLINE F32Vec read(const std::int8_t* from) { return read_byte(from); }
HWY_INLINE F32Vec read(const std::uint8_t* from) { return read_byte(from); }

template <class To>
struct Quantize {
  /// Past 2^24 a sum in f32 is off by some units, which the range cuts off anyway.
  static HWY_INLINE void write(F32Vec value, F32Vec scale, F32Vec zero, To* to) {
    const F32Vec quotient = hn::Div(value, scale);
    const F32Vec number = hn::IfThenElse(hn::IsNaN(quotient), hn::Zero(F32()), quotient);
    const F32Vec code = hn::Add(hn::Round(number), zero);
    const F32Vec low = hn::Set(F32(), static_cast<float>(std::numeric_limits<To>::min()));
    const F32Vec high = hn::Set(F32(), static_cast<float>(std::numeric_limits<To>::max()));
    const hn::Rebind<To, F32> d8;
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(I32(), hn::Min(hn::Max(code, low), high))), d8, to);
  }
};

template <class To>
struct Dequantize {
  static HWY_INLINE void write(F32Vec value, F32Vec scale, F32Vec zero, To* to) {
    store(hn::Mul(hn::Sub(value, zero), scale), to);
  }
};

/// `each`: every element has its own scale and zero point; else all have the first.
template <bool each, class Operation, class From, class To>
void run_row(const QuantizedRow& row) {
  const auto* in = static_cast<const From*>(row.in);
  auto* out = static_cast<To*>(row.out);
  const auto n = static_cast<std::size_t>(row.count);
  const std::size_t lanes = f32_lanes();
  const F32Vec first_scale = hn::Set(F32(), *row.scale), first_zero = hn::Set(F32(), *row.zero);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Operation::write(read(in + i), each ? load(row.scale + i) : first_scale, each ? load(row.zero + i) : first_zero,
                     out + i);
  }
  if (i == n) return;
  From last[hn::MaxLanes(F32())] = {};
  To written[hn::MaxLanes(F32())];
  const std::size_t left = n - i;
  std::memcpy(last, in + i, left * sizeof(From));
  Operation::write(read(last), each ? load_first(row.scale + i, left) : first_scale,
                   each ? load_first(row.zero + i, left) : first_zero, written);
  std::memcpy(out + i, written, left * sizeof(To));
}

template <template <class> class Operation, class From, class To>
RunQuantizedRow find_row(bool each) {
  return each ? run_row<true, Operation<To>, From, To> : run_row<false, Operation<To>, From, To>;
}

template <class From>
RunQuantizedRow find_codes(DataType to, bool each) {
  return to == DataType::int8 ? find_row<Quantize, From, std::int8_t>(each)
                              : find_row<Quantize, From, std::uint8_t>(each);
}

template <class From>
RunQuantizedRow find_values(DataType to, bool each) {
  switch (to) {
    case DataType::float16:
      return find_row<Dequantize, From, Half>(each);
    case DataType::bfloat16:
      return find_row<Dequantize, From, Bfloat>(each);
    default:
      return find_row<Dequantize, From, float>(each);
  }
}

}  // namespace

RunQuantizedRow find_quantize_of(DataType from, DataType to, bool each) {
  switch (from) {
    case DataType::float16:
      return find_codes<Half>(to, each);
    case DataType::bfloat16:
      return find_codes<Bfloat>(to, each);
    case DataType::int32:
      return find_codes<std::int32_t>(to, each);
    default:
      return find_codes<float>(to, each);
  }
}

RunQuantizedRow find_dequantize_of(DataType from, DataType to, bool each) {
  switch (from) {
    case DataType::int8:
      return find_values<std::int8_t>(to, each);
    case DataType::uint8:
      return find_values<std::uint8_t>(to, each);
    default:
      return find_values<std::int32_t>(to, each);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_quantize_of);
HWY_EXPORT(find_dequantize_of);

RunQuantizedRow find_quantize(DataType from, DataType to, bool each) {
  return HWY_DYNAMIC_DISPATCH(find_quantize_of)(from, to, each);
}

RunQuantizedRow find_dequantize(DataType from, DataType to, bool each) {
  return HWY_DYNAMIC_DISPATCH(find_dequantize_of)(from, to, each);
}

}  // namespace xpuruntime::cpu
#endif
