#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime {

struct WorkspaceStats {
  std::uint64_t bytes_in_use = 0;
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
/// there the next kernel runs after the last one, so no wait is needed. Safe for many threads.
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

   private:
    friend class WorkspacePool;
    WorkspacePool* pool_ = nullptr;
    void* data_ = nullptr;
    std::size_t size_ = 0;
    Stream stream_ = {};
    std::shared_ptr<LentAllocator> lender_ = {};
  };

  WorkspacePool(DeviceDriver& driver, int index);
  ~WorkspacePool();
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  /// At least `bytes`, for work on `stream`; the smallest cached block that fits and wastes at most half, else new
  /// memory. When the device is full, the cache is given back and the driver asked once more. 0 bytes: an empty lease.
  /// A stream that is being captured gets cached blocks alone: new memory is an error there.
  Lease acquire(std::size_t bytes, Stream stream);
  /// From now on memory comes from here, and goes back at once. Null: from the driver again.
  void set_allocator(std::shared_ptr<LentAllocator> allocator);
  /// Gives all cached blocks back to the driver.
  void trim();
  WorkspaceStats stats() const;

 private:
  struct Block {
    void* data = nullptr;
    std::size_t size = 0;
    Stream stream = {};
    std::uint64_t turn = 0;  // when it came back
  };
  /// Null where there is none that fits; also says who lends memory instead, if anybody does.
  Block take_cached(std::size_t bytes, Stream stream, std::shared_ptr<LentAllocator>& lender);
  void count_acquired(std::size_t bytes);  // with the lock held
  void release(Block block) noexcept;
  Lease borrow(std::shared_ptr<LentAllocator> lender, std::size_t bytes, Stream stream);
  void give_back(const Lease& lease) noexcept;
  void check_not_capturing(std::size_t bytes, Stream stream) const;
  void drop_oldest() noexcept;

  DeviceDriver& driver_;
  int index_;
  mutable Mutex mutex_;
  std::vector<Block> cached_;  // sorted by size
  std::uint64_t turn_ = 0;
  std::shared_ptr<LentAllocator> lender_;
  WorkspaceStats stats_;
};

}  // namespace xpuruntime
