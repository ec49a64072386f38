#include "graph/session/engine_line.h"

#include <mutex>

namespace xpuruntime {

EngineLine::EngineLine(std::vector<std::shared_ptr<const Engine>> engines, EngineRequest request,
                       const DeviceManager& devices, EnginePreference preferred)
    : engines_(std::move(engines)), request_(std::move(request)), devices_(devices), preferred_(std::move(preferred)) {
  picked_.push_back(pick_engine(engines_, request_, devices_, preferred_));
  keep(picked_.front());
}

const PickedEngine& EngineLine::after(const PickedEngine& engine, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i + 1 < picked_.size(); ++i) {
    if (&picked_[i] == &engine) return picked_[i + 1];
  }
  std::vector<EngineRejection> asked = engine.record.rejections;
  asked.push_back({engine.record.engine, engine.record.target, reason});
  picked_.push_back(pick_engine(engines_, request_, devices_, preferred_, std::move(asked)));
  return picked_.back();
}

}  // namespace xpuruntime
