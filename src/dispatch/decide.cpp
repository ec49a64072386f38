#include <algorithm>
#include <iterator>
#include <utility>

#include "dispatch/cast_problems.h"
#include "dispatch/dispatcher_impl.h"
#include "dispatch/problem_of.h"
#include "registry/copying_kernel.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

constexpr std::size_t plans_per_device = 4096;
constexpr std::size_t decisions_kept = 8192;
constexpr std::uint64_t made_between_releases = 4096;

/// What the caller can do, by what stood in the way.
std::string advice(const Decision& decision) {
  if (decision.level == Level::lock) return {};  // its reasons end with it
  if (decision.level == Level::force) return "; force another kernel or only prefer it";
  if (decision.candidates.empty()) return "; move the tensors to a device that has one, or register a kernel";
  return "; change the tensors, the policy or the device so that one of them fits, or register a kernel";
}

PlanKey plan_key(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel, std::string_view token) {
  std::optional<Problem> one_of_class = kernel->plan_problem(*problem);
  PlanKey key{one_of_class ? SharedProblem(std::move(*one_of_class)) : problem, registered_kernel(kernel).get(),
              std::string(token)};
  if (const auto* copying = dynamic_cast<const CopyingKernel*>(kernel.get())) {
    for (const CopyingKernel::Step& step : copying->steps()) key.copiers.push_back(step.kernel.get());
  }
  return key;
}

Decision refused(Decision decision, std::string because) {
  for (Candidate& candidate : decision.candidates) {
    if (candidate.outcome != Outcome::chosen) continue;
    candidate.outcome = Outcome::refused;
    candidate.reason = because;
  }
  decision.kernel.clear();
  decision.kernel_version.clear();
  decision.copies.clear();
  decision.because = std::move(because);
  return decision;
}

/// What only the plan could tell, and the limits forbid; empty: nothing.
std::string refusal_of_plan(const Plan& plan, const Limits& limits) {
  const std::uint64_t bytes = plan.workspace_bytes().value_or(0);
  if (limits.workspace_bytes && bytes > *limits.workspace_bytes) {
    return "its plan needs " + std::to_string(bytes) + " bytes of workspace, the limit is " +
           std::to_string(*limits.workspace_bytes);
  }
  if (limits.deterministic && !plan.deterministic().value_or(true))
    return "its plan may give other bits each time, and the policy asks for deterministic kernels";
  return {};
}

Decision refused_as_unlocked(const Problem& problem) {
  Decision decision;
  decision.problem = problem;
  decision.level = Level::lock;
  decision.because =
      "a lock is in force in a scope of another thread or task (use_lock, ScopedLock), and this call is in none; "
      "set it for the whole process (set_lock, XPURUNTIME_LOCK), take that scope along (current_scope), or enter one "
      "without a lock";
  return decision;
}

}  // namespace

Dispatcher::Impl::Impl(KernelRegistry& kernel_registry, std::uint64_t id)
    : registry(kernel_registry),
      threads(std::make_shared<ThreadRegistry>()),
      archive(std::make_shared<RecordArchive>()),
      scopes(id),
      plans(plans_per_device, [this](CachedPlan& cached) { let_go(cached); }),
      decisions(decisions_kept),
      log(archive) {}

ScopePtr Dispatcher::Impl::make_scope(const KernelPolicy& policy, const Autocast& autocast,
                                      const std::optional<LockUse>& lock) {
  policy.check();
  const Strategy strategy = policy.auto_strategy.value_or(default_strategy.load());
  if (strategy == Strategy::first_supported) return scopes.intern(policy, nullptr, autocast, lock);
  KernelPolicy whole = policy;
  whole.auto_strategy = strategy;
  return scopes.intern(whole, frozen_measurements(), autocast, lock);
}

std::shared_ptr<Prepared> Dispatcher::Impl::prepare(const Asked& asked, const Scope& scope, std::uint64_t stamp) {
  // Decisions of an older generation can never be found again; they only keep plans alive.
  const auto generation = static_cast<std::uint32_t>(stamp);
  if (decisions_generation.exchange(generation) != generation) decisions.clear();
  return decisions.get_or_make({asked.problem, stamp, asked.precision}, [&] { return make(asked, scope, stamp); });
}

