#include "dispatch/gradient_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "dispatch/aliasing.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  fail(ErrorCode::invalid_argument, "GradScaler::unscale", message);
}

/// The bytes that a tensor reaches over, and whose they are.
struct Range {
  Device device = {};
  std::uintptr_t memory = 0;  // the handle, on OpenCL, with which one does not calculate; else 0
  std::uintptr_t begin = 0;
  std::size_t index = 0;
  bool written = false;
  const Tensor* tensor = nullptr;

  std::uintptr_t end() const { return begin + tensor->span(); }
  auto place() const { return std::tuple(device.type, device.index, memory); }
};

void add_ranges(std::vector<Range>& ranges, std::span<const Tensor> tensors, bool written) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto memory = reinterpret_cast<std::uintptr_t>(tensors[i].data());
    const bool handle = tensors[i].device().type == DeviceType::opencl;
    if (tensors[i].span() == 0) continue;
    ranges.push_back({tensors[i].device(), handle ? memory : 0, (handle ? 0 : memory) + tensors[i].byte_offset(), i,
                      written, &tensors[i]});
  }
}

void check_pair(const Range& a, const Range& b) {
  if ((!a.written && !b.written) || a.index == b.index || !share_memory(*a.tensor, *b.tensor)) return;
  refuse("gradients " + std::to_string(std::min(a.index, b.index)) + " and " +
         std::to_string(std::max(a.index, b.index)) + " share memory that would be unscaled twice; pass each once");
}

// Sorted by where they begin, only those that are still open can overlap the next.
void check_shared(std::span<const Tensor> gradients, std::span<const Tensor> outputs) {
  std::vector<Range> ranges, open;
  add_ranges(ranges, gradients, false);
  add_ranges(ranges, outputs, true);
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tuple(a.place(), a.begin) < std::tuple(b.place(), b.begin);
  });
  for (const Range& range : ranges) {
    std::erase_if(open, [&](const Range& o) { return o.place() != range.place() || o.end() <= range.begin; });
    for (const Range& other : open) check_pair(other, range);
    open.push_back(range);
  }
}

}  // namespace

void check_gradients(std::span<const Tensor> gradients, std::span<const Tensor> outputs) {
  if (gradients.size() != outputs.size()) {
    refuse(std::to_string(gradients.size()) + " gradients and " + std::to_string(outputs.size()) +
           " outputs; give one output for each gradient");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DataType dtype = outputs[i].dtype();
    if (dtype == DataType::float32 || dtype == DataType::float64) continue;
    refuse("output " + std::to_string(i) + " is " + std::string(to_string(dtype)) +
           ", where unscaled gradients may vanish; give it in f32");
  }
  check_shared(gradients, outputs);
}

}  // namespace xpuruntime
