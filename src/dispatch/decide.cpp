#include <algorithm>
#include <iterator>
#include <list>
#include <utility>

#include "dispatch/by_precision.h"
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
  const auto alike = [](const std::vector<TensorSpec>& some, const std::vector<TensorSpec>& others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                      [](const auto& one, const auto& other) { return one.dtype == other.dtype; });
  };
  if (one_of_class && (one_of_class->op != problem->op || one_of_class->direction != problem->direction ||
                       one_of_class->device != problem->device || !alike(one_of_class->inputs, problem->inputs) ||
                       !alike(one_of_class->outputs, problem->outputs))) {
    fail(ErrorCode::internal, "plan_problem",
         to_string(*one_of_class) + " is not of the op, direction, device and dtypes of " + to_string(*problem));
  }
  PlanKey key{one_of_class ? SharedProblem(std::move(*one_of_class)) : problem, registered_kernel(kernel).get(),
              std::string(token)};
  if (const auto* copying = dynamic_cast<const CopyingKernel*>(kernel.get())) {
    for (const CopyingKernel::Step& step : copying->steps()) key.copiers.push_back(step.kernel.get());
  }
  return key;
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
      "a lock is in force in a scope of another thread or task (use_lock, ScopedLock), or in a task, a timer, a "
      "connection, an event loop or a saved context that was made in one and still exists, and this call is in none; "
      "set it for the whole process (set_lock, XPURUNTIME_LOCK), pass that scope on (current_scope), or enter one "
      "without a lock";
  return decision;
}

}  // namespace

/// The decisions that graphs run. Graphs hold a place in it, not the decisions: these must end before the dispatcher.
struct Dispatcher::Impl::InGraphs {
  struct Place {
    ~Place() {
      std::list<std::shared_ptr<Prepared>> ending;  // after the lock
      if (const auto held = all.lock()) {
        const std::lock_guard lock(held->mutex);
        ending.splice(ending.end(), held->decisions, at);
      }
    }
    std::weak_ptr<InGraphs> all;
    std::list<std::shared_ptr<Prepared>>::iterator at;
    std::vector<Tensor> tensors;
  };

  Mutex mutex;
  std::list<std::shared_ptr<Prepared>> decisions;
};

Dispatcher::Impl::Impl(KernelRegistry& kernel_registry, std::uint64_t id)
    : registry(kernel_registry),
      threads(std::make_shared<ThreadRegistry>()),
      archive(std::make_shared<RecordArchive>()),
      scopes(id),
      plans(plans_per_device, [this](CachedPlan& cached) { let_go(cached); }),
      in_graphs(std::make_shared<InGraphs>()),
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
  const DecisionKey key{asked.problem, stamp, asked.precision};
  for (;;) {
    auto prepared = decisions.get_or_make(key, [&] { return make(asked, scope, stamp); });
    // Its kernel may have failed since, under another key or while this was made; what is made then is another.
    if (!quarantine.holds(prepared->record->decision.problem, prepared->plan->kernel)) return prepared;
    decisions.erase(key);
  }
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
    // What a lock lacks is the problem after the casts.
    const Problem& named = decision.level == Level::lock ? decision.problem : *asked.problem;
    fail(ErrorCode::not_supported, "dispatch", to_string(named) + ": " + decision.because + advice(decision));
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

PrecisionRequests Dispatcher::Impl::requests_for(const Asked& asked, const Scope& scope,
                                                 const PrecisionHook* current) const {
  PrecisionRequests requests = requests_of(asked.problem->op, scope.policy, scope.autocast);
  requests.explicit_dtype = asked.precision;
  requests.hook = current;
  return requests;
}

Dispatcher::Impl::Chosen Dispatcher::Impl::decide(const Asked& asked, const Scope& scope,
                                                  std::span<const PassedOver> passed_over, bool every_workspace) {
  const auto held_hook = precision_hook.get();
  std::shared_ptr<CachedPlan> plan;
  const auto decide_one = [&](const Problem& problem, bool is_cast) {
    if (is_cast) return decide_at(SharedProblem(problem), scope, {}, false).first;
    const bool as_asked = problem == *asked.problem;
    Chosen chosen = decide_at(as_asked ? asked.problem : SharedProblem(problem), scope, passed_over, every_workspace);
    plan = std::move(chosen.second);
    return std::move(chosen.first);
  };
  Precision precision = resolve_precision(*asked.problem, requests_for(asked, scope, held_hook.get()));
  Decision decision = decide_by_precision(*asked.problem, std::move(precision), std::ref(decide_one));
  if (decision.kernel.empty()) plan = nullptr;
  return {std::move(decision), std::move(plan)};
}

