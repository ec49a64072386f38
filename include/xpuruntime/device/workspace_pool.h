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
  };

  WorkspacePool(DeviceDriver& driver, int index);
  ~WorkspacePool();
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  /// At least `bytes`, for work on `stream`; the smallest cached block that fits and wastes at most half, else new
  /// memory. When the device is full, the cache is given back and the driver asked once more. 0 bytes: an empty lease.
  Lease acquire(std::size_t bytes, Stream stream);
  /// Gives all cached blocks back to the driver.
  void trim();
  WorkspaceStats stats() const;

 private:
  struct Block {
    void* data = nullptr;
    std::size_t size = 0;
    Stream stream = {};
  };
  Block take_cached(std::size_t bytes, Stream stream);
  void count_acquired(std::size_t bytes);  // with the lock held
  void release(Block block) noexcept;

  DeviceDriver& driver_;
  int index_;
  mutable Mutex mutex_;
  std::vector<Block> cached_;  // sorted by size
  WorkspaceStats stats_;
};

}  // namespace xpuruntime
