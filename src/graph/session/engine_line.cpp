#include "graph/session/engine_line.h"

#include <algorithm>
#include <mutex>

#include "core/printable.h"

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

const SessionRecord& EngineLine::record() const {
  const PickedEngine& engine = current();
  std::vector<MissingOp> on_fallback = engine.compiled->on_fallback();
  if (on_fallback.empty()) return engine.record;
  SessionRecord record = engine.record;
  std::size_t nodes = 0;
  std::string ops;
  for (const MissingOp& op : on_fallback) {
    nodes += op.nodes;
    ops += (ops.empty() ? "" : ", ") + printable(op.op) + " (" + std::to_string(op.nodes) + ")";
  }
  record.because += "; " + std::to_string(nodes) + (nodes == 1 ? " node runs" : " nodes run") + " on " +
                    std::string(to_string(request_.execution.allow_fallback.value_or(DeviceType::cpu))) + ", which " +
                    std::string(to_string(record.target)) + " lacks: " + ops;
  record.on_fallback = std::move(on_fallback);
  const std::lock_guard lock(mutex_);
  const auto same = std::find_if(records_.begin(), records_.end(),
                                 [&](const SessionRecord& one) { return one.because == record.because; });
  return same != records_.end() ? *same : records_.emplace_back(std::move(record));
}

}  // namespace xpuruntime