Dispatcher::Impl::Chosen Dispatcher::Impl::decide_at(const SharedProblem& problem, const Scope& scope,
                                                     std::span<const PassedOver> passed_over, bool every_workspace) {
  const auto selector = registry.get_or_create_selector(problem->device);
  const std::optional<LockUse> lock = lock_over(scope);
  if (!lock) return {refused_as_unlocked(*problem), nullptr};
  std::vector<Exclusion> for_now;
  std::vector<Exclusion> plans_refused;  // kernels that refused the plan that was measured, and make their own
  for (const PassedOver& passed : passed_over) {
    if (passed.problem == problem) for_now.push_back(passed.exclusion);
  }
  for (;;) {
    const auto select_by = [&](const Measurements* measurements) {
      std::vector<Exclusion> exclusions = quarantine.exclusions(problem, registry);
      exclusions.insert(exclusions.end(), for_now.begin(), for_now.end());
      return selector->select_checked(*problem, scope.policy, measurements, exclusions, every_workspace, &*lock);
    };
    Selection selection = select_by(scope.measurements.get());
    std::string why_untuned;
    const auto found = tuned_now(problem, scope, selection, why_untuned);
    // Tuning that found no choice may still have quarantined what would run.
    if (found != nullptr || !why_untuned.empty())
      selection = select_by(found != nullptr ? found.get() : scope.measurements.get());
    Decision& decision = selection.decision;
    if (!why_untuned.empty()) decision.because += "; not tuned: " + why_untuned;
    if (selection.kernel == nullptr) return {std::move(decision), nullptr};
    std::string_view token;
    try {
      const auto refused_plan = std::find_if(plans_refused.begin(), plans_refused.end(), [&](const Exclusion& kernel) {
        return kernel.kernel == selection.kernel->name();
      });
      if (refused_plan == plans_refused.end()) {
        token = token_of(problem, selection);
      } else {
        decision.because += "; not by the plan " + selection.token + ": " + refused_plan->reason;
      }
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
      // A lock's plan is the one to run; of a measured one the kernel's own choice takes the place.
      auto& plans = decision.level == Level::lock ? for_now : plans_refused;
      set_aside(problem, selection.kernel, token.empty() ? nullptr : &plans, for_now);
    }
  }
}

void Dispatcher::Impl::set_aside(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                                 std::vector<Exclusion>* plans_refused, std::vector<Exclusion>& for_now) {
  const auto failed = [](const std::string& text) { return "it could not be prepared: " + text; };
  try {
    throw;
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::device_lost:
        throw;
      case ErrorCode::not_supported:
        if (plans_refused != nullptr)
          return plans_refused->push_back({std::string(kernel->name()), std::string(error.message())});
        return quarantine.add_refused(problem, kernel, std::string(error.message()));
      case ErrorCode::out_of_memory:  // may be there again the next time
        return for_now.push_back({std::string(kernel->name()), failed(error.what())});
      default:
        check_not_lost(problem->device);
        quarantine.add_failed(problem, kernel, failed(error.what()));
    }
  } catch (...) {
    check_not_lost(problem->device);
    quarantine.add_failed(problem, kernel, failed(exception_text()));
  }
}

void Dispatcher::Impl::check_not_lost(Device device) const {
  if (device.type == DeviceType::cpu) return;
  DeviceDriver& driver = registry.devices().driver(device);
  if (!driver.asynchronous()) return;
  const Status earlier = driver.synchronize(device.index, current_stream(device));
  if (earlier.code() == ErrorCode::device_lost)
    fail(earlier.code(), "dispatch", to_string(device) + ": " + earlier.message() + device_is_lost);
  // A wrong value of an earlier call is told once.
  if (earlier.code() == ErrorCode::invalid_argument) fail(earlier.code(), "dispatch", earlier.message());
}

