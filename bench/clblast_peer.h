#pragma once

#include <memory>
#include <vector>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {

/// CLBlast's product of two f32 matrices. The library is opened at run time.
class ClBlastPeer {
 public:
  /// Of the first two tensors; null where CLBlast is not installed or the problem is no plain product of two matrices.
  static std::unique_ptr<ClBlastPeer> make(Runtime& runtime, const Problem& problem,
                                           const std::vector<Tensor>& tensors);
  /// Fits CLBlast to the device, for all that follows in this process: the best of known sets of parameters, and of so
  /// many more next to the best.
  static void tune(Runtime& runtime, Device device, int trials);
  ~ClBlastPeer();
  ClBlastPeer(const ClBlastPeer&) = delete;
  ClBlastPeer& operator=(const ClBlastPeer&) = delete;

  /// Queues so many products, each in the way that is fastest for these sizes, and waits for them. A failure throws.
  void operator()(int calls) const;

  const Tensor& result() const { return c_; }

 private:
  enum class Way { tiles, direct, vector };
  ClBlastPeer(Runtime& runtime, Device device, const Tensor& a, const Tensor& b);
  int multiply() const;
  void take(Way way);
  double seconds_of(int calls) const;

  Runtime& runtime_;
  Device device_;
  Stream stream_;
  Tensor a_, b_, c_, temporary_;
  std::size_t m_, n_, k_;
  Way way_ = Way::tiles;
};

}  // namespace xpuruntime::bench
