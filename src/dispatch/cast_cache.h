#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>

#include "xpuruntime/core/tensor.h"
#include "xpuruntime/device/stream.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {

/// A tensor whose memory is on loan.
struct LeasedTensor {
  WorkspacePool::Lease lease = {};
  Tensor tensor = {};
};

/// The memory that a tensor takes; a tensor without elements has an address too.
inline std::size_t bytes_for(const TensorSpec& spec) { return std::max<std::size_t>(span_bytes(spec), 1); }

/// The spec is one that make_spec gave.
inline LeasedTensor lease_tensor(WorkspacePool& pool, const TensorSpec& spec, Device device, Stream stream) {
  LeasedTensor leased;
  leased.lease = pool.acquire(bytes_for(spec), stream);
  leased.tensor = Tensor::on(leased.lease.data(), spec, device);
  return leased;
}

/// Casts of tensors that bear a version, kept while autocast is on: a weight is cast once, however often it is used.
/// Belongs to one thread.
class CastCache {
 public:
  /// The cast of a tensor with this memory, layout and version, made for work on this stream; null if there is none.
  /// One of another version is released here; its holders keep it.
  std::shared_ptr<const LeasedTensor> find(const Tensor& from, DataType to, Stream stream);
  std::shared_ptr<const LeasedTensor> keep(const Tensor& from, LeasedTensor cast, Stream stream);
  void clear() { kept_.clear(); }
  std::size_t size() const { return kept_.size(); }

 private:
  struct Kept {
    Tensor from;  // shares its memory's ownership: another tensor cannot come to lie there
    std::shared_ptr<const LeasedTensor> cast;
    Stream stream;
  };

  std::multimap<const void*, Kept> kept_;  // by the address of the first element
};

}  // namespace xpuruntime