std::string_view Dispatcher::Impl::token_of(const SharedProblem& problem, const Selection& selection) const {
  if (selection.token.empty()) return {};
  DeviceManager& devices = registry.devices();
  const Device device = problem->device;
  const PrepareContext context{device, devices.profile(device), devices.driver(device)};
  const DeviceGuard guard(device);
  // A kernel with one plan makes that, and so does one that cannot tell; where its token differs, a lock still says so.
  try {
    return selection.kernel->variants(*problem, context).empty() ? std::string_view() : selection.token;
  } catch (...) {
    return {};
  }
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
  // An error belongs to the work and goes to the thread that waits for it. Refused, it is for another thread's capture.
  if (driver.wait(device.index).code() != ErrorCode::not_supported) return;
  const std::lock_guard lock(deferred_mutex);
  std::move(ending.begin(), ending.end(), std::back_inserter(deferred));
  ending.clear();
}

void Dispatcher::Impl::keep_with_graph(std::shared_ptr<Prepared> prepared, const Call& call, Stream stream) {
  auto place = std::make_shared<InGraphs::Place>();
  for (const auto& tensors : {call.inputs, call.outputs}) {
    for (const Tensor* tensor : tensors) place->tensors.push_back(*tensor);
  }
  DeviceDriver& driver = *prepared->plan->driver;
  const int index = prepared->plan->device.index;
  {
    const std::lock_guard lock(in_graphs->mutex);
    place->at = in_graphs->decisions.insert(in_graphs->decisions.end(), std::move(prepared));
  }
  place->all = in_graphs;
  driver.keep_with_graph(index, stream, std::move(place));
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

std::vector<TensorSpec> Dispatcher::infer_output_specs(const Call& call, const Scope& scope,
                                                       std::uint64_t stamp) const {
  const Problem problem = problem_of_inputs(call, scope.policy.limits());
  const Asked asked{SharedProblem(problem), call.precision};
  if (op_info(call.op).category != OpCategory::lookup) {
    if (impl_->capturing(problem.device))  // nothing is prepared in a capture
      return impl_->prepare(asked, scope, stamp)->record->decision.problem.outputs;
    // First as the call will be, with results in that precision: a lock has no entry for a cast that nobody makes.
    const auto held_hook = impl_->precision_hook.get();
    const Precision precision = resolve_precision(problem, impl_->requests_for(asked, scope, held_hook.get()));
    Problem direct = problem;
    if (precision.requested) direct.outputs = at_precision(problem, governing_dtype(precision, problem)).outputs;
    Decision decision = impl_->decide({SharedProblem(direct), call.precision}, scope).first;
    if (!decision.kernel.empty() && decision.problem.outputs == direct.outputs) return direct.outputs;
    decision = impl_->decide(asked, scope).first;
    return decision.kernel.empty() ? problem.outputs : decision.problem.outputs;
  }
  // What is looked up can be given in the requested dtype at once. A table of integers is never cast.
  const auto held_hook = impl_->precision_hook.get();
  const Precision precision = requested_precision(problem, impl_->requests_for(asked, scope, held_hook.get()));
  std::vector<TensorSpec> outputs = problem.outputs;
  for (TensorSpec& output : outputs) {
    if (is_floating(output.dtype)) output = make_spec(governing_dtype(precision, problem), output.shape);
  }
  return outputs;
}

std::vector<QuarantinedPlan> Dispatcher::quarantined() const { return impl_->quarantine.failed(registry_); }

void Dispatcher::quarantine(const Problem& problem, const std::shared_ptr<const Kernel>& kernel,
                            const std::string& reason) {
  const bool news = impl_->quarantine.add_failed(SharedProblem(problem), kernel, reason);
  impl_->threads->retire(registered_kernel(kernel).get());       // in this thread and scope too
  if (news && problem.op == OpId::cast) registry_.invalidate();  // decisions that list it must name another
}

void Dispatcher::clear_quarantine() {
  impl_->quarantine.clear();
  registry_.invalidate();
}

}  // namespace xpuruntime
