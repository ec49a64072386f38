#include "xpuruntime/device/workspace_pool.h"

#include <algorithm>
#include <iterator>
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
      capture_(std::exchange(other.capture_, 0)),
      lender_(std::move(other.lender_)) {}

WorkspacePool::Lease& WorkspacePool::Lease::operator=(Lease&& other) noexcept {
  // What this lease held goes back when `old` ends, after the new block is in place.
  Lease old(std::move(other));
  std::swap(pool_, old.pool_);
  std::swap(data_, old.data_);
  std::swap(size_, old.size_);
  std::swap(stream_, old.stream_);
  std::swap(capture_, old.capture_);
  lender_.swap(old.lender_);
  return *this;
}

WorkspacePool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

/// What a graph holds: tells the pool when the blocks of its capture are free.
class WorkspacePool::OfGraph {
 public:
  OfGraph(std::weak_ptr<WorkspacePool*> pool, std::uint64_t capture) : pool_(std::move(pool)), capture_(capture) {}
  ~OfGraph() {
    if (const auto pool = pool_.lock()) (*pool)->end_capture(capture_);
  }
  OfGraph(const OfGraph&) = delete;
  OfGraph& operator=(const OfGraph&) = delete;

 private:
  std::weak_ptr<WorkspacePool*> pool_;
  std::uint64_t capture_;
};

WorkspacePool::WorkspacePool(DeviceDriver& driver, int index) : driver_(driver), index_(index) {}

WorkspacePool::~WorkspacePool() {
  self_.reset();
  for (const Block& block : cached_) driver_.deallocate(index_, block.data);
}

WorkspacePool::Lease WorkspacePool::acquire(std::size_t bytes, Stream stream, std::uint64_t capture) {
  Lease lease;
  if (bytes == 0) return lease;
  if (capture != 0) follow_capture(stream, capture);
  std::shared_ptr<LentAllocator> lender;
  Block block = take_cached(bytes, stream, capture, lender);
  if (lender != nullptr && capture == 0) return borrow(std::move(lender), bytes, stream);
  if (block.data == nullptr) block = make_block(bytes, stream, capture);
  lease.pool_ = this;
  lease.data_ = block.data;
  lease.size_ = block.size;
  lease.stream_ = stream;
  lease.capture_ = capture;
  return lease;
}

// The driver is asked without the lock: it may wait for the device, and other streams need not.
WorkspacePool::Block WorkspacePool::make_block(std::size_t bytes, Stream stream, std::uint64_t capture) {
  void* memory = capture != 0
                     ? driver_.allocate(index_, bytes)  // freeing what is cached would wait
                     : allocate_or_trim(*this, [&] { return driver_.allocate_ordered(index_, bytes, stream); });
  const std::lock_guard lock(mutex_);
  stats_.allocated += 1;
  count_acquired(bytes);
  return {memory, bytes};
}

void WorkspacePool::follow_capture(Stream stream, std::uint64_t capture) {
  {
    const std::lock_guard lock(mutex_);
    if (std::find(captures_.begin(), captures_.end(), capture) != captures_.end()) return;
  }
  driver_.keep_with_graph(index_, stream, std::make_shared<OfGraph>(self_, capture));
  const std::lock_guard lock(mutex_);
  captures_.push_back(capture);
}

/// Its graph is destroyed, and no run of it is left.
void WorkspacePool::end_capture(std::uint64_t capture) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(captures_, capture);
  for (Block& block : cached_) {
    if (block.capture != capture) continue;
    block.capture = 0;
    block.any_stream = true;
    stats_.bytes_in_use -= block.size;
    stats_.bytes_cached += block.size;
  }
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
  if (lease.lender_ == nullptr) return release({lease.data_, lease.size_, lease.stream_, lease.capture_});
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

WorkspacePool::Block WorkspacePool::take_cached(std::size_t bytes, Stream stream, std::uint64_t capture,
                                                std::shared_ptr<LentAllocator>& lender) {
  const std::lock_guard lock(mutex_);
  lender = lender_;
  if (lender != nullptr && capture == 0) return {};
  auto block = std::lower_bound(cached_.begin(), cached_.end(), bytes,
                                [](const Block& candidate, std::size_t wanted) { return candidate.size < wanted; });
  for (; block != cached_.end() && block->size - bytes <= block->size / 2; ++block) {
    if (!block->any_stream && (block->stream != stream || block->capture != capture)) continue;
    const Block taken = *block;
    cached_.erase(block);
    const bool of_graph = taken.capture != 0;  // it counts as in use all the time
    if (!of_graph) stats_.bytes_cached -= taken.size;
    count_acquired(of_graph ? 0 : taken.size);
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
    if (block.capture != 0 && std::find(captures_.begin(), captures_.end(), block.capture) == captures_.end()) {
      block.capture = 0;  // its graph went first
      block.any_stream = true;
    }
    const bool of_graph = block.capture != 0;
    if (!of_graph) stats_.bytes_in_use -= block.size;
    block.turn = ++turn_;
    try {
      cached_.insert(std::upper_bound(cached_.begin(), cached_.end(), block, smaller), block);
      if (!of_graph) stats_.bytes_cached += block.size;
      too_many = !of_graph && cached_.size() > most_cached;
    } catch (...) {
      kept = false;  // no host memory for the note: then the block is not cached
    }
  }
  if (!kept && block.capture == 0) driver_.deallocate(index_, block.data);
  if (too_many && !driver_.capturing(index_, block.stream)) drop_oldest();
}

/// Blocks of streams that ended are never asked for again: of very many, those go that were used longest ago.
void WorkspacePool::drop_oldest() noexcept {
  for (std::size_t i = 0; i < most_cached / 4; ++i) {
    Block oldest;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::min_element(cached_.begin(), cached_.end(), [](const Block& a, const Block& b) {
        return (a.capture == 0) != (b.capture == 0) ? a.capture == 0 : a.turn < b.turn;
      });
      if (found == cached_.end() || found->capture != 0) return;
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
    std::copy_if(cached_.begin(), cached_.end(), std::back_inserter(blocks),
                 [](const Block& b) { return b.capture == 0; });
    std::erase_if(cached_, [](const Block& b) { return b.capture == 0; });
    stats_.bytes_cached = 0;
  }
  for (const Block& block : blocks) driver_.deallocate(index_, block.data);
}

WorkspaceStats WorkspacePool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace xpuruntime