Prepared Dispatcher::Impl::make(const Asked& asked, const Scope& scope, std::uint64_t stamp,
                                std::span<const PassedOver> passed_over) {
  // What is new needs room: threads that have not called since the last time give theirs back.
  if ((decisions_made.fetch_add(1, std::memory_order_relaxed) + 1) % made_between_releases == 0)
    threads->release_idle();
  if (capturing(asked.problem->device)) {
    fail(ErrorCode::not_supported, "dispatch",
         to_string(*asked.problem) +
             " was not decided before this capture, and nothing is chosen or prepared in one; "
             "run the same calls once before the capture, on its stream");
  }
  auto [decision, plan] = decide(asked, scope, passed_over);
  if (plan == nullptr) {
    fail(ErrorCode::not_supported, "dispatch", to_string(*asked.problem) + ": " + decision.because + advice(decision));
  }
  std::vector<TableEntry> casts(decision.casts.size());
  if (!casts.empty()) {
    // Decided like casts that the caller makes, which share their records and plans.
    const std::vector<CastProblem> problems = cast_problems(*asked.problem, decision.problem);
    for (std::size_t i = 0; i < casts.size(); ++i)
      casts[i].fill(prepare({SharedProblem(problems[i].problem)}, scope, stamp));
  }
  auto record = std::make_shared<DecisionRecord>(std::move(decision), archive);
  tell(record);
  return {asked, std::move(record), std::move(plan), std::move(casts)};
}

PrecisionWishes Dispatcher::Impl::wishes_for(const Asked& asked, const Scope& scope,
                                             const PrecisionHook* current) const {
  const auto rule = scope.policy.precision.find(asked.problem->op);
  return {.explicit_dtype = asked.precision,
          .hook = current,
          .policy_rule = rule == scope.policy.precision.end() ? nullptr : &rule->second,
          .autocast = &scope.autocast,
          .policy_default = scope.policy.default_precision};
}

// Where no kernel computes in the dtype that is wished for, the next one without loss is tried. Where none is left, the
// record is about the first.
Dispatcher::Impl::Chosen Dispatcher::Impl::decide(const Asked& asked, const Scope& scope,
                                                  std::span<const PassedOver> passed_over, bool every_workspace) {
  const auto held_hook = precision_hook.get();
  Precision precision = resolve_precision(*asked.problem, wishes_for(asked, scope, held_hook.get()));
  DataType& dtype = asked.problem->direction == Direction::forward ? precision.forward : precision.backward;
  std::optional<Decision> first;
  const auto decided_for = [&](const Problem& problem) {
    const bool as_asked = problem == *asked.problem;
    Chosen chosen = decide_at(as_asked ? asked.problem : SharedProblem(problem), scope, passed_over, every_workspace);
    if (!as_asked && chosen.second != nullptr) {
      const std::string missing = add_casts(*asked.problem, scope, chosen.first);
      if (!missing.empty()) chosen = {refused(std::move(chosen.first), missing), nullptr};
    }
    if (chosen.second == nullptr && !first) first = chosen.first;
    return chosen;
  };
  for (;;) {
    const Problem problem = precision.wished ? at_precision(*asked.problem, dtype) : *asked.problem;
    Chosen chosen = decided_for(problem);
    if (chosen.second == nullptr && precision.wished && chosen.first.level != Level::lock) {
      const Problem cast_behind = at_precision(*asked.problem, dtype, true);
      if (cast_behind != problem) chosen = decided_for(cast_behind);
    }
    // A lock has no next best: what it does not hold at this precision is missing.
    const bool open = precision.wished && chosen.first.level != Level::lock;
    const DataType next = open ? next_lossless(dtype).value_or(dtype) : dtype;
    if (chosen.second != nullptr || next == dtype) {
      if (chosen.second == nullptr) chosen.first = std::move(*first);
      chosen.first.precision = std::move(precision);
      return chosen;
    }
    precision.because += "; " + std::string(to_string(dtype)) + " has no kernel here (" + chosen.first.because +
                         "), so " + std::string(to_string(next)) + ", the next without loss";
    dtype = next;
  }
}

