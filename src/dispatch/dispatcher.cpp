#include "xpuruntime/dispatch/dispatcher.h"

#include <optional>
#include <utility>

#include "dispatch/aliasing.h"
#include "dispatch/dispatcher_impl.h"
#include "dispatch/problem_of.h"
#include "dispatch/thread_registry.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/dispatch/held_constants.h"

namespace xpuruntime {
namespace {

std::atomic<std::uint64_t> next_dispatcher_id{1};

}  // namespace

Dispatcher::Dispatcher(KernelRegistry& registry)
    : registry_(registry), id_(next_dispatcher_id.fetch_add(1)), impl_(std::make_unique<Impl>(registry, id_)) {
  set_policy({});
}

Dispatcher::~Dispatcher() { impl_->threads->clear(); }

// A hit reads nothing that these numbers announce, so they are not waited for; a miss has a fence.
XRT_ALWAYS_INLINE std::uint64_t Dispatcher::stamp(const ThreadState& state) const {
  const std::uint64_t base = base_.load(std::memory_order_relaxed);
  const std::uint32_t scope = state.scope_id != 0 ? state.scope_id : static_cast<std::uint32_t>(base);
  // No scope has the id 0: a call that is refused finds nothing.
  const std::uint32_t refused = static_cast<std::uint32_t>(base >> 32) & state.unlocked;
  return static_cast<std::uint64_t>(scope & ~refused) << 32 | registry_.generation(std::memory_order_relaxed);
}

/// Null where the base policy was replaced just now: there is a new stamp.
ScopePtr Dispatcher::scope_at(std::uint64_t stamp) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  const auto id = static_cast<std::uint32_t>(stamp >> 32);
  return id == 0 ? current_scope() : impl_->scopes.find(id);
}

TableEntry& Dispatcher::entry_for(const Call& call) {
  ThreadState& state = thread_state();
  const std::uint64_t now = stamp(state);
  if (signature::has_tensors(call)) {
    if (TableEntry* entry = state.find(call, now)) return *entry;
  }
  ++state.misses;
  if (state.depth == 1) state.table.release_evicted();  // no other call of this thread is running
  const ScopePtr scope = scope_at(now);
  if (scope == nullptr) return entry_for(call);
  const Asked asked{SharedProblem(problem_of(call, scope->policy.limits())), call.precision};
  if (now >> 32 == 0) {
    impl_->make(asked, *scope, now);  // says why it is refused, and is not kept where it no longer is
    return entry_for(call);
  }
  auto prepared = impl_->prepare(asked, *scope, now);
  return state.insert(call, now, std::move(prepared));
}

const Decision& Dispatcher::decide(const Call& call) {
  ThreadState& state = thread_state();
  const TableUse use(state);
  if (const TableEntry* entry = state.find_next(call, stamp(state))) [[likely]]
    return entry->record->decision;
  return decide_anew(call);
}

const Decision& Dispatcher::decide_anew(const Call& call) { return entry_for(call).record->decision; }

std::uint64_t Dispatcher::table_misses() const { return thread_state().misses; }

namespace {

Call without_outputs(const Call& call) {
  Call asked = call;
  asked.outputs = {};
  return asked;
}

}  // namespace

const std::vector<TensorSpec>* Dispatcher::known_output_specs(const Call& call) const {
  const Call asked = without_outputs(call);
  if (!signature::has_tensors(asked)) return nullptr;
  ThreadState& state = thread_state();
  const KnownOutputs* known = state.known_outputs.find(asked, stamp(state));
  return known == nullptr ? nullptr : &known->specs;
}

const std::vector<TensorSpec>& Dispatcher::output_specs(const Call& call) {
  if (const std::vector<TensorSpec>* known = known_output_specs(call)) return *known;
  const Call asked = without_outputs(call);
  // One stamp for the scope and for the entry: another thread may replace the policy at any time.
  const std::uint64_t now = stamp(thread_state());
  const ScopePtr scope = scope_at(now);
  if (scope == nullptr) return output_specs(call);
  // Before its place is looked for: what decides may ask for outputs itself.
  std::vector<TensorSpec> specs = infer_output_specs(asked, *scope, now);
  ThreadState& state = thread_state();
  state.known_outputs.release_evicted();
  KnownOutputs& known = state.known_outputs.insert(asked, now);
  known.specs = std::move(specs);
  return known.specs;
}

