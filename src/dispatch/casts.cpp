#include <utility>

#include "dispatch/dispatcher_impl.h"
#include "dispatch/thread_state.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

/// The frame of a running call.
class FrameUse {
 public:
  explicit FrameUse(ThreadState& state) : frame(state.cast_frames.enter()), state_(state) {}
  ~FrameUse() { state_.cast_frames.leave(state_.keeps_casts()); }
  FrameUse(const FrameUse&) = delete;
  FrameUse& operator=(const FrameUse&) = delete;

  CastFrame& frame;

 private:
  ThreadState& state_;
};

}  // namespace

// With its own decision, log entry and recovery, as if the caller had made it; only the decision is already made.
void Dispatcher::run_cast(const TableEntry& cast, const Tensor& from, const Tensor& to, ThreadState& state) {
  const Tensor* const inputs[] = {&from};
  const Tensor* const outputs[] = {&to};
  const Call call{
      .op = OpId::cast, .inputs = inputs, .outputs = outputs, .attributes = &cast.prepared->asked.problem->attributes};
  const Status status = run_plan(cast, call, state);
  if (status.ok()) [[likely]]
    return;
  recover(call, state, cast.prepared, status);
}

const Tensor* Dispatcher::cast_input(const Prepared& prepared, std::size_t step, const Tensor& from, Stream stream,
                                     CastFrame& frame, ThreadState& state) {
  const CachedPlan& plan = *prepared.plan;
  const Decision& decision = prepared.record->decision;
  const TensorSpec& spec = decision.problem.inputs[decision.casts[step].index];
  // A graph casts anew each time it runs, in memory of its own.
  if (from.version() == 0 || !state.keeps_casts() || plan.pool->capture_id(stream) != 0) {
    const Tensor& to = frame.temporary(step, *plan.pool, spec, plan.device, stream);
    run_cast(prepared.casts[step], from, to, state);
    return &to;
  }
  auto kept = state.kept_casts.find(from, spec.dtype, stream);
  if (kept == nullptr) {
    LeasedTensor made = lease_tensor(*plan.pool, spec, plan.device, stream);
    run_cast(prepared.casts[step], from, made.tensor, state);
    kept = state.kept_casts.keep(from, std::move(made), stream);
  }
  frame.kept.push_back(std::move(kept));
  return &frame.kept.back()->tensor;
}

// Inputs are cast, the kernel runs on the casts, and what it wrote in another dtype than the caller's is cast back.
Status Dispatcher::run_with_casts(const TableEntry& entry, const Call& call, ThreadState& state) {
  const std::shared_ptr<Prepared> prepared = entry.prepared;
  const CachedPlan& plan = *prepared->plan;
  const Decision& decision = prepared->record->decision;
  const Stream stream = entry.asynchronous ? current_stream(plan.device) : Stream{};
  const FrameUse use(state);
  CastFrame& frame = use.frame;
  frame.start_call(call, decision.casts.size());
  try {
    for (std::size_t i = 0; i < decision.casts.size(); ++i) {
      const std::size_t index = decision.casts[i].index;
      if (decision.casts[i].is_output) {
        frame.outputs[index] = &frame.temporary(i, *plan.pool, decision.problem.outputs[index], plan.device, stream);
      } else {
        frame.inputs[index] = cast_input(*prepared, i, *call.inputs[index], stream, frame, state);
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return Status(error.code(), error.what());
  }
  Call inner = call;
  inner.inputs = frame.inputs;
  inner.outputs = frame.outputs;
  inner.held = nullptr;  // of the inputs before their casts
  Status status = run_plan(entry, inner, state);
  if (!status.ok()) return status;
  for (std::size_t i = 0; i < decision.casts.size(); ++i) {
    const CastStep& step = decision.casts[i];
    if (step.is_output) run_cast(prepared->casts[i], *frame.outputs[step.index], *call.outputs[step.index], state);
  }
  return status;
}

}  // namespace xpuruntime
