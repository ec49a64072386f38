#include <algorithm>
#include <utility>

#include "dispatch/dispatcher_impl.h"
#include "select/lock_needs.h"

namespace xpuruntime {
namespace {

constexpr std::size_t tuned_at_most = 4096;

}  // namespace

bool raced(const Measurements* measurements, const Problem& problem, const KernelRegistry& registry) {
  if (measurements == nullptr) return false;
  const KnownTimes known = measurements->known(problem);
  const std::optional<TunedChoice>& choice = known.choice;
  const bool compared = choice && (!choice->cut_short || known.times_us.size() > 1);
  if (!compared) return false;
  const KernelList kernels = registry.kernels(problem.op, problem.device.type);
  return std::none_of(kernels.begin(), kernels.end(), [&](const auto& kernel) {
    return kernel->name() == choice->kernel && kernel->version() != choice->kernel_version;
  });
}

std::shared_ptr<const Measurements> Dispatcher::Impl::frozen_measurements() {
  if (const auto held = source.get()) {
    if (auto measurements = (*held)()) return measurements;
  }
  log.collect_statistics();
  return archive->statistics.freeze();
}

std::shared_ptr<const Measurements> Dispatcher::Impl::tuned_now(const SharedProblem& problem, const Scope& scope,
                                                                const Selection& untuned, std::string& why_not) {
  const bool wanted = scope.policy.auto_strategy == Strategy::best_performance && untuned.kernel != nullptr &&
                      untuned.decision.level == Level::strategy;
  if (!wanted) return nullptr;
  const std::uint32_t generation = registry.generation();
  if (auto found = tuned.find(problem, generation)) return found;
  const auto held = tuner.get();
  if (held == nullptr || capturing(problem->device)) return nullptr;
  if (raced(scope.measurements.get(), *problem, registry)) return nullptr;
  auto answer = (*held)(*problem, untuned.decision.kernel);
  if (auto* found = std::get_if<std::shared_ptr<const Measurements>>(&answer)) {
    return *found == nullptr ? nullptr : tuned.add(problem, generation, std::move(*found));
  }
  why_not = std::get<std::string>(std::move(answer));
  return nullptr;
}

std::optional<LockUse> Dispatcher::Impl::lock_over(const Scope& scope) const {
  if (scope.lock) return scope.lock;
  const std::lock_guard guard(mutex);
  return refuses_unlocked() ? std::nullopt : std::optional(process_lock);
}

std::string Dispatcher::Impl::breach_of_lock(const Problem& problem, const KernelLock& lock, const Decision& decision) {
  const LockEntry* entry = lock.find_for(problem);
  if (entry == nullptr) return lock.why_missing(problem);
  if (entry->plan != decision.plan && !entry->plans_vary()) {
    // Of other alignments, and with `deterministic` or without, a kernel may plan otherwise: then one's entry says
    // nothing of the other.
    if (!is_exact(*entry, problem)) return lock.why_missing(problem);
    return "the lock holds the plan '" + entry->plan + "' of " + entry->kernel + ", which plans '" + decision.plan +
           "' here; plans may follow the number of threads: replay it with as many, or record the lock again";
  }
  const Environment here = environment_of(registry.devices().profile(problem.device));
  if (lock.match(*entry, here, decision.kernel_version).verdict == EntryVerdict::same) return {};
  const auto held = revalidator.get();
  if (held == nullptr) return {};
  const std::string flaw = (*held)(problem, entry->kernel, decision.plan);
  return flaw.empty()
             ? ""
             : "the lock says " + entry->kernel + ", which failed revalidation: " + flaw + "; record the lock again";
}

void Dispatcher::set_measured_source(MeasuredSource source) { impl_->source.set(std::move(source)); }

void Dispatcher::set_tuner(TuneHook tuner) {
  impl_->tuner.set(std::move(tuner));
  impl_->tuned.clear();
  registry_.invalidate();
}

void Dispatcher::set_revalidator(RevalidateHook revalidator) {
  impl_->revalidator.set(std::move(revalidator));
  registry_.invalidate();
}

// ---- what the tuner found in this process ----

std::shared_ptr<const Measurements> TunedHere::find(const SharedProblem& problem, std::uint32_t generation) {
  const std::lock_guard lock(mutex_);
  settle(generation);
  const auto found = found_.find(problem);
  return found == found_.end() ? nullptr : found->second;
}

std::shared_ptr<const Measurements> TunedHere::add(const SharedProblem& problem, std::uint32_t generation,
                                                   std::shared_ptr<const Measurements> found) {
  const std::lock_guard lock(mutex_);
  settle(generation);
  if (found_.size() >= tuned_at_most) found_.erase(found_.begin());  // what is forgotten stands in the store
  return found_[problem] = std::move(found);
}

void TunedHere::settle(std::uint32_t generation) {
  if (generation_ != generation) found_.clear();
  generation_ = generation;
}

void TunedHere::clear() {
  const std::lock_guard lock(mutex_);
  found_.clear();
}

}  // namespace xpuruntime
