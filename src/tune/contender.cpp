#include "tune/contender.h"

#include <algorithm>
#include <new>
#include <utility>

#include "registry/copying_kernel.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

constexpr const char* not_deterministic =
    "it may give other bits each time, and only deterministic kernels are asked for";

std::string workspace_refusal(std::uint64_t bytes, std::uint64_t limit) {
  return "it needs " + std::to_string(bytes) + " bytes of workspace, the limit is " + std::to_string(limit);
}

/// What only the plan could tell.
Status refused_by_limits(const Contender& contender, const Limits& limits) {
  if (limits.workspace_bytes && contender.row.workspace_bytes.value_or(0) > *limits.workspace_bytes)
    return Status(ErrorCode::not_supported, workspace_refusal(*contender.row.workspace_bytes, *limits.workspace_bytes));
  if (limits.deterministic && !contender.plan->deterministic().value_or(true))
    return Status(ErrorCode::not_supported, not_deterministic);
  return {};
}

}  // namespace

Status contained(const char* stage, const std::function<Status()>& function) {
  const std::string threw = std::string("it threw in ") + stage + ": ";
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::out_of_memory, "out of host memory");
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::out_of_memory:
      case ErrorCode::device_lost:
        return Status(error.code(), threw + error.what());
      case ErrorCode::not_supported:  // of prepare: a refusal that it found late
        return Status(error.code(), std::string(error.message()));
      default:
        return Status(ErrorCode::device_error, threw + error.what());
    }
  } catch (...) {
    return Status(ErrorCode::device_error, threw + exception_text());
  }
}

void Contender::refuse(std::string why) {
  row.outcome = TuneOutcome::refused;
  row.reason = std::move(why);
}

void Contender::refuse_unless_runs(const Problem& problem, const DeviceProfile& profile,
                                   std::span<const std::shared_ptr<const Kernel>> copy_kernels) {
  std::string refusal = refusal_of(*kernel, problem, profile, row.workspace_bytes);
  if (refusal.empty()) return;
  std::shared_ptr<const CopyingKernel> copying;
  (void)contained("supports", [&] {
    copying = CopyingKernel::around(kernel, problem, profile, copy_kernels, refusal);
    return Status();
  });
  if (copying != nullptr) {
    kernel = std::move(copying);
    refusal = refusal_of(*kernel, problem, profile, row.workspace_bytes);
  }
  if (!refusal.empty()) refuse(std::move(refusal));
}

void Contender::quarantine(std::string why) {
  row.outcome = TuneOutcome::quarantined;
  row.reason = std::move(why);
}

void Contender::fail_with(const Status& status) {
  if (status.code() == ErrorCode::device_lost) fail(status.code(), "tune", row.kernel + ": " + status.message());
  if (status.code() == ErrorCode::not_supported) return refuse(status.message());
  if (status.code() == ErrorCode::out_of_memory) return refuse("there was not enough memory: " + status.message());
  if (status.code() == ErrorCode::invalid_argument) return refuse("it rejected the random inputs: " + status.message());
  const bool threw = status.message().starts_with("it threw");
  quarantine(threw ? status.message() : "it failed: " + status.message());
}

std::string refusal_of(const Kernel& kernel, const Problem& problem, const DeviceProfile& profile,
                       std::optional<std::uint64_t>& workspace_bytes) {
  const Limits& limits = problem.limits;
  if (limits.deterministic && !kernel.deterministic()) {
    return not_deterministic;
  }
  Verdict verdict;
  const Status asked = contained("supports", [&] {
    verdict = kernel.supports(problem, profile);
    if (verdict.supported) workspace_bytes = kernel.workspace_bytes(problem, profile);
    return Status();
  });
  if (!asked.ok()) return asked.message();
  if (!verdict.supported) return verdict.reason.empty() ? "it gave no reason" : verdict.reason;
  if (limits.workspace_bytes && *workspace_bytes > *limits.workspace_bytes) {
    return workspace_refusal(*workspace_bytes, *limits.workspace_bytes);
  }
  return {};
}

Track::Track(const KernelRegistry& registry, const Problem& problem, const Operands& operands)
    : problem_(problem),
      operands_(operands),
      devices_(registry.devices()),
      profile_(devices_.profile(problem.device)),
      driver_(devices_.driver(problem.device)),
      pool_(devices_.workspace(problem.device)),
      stream_(current_stream(problem.device)),
      asynchronous_(driver_.asynchronous()) {
  if (asynchronous_) prepare_cold();
}

