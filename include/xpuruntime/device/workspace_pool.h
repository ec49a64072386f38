#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime {

struct WorkspaceStats {
  std::uint64_t bytes_in_use = 0;  // those of graphs among them
  std::uint64_t bytes_cached = 0;
  std::uint64_t peak_bytes_in_use = 0;
  std::uint64_t acquired = 0;   // leases handed out
  std::uint64_t allocated = 0;  // ... of which needed new memory from the driver
};

/// Memory that a framework lends: its own pool instead of ours, in the order of streams. Safe for many threads.
class LentAllocator {
 public:
  virtual ~LentAllocator() = default;
  /// Throws Error(out_of_memory) when there is not enough.
  virtual void* allocate(int index, std::size_t bytes, Stream stream) = 0;
  /// Work queued on the stream before this call may still use the memory.
  virtual void deallocate(int index, void* memory, Stream stream) noexcept = 0;
};

/// Temporary memory of one device, kept for the next call. A block that a stream used goes back to that stream only:
/// there the next kernel runs after the last one, so no wait is needed. What a captured stream uses stays with the
/// graph that is recorded, for its later calls, until that is destroyed. Safe for many threads.
class WorkspacePool {
 public:
  /// A block in use. Goes back to the pool when it is destroyed.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    void* data() const { return data_; }
    std::size_t size() const { return size_; }
    /// Of the stream when it was taken (DeviceDriver::capture_id).
    std::uint64_t capture() const { return capture_; }

   private:
    friend class WorkspacePool;
    WorkspacePool* pool_ = nullptr;
    void* data_ = nullptr;
    std::size_t size_ = 0;
    Stream stream_ = {};
    std::uint64_t capture_ = 0;
    std::shared_ptr<LentAllocator> lender_ = {};
  };

  WorkspacePool(DeviceDriver& driver, int index);
  ~WorkspacePool();
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  /// At least `bytes`, for work on `stream`; the smallest cached block that fits and wastes at most half, else new
  /// memory. When the device is full, the cache is given back and the driver asked once more. 0 bytes: an empty lease.
  /// A stream that is being captured gets what its graph has, else new memory.
  Lease acquire(std::size_t bytes, Stream stream) { return acquire(bytes, stream, capture_id(stream)); }
  /// The same for callers who know the stream's capture_id.
  Lease acquire(std::size_t bytes, Stream stream, std::uint64_t capture);
  std::uint64_t capture_id(Stream stream) const { return driver_.capture_id(index_, stream); }
  /// From now on memory comes from here, and goes back at once. Null: from the driver again. Graphs keep to the driver.
  void set_allocator(std::shared_ptr<LentAllocator> allocator);
  /// Gives all cached blocks back to the driver, but for those of graphs.
  void trim();
  WorkspaceStats stats() const;

 private:
  struct Block {
    void* data = nullptr;
    std::size_t size = 0;
    Stream stream = {};
    std::uint64_t capture = 0;  // of the graph that it belongs to
    bool any_stream = false;    // no work uses it any more: the graph that it belonged to is destroyed
    std::uint64_t turn = 0;     // when it came back
  };
  class OfGraph;
  /// Null where there is none that fits; also says who lends memory instead, if anybody does.
  Block take_cached(std::size_t bytes, Stream stream, std::uint64_t capture, std::shared_ptr<LentAllocator>& lender);
  Block make_block(std::size_t bytes, Stream stream, std::uint64_t capture);
  void count_acquired(std::size_t bytes);  // with the lock held
  void release(Block block) noexcept;
  Lease borrow(std::shared_ptr<LentAllocator> lender, std::size_t bytes, Stream stream);
  void give_back(const Lease& lease) noexcept;
  void follow_capture(Stream stream, std::uint64_t capture);
  void end_capture(std::uint64_t capture) noexcept;
  void drop_oldest() noexcept;

  DeviceDriver& driver_;
  int index_;
  mutable Mutex mutex_;
  std::vector<Block> cached_;            // sorted by size; those of graphs too
  std::vector<std::uint64_t> captures_;  // whose graphs are not destroyed
  std::uint64_t turn_ = 0;
  std::shared_ptr<LentAllocator> lender_;
  WorkspaceStats stats_;
  std::shared_ptr<WorkspacePool*> self_ = std::make_shared<WorkspacePool*>(this);  // graphs may outlive the pool
};

}  // namespace xpuruntime
