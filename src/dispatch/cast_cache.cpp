#include "dispatch/cast_cache.h"

#include <utility>

namespace xpuruntime {

const Tensor* CastCache::find(const Tensor& from, DataType to, Stream stream) {
  auto [it, end] = kept_.equal_range(from.as<const void>());
  while (it != end) {
    const Kept& kept = it->second;
    const bool same_place = kept.from.data() == from.data() && kept.from.device() == from.device();
    if (same_place && kept.from.version() != from.version()) {
      it = kept_.erase(it);
      continue;
    }
    const bool fits = kept.from.spec() == from.spec() && kept.cast.tensor.dtype() == to && kept.stream == stream;
    if (same_place && fits) return &kept.cast.tensor;
    ++it;
  }
  return nullptr;
}

const Tensor& CastCache::keep(const Tensor& from, LeasedTensor cast, Stream stream) {
  return kept_.emplace(from.as<const void>(), Kept{from, std::move(cast), stream})->second.cast.tensor;
}

}  // namespace xpuruntime
