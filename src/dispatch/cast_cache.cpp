#include "dispatch/cast_cache.h"

#include <utility>

namespace xpuruntime {

std::shared_ptr<const LeasedTensor> CastCache::find(const Tensor& from, DataType to, Stream stream) {
  auto [it, end] = kept_.equal_range(from.as<const void>());
  while (it != end) {
    const Kept& kept = it->second;
    const bool same_place = kept.from.data() == from.data() && kept.from.device() == from.device();
    if (same_place && kept.from.version() != from.version()) {
      it = kept_.erase(it);
      continue;
    }
    const bool fits = kept.from.spec() == from.spec() && kept.cast->tensor.dtype() == to && kept.stream == stream;
    if (same_place && fits) return kept.cast;
    ++it;
  }
  return nullptr;
}

std::shared_ptr<const LeasedTensor> CastCache::keep(const Tensor& from, LeasedTensor cast, Stream stream) {
  auto shared = std::make_shared<const LeasedTensor>(std::move(cast));
  kept_.emplace(from.as<const void>(), Kept{from, shared, stream});
  return shared;
}

}  // namespace xpuruntime
