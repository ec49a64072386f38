#include "xpuruntime/device/workspace_pool.h"

#include <algorithm>
#include <utility>

#include "device/allocate_or_trim.h"

namespace xpuruntime {

WorkspacePool::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      stream_(std::exchange(other.stream_, {})) {}

WorkspacePool::Lease& WorkspacePool::Lease::operator=(Lease&& other) noexcept {
  // What this lease held goes back when `old` ends, after the new block is in place.
  Lease old(std::move(other));
  std::swap(pool_, old.pool_);
  std::swap(data_, old.data_);
  std::swap(size_, old.size_);
  std::swap(stream_, old.stream_);
  return *this;
}

WorkspacePool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->release({data_, size_, stream_});
}

WorkspacePool::WorkspacePool(DeviceDriver& driver, int index) : driver_(driver), index_(index) {}

WorkspacePool::~WorkspacePool() { trim(); }

WorkspacePool::Lease WorkspacePool::acquire(std::size_t bytes, Stream stream) {
  Lease lease;
  if (bytes == 0) return lease;
  Block block = take_cached(bytes, stream);
  if (block.data == nullptr) {
    // The driver is asked without the lock: it may wait for the device, and other streams need not.
    block = {allocate_or_trim(driver_, index_, bytes, *this), bytes, stream};
    const std::lock_guard lock(mutex_);
    stats_.allocated += 1;
    count_acquired(bytes);
  }
  lease.pool_ = this;
  lease.data_ = block.data;
  lease.size_ = block.size;
  lease.stream_ = stream;
  return lease;
}

WorkspacePool::Block WorkspacePool::take_cached(std::size_t bytes, Stream stream) {
  const std::lock_guard lock(mutex_);
  auto block = std::lower_bound(cached_.begin(), cached_.end(), bytes,
                                [](const Block& candidate, std::size_t wanted) { return candidate.size < wanted; });
  for (; block != cached_.end() && block->size - bytes <= block->size / 2; ++block) {
    if (block->stream != stream) continue;
    const Block taken = *block;
    cached_.erase(block);
    stats_.bytes_cached -= taken.size;
    count_acquired(taken.size);
    return taken;
  }
  return {};
}

void WorkspacePool::count_acquired(std::size_t bytes) {
  stats_.bytes_in_use += bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.acquired += 1;
}

void WorkspacePool::release(Block block) noexcept {
  const auto smaller = [](const Block& a, const Block& b) { return a.size < b.size; };
  bool kept = true;
  {
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= block.size;
    try {
      cached_.insert(std::upper_bound(cached_.begin(), cached_.end(), block, smaller), block);
      stats_.bytes_cached += block.size;
    } catch (...) {
      kept = false;  // no host memory for the note: then the block is not cached
    }
  }
  if (!kept) driver_.deallocate(index_, block.data);
}

void WorkspacePool::trim() {
  std::vector<Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(cached_);
    stats_.bytes_cached = 0;
  }
  for (const Block& block : blocks) driver_.deallocate(index_, block.data);
}

WorkspaceStats WorkspacePool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace xpuruntime
