#include "dispatch/aliasing.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

/// Looks for two elements, one of each region, that have a byte in common: for a sum of steps that is as long as their
/// beginnings are apart. Steps of the first count from its end, so that all of them add up.
class CommonByte {
 public:
  CommonByte(const Region& a, const Region& b) {
    std::int64_t apart = static_cast<std::int64_t>(b.begin - a.begin);
    for (const Region* region : {&a, &b}) {
      for (std::size_t i = 0; i < region->extents.size(); ++i) {
        const std::int64_t size = region->steps[i], most = region->extents[i] - 1;
        if (size == 0 || most == 0) continue;
        if (region == &a) apart -= size * most;
        add({size, most});
      }
    }
    const auto end = steps_.begin() + static_cast<std::ptrdiff_t>(count_);
    std::sort(steps_.begin(), end, [](const Step& x, const Step& y) { return x.size > y.size; });
    for (std::size_t i = count_; i-- > 0;) {
      reach_[i] = reach_[i + 1] + steps_[i].size * steps_[i].most;
      unit_[i] = std::gcd(unit_[i + 1], steps_[i].size);
    }
    low_ = 1 - b.element - apart;
    high_ = a.element - 1 - apart;
  }

  bool found() { return found(0, low_, high_); }

 private:
  struct Step {
    std::int64_t size = 0, most = 0;
  };
  static constexpr int most_tried = 1 << 16;

  /// Steps of one size take any number together that they take alone.
  void add(Step step) {
    const auto end = steps_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto same = std::find_if(steps_.begin(), end, [&](const Step& other) { return other.size == step.size; });
    if (same == end) ++count_;
    same->size = step.size;
    same->most += step.most;
  }

  /// Whether the steps from `first` on can add up to something from `low` to `high`.
  bool found(std::size_t first, std::int64_t low, std::int64_t high) {
    if (low <= 0 && high >= 0) return true;
    if (first == count_ || high < 0 || reach_[first] < low) return false;
    if (high / unit_[first] * unit_[first] < low) return false;  // no multiple of it lies between them
    if (++tried_ > most_tried) return true;
    const Step step = steps_[first];
    const std::int64_t rest = reach_[first + 1];
    const std::int64_t least = low > rest ? (low - rest + step.size - 1) / step.size : 0;
    const std::int64_t most = std::min(step.most, high / step.size);
    for (std::int64_t times = least; times <= most; ++times) {
      if (found(first + 1, low - times * step.size, high - times * step.size)) return true;
    }
    return false;
  }

  std::array<Step, 2 * max_rank> steps_ = {};
  std::array<std::int64_t, 2 * max_rank + 1> reach_ = {};  // of the steps from each on
  std::array<std::int64_t, 2 * max_rank + 1> unit_ = {};   // what divides all of these steps
  std::size_t count_ = 0;
  std::int64_t low_ = 0, high_ = 0;
  int tried_ = 0;
};

bool is_empty(const Region& region) {
  return std::any_of(region.extents.begin(), region.extents.end(), [](std::int64_t extent) { return extent == 0; });
}

/// False: no elements of the region have a byte in common. True: they may.
bool may_overlap_itself(const Region& region) {
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> dims;  // step, extent
  std::size_t count = 0;
  for (std::size_t i = 0; i < region.extents.size(); ++i) {
    if (region.extents[i] == 0) return false;
    if (region.extents[i] > 1) dims[count++] = {region.steps[i], region.extents[i]};
  }
  std::sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count));
  std::int64_t reach = region.element;
  for (std::size_t i = 0; i < count; ++i) {
    if (dims[i].first < reach) return true;
    reach += dims[i].first * (dims[i].second - 1);
  }
  return false;
}

bool same_memory(const Tensor& a, const Tensor& b) {
  return a.data() == b.data() && a.byte_offset() == b.byte_offset() && a.spec() == b.spec();
}

bool may_be_in_place(const Call& call, std::size_t output, std::size_t input) {
  return output < 8 && (input_spec(op_info(call.op), input).in_place >> output & 1) != 0;
}

[[noreturn]] void refuse(const Call& call, std::size_t output, const char* kind, std::size_t other) {
  fail(ErrorCode::invalid_argument, "dispatch",
       std::string(to_string(call.op)) + ": output " + std::to_string(output) + " overlaps " + kind + " " +
           std::to_string(other) + ", which would be overwritten while it is read; write to memory of its own");
}

}  // namespace

Region region_of(const Tensor& tensor) {
  Region region{reinterpret_cast<std::uintptr_t>(tensor.as<const std::byte>()),
                static_cast<std::int64_t>(size_of(tensor.dtype())), tensor.shape(), tensor.strides()};
  for (std::size_t i = 0; i < region.steps.size(); ++i) region.steps[i] *= region.element;
  return region;
}

bool share_bytes(const Region& a, const Region& b) { return !is_empty(a) && !is_empty(b) && CommonByte(a, b).found(); }

bool share_memory(const Tensor& a, const Tensor& b) {
  if (a.span() == 0 || b.span() == 0) return false;
  // On OpenCL another handle is another buffer.
  if (a.device().type == DeviceType::opencl && a.data() != b.data()) return false;
  return ranges_meet(a, b) && share_bytes(region_of(a), region_of(b));
}

bool overlaps_itself(const Region& region) {
  if (!may_overlap_itself(region)) return false;
  // Two elements differ first in dimension i, and may differ in any way in those after it.
  Region first = region;
  for (std::size_t i = 0; i < region.extents.size(); ++i) {
    first.extents[i] = 1;
    if (region.extents[i] == 1) continue;
    Region second = first;
    second.extents[i] = region.extents[i] - 1;
    second.begin += static_cast<std::uintptr_t>(region.steps[i]);
    if (share_bytes(first, second)) return true;
  }
  return false;
}

void check_overlaps(const Call& call) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Tensor& out = *call.outputs[i];
    for (std::size_t j = 0; j < call.inputs.size(); ++j) {
      const Tensor& in = *call.inputs[j];
      if (may_be_in_place(call, i, j) && same_memory(out, in)) continue;
      if (share_memory(out, in)) refuse(call, i, "input", j);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (share_memory(out, *call.outputs[j])) refuse(call, i, "output", j);
    }
  }
}

}  // namespace xpuruntime
