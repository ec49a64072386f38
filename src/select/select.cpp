#include "xpuruntime/select/select.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/printable.h"
#include "registry/copying_kernel.h"
#include "select/first_choice.h"
#include "select/lock_needs.h"
#include "select/rule_index.h"
#include "select/rule_ranges.h"
#include "select/unavailable.h"

namespace xpuruntime {
namespace {

/// One kernel under consideration, with its row in the record.
struct Entry {
  std::shared_ptr<const Kernel> kernel;
  std::size_t row = 0;  // in decision.candidates
  bool usable = false;
  std::shared_ptr<const CopyingKernel> copying = {};  // the kernel, where it takes the problem with copies alone
};

/// Runs a kernel's or a rule's own code; what it throws becomes text.
template <class Function>
std::string text_of_throw(Function&& function) {
  try {
    function();
    return {};
  } catch (...) {
    return exception_text();
  }
}

class Selector {
 public:
  explicit Selector(const SelectionInputs& inputs)
      : in_(inputs),
        limits_(stricter(inputs.problem.limits, inputs.policy.limits())),
        asks_workspaces_((inputs.every_workspace && !inputs.described) || limits_.workspace_bytes.has_value() ||
                         inputs.policy.auto_strategy == Strategy::lowest_memory) {
    out_.decision.problem = inputs.problem;
    if (in_.measurements != nullptr) known_ = in_.measurements->known(in_.problem);
    if (limits_ != inputs.problem.limits) {
      limited_ = inputs.problem;
      limited_->limits = limits_;
    }
  }

  Selection run() {
    examine_all();
    do {
      again_ = false;
      preferred_note_.clear();
      forced_refusal_.clear();
      out_.token.clear();
      if (locked()) {
        by_lock();
        continue;
      }
      const bool chosen = by_force() || by_preference() || by_policy_rule() || by_user_rule() || by_strategy();
      if (!chosen) out_.decision.because = nothing_left();
    } while (again_);
    return std::move(out_);
  }

 private:
  Decision& decision() { return out_.decision; }
  /// As kernels and rules see it: under the limits that are in force.
  const Problem& problem() const { return limited_ ? *limited_ : in_.problem; }
  Candidate& row(const Entry& entry) { return out_.decision.candidates[entry.row]; }

  void examine_all() {
    decision().candidates.reserve(in_.kernels.size());
    entries_.reserve(in_.kernels.size());
    for (const auto& kernel : in_.kernels) {
      decision().candidates.emplace_back().kernel = kernel->name();
      Entry entry{kernel, decision().candidates.size() - 1};
      std::string refusal = refusal_of(entry);
      entry.usable = refusal.empty();
      if (!entry.usable) {
        row(entry).outcome = Outcome::refused;
        row(entry).reason = std::move(refusal);
      }
      row(entry).time_us = known_.time_us(kernel->name(), kernel->version());
      entries_.push_back(std::move(entry));
    }
  }

  // Cheapest first. The first check that turns a kernel down gives the reason that is shown; empty: it can run.
  std::string refusal_of(Entry& entry) {
    const Kernel& kernel = *entry.kernel;
    Candidate& candidate = row(entry);
    for (const Exclusion& exclusion : in_.exclusions) {
      if (exclusion.kernel != kernel.name()) continue;
      return exclusion.reason.empty() ? "it is excluded without a reason" : exclusion.reason;
    }
    if (const QuarantineEntry* stored = stored_quarantine(kernel))
      return "quarantined when it was tuned: " + stored->reason;
    if (limits_.deterministic && !kernel.deterministic()) {
      return "it may give other bits each time, and the policy asks for deterministic kernels";
    }
    Verdict verdict;
    const std::string thrown = text_of_throw([&] {
      verdict = kernel.supports(problem(), in_.profile);
      if (!verdict.supported && with_copies(entry, verdict.reason)) verdict = Verdict::yes();
      if (verdict.supported && asks_workspaces_) candidate.workspace_bytes = workspace_of(*entry.kernel);
    });
    if (!thrown.empty()) return "it threw while it was asked: " + thrown;
    if (!verdict.supported) return verdict.reason.empty() ? "it gave no reason" : verdict.reason;
    const auto& limit = limits_.workspace_bytes;
    if (limit && candidate.workspace_bytes && *candidate.workspace_bytes > *limit) {
      return "it needs " + std::to_string(*candidate.workspace_bytes) + " bytes of workspace" +
             (entry.copying ? ", copies of tensors included" : "") + ", the limit is " + std::to_string(*limit);
    }
    return {};
  }

