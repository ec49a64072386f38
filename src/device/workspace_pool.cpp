#include "xpuruntime/device/workspace_pool.h"

#include <algorithm>
#include <utility>

#include "device/allocate_or_trim.h"

namespace xpuruntime {
namespace {

constexpr std::size_t most_cached = 1024;

}  // namespace

WorkspacePool::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      stream_(std::exchange(other.stream_, {})),
      lender_(std::move(other.lender_)) {}

WorkspacePool::Lease& WorkspacePool::Lease::operator=(Lease&& other) noexcept {
  // What this lease held goes back when `old` ends, after the new block is in place.
  Lease old(std::move(other));
  std::swap(pool_, old.pool_);
  std::swap(data_, old.data_);
  std::swap(size_, old.size_);
  std::swap(stream_, old.stream_);
  lender_.swap(old.lender_);
  return *this;
}

WorkspacePool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

WorkspacePool::WorkspacePool(DeviceDriver& driver, int index) : driver_(driver), index_(index) {}

WorkspacePool::~WorkspacePool() { trim(); }

WorkspacePool::Lease WorkspacePool::acquire(std::size_t bytes, Stream stream) {
  Lease lease;
  if (bytes == 0) return lease;
  std::shared_ptr<LentAllocator> lender;
  Block block = take_cached(bytes, stream, lender);
  if (lender != nullptr) return borrow(std::move(lender), bytes, stream);
  if (block.data == nullptr) {
    check_not_capturing(bytes, stream);
    // The driver is asked without the lock: it may wait for the device, and other streams need not.
    block = {allocate_or_trim(*this, [&] { return driver_.allocate_ordered(index_, bytes, stream); }), bytes};
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

WorkspacePool::Lease WorkspacePool::borrow(std::shared_ptr<LentAllocator> lender, std::size_t bytes, Stream stream) {
  Lease lease;
  lease.data_ = lender->allocate(index_, bytes, stream);
  lease.pool_ = this;
  lease.size_ = bytes;
  lease.stream_ = stream;
  lease.lender_ = std::move(lender);
  const std::lock_guard lock(mutex_);
  stats_.allocated += 1;
  count_acquired(bytes);
  return lease;
}

void WorkspacePool::give_back(const Lease& lease) noexcept {
  if (lease.lender_ == nullptr) return release({lease.data_, lease.size_, lease.stream_});
  lease.lender_->deallocate(index_, lease.data_, lease.stream_);
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= lease.size_;
}

void WorkspacePool::set_allocator(std::shared_ptr<LentAllocator> allocator) {
  {
    const std::lock_guard lock(mutex_);
    lender_ = std::move(allocator);
  }
  trim();
}

void WorkspacePool::check_not_capturing(std::size_t bytes, Stream stream) const {
  if (!driver_.capturing(index_, stream)) return;
  fail(ErrorCode::not_supported, "acquire_workspace",
       std::to_string(bytes) +
           " bytes of workspace are not at hand on this stream, and nothing may be allocated while "
           "it is captured; run the same calls once on it before the capture");
}

WorkspacePool::Block WorkspacePool::take_cached(std::size_t bytes, Stream stream,
                                                std::shared_ptr<LentAllocator>& lender) {
  const std::lock_guard lock(mutex_);
  lender = lender_;
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
  bool too_many = false;
  {
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= block.size;
    block.turn = ++turn_;
    try {
      cached_.insert(std::upper_bound(cached_.begin(), cached_.end(), block, smaller), block);
      stats_.bytes_cached += block.size;
      too_many = cached_.size() > most_cached;
    } catch (...) {
      kept = false;  // no host memory for the note: then the block is not cached
    }
  }
  if (!kept) driver_.deallocate(index_, block.data);
  if (too_many && !driver_.capturing(index_, block.stream)) drop_oldest();
}

/// Blocks of streams that ended are never asked for again: of very many, those go that were used longest ago.
void WorkspacePool::drop_oldest() noexcept {
  for (std::size_t i = 0; i < most_cached / 4; ++i) {
    Block oldest;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::min_element(cached_.begin(), cached_.end(),
                                          [](const Block& a, const Block& b) { return a.turn < b.turn; });
      if (found == cached_.end()) return;
      oldest = *found;
      stats_.bytes_cached -= oldest.size;
      cached_.erase(found);
    }
    driver_.deallocate(index_, oldest.data);
  }
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
