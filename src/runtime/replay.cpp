#include "xpuruntime/runtime/replay.h"

#include <algorithm>

#include "core/sha256.h"
#include "dispatch/by_precision.h"
#include "graph/native/engine.h"
#include "graph/session/engine_lock.h"
#include "runtime/decided_parts.h"
#include "tune/operands.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

constexpr std::string_view outcome_names[] = {"same", "revalidated", "failed"};

void hash_outputs(KernelLock& lock, Runtime& runtime, std::uint64_t seed) {
  const LockUse use = {std::make_shared<const KernelLock>(lock)};
  for (const auto& [text, entry] : use.lock->entries()) {
    if (has_ranges(text)) continue;
    const Problem problem = parse_problem(text);
    // Nobody could say whose outputs they were.
    if (!is_versioned(entry.kernel_version)) continue;
    if (!problem.limits.deterministic || !entry.outputs.empty()) continue;
    LockEntry& recorded = lock.add(entry, environment_at(runtime, problem.device));
    recorded.outputs = output_hash(runtime, use, problem, seed);
    recorded.seed = seed;
  }
}

void add_decided(KernelLock& lock, Runtime& runtime, const Decision& decision) {
  if (decision.kernel.empty()) {
    fail(ErrorCode::not_supported, "record_lock",
         to_string(decision.problem) + ": " + decision.because +
             "; leave it out, or change the policy so that a kernel can run it");
  }
  lock.add(decision, environment_at(runtime, decision.problem.device));
}

/// A block under the lock alone: no policy and no autocast of the caller's has a say. Other threads go on as they are,
/// which under a ScopedLock they would not.
class ReplayScope {
 public:
  ReplayScope(Dispatcher& dispatcher, const LockUse& lock, const Limits& limits)
      : dispatcher_(dispatcher),
        token_(dispatcher.enter_scope(dispatcher.make_scope(KernelPolicy::from_limits(limits), {}, lock))) {}
  ~ReplayScope() { dispatcher_.leave_scope(token_); }
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

 private:
  Dispatcher& dispatcher_;
  std::uint64_t token_;
};

Decision decide_locked(Runtime& runtime, const LockUse& lock, const Problem& problem) {
  const ReplayScope scope(runtime.dispatcher(), lock, problem.limits);
  return runtime.dispatcher().explain(problem);
}

void compare_outputs(Runtime& runtime, const LockUse& lock, const LockEntry& entry, ReplayResult& result) {
  if (entry.outputs.empty()) return;
  try {
    const std::string hash = output_hash(runtime, lock, parse_problem(entry.problem), entry.seed);
    result.outputs_compared = hash == entry.outputs;
    if (result.outputs_compared) return;
    // Other software may round otherwise; the revalidator has found the numbers right.
    if (result.outcome == ReplayOutcome::revalidated) {
      result.reason += "; the outputs are right, but not bit for bit the same";
      return;
    }
    result.reason = "its outputs are not those of the lock: " + hash + ", not " + entry.outputs;
  } catch (const Error& error) {
    result.reason = error.what();
  }
  result.outcome = ReplayOutcome::failed;
}

}  // namespace

ReplayResult decide_entry(Runtime& runtime, const LockUse& lock, const LockEntry& entry) {
  ReplayResult result{entry.problem, entry.kernel};
  const auto failed = [&](std::string reason) {
    result.outcome = ReplayOutcome::failed;
    result.reason = std::move(reason);
    return result;
  };
  const Problem problem = least_problem(entry.problem);
  if (!runtime.devices().has(problem.device)) {
    const std::string why = runtime.devices().why_absent(problem.device.type);
    return failed(to_string(problem.device) + " is not here" + (why.empty() ? "" : ": " + why));
  }
  const Decision decision = decide_locked(runtime, lock, problem);
  if (decision.kernel.empty()) return failed(decision.because);
  if (has_ranges(entry.problem)) {
    const ProblemRange range = parse_problem_range(entry.problem);
    const Decision largest = decide_locked(runtime, lock, range.at(range.count() - 1));
    if (largest.kernel.empty()) return failed(largest.because);
  }
  result.kernel_version = written_version(decision.kernel_version);
  const Environment here = environment_at(runtime, problem.device);
  const EnvironmentMatch match = lock.lock->match(entry, here, decision.kernel_version);
  if (match.verdict == EntryVerdict::same) return result;
  result.outcome = ReplayOutcome::revalidated;
  result.reason = match.reason;
  return result;
}