Dispatcher::Impl::Chosen Dispatcher::Impl::decide_at(const SharedProblem& problem, const Scope& scope,
                                                     std::span<const PassedOver> passed_over, bool every_workspace) {
  const auto selector = registry.get_or_create_selector(problem->device);
  const std::optional<LockUse> lock = lock_over(scope);
  if (!lock) return {refused_as_unlocked(*problem), nullptr};
  std::vector<Exclusion> for_now;
  for (const PassedOver& passed : passed_over) {
    if (passed.problem == problem) for_now.push_back(passed.exclusion);
  }
  for (;;) {
    std::vector<Exclusion> exclusions =
        quarantine.exclusions(problem, registry.kernels(problem->op, problem->device.type));
    exclusions.insert(exclusions.end(), for_now.begin(), for_now.end());
    const auto select_by = [&](const Measurements* measurements) {
      return selector->select_checked(*problem, scope.policy, measurements, exclusions, every_workspace, &*lock);
    };
    Selection selection = select_by(scope.measurements.get());
    if (const auto found = tuned_now(problem, scope, selection)) selection = select_by(found.get());
    Decision& decision = selection.decision;
    if (selection.kernel == nullptr) return {std::move(decision), nullptr};
    std::string_view token;
    try {
      token = token_of(problem, selection);
      auto plan = plan_for(problem, selection.kernel, token);
      if (const std::string why = refusal_of_plan(*plan->plan, problem->limits); !why.empty())
        fail(ErrorCode::not_supported, "prepare", why);
      decision.plan = plan->plan->token();
      decision.workspace_bytes = plan->plan->workspace_bytes().value_or(decision.workspace_bytes);
      if (decision.level == Level::lock) {
        std::string breach = breach_of_lock(*problem, *lock->lock, decision);
        if (!breach.empty()) return {refused(std::move(decision), std::move(breach)), nullptr};
      }
      return {std::move(decision), std::move(plan)};
    } catch (...) {
      set_aside(problem, selection.kernel, !token.empty(), for_now);
    }
  }
}

void Dispatcher::Impl::set_aside(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                                 bool by_token, std::vector<Exclusion>& for_now) {
  const auto failed = [](const std::string& text) { return "it could not be prepared: " + text; };
  try {
    throw;
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::device_lost:
        throw;
      case ErrorCode::not_supported:
        if (by_token) return for_now.push_back({std::string(kernel->name()), std::string(error.message())});
        return quarantine.add_refused(problem, kernel, std::string(error.message()));
      case ErrorCode::out_of_memory:  // may be there again the next time
        return for_now.push_back({std::string(kernel->name()), failed(error.what())});
      default:
        return quarantine.add_failed(problem, kernel, failed(error.what()));
    }
  } catch (...) {
    quarantine.add_failed(problem, kernel, failed(exception_text()));
  }
}

std::string Dispatcher::Impl::add_casts(const Problem& asked, const Scope& scope, Decision& decision) {
  std::string missing;
  for (CastProblem& cast : cast_problems(asked, decision.problem)) {
    const DataType from = cast.problem.inputs[0].dtype, to = cast.problem.outputs[0].dtype;
    const Decision chosen = decide_at(SharedProblem(cast.problem), scope, {}, false).first;
    decision.casts.push_back({cast.is_output, cast.index, from, to, chosen.kernel});
    if (chosen.kernel.empty() && missing.empty()) {
      missing = "its cast " + to_string(cast.problem) + " cannot run: " + chosen.because;
    }
  }
  return missing;
}

std::string_view Dispatcher::Impl::token_of(const SharedProblem& problem, const Selection& selection) const {
  if (selection.token.empty()) return {};
  DeviceManager& devices = registry.devices();
  const Device device = problem->device;
  const PrepareContext context{device, devices.profile(device), devices.driver(device)};
  const DeviceGuard guard(device);
  // A kernel with one plan makes that; where its token differs, a lock still says so.
  return selection.kernel->variants(*problem, context).empty() ? std::string_view() : selection.token;
}

