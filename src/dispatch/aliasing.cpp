#include "dispatch/aliasing.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

/// The longest step of a tensor and how far the rest of it reaches, both in bytes.
struct Pitch {
  std::uint64_t step = 0;
  std::uint64_t reach = 0;
};

Pitch pitch_of(const Tensor& tensor) {
  Pitch pitch;
  const std::uint64_t size = size_of(tensor.dtype());
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
    if (tensor.shape()[i] > 1) longest = std::max(longest, tensor.strides()[i]);
  }
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
    if (tensor.strides()[i] != longest) last += (tensor.shape()[i] - 1) * tensor.strides()[i];
  }
  pitch.step = static_cast<std::uint64_t>(longest) * size;
  pitch.reach = static_cast<std::uint64_t>(last + 1) * size;
  return pitch;
}

/// Two slices of the same wide rows, one beside the other: their ranges meet, their elements do not.
bool side_by_side(const Tensor& a, const Tensor& b) {
  const Pitch pa = pitch_of(a), pb = pitch_of(b);
  if (pa.step == 0 || pa.step != pb.step) return false;
  const auto at_a = reinterpret_cast<std::uintptr_t>(a.as<std::byte>());
  const auto at_b = reinterpret_cast<std::uintptr_t>(b.as<std::byte>());
  const std::uint64_t apart = (at_b - at_a) % pa.step;  // from a's row to b's, going round
  return pa.reach <= apart && apart + pb.reach <= pa.step;
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.byte_offset() == b.byte_offset() && a.spec() == b.spec();
}

bool may_be_in_place(const Call& call, std::size_t output, std::size_t input) {
  return output < 8 && (input_spec(op_info(call.op), input).in_place >> output & 1) != 0;
}

[[noreturn]] void refuse(const Call& call, std::size_t output, const char* kind, std::size_t other) {
  fail(ErrorCode::invalid_argument, "dispatch",
       std::string(to_string(call.op)) + ": output " + std::to_string(output) + " lies over " + kind + " " +
           std::to_string(other) + ", which would be overwritten while it is read; write to memory of its own");
}

}  // namespace

bool share_memory(const Tensor& a, const Tensor& b) {
  if (a.span() == 0 || b.span() == 0) return false;
  // On OpenCL another handle is another buffer.
  if (a.device().type == DeviceType::opencl && a.data() != b.data()) return false;
  return ranges_meet(a, b) && !side_by_side(a, b);
}

void check_overlaps(const Call& call) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& out = *call.outputs[i];
    for (std::size_t j = 0; j < call.inputs.size(); ++j) {
      const Tensor& in = *call.inputs[j];
      if (!share_memory(out, in)) continue;
      if (!(may_be_in_place(call, i, j) && same_memory(out, in))) refuse(call, i, "input", j);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (share_memory(out, *call.outputs[j])) refuse(call, i, "output", j);
    }
  }
}

}  // namespace xpuruntime