namespace {

Status run_contained(const Plan& plan, const RunArguments& arguments) {
  try {
    return plan.run(arguments);
  } catch (...) {
    return Status(ErrorCode::device_error, "the kernel threw: " + exception_text());
  }
}

}  // namespace

Status Dispatcher::launch(const TableEntry& entry, const Call& call) {
  RunArguments arguments{call.inputs, call.outputs};
  const Plan& chosen = call.held == nullptr ? *entry.plan : call.held->plan_for(entry.prepared->plan, call);
  if (entry.plain) [[likely]]
    return run_contained(chosen, arguments);

  const CachedPlan& plan = *entry.prepared->plan;
  std::optional<DeviceGuard> guard;
  if (!entry.sets_device) guard.emplace(plan.device);
  if (entry.asynchronous) {
    arguments.stream = current_stream(plan.device);
    plan.queued->store(true, std::memory_order_relaxed);
  }
  WorkspacePool::Lease lease;
  try {
    const std::uint64_t capture = entry.asynchronous ? plan.driver->capture_id(plan.device.index, arguments.stream) : 0;
    if (capture != 0) [[unlikely]]
      impl_->keep_with_graph(entry.prepared, call, arguments.stream);
    lease = plan.pool->acquire(entry.record->decision.workspace_bytes, arguments.stream, capture);
  } catch (const Error& error) {
    return Status(error.code(), error.what());
  }
  arguments.workspace = lease.data();
  return run_contained(chosen, arguments);
}

// Beside launch, so that a logged call is one run of instructions too.
Status Dispatcher::launch_logged(const TableEntry& entry, const Call& call, ThreadState& state, std::size_t capacity) {
  if ((capacity & calls_are_told) != 0) [[unlikely]]
    return launch_told(entry, call, state, capacity & ~calls_are_told);
  if (entry.asynchronous) return launch_logged_on_device(entry, call, state, capacity);
  const std::uint64_t start = read_ticks();
  Status status = launch(entry, call);
  const std::uint64_t elapsed = read_ticks() - start;
  if (status.ok()) entry.record->add_time(elapsed);
  const bool has_ring = state.ring != nullptr && state.ring->capacity() == capacity;
  LogRing& ring = has_ring ? *state.ring : impl_->log.make_ring(state, capacity);
  ring.push({entry.record, start, elapsed, !status.ok()});
  return status;
}

// For casts.cpp; a call without casts has these lines in its one run of instructions.
Status Dispatcher::run_plan(const TableEntry& entry, const Call& call, ThreadState& state) {
  const std::size_t logged = log_capacity_.load(std::memory_order_relaxed);
  return logged != 0 ? launch_logged(entry, call, state, logged) : launch(entry, call);
}

XRT_ALWAYS_INLINE Status Dispatcher::run(const TableEntry& entry, const Call& call, ThreadState& state) {
  if (entry.casts) [[unlikely]]
    return run_with_casts(entry, call, state);
  const std::size_t logged = log_capacity_.load(std::memory_order_relaxed);
  return logged != 0 ? launch_logged(entry, call, state, logged) : launch(entry, call);
}

void Dispatcher::dispatch(const Call& call) {
  ThreadState& state = thread_state();
  const TableUse use(state);
  TableEntry* next = state.find_next(call, stamp(state));
  TableEntry& entry = next != nullptr ? *next : entry_for(call);
  if (outputs_may_overlap(call)) [[unlikely]]
    check_overlaps(call);
  const Status status = run(entry, call, state);
  if (!status.ok()) [[unlikely]]
    recover(call, state, entry.prepared, status);
}

void Dispatcher::dispatch(const Call& call, CallSite& site) {
  ThreadState& state = thread_state();
  const TableUse use(state);
  TableEntry* entry = state.find_at(site, call, stamp(state));
  if (entry == nullptr) [[unlikely]] {
    entry = &entry_for(call);
    if (outputs_may_overlap(call)) check_overlaps(call);
    state.note(site, *entry);
  }
  const Status status = run(*entry, call, state);
  if (!status.ok()) [[unlikely]]
    recover(call, state, entry->prepared, status);
}