  /// What the store says against it, whatever its plan.
  const QuarantineEntry* stored_quarantine(const Kernel& kernel) const {
    for (const QuarantineEntry& entry : known_.quarantine) {
      if (entry.kernel == kernel.name() && entry.kernel_version == kernel.version() && entry.plan.empty())
        return &entry;
    }
    return nullptr;
  }

  /// Whether it was only the layout or the alignment that the kernel refused. What it throws when it is asked about
  /// copies is no reason.
  bool with_copies(Entry& entry, std::string& refusal) {
    text_of_throw([&] {
      entry.copying = CopyingKernel::around(entry.kernel, problem(), in_.profile, in_.copy_kernels, refusal);
    });
    if (entry.copying == nullptr) return false;
    entry.kernel = entry.copying;
    row(entry).copied_bytes = entry.copying->copied_bytes();
    row(entry).reason = copies_text(entry);
    return true;
  }

  Entry* find(std::string_view name) {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.kernel->name() == name; });
    return found == entries_.end() ? nullptr : &*found;
  }

  /// Nothing where only the machine that a profile describes can tell. That one runs as many threads as it has cores,
  /// whatever this one is set to.
  std::optional<std::uint64_t> workspace_of(const Kernel& kernel) const {
    if (!in_.described) return kernel.workspace_bytes(problem(), in_.profile);
    Problem there = problem();
    if (!limits_.threads && in_.profile.compute_units > 0) there.limits.threads = in_.profile.compute_units;
    try {
      return kernel.workspace_bytes(there, in_.profile);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_supported) throw;
      return std::nullopt;
    }
  }

  bool ask_workspace(Entry& entry) {
    const std::string thrown = text_of_throw([&] { row(entry).workspace_bytes = workspace_of(*entry.kernel); });
    if (thrown.empty()) return true;
    row(entry).outcome = Outcome::refused;
    row(entry).reason = "it threw while it was asked: " + thrown;
    entry.usable = false;
    again_ = true;
    return false;
  }

  bool choose(Entry& entry, Level level, std::string because) {
    Candidate& chosen = row(entry);
    if (!in_.described && !chosen.workspace_bytes && !ask_workspace(entry))
      return true;  // and the choice starts again without it
    if (asks_workspaces_ && !chosen.workspace_bytes) because += "; its workspace is known only on the machine itself";
    if (entry.copying != nullptr) {
      because += "; " + copies_text(entry);
      add_copies(*entry.copying);
    }
    // Who names the kernel without a plan gets the one that is known to be its fastest.
    if (out_.token.empty() && level != Level::lock && known_.choice && known_.choice->kernel == chosen.kernel &&
        known_.choice->kernel_version == entry.kernel->version()) {
      out_.token = known_.choice->plan;
    }
    chosen.outcome = Outcome::chosen;
    chosen.reason = because;
    decision().kernel = chosen.kernel;
    decision().kernel_version = entry.kernel->version();
    decision().level = level;
    decision().because = std::move(because);
    decision().plan = out_.token;
    decision().workspace_bytes = chosen.workspace_bytes.value_or(0);
    out_.kernel = entry.kernel;
    return true;
  }

  std::string copies_text(const Entry& entry) const {
    return "on contiguous copies, " + std::to_string(entry.copying->copied_bytes()) + " bytes" +
           (copies_unused(entry) ? ", far more than the call uses" : "");
  }

  void add_copies(const CopyingKernel& copying) {
    for (const CopyingKernel::Step& step : copying.steps()) {
      decision().copies.push_back({step.is_output, step.index, step.problem.inputs[0], step.problem.outputs[0],
                                   std::string(step.kernel->name())});
    }
  }

  /// Why a kernel that somebody named cannot run; a kernel that is not a candidate at all gets a row for it.
  std::string refusal_of_named(const std::string& name) {
    for (const Candidate& candidate : decision().candidates) {
      if (candidate.kernel == name) return candidate.reason;
    }
    std::string reason = why_unavailable(in_.problem.op, name, in_.problem.device);
    decision().candidates.push_back({name, Outcome::refused, reason});
    return reason;
  }

  bool locked() const { return in_.lock != nullptr && in_.lock->lock != nullptr; }

  /// Fails closed: what the lock does not hold, or holds and cannot be had, is not chosen by anybody else.
  void by_lock() {
    const KernelLock& lock = *in_.lock->lock;
    decision().level = Level::lock;
    decision().because.clear();
    const LockEntry* locked = lock.find_for(in_.problem);
    if (locked == nullptr) {
      decision().because = lock.why_missing(in_.problem);
      return;
    }
    Entry* entry = find(locked->kernel);
    if (entry == nullptr) return cannot_run(*locked);
    const EnvironmentMatch match = lock.match(*locked, environment_of(in_.profile), entry->kernel->version());
    const bool unproven = match.verdict == EntryVerdict::revalidate && in_.lock->mode == LockMode::strict;
    if (match.verdict == EntryVerdict::refuse) {
      decision().because = "its entry in the lock was recorded on another device: " + match.reason +
                           "; record the lock here, or replay it where it was made";
      return;
    }
    if (unproven) {
      decision().because = "its entry in the lock was recorded in another environment: " + match.reason +
                           "; check it with xrt lock verify --revalidate --out (in Python verify_lock(lock, "
                           "'revalidate') and refreshed), or use the lock in the mode revalidate";
      return;
    }
    if (!entry->usable) return cannot_run(*locked);
    const std::string note = match.verdict == EntryVerdict::same ? "" : ", which was revalidated: " + match.reason;
    const std::string range = has_ranges(locked->problem) ? " for " + locked->problem : "";
    if (!locked->plans_vary()) out_.token = locked->plan;
    choose(*entry, Level::lock, "the lock says " + locked->kernel + range + note);
  }

  void cannot_run(const LockEntry& locked) {
    const std::string refusal = refusal_of_named(locked.kernel);
    const Entry* entry = find(locked.kernel);
    const bool in_process = refusal.starts_with("quarantined:");
    const bool stored = entry != nullptr && stored_quarantine(*entry->kernel) != nullptr;
    const bool excluded = std::any_of(in_.exclusions.begin(), in_.exclusions.end(),
                                      [&](const Exclusion& exclusion) { return exclusion.kernel == locked.kernel; });
    // It was the kernel's own answer, to a problem that the lock has otherwise.
    if (entry != nullptr && !stored && !excluded && !is_exact(locked, in_.problem)) {
      decision().because = in_.lock->lock->why_missing(in_.problem);
      return;
    }
    std::string remedy = "record the lock again, or replay it where it was made";
    if (entry == nullptr) remedy = "register it or load its plugin, or " + remedy;
    if (in_process) remedy = "once that is fixed, clear_quarantine lets it run again";
    if (stored) {  // which clear_quarantine leaves as it is
      remedy = "once that is fixed, " + std::string(in_process ? "call clear_quarantine, " : "") +
               "remove its entries from the store (xrt store prune --op " + std::string(to_string(in_.problem.op)) +
               " --kernel " + locked.kernel + "), and restart, or call refresh_measurements and set the policy again";
    }
    decision().because = "the lock says " + locked.kernel + ", which cannot run: " + refusal + "; " + remedy;
  }

  const KernelPreference* preference() const {
    const auto found = in_.policy.preferences.find(in_.problem.op);
    return found == in_.policy.preferences.end() ? nullptr : &found->second;
  }

  bool by_force() {
    const KernelPreference* preferred = preference();
    if (preferred == nullptr || !preferred->force || preferred->kernels.empty()) return false;
    const std::string& name = preferred->kernels.front();
    Entry* entry = find(name);
    if (entry != nullptr && entry->usable) return choose(*entry, Level::force, "the policy forces " + name);
    forced_refusal_ = "the policy forces " + name + ", which cannot run: " + refusal_of_named(name);
    return false;
  }

  bool by_preference() {
    const KernelPreference* preferred = preference();
    if (preferred == nullptr || preferred->force) return false;
    for (std::size_t i = 0; i < preferred->kernels.size(); ++i) {
      const std::string& name = preferred->kernels[i];
      Entry* entry = find(name);
      if (entry != nullptr && entry->usable) {
        std::string because = "the policy prefers " + name;
        if (i > 0) because += ", its choice number " + std::to_string(i + 1);
        return choose(*entry, Level::prefer, because + preferred_note_);
      }
      preferred_note_ += "; " + name + " was preferred, but " + refusal_of_named(name);
    }
    return false;
  }

  bool by_policy_rule() {
    if (!forced_refusal_.empty() || in_.policy.rules.empty()) return false;
    return in_.policy.rules.index().any_match(problem(), in_.profile, [&](std::size_t i, const std::string& thrown) {
      const PolicyRule& rule = in_.policy.rules[i];
      const std::string& title = rule.name.empty() ? rule.range : rule.name;
      const std::string label =
          "rule " + (title.empty() ? std::to_string(i + 1) : "\"" + shown(title) + "\"") + " of the policy";
      if (thrown.empty()) return by_first_of(rule, label, place_in_range(rule, problem()));
      preferred_note_ += "; " + label + " threw: " + thrown;
      return false;
    });
  }

  /// The first of a rule's kernels that can run.
  bool by_first_of(const PolicyRule& rule, const std::string& label, const std::string& place) {
    for (const std::string& name : rule.use) {
      Entry* entry = find(name);
      if (entry != nullptr && entry->usable) {
        if (&name == &rule.use.front()) out_.token = rule.plan;
        return choose(*entry, Level::rule, label + " matches" + place + preferred_note_);
      }
      preferred_note_ += "; " + label + " asks for " + name + ", but " + refusal_of_named(name);
    }
    return false;
  }

  bool by_user_rule() {
    if (!forced_refusal_.empty()) return false;
    for (const Rule& rule : in_.user_rules) {
      bool matches = false;
      const std::string thrown = text_of_throw([&] { matches = rule.condition(in_.problem, in_.profile); });
      if (!thrown.empty()) {
        preferred_note_ += "; " + rule.name + " threw: " + thrown;
        continue;
      }
      if (!matches) continue;
      Entry* entry = find(rule.kernel);
      if (entry != nullptr && entry->usable) {
        return choose(*entry, Level::rule, rule.name + " matches" + preferred_note_);
      }
      preferred_note_ += "; " + rule.name + " asks for " + rule.kernel + ", but " + refusal_of_named(rule.kernel);
    }
    return false;
  }

  bool by_strategy() {
    if (!forced_refusal_.empty()) return false;
    switch (in_.policy.auto_strategy.value_or(Strategy::first_supported)) {
      case Strategy::best_performance:
        return fastest_measured();
      case Strategy::lowest_memory:
        return least_memory();
      case Strategy::first_supported:
        break;
    }
    return choose_first("");
  }

  struct First {
    Entry* entry = nullptr;
    std::string because = {};
  };

  First first() {
    find_absent_rule();
    std::vector<Option> options;
    std::vector<Entry*> usable;
    for (Entry& entry : entries_) {
      if (!entry.usable) continue;
      usable.push_back(&entry);
      const Problem& inner = entry.copying ? entry.copying->inner() : in_.problem;
      options.push_back({entry.kernel.get(), &inner, row(entry).copied_bytes, copies_unused(entry)});
    }
    const FirstChoice choice = first_choice(options, in_.builtin_rules, in_.profile);
    return choice.option ? First{usable[*choice.option], choice.because} : First{};
  }

  /// Whether its copies are of tensors of which the call uses little, a row of a table.
  bool copies_unused(const Entry& entry) const {
    constexpr double bytes_per_used_element = 64;  // as long as `reference` takes for one
    constexpr double least_bytes = 1 << 16;        // a copy of fewer takes a few microseconds
    if (entry.copying == nullptr || in_.problem.direction == Direction::backward) return false;
    const auto inputs = op_info(in_.problem.op).inputs;
    const auto is_partly = [&](std::size_t index) { return index < inputs.size() && inputs[index].partly; };
    double unused = 0, used = 0;
    for (const CopyingKernel::Step& step : entry.copying->steps()) {
      const TensorSpec& copied = step.problem.inputs[0];
      if (step.is_output || !is_partly(step.index)) continue;
      unused += static_cast<double>(element_count(copied)) * static_cast<double>(size_of(copied.dtype));
    }
    for (const TensorSpec& output : in_.problem.outputs) used += static_cast<double>(element_count(output));
    for (std::size_t i = 0; i < in_.problem.inputs.size(); ++i) {
      if (!is_partly(i)) used += static_cast<double>(element_count(in_.problem.inputs[i]));
    }
    return unused > least_bytes && unused > bytes_per_used_element * used;
  }

  /// The rule that would have decided, were its kernel here. A program with a table of its own is not told of kernels
  /// that it left out.
  void find_absent_rule() {
    if (!in_.described && !in_.kernels.empty()) return;
    for (const BuiltinRule& rule : in_.builtin_rules) {
      if (rule.op != in_.problem.op || rule.device_type != in_.problem.device.type) continue;
      const Entry* entry = find(rule.kernel);
      if ((entry != nullptr && !entry->usable) || !rule.condition(in_.problem, in_.profile)) continue;
      if (entry == nullptr) absent_rule_ = &rule;
      return;
    }
  }

  /// The built-in rule that held, where its kernel is not in this build.
  std::string absent_note() {
    if (absent_rule_ == nullptr) return {};
    const std::string kernel(absent_rule_->kernel);
    return "; built-in rule: " + std::string(absent_rule_->because) + ": asks for " + kernel + ", but " +
           refusal_of_named(kernel);
  }

  bool choose_first(const std::string& note) {
    const First chosen = first();
    return chosen.entry != nullptr &&
           choose(*chosen.entry, Level::strategy, note + chosen.because + preferred_note_ + absent_note());
  }

  /// What a race found counts, also where another's time is less by no more than noise.
  bool by_race() {
    if (!known_.choice) return false;
    Entry* entry = find(known_.choice->kernel);
    if (entry != nullptr && entry->kernel->version() != known_.choice->kernel_version) {
      preferred_note_ += "; tuning chose another version of " + known_.choice->kernel;
      return false;
    }
    if (entry != nullptr && entry->usable) {
      return choose(*entry, Level::strategy, "tuned: " + known_.choice->because + absent_from_race() + preferred_note_);
    }
    preferred_note_ += "; tuning chose " + known_.choice->kernel + ", but " + refusal_of_named(known_.choice->kernel);
    return false;
  }

  /// Kernels of a user's that could run, but were another version or not there at all when the race was held.
  std::string absent_from_race() const {
    std::string text;
    for (const Entry& entry : entries_) {
      const bool measured = out_.decision.candidates[entry.row].time_us.has_value();
      if (entry.usable && !measured && !entry.kernel->version().empty()) {
        text += "; " + std::string(entry.kernel->name()) + " as it is registered now was not measured";
      }
    }
    return text;
  }

  // A time can only win over a kernel that has one too: the only one measured may be the slowest of all.
  bool fastest_measured() {
    if (by_race()) return true;
    Entry* best = nullptr;
    std::size_t usable = 0;
    std::size_t measured = 0;
    for (Entry& entry : entries_) {
      if (!entry.usable) continue;
      ++usable;
      if (!row(entry).time_us) continue;
      ++measured;
      if (best == nullptr || *row(entry).time_us < *row(*best).time_us) best = &entry;
    }
    if (best == nullptr) {
      const std::string stale = known_.stale.empty() ? "" : " here (" + known_.stale + ")";
      return choose_first("no kernel was measured on this problem" + stale + ": ");
    }
    const std::string of = std::to_string(measured) + " measured of " + std::to_string(usable) + " that can run";
    if (!row(*first().entry).time_us) return choose_first(of + ", but not this one: ");
    return choose(*best, Level::strategy, "the fastest, " + of + preferred_note_);
  }

  bool least_memory() {
    constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
    Entry* best = nullptr;
    const auto less = [&](const Entry& a, const Entry& b) {
      const Candidate& x = row(a);
      const Candidate& y = row(b);
      const std::uint64_t of_x = x.workspace_bytes.value_or(unknown), of_y = y.workspace_bytes.value_or(unknown);
      if (of_x != of_y) return of_x < of_y;
      return x.time_us && y.time_us && *x.time_us < *y.time_us;
    };
    for (Entry& entry : entries_) {
      if (entry.usable && (best == nullptr || less(entry, *best))) best = &entry;
    }
    if (best == nullptr) return false;
    const auto& bytes = row(*best).workspace_bytes;
    return choose(*best, Level::strategy,
                  (bytes ? "the least memory: " + std::to_string(*bytes) + " bytes of workspace" : "the only one") +
                      preferred_note_);
  }

  std::string nothing_left() {
    if (!forced_refusal_.empty()) {
      decision().level = Level::force;
      return forced_refusal_;
    }
    const std::string op(to_string(in_.problem.op));
    const std::string where = to_string(in_.problem.device);
    if (in_.kernels.empty())
      return "no backend has a kernel for " + op + " on " + where + preferred_note_ + absent_note();
    std::string text = "no kernel for " + op + " on " + where + " can run this";
    for (const Entry& entry : entries_) text += "; " + row(entry).kernel + ": " + row(entry).reason;
    return text + absent_note();
  }

  const SelectionInputs& in_;
  const Limits limits_;
  std::optional<Problem> limited_;  // only where the limits differ from the problem's own
  const bool asks_workspaces_;
  KnownTimes known_;
  bool again_ = false;  // a kernel turned out unusable when it was chosen
  Selection out_;
  std::vector<Entry> entries_;
  std::string forced_refusal_;
  std::string preferred_note_;                // preferred kernels that were unavailable
  const BuiltinRule* absent_rule_ = nullptr;  // the first that held and whose kernel is not here
};

}  // namespace

Selection select(const SelectionInputs& inputs) { return Selector(inputs).run(); }

}  // namespace xpuruntime
