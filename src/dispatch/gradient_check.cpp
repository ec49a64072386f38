#include "dispatch/gradient_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  fail(ErrorCode::invalid_argument, "GradScaler::unscale", message);
}

/// Where a tensor begins, and whose it is.
struct Start {
  Device device = {};
  std::uintptr_t memory = 0;
  std::size_t offset = 0;
  std::size_t index = 0;
  bool written = false;

  auto place() const { return std::tuple(device.type, device.index, memory, offset); }
};

Start start_of(const Tensor& tensor, std::size_t index, bool written) {
  const auto memory = reinterpret_cast<std::uintptr_t>(tensor.data());
  // On OpenCL the memory is a handle, with which one does not calculate.
  const bool handle = tensor.device().type == DeviceType::opencl;
  return {tensor.device(), handle ? memory : memory + tensor.byte_offset(), handle ? tensor.byte_offset() : 0, index,
          written};
}

void add_starts(std::vector<Start>& starts, std::span<const Tensor> tensors, bool written) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].span() > 0) starts.push_back(start_of(tensors[i], i, written));
  }
}

// Sorted, those that begin at one place are neighbours, the written ones first.
void check_shared(std::span<const Tensor> gradients, std::span<const Tensor> outputs) {
  std::vector<Start> starts;
  add_starts(starts, gradients, false);
  add_starts(starts, outputs, true);
  std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
    return std::tuple(a.place(), b.written) < std::tuple(b.place(), a.written);
  });
  const Start* written = nullptr;
  for (const Start& start : starts) {
    if (written == nullptr || written->place() != start.place()) written = start.written ? &start : nullptr;
    if (written == nullptr || written->index == start.index) continue;
    refuse("gradients " + std::to_string(std::min(written->index, start.index)) + " and " +
           std::to_string(std::max(written->index, start.index)) +
           " share memory that would be unscaled twice; pass each once");
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
