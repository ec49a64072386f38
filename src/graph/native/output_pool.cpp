#include "graph/native/output_pool.h"

#include <algorithm>
#include <mutex>

namespace xpuruntime::native {
namespace {

constexpr std::uint64_t least_bytes = std::uint64_t{64} << 10, most_bytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kept_at_most = std::uint64_t{64} << 20;

std::uint64_t size_of_block(const Tensor& block) { return static_cast<std::uint64_t>(block.span()); }

/// Whether only the pool has it. The copy is one of two owners then, and what the others did before they let go of it
/// has happened.
bool is_free(const Tensor& block) {
  const std::shared_ptr<void> owner = block.owner();
  return owner.use_count() == 2;
}

}  // namespace

Tensor OutputPool::take(const TensorSpec& spec, const DeviceManager& devices, Device device) {
  const std::uint64_t bytes = span_bytes(spec);
  if (device.type != DeviceType::cpu || bytes < least_bytes || bytes > most_bytes)
    return devices.allocate(spec, device);
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const Tensor& block) {
    return bytes <= size_of_block(block) && size_of_block(block) <= 2 * bytes && is_free(block);
  };
  const auto latest = std::find_if(kept_.rbegin(), kept_.rend(), fits);
  if (latest != kept_.rend()) {
    std::rotate(latest.base() - 1, latest.base(), kept_.end());
  } else {
    kept_.push_back(devices.allocate(DataType::uint8, {static_cast<std::int64_t>(bytes)}, device));
    bytes_ += bytes;
  }
  const Tensor block = kept_.back();
  while (bytes_ > kept_at_most) {
    bytes_ -= size_of_block(kept_.front());
    kept_.erase(kept_.begin());
  }
  return Tensor(block.data(), make_spec(spec.dtype, spec.shape, spec.strides), device, block.byte_offset(),
                block.owner());
}

}  // namespace xpuruntime::native
