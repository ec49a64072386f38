#pragma once

#include <atomic>
#include <deque>
#include <string>

#include "graph/session/pick_engine.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// The engine that runs a model, and those that come after it where it refuses in a run what it took at first. Safe for
/// many threads.
class EngineLine {
 public:
  /// The first is picked now.
  EngineLine(std::vector<std::shared_ptr<const Engine>> engines, EngineRequest request, const DeviceManager& devices,
             EnginePreference preferred);

  const PickedEngine& current() const { return *current_.load(std::memory_order_acquire); }
  /// Of the current one, with what runs on its fallback by now. It stays as it is; later ones may say more.
  const SessionRecord& record() const;
  /// The one after an engine that refuses; where there is none an error with the reason of each.
  const PickedEngine& after(const PickedEngine& engine, const std::string& reason);
  /// From now on runs go to this one.
  void keep(const PickedEngine& engine) { current_.store(&engine, std::memory_order_release); }

 private:
  const std::vector<std::shared_ptr<const Engine>> engines_;
  const EngineRequest request_;
  const DeviceManager& devices_;
  const EnginePreference preferred_;
  mutable LongMutex mutex_ = {};
  mutable std::deque<SessionRecord> records_ = {};  // that say more than those of what was picked
  std::deque<PickedEngine> picked_ = {};            // in their order; each stays where it is
  std::atomic<const PickedEngine*> current_;
};

}  // namespace xpuruntime