std::string_view to_string(ReplayOutcome outcome) { return outcome_names[static_cast<std::size_t>(outcome)]; }

bool ReplayReport::fine() const {
  return std::none_of(results.begin(), results.end(),
                      [](const ReplayResult& result) { return result.outcome == ReplayOutcome::failed; });
}

Environment environment_at(Runtime& runtime, Device device) {
  return environment_of(runtime.devices().profile(device));
}

std::string output_hash(Runtime& runtime, const LockUse& lock, const Problem& problem, std::uint64_t seed) {
  check_memory(runtime.devices(), problem, false);
  const Operands operands = random_operands(runtime.devices(), problem, seed);
  {
    const ReplayScope scope(runtime.dispatcher(), lock, problem.limits);
    runtime.dispatcher().dispatch(
        {problem.op, operands.input_pointers(), operands.output_pointers(), &problem.attributes, problem.direction});
  }
  const Status done =
      runtime.devices().driver(problem.device).synchronize(problem.device.index, current_stream(problem.device));
  if (!done.ok()) {
    fail(done.code(), "output_hash", "the device failed: " + done.message() + "; check whether it still responds");
  }
  Sha256 hash;
  for (const Tensor& output : operands.outputs()) {
    const Tensor host = runtime.devices().copy_to(output, Device{});
    const auto bytes = static_cast<std::size_t>(element_count(host.spec())) * size_of(host.dtype());
    hash.add(to_string(make_spec(host.dtype(), host.shape()))).add({host.as<const std::byte>(), bytes});
  }
  return "sha256:" + hash.finish();
}

KernelLock record_lock(Runtime& runtime, std::span<const Problem> problems, std::uint64_t seed) {
  KernelLock lock;
  Dispatcher& dispatcher = runtime.dispatcher();
  const ScopedLock unlocked(dispatcher, {});  // what a lock lacks could not be recorded under it
  for (const Problem& asked : problems) {
    const ScopedPolicy limits(dispatcher, KernelPolicy::from_limits(asked.limits));
    const Decision decision = dispatcher.explain(asked);
    add_decided(lock, runtime, decision);
    Problem limited = checked(asked);
    limited.limits = decision.problem.limits;
    for (const CastProblem& cast : cast_problems(limited, decision.problem)) {
      add_decided(lock, runtime, dispatcher.explain(cast.problem));
    }
  }
  hash_outputs(lock, runtime, seed);
  return lock;
}

KernelLock record_lock(Runtime& runtime, std::span<const LogEntry> log, std::uint64_t seed) {
  KernelLock lock;
  for (const LogEntry& entry : log) {
    if (!entry.failed) add_decided(lock, runtime, *entry.decision);
  }
  hash_outputs(lock, runtime, seed);
  return lock;
}

