#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "dispatch/cast_cache.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime {

/// What one running call needs for its casts. It is kept for the next call, with its memory where that is small, so
/// that a warm call neither allocates nor locks.
class CastFrame {
 public:
  /// Takes the call's own tensors and makes room for so many temporaries.
  void start_call(const Call& call, std::size_t temporaries);
  /// A tensor for work on this stream, to be overwritten: the `index`th of this call.
  const Tensor& temporary(std::size_t index, WorkspacePool& pool, const TensorSpec& spec, Device device, Stream stream);
  /// Releases what the call held. Where memory is kept, large blocks and those of many temporaries still go back.
  void end_call(bool keep_memory) noexcept;

  // What the kernel gets: the call's tensors, those that are cast replaced.
  std::vector<const Tensor*> inputs = {};
  std::vector<const Tensor*> outputs = {};
  std::vector<std::shared_ptr<const LeasedTensor>> kept = {};  // of the thread's CastCache, held while the call runs

 private:
  struct Temporary {
    LeasedTensor leased = {};
    WorkspacePool* pool = nullptr;
    Stream stream = {};
  };
  std::vector<Temporary> temporaries_ = {};
};

/// The frames of one thread's running calls, outermost first: a kernel may dispatch, and its calls may need casts too.
class CastFrames {
 public:
  CastFrame& enter();
  /// Ends the call that entered last.
  void leave(bool keep_memory) noexcept;
  /// Gives the memory of frames that no call uses back to its pools.
  void release_idle() noexcept;
  void clear() { *this = {}; }

 private:
  std::vector<std::unique_ptr<CastFrame>> frames_ = {};
  std::size_t running_ = 0;
};

}  // namespace xpuruntime
