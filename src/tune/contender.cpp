#include "tune/contender.h"

#include <new>
#include <utility>

#include "registry/copying_kernel.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

constexpr const char* not_deterministic =
    "it may give other bits each time, and only deterministic kernels are asked for";

std::string workspace_refusal(std::uint64_t bytes, std::uint64_t limit) {
  return "it needs " + std::to_string(bytes) + " bytes of workspace, the limit is " + std::to_string(limit);
}

/// Runs a kernel's own code; what it throws becomes a status.
template <class Function>
Status contained(const char* what, Function&& function) {
  const std::string threw = std::string("it threw in ") + what + ": ";
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

/// What only the plan could tell.
Status refused_by_limits(const Contender& contender, const Limits& limits) {
  if (limits.workspace_bytes && contender.row.workspace_bytes.value_or(0) > *limits.workspace_bytes)
    return Status(ErrorCode::not_supported, workspace_refusal(*contender.row.workspace_bytes, *limits.workspace_bytes));
  if (limits.deterministic && !contender.plan->deterministic().value_or(true))
    return Status(ErrorCode::not_supported, not_deterministic);
  return {};
}

}  // namespace

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
  if (status.code() == ErrorCode::invalid_argument)
    return refuse("it turned the random inputs down: " + status.message());
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
      profile_(registry.devices().profile(problem.device)),
      driver_(registry.devices().driver(problem.device)),
      pool_(registry.devices().workspace(problem.device)),
      stream_(current_stream(problem.device)),
      asynchronous_(driver_.asynchronous()) {}

Track::~Track() {
  if (!asynchronous_) return;
  // What went wrong on the device has shown in a run before.
  (void)contained("synchronize", [&] { return driver_.synchronize(problem_.device.index, {}); });
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
    const RunArguments arguments{operands_.input_pointers(), operands_.output_pointers(), lease.data(), stream_};
    Status status;
    for (std::int64_t i = 0; i < calls && status.ok(); ++i) status = contender.plan->run(arguments);
    if (!asynchronous_) return status;
    const Status synchronized = driver_.synchronize(problem_.device.index, stream_);
    return status.ok() ? synchronized : status;
  });
}

}  // namespace xpuruntime