std::shared_ptr<CachedPlan> Dispatcher::Impl::plan_for(const SharedProblem& problem,
                                                       std::shared_ptr<const Kernel> kernel, std::string_view token) {
  PlanKey key = plan_key(problem, kernel, token);
  return plans.get_cache(problem->device).get_or_make(key, [&] {
    return make_plan(*key.problem, std::move(kernel), token);
  });
}

CachedPlan Dispatcher::Impl::make_plan(const Problem& problem, std::shared_ptr<const Kernel> kernel,
                                       std::string_view token) const {
  const Device device = problem.device;
  DeviceManager& devices = registry.devices();
  DeviceDriver& driver = devices.driver(device);
  const DeviceGuard guard(device);
  auto plan = kernel->prepare(problem, {device, devices.profile(device), driver}, token);
  return {std::move(kernel),
          std::move(plan),
          device,
          &driver,
          &devices.workspace(device),
          std::make_unique<std::atomic<bool>>(false)};
}

// Waiting for the device is the one way that is right for streams the library does not know.
void Dispatcher::Impl::let_go(CachedPlan& cached) {
  const bool waits = cached.driver->asynchronous() && cached.plan->outlives_its_work() &&
                     cached.queued->load(std::memory_order_relaxed);
  if (!waits) return cached.plan.reset();
  const Device device = cached.device;
  DeviceDriver& driver = *cached.driver;
  const bool later = capturing(device);
  std::vector<CachedPlan> ending;
  {
    const std::lock_guard lock(deferred_mutex);
    deferred.push_back(std::move(cached));
    if (later) return;
    const auto others =
        std::partition(deferred.begin(), deferred.end(), [&](const CachedPlan& plan) { return plan.device != device; });
    ending.assign(std::make_move_iterator(others), std::make_move_iterator(deferred.end()));
    deferred.erase(others, deferred.end());
  }
  const Status waited = driver.synchronize(device.index, {});
  static_cast<void>(waited);  // the error belongs to the work and shows to whoever waits for that
}

bool Dispatcher::Impl::capturing(Device device) const {
  if (device.type == DeviceType::cpu) return false;
  DeviceDriver& driver = registry.devices().driver(device);
  return driver.asynchronous() && driver.capturing(device.index, current_stream(device));
}

Decision Dispatcher::explain(const Problem& problem, std::optional<DataType> precision) {
  check_precision(problem.op, precision);
  const ScopePtr scope = current_scope();
  Problem asked = checked(problem);
  asked.limits = stricter(asked.limits, scope->policy.limits());
  return impl_->decide({SharedProblem(std::move(asked)), precision}, *scope, {}, /*every_workspace=*/true).first;
}

std::vector<TensorSpec> Dispatcher::infer_output_specs(const Call& call, const Scope& scope) const {
  const Problem problem = problem_of_inputs(call, scope.policy.limits());
  const Asked asked{SharedProblem(problem), call.precision};
  if (op_info(call.op).category != OpCategory::lookup) {
    const Decision decision = impl_->decide(asked, scope).first;
    return decision.kernel.empty() ? problem.outputs : decision.problem.outputs;
  }
  // What is looked up can be given in the dtype that is wished for at once. A table of integers is never cast.
  const auto held_hook = impl_->precision_hook.get();
  const Precision precision = wished_precision(problem, impl_->wishes_for(asked, scope, held_hook.get()));
  std::vector<TensorSpec> outputs = problem.outputs;
  for (TensorSpec& output : outputs) {
    if (is_floating(output.dtype)) output = make_spec(governing_dtype(precision, problem), output.shape);
  }
  return outputs;
}

std::vector<QuarantinedPlan> Dispatcher::quarantined() const { return impl_->quarantine.failed(); }

void Dispatcher::clear_quarantine() {
  impl_->quarantine.clear();
  registry_.invalidate();
}

}  // namespace xpuruntime
