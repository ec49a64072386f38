#pragma once

#include <map>
#include <optional>
#include <utility>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime::native {

/// A model's constants in other dtypes, and aligned ones of those that are not, each made once for all programs.
class ConstantCasts {
 public:
  /// The model outlives it.
  ConstantCasts(const Model& model, Dispatcher& dispatcher);

  /// Under the same strides; nothing where some of its finite numbers are none in the dtype.
  std::optional<Tensor> cast(const Tensor& constant, DataType dtype);
  /// In files constants begin at any element; kernels would copy them in every run.
  Tensor aligned(const Tensor& constant) { return *cast(constant, constant.dtype()); }

 private:
  struct Known {
    Tensor elements = {};  // in the order of memory
    bool overflows = false;
  };
  Known make(const Tensor& constant, DataType dtype) const;

  Dispatcher& dispatcher_;
  Mutex mutex_ = {};
  std::map<const void*, std::size_t> sizes_ = {};  // of the file's constants in bytes, by place
  std::map<std::pair<const void*, DataType>, Known> known_ = {};
};

}  // namespace xpuruntime::native
