#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "dispatch/dispatcher_impl.h"
#include "dispatch/thread_state.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

const Attributes& cast_to(DataType dtype) {
  static const auto all = [] {
    std::array<Attributes, data_type_count> out;
    for (int i = 0; i < data_type_count; ++i) {
      out[i] = Attributes(OpId::cast).parse("dtype", to_string(static_cast<DataType>(i)));
    }
    return out;
  }();
  return all[static_cast<std::size_t>(dtype)];
}

LeasedTensor lease(const CachedPlan& plan, const TensorSpec& spec, Stream stream) {
  LeasedTensor leased;
  leased.lease = plan.pool->acquire(std::max<std::size_t>(span_bytes(spec), 1), stream);
  leased.tensor = Tensor(leased.lease.data(), spec, plan.device);
  return leased;
}

}  // namespace

// Inputs are cast, the kernel runs on the casts, and what it wrote in another dtype than the caller's is cast back. A
// cast is a call of its own: with its own decision, log entry and recovery.
Status Dispatcher::run_with_casts(const TableEntry& entry, const Call& call, ThreadState& state) {
  const std::shared_ptr<Prepared> prepared = entry.prepared;
  const CachedPlan& plan = *prepared->plan;
  const Decision& decision = prepared->record->decision;
  const Stream stream = entry.asynchronous ? current_stream(plan.device) : Stream{};
  const bool keeps = !state.scopes.empty() && state.scopes.back().second->autocast.on();
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  std::vector<const Tensor*> outputs(call.outputs.begin(), call.outputs.end());
  std::vector<std::shared_ptr<const LeasedTensor>> held;  // until the work is queued

  const auto cast = [&](const Tensor& from, const Tensor& to) {
    const Tensor* const in[] = {&from};
    const Tensor* const out[] = {&to};
    dispatch({.op = OpId::cast, .inputs = in, .outputs = out, .attributes = &cast_to(to.dtype())});
  };
  const auto input = [&](const Tensor& from, const TensorSpec& spec) -> const Tensor* {
    const bool kept = keeps && from.version() != 0;
    if (kept) {
      if (auto found = state.kept_casts.find(from, spec.dtype, stream)) {
        held.push_back(std::move(found));
        return &held.back()->tensor;
      }
    }
    LeasedTensor made = lease(plan, spec, stream);
    cast(from, made.tensor);
    held.push_back(kept ? state.kept_casts.keep(from, std::move(made), stream)
                        : std::make_shared<const LeasedTensor>(std::move(made)));
    return &held.back()->tensor;
  };

  try {
    for (const CastStep& step : decision.casts) {
      if (step.is_output) {
        held.push_back(std::make_shared<const LeasedTensor>(lease(plan, decision.problem.outputs[step.index], stream)));
        outputs[step.index] = &held.back()->tensor;
      } else {
        inputs[step.index] = input(*call.inputs[step.index], decision.problem.inputs[step.index]);
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    return Status(error.code(), error.what());
  }
  Call inner = call;
  inner.inputs = inputs;
  inner.outputs = outputs;
  const std::size_t logged = log_capacity_.load(std::memory_order_relaxed);
  Status status = logged != 0 ? launch_logged(entry, inner, state, logged) : launch(entry, inner);
  if (!status.ok()) return status;
  for (const CastStep& step : decision.casts) {
    if (step.is_output) cast(*outputs[step.index], *call.outputs[step.index]);
  }
  return status;
}

}  // namespace xpuruntime