namespace {

/// The problem of a call before its casts.
Problem before_casts(const Decision& decision) {
  Problem asked = decision.problem;
  for (const CastStep& cast : decision.casts) {
    (cast.is_output ? asked.outputs : asked.inputs)[cast.index].dtype = cast.is_output ? cast.to : cast.from;
  }
  return asked;
}

template <class Input>
KernelLock record_session(Runtime& runtime, const Session& session, std::span<const Input> inputs, std::uint64_t seed) {
  KernelLock lock;
  session.lock_engine(lock);
  if (session.record().engine != "native") return lock;
  const std::vector<SessionStep> steps = session.explain(inputs);
  const ScopedPolicy entered(runtime.dispatcher(), session.scope());
  for (const SessionStep& step : steps) {
    if (!step.decision) continue;
    add_decided(lock, runtime, *step.decision);
    for (const CastProblem& cast : cast_problems(before_casts(*step.decision), step.decision->problem)) {
      add_decided(lock, runtime, runtime.dispatcher().explain(cast.problem));
    }
  }
  hash_outputs(lock, runtime, seed);
  return lock;
}

ReplayResult try_engine(Runtime& runtime, const LockUse& lock, const LockedEngine& locked) {
  ReplayResult result{"model " + locked.model, locked.engine};
  std::vector<std::shared_ptr<const Engine>> engines = runtime.engines().engines();
  engines.push_back(native::make_engine(runtime.dispatcher(), runtime.devices(), {}));
  const Engine* here = nullptr;
  for (const auto& engine : engines) {
    if (engine->name() == locked.engine) here = engine.get();
  }
  result.reason = why_other_engine(*lock.lock, locked, here, runtime.devices(), lock.mode);
  if (!result.reason.empty()) result.outcome = ReplayOutcome::failed;
  return result;
}

}  // namespace

KernelLock record_lock(Runtime& runtime, const Session& session, std::span<const Tensor> inputs, std::uint64_t seed) {
  return record_session(runtime, session, inputs, seed);
}

KernelLock record_lock(Runtime& runtime, const Session& session, std::span<const TensorSpec> inputs,
                       std::uint64_t seed) {
  return record_session(runtime, session, inputs, seed);
}

ReplayReport verify_lock(Runtime& runtime, const LockUse& lock) {
  if (lock.lock == nullptr) {
    fail(ErrorCode::invalid_argument, "verify_lock", "no lock is given; load one first");
  }
  ReplayReport report;
  for (const auto& [model, engine] : lock.lock->engines()) {
    report.results.push_back(try_engine(runtime, lock, engine));
  }
  for (const auto& [text, entry] : lock.lock->entries()) report.results.push_back(decide_entry(runtime, lock, entry));
  if (!report.fine()) return report;
  report.ran = true;
  auto result = report.results.begin() + std::ssize(lock.lock->engines());
  for (const auto& [text, entry] : lock.lock->entries()) compare_outputs(runtime, lock, entry, *result++);
  return report;
}

KernelLock refreshed(Runtime& runtime, const KernelLock& lock, const ReplayReport& report) {
  KernelLock out;
  for (const auto& [model, engine] : lock.engines()) {
    LockedEngine now = engine;
    if (now.engine == "native") now.version = XRT_VERSION;  // its kernels were checked
    out.add(now, lock.environment_of(engine));
  }
  for (const ReplayResult& result : report.results) {
    if (result.problem.starts_with("model ")) continue;
    const LockEntry* entry = lock.find(result.problem);
    if (entry == nullptr || result.outcome == ReplayOutcome::failed) {
      fail(ErrorCode::invalid_argument, "refreshed",
           result.problem + (entry == nullptr ? " is not in the lock; pass its own report"
                                              : " does not hold here; record the lock again"));
    }
    const bool moved = result.outcome == ReplayOutcome::revalidated;
    const Problem problem = least_problem(entry->problem);
    LockEntry& added = out.add(*entry, moved ? environment_at(runtime, problem.device) : lock.environment_of(*entry));
    if (moved) added.kernel_version = result.kernel_version;
    if (!is_versioned(added.kernel_version)) added.outputs.clear();
    if (moved && !added.outputs.empty() && !result.outputs_compared) {
      added.outputs = output_hash(runtime, {std::make_shared<const KernelLock>(out)}, problem, added.seed);
    }
  }
  return out;
}

}  // namespace xpuruntime