namespace {

/// Why no other kernel may be tried after this failure; empty where one may.
std::string why_no_fallback(const Decision& decision, const Call& call) {
  if (decision.level == Level::force) return "the policy allows no other kernel: change it or repair the kernel";
  if (decision.level == Level::lock) return "the lock allows no other kernel: record it again or repair the kernel";
  if (writes_over_inputs(call, decision.casts)) {
    return "no other kernel is tried because the output overwrites an input: call again with fresh inputs";
  }
  return {};
}

}  // namespace

// The plan that failed is set aside, and the next choice is tried until one runs or nothing is left. Memory may be
// there again the next time, so a plan that lacked it is passed over for this call only.
void Dispatcher::recover(const Call& call, ThreadState& state, const std::shared_ptr<Prepared>& failed, Status status) {
  const std::shared_ptr<Prepared> first = failed;
  const ScopePtr scope = current_scope();
  const std::uint64_t now = stamp(state);
  bool lasts = static_cast<std::uint32_t>(now >> 32) == scope->id;
  bool lacked_memory = true;  // every kernel that was launched
  std::vector<PassedOver> passed_over;
  TableEntry fallback;
  fallback.fill(first);
  // What the pool keeps only for speed may be what is missing: then once more, unless the inputs may be written over.
  WorkspacePool& pool = *fallback.prepared->plan->pool;
  if (status.code() == ErrorCode::out_of_memory && pool.stats().bytes_cached != 0 &&
      !writes_over_inputs(call, fallback.record->decision.casts)) {
    pool.trim();
    status = run(fallback, call, state);
  }
  while (!status.ok()) {
    const Decision& decision = fallback.record->decision;
    // The kernel is well: it found a value in the caller's tensors that cannot be right, before it wrote anything.
    if (status.code() == ErrorCode::invalid_argument) {
      fail(status.code(), "dispatch", std::string(to_string(call.op)) + ": " + status.message());
    }
    if (status.code() == ErrorCode::device_lost) {
      fail(status.code(), "dispatch",
           to_string(decision.problem) + " on " + decision.kernel + ": " + status.message() + device_is_lost);
    }
    const std::string what = decision.kernel + " failed on " + to_string(decision.problem) + ": " + status.message();
    // Nothing is chosen in a capture, and what fails there may run well outside of it.
    if (impl_->capturing(decision.problem.device)) fail(status.code(), "dispatch", what);
    // What a kernel's own calls may not do now, as under a lock, it may do later.
    const bool for_now = status.code() == ErrorCode::out_of_memory || status.code() == ErrorCode::not_supported;
    lacked_memory = lacked_memory && status.code() == ErrorCode::out_of_memory;
    if (for_now) {
      lasts = false;
    } else {
      impl_->check_not_lost(decision.problem.device);
      quarantine(decision.problem, fallback.prepared->plan->kernel, "its launch failed: " + status.message());
    }
    const std::string refusal = why_no_fallback(decision, call);
    if (!refusal.empty()) fail(status.code(), "dispatch", what + "; " + refusal);
    passed_over.push_back(
        {SharedProblem(decision.problem), {decision.kernel, "passed over in this call: " + status.message()}});
    try {
      fallback.fill(std::make_shared<Prepared>(impl_->make(first->asked, *scope, stamp(state), passed_over)));
    } catch (const Error& error) {
      if (!lacked_memory || error.code() != ErrorCode::not_supported) throw;
      fail(ErrorCode::out_of_memory, "dispatch", std::string(error.message()));
    }
    status = run(fallback, call, state);
  }
  // Else the next call would decide the same once more. The first choice is kept already.
  if (lasts && fallback.prepared != first && stamp(state) == now)
    impl_->decisions.put({first->asked.problem, now, first->asked.precision}, std::move(*fallback.prepared));
}

void Dispatcher::set_precision_hook(PrecisionHook hook) {
  impl_->precision_hook.set(std::move(hook));
  registry_.invalidate();
}

}  // namespace xpuruntime
