#pragma once

#include <memory>
#include <vector>

#include "xpuruntime/graph/engine.h"

namespace xpuruntime {

/// A model that an engine made ready, and the record of how it was chosen.
struct PickedEngine {
  std::unique_ptr<CompiledModel> compiled = {};
  SessionRecord record = {};
};

/// The first of the engines that takes the model where the policy's target is, or else its fallback; of one name if the
/// policy gives one. `preferred` names one that is tried first, and why. Where none takes it, one error says why of
/// each.
struct EnginePreference {
  std::string engine = {};
  std::string version = {};  // that it was measured with: of another nothing is known
  std::string because = {};
};
/// Those that were `asked_before` are not asked again.
PickedEngine pick_engine(const std::vector<std::shared_ptr<const Engine>>& engines, EngineRequest request,
                         const DeviceManager& devices, const EnginePreference& preferred = {},
                         std::vector<EngineRejection> asked_before = {});

}  // namespace xpuruntime