Track::~Track() {
  if (!asynchronous_) return;
  // What went wrong on the device has shown in a run before.
  (void)contained("wait", [&] { return driver_.wait(problem_.device.index); });
  for (const Event event : events_) driver_.destroy_event(problem_.device.index, event);
}

/// Without the memory for it, or a device that can, times are the host's.
void Track::prepare_cold() {
  constexpr std::uint64_t least_half = std::uint64_t{64} << 20;
  const std::uint64_t half = std::max(2 * profile_.l2_bytes, least_half);
  const int index = problem_.device.index;
  (void)contained("flush_caches", [&] {
    Status status = driver_.flush_caches(index, nullptr, 0, stream_);
    if (!status.ok()) return status;
    flushed_ = devices_.allocate(DataType::uint8, {static_cast<std::int64_t>(2 * half)}, problem_.device);
    for (std::int64_t i = 0; i < 2 * most_cold_calls; ++i) events_.push_back(driver_.create_event(index));
    return status;
  });
}

std::vector<std::string> Track::variants(const Contender& contender) const {
  std::vector<std::string> tokens;
  // One that throws here can still run by its own choice.
  (void)contained("variants", [&] {
    tokens = contender.kernel->variants(problem_, context());
    return Status();
  });
  return tokens;
}

Status Track::prepare(Contender& contender) const {
  return contained("prepare", [&] {
    contender.plan = contender.kernel->prepare(problem_, context(), contender.row.variant);
    contender.row.plan = contender.plan->token();
    if (const auto bytes = contender.plan->workspace_bytes()) contender.row.workspace_bytes = *bytes;
    return refused_by_limits(contender, problem_.limits);
  });
}

Status Track::run(const Contender& contender, std::int64_t calls) const {
  return contained("run", [&] {
    const auto lease = pool_.acquire(contender.row.workspace_bytes.value_or(0), stream_);
    return call(contender, lease.data(), calls);
  });
}

Status Track::blank_workspace(const Contender& contender, WorkspacePool::Lease& workspace) const {
  const Status status = contained("run", [&] {
    workspace = pool_.acquire(contender.row.workspace_bytes.value_or(0), stream_);
    return Status();
  });
  if (status.ok()) blank_memory(devices_, problem_.device, workspace.data(), workspace.size());
  return status;
}

Status Track::run_in(const Contender& contender, const WorkspacePool::Lease& workspace) const {
  return contained("run", [&] { return call(contender, workspace.data(), 1); });
}

Status Track::call(const Contender& contender, void* workspace, std::int64_t calls) const {
  const RunArguments arguments{operands_.input_pointers(), operands_.output_pointers(), workspace, stream_};
  Status status;
  for (std::int64_t i = 0; i < calls && status.ok(); ++i) status = contender.plan->run(arguments);
  return asynchronous_ ? waited_for(status) : status;
}

/// Where the device is lost, that is why a launch failed.
Status Track::waited_for(const Status& queued) const {
  const Status synchronized = driver_.synchronize(problem_.device.index, stream_);
  return queued.ok() || synchronized.code() == ErrorCode::device_lost ? synchronized : queued;
}

Status Track::queue_cold(const Contender& contender, const RunArguments& arguments, std::size_t call) const {
  const int index = problem_.device.index;
  Status status = driver_.flush_caches(index, flushed_.data(), flushed_.span(), stream_);
  if (status.ok()) status = driver_.record_event(index, events_[2 * call], stream_);
  if (status.ok()) status = contender.plan->run(arguments);
  if (status.ok()) status = driver_.record_event(index, events_[2 * call + 1], stream_);
  return status;
}

Status Track::run_cold(const Contender& contender, std::int64_t calls, double& device_us) const {
  return contained("run", [&] {
    const auto lease = pool_.acquire(contender.row.workspace_bytes.value_or(0), stream_);
    const RunArguments arguments{operands_.input_pointers(), operands_.output_pointers(), lease.data(), stream_};
    const auto count = static_cast<std::size_t>(std::min(calls, most_cold_calls));
    Status status;
    for (std::size_t i = 0; i < count && status.ok(); ++i) status = queue_cold(contender, arguments, i);
    status = waited_for(status);
    device_us = 0;
    for (std::size_t i = 0; i < count && status.ok(); ++i) {
      device_us += std::max(driver_.elapsed_us(problem_.device.index, events_[2 * i], events_[2 * i + 1]), 0.0);
    }
    return status;
  });
}

}  // namespace xpuruntime
