#include "tune/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "core/duration.h"
#include "tune/probe.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

// What the reference goes through in a tenth of a second or two. Beyond it, slices
// stand for the whole.
constexpr double most_reference_work = 1e7;
// Calls that take longer find their data and threads as they need them; shorter
// ones get some calls to wake up.
constexpr double needs_no_warming_us = 3000;
// A clock that is wrong this often is not asked again.
constexpr int most_discarded = 100;
// Of one kernel; more than a budget can race.
constexpr std::size_t most_variants = 64;
constexpr const char* not_timed = "not timed: the time budget was spent";
// So many calls take time by every clock that moves.
constexpr std::int64_t calls_that_take_time = 10'000;

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string wrong_numbers(const Check& check) {
  char text[96];
  std::snprintf(text, sizeof text, "%s: the error is %.3g, the tolerance %.3g", gave_wrong_numbers, check.max_rel_error,
                check.tolerance);
  return text;
}

}  // namespace

Tuning::Tuning(KernelRegistry& registry, const Problem& problem, std::string_view incumbent, const TuneOptions& options,
               const Stopwatch::Clock& clock, const TuneProgress& before)
    : registry_(registry),
      problem_(problem),
      options_(options),
      before_(before),
      watch_(clock),
      timer_(clock),
      seed_(options.seed) {
  result_.problem = problem;
  result_.incumbent = incumbent;
}

TuneResult Tuning::run(const std::vector<QuarantineEntry>& quarantined) {
  const std::string text = to_string(problem_);
  std::copy_if(quarantined.begin(), quarantined.end(), std::back_inserter(quarantined_),
               [&](const QuarantineEntry& entry) { return entry.problem == text; });
  list_candidates();
  if (usable() > 0) run_all();
  if (result_.cancelled) {
    result_.because = "it was cancelled";
  } else if (result_.chosen.empty() && cut_short_) {
    result_.cut_short = true;
    late_ = total_left_us() < 0;
    result_.cut_by = late_ ? "total_budget_s" : "problem_budget_s";
    result_.because = "what was tried failed, and " + budget_text() + " was spent before the others; give more";
  } else if (result_.chosen.empty()) {
    result_.because =
        "no kernel for " + std::string(to_string(problem_.op)) + " on " + to_string(problem_.device) + " can run this";
  }
  if (!result_.chosen.empty()) doubt_a_lone_reference();
  result_.discarded = timer_.discarded();
  result_.spent_s = watch_.elapsed_us() / 1e6;
  for (Contender& contender : contenders_) {
    if (!contender.same_as_another) result_.candidates.push_back(std::move(contender.row));
  }
  return std::move(result_);
}

void Tuning::list_candidates() {
  const DeviceProfile& profile = registry_.devices().profile(problem_.device);
  for (const auto& kernel : registry_.kernels(problem_.op, problem_.device.type)) {
    Contender contender;
    contender.kernel = kernel;
    contender.third_party = registry_.origin(*kernel) == KernelOrigin::third_party;
    contender.row.kernel = kernel->name();
    contender.row.kernel_version = kernel->version();
    if (!known_bad(contender))
      contender.refuse_unless_runs(problem_, profile, registry_.kernels(OpId::copy, problem_.device.type));
    contenders_.push_back(std::move(contender));
  }
}

/// Quarantines it where it was before.
bool Tuning::known_bad(Contender& contender) const {
  TunedCandidate& row = contender.row;
  const auto known = std::find_if(quarantined_.begin(), quarantined_.end(), [&](const QuarantineEntry& entry) {
    return entry.kernel == row.kernel && entry.kernel_version == row.kernel_version && entry.plan == row.variant;
  });
  if (known == quarantined_.end()) return false;
  contender.quarantine(known->reason);
  row.known_bad = true;
  contender.wrong_numbers = known->reason.starts_with(gave_wrong_numbers);
  return true;
}

/// The plans that a kernel can make beside its own choice take part like kernels, behind it.
void Tuning::add_variants(const Track& track) {
  std::vector<Contender> all;
  for (Contender& own : contenders_) {
    std::vector<std::string> tokens;
    if (own.usable()) tokens = track.variants(own);
    tokens.resize(std::min(tokens.size(), most_variants));
    Contender like_it{.kernel = own.kernel, .third_party = own.third_party, .row = own.row};
    all.push_back(std::move(own));
    for (const std::string& token : tokens) {
      Contender variant{.kernel = like_it.kernel, .third_party = like_it.third_party, .row = like_it.row};
      variant.row.variant = variant.row.plan = token;
      known_bad(variant);
      all.push_back(std::move(variant));
    }
  }
  contenders_ = std::move(all);
}

std::size_t Tuning::usable() const {
  return static_cast<std::size_t>(std::count_if(contenders_.begin(), contenders_.end(),
                                                [](const Contender& contender) { return contender.usable(); }));
}

const Contender* Tuning::incumbent() const {
  const auto found = std::find_if(contenders_.begin(), contenders_.end(), [&](const Contender& contender) {
    return contender.row.kernel == result_.incumbent;
  });
  return found == contenders_.end() ? nullptr : &*found;
}

bool Tuning::keep_going(std::size_t left) {
  if (!options_.progress) return true;
  TuneProgress now = before_;
  now.problem = to_string(problem_);
  now.candidates_left = left;
  now.spent_s += watch_.elapsed_us() / 1e6;
  now.remaining_s += std::max(0.0, options_.problem_budget_s - spent_us_ / 1e6);
  if (!options_.progress(now)) result_.cancelled = true;
  return !result_.cancelled;
}

void Tuning::run_all() {
  const bool whole = reference_work(problem_) <= most_reference_work;
  check_memory(registry_.devices(), problem_, whole);
  const DeviceGuard guard(problem_.device);
  const Operands operands = random_operands(registry_.devices(), problem_, seed_);
  if (!keep_going(usable())) return;
  reference_.emplace(registry_, problem_, operands, most_reference_work);
  if (!whole) pass_over_the_reference();
  watch_inputs(operands);
  const Track track(registry_, problem_, operands);
  add_variants(track);
  admit_all(operands, track);
  if (!result_.cancelled) run_slow_ones_again(operands, track);
  // A kernel that fails in the race leaves it, and the others start again.
  while (!result_.cancelled && usable() > 0 && !race(operands, track)) {
  }
  for (Contender& contender : contenders_) {
    if (result_.cancelled && contender.usable()) contender.row.reason = "the tuning was cancelled";
  }
}

/// That every fast kernel of ours is wrong is less likely than that the check is: such a choice holds in this process,
/// where it is the safe one, but not for good.
void Tuning::doubt_a_lone_reference() {
  std::string wrong;
  for (const Contender& contender : contenders_) {
    if (contender.row.kernel == "reference") continue;
    if (contender.usable() || contender.row.outcome == TuneOutcome::won) return;
    if (!contender.third_party && contender.wrong_numbers) wrong += (wrong.empty() ? "" : ", ") + contender.row.kernel;
  }
  if (wrong.empty()) return;
  result_.not_stored = "no kernel but the reference passed the check (wrong numbers: " + wrong +
                       "), which puts the check itself in doubt; report the problem's text and this message";
}

/// Where float64 takes too long, the same loops in another dtype do too.
void Tuning::pass_over_the_reference() {
  for (Contender& contender : contenders_) {
    if (contender.row.kernel != "reference" || !contender.usable() || usable() < 2) continue;
    contender.refuse("not tried: one call would take too long, and others can run it");
  }
}

/// Of the total budget, before the winner must be checked on other inputs: that takes about as long as to make the
/// first ones, and three checks.
double Tuning::total_left_us() {
  if (!options_.total_budget_s) return INFINITY;
  return *options_.total_budget_s * 1e6 - watch_.elapsed_us() - made_us_ - 3 * check_us_;
}

void Tuning::admit_all(const Operands& operands, const Track& track) {
  made_us_ = watch_.elapsed_us();
  // Our own first: they are what the others' numbers are compared with where the reference says too little. The
  // incumbent before all: a budget that ends here must leave something to choose.
  std::vector<Contender*> order;
  for (Contender& contender : contenders_) {
    if (contender.usable()) order.push_back(&contender);
  }
  const auto rank = [&](const Contender* contender) { return 2 * contender->third_party + (contender != incumbent()); };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return rank(a) < rank(b); });
  // Two are compared whatever the problem's budget, unless one call took so long that it says enough. Where the total
  // one is spent, which counts the tensors and checks too, one must do.
  std::size_t admitted = 0;
  const auto enough = [&] {
    if (admitted > 0 && total_left_us() < 0) return true;
    const bool compared = admitted > 1 || (admitted == 1 && spent_us_ > Race::one_time_us);
    return compared && spent_us_ > options_.problem_budget_s * 1e6;
  };
  for (Contender* contender : order) {
    if (!keep_going(usable())) return;
    if (enough()) {
      contender->refuse("not tried: the time budget was spent");
      cut_short_ = true;
      continue;
    }
    admit(*contender, operands, track);
    admitted += contender->usable();
  }
}

/// Whether the first call took so long that what it did once cannot matter. Drivers of devices may compile for seconds.
bool Tuning::is_long(const Contender& contender, const Track& track) {
  constexpr double most_compiling = 10;
  return contender.first_us > Race::one_time_us * (track.asynchronous() ? most_compiling : 1);
}

/// A first call may load a library, compile and start threads: one that took far longer than another's gets a second
/// before the race gives up on it, whatever the budget, unless the call itself must have taken most of that time.
void Tuning::run_slow_ones_again(const Operands& operands, const Track& track) {
  double best = INFINITY;
  for (const Contender& contender : contenders_) {
    if (contender.usable() && contender.first_us > 0) best = std::min(best, contender.first_us);
  }
  for (Contender& contender : contenders_) {
    if (!contender.usable() || !Race::gives_up_on(contender.first_us, best)) continue;
    const double left_us = std::min(options_.problem_budget_s * 1e6 - spent_us_, total_left_us());
    const bool over = contender.first_us > left_us;
    if (over && is_long(contender, track)) {
      cut_short_ = true;
      continue;
    }
    if (!keep_going(usable())) return;
    judge_run(contender, run_again(contender, track), operands);
  }
}

/// A second call says what the first took beyond its work.
Status Tuning::run_again(Contender& contender, const Track& track) {
  Status status;
  const auto took = timer_.time([&] { return track.run(contender, 1); }, status);
  if (status.ok() && took) {
    spent_us_ += *took;
    contender.first_us = std::min(contender.first_us, *took);
    contender.ran_again = true;
  }
  return status;
}

/// One call that writes over NaN: outputs and temporary memory. Making them is not in its time.
Status Tuning::run_to_check(const Contender& contender, const Operands& operands, const Track& track, double* took_us) {
  blank_outputs(registry_.devices(), operands);
  WorkspacePool::Lease workspace;
  Status status = track.blank_workspace(contender, workspace);
  if (!status.ok()) return status;
  const auto run = [&] { return track.run_in(contender, workspace); };
  if (took_us == nullptr) return run();
  *took_us = timer_.time(run, status).value_or(0);
  return status;
}

// ---- kernels that write to their inputs: everybody who runs after them would seem wrong ----

void Tuning::watch_inputs(const Operands& operands) {
  const bool others = std::any_of(contenders_.begin(), contenders_.end(), [](const Contender& contender) {
    return contender.usable() && contender.third_party;
  });
  if (others && problem_.device.type == DeviceType::cpu) inputs_hash_ = hash_of_inputs(operands);
}

/// True where somebody wrote to the inputs; they are then as before again.
bool Tuning::restored_inputs(const Operands& operands) {
  if (!inputs_hash_ || hash_of_inputs(operands) == *inputs_hash_) return false;
  refill_inputs(registry_.devices(), problem_, seed_, operands);
  return true;
}

/// After runs of this one alone.
void Tuning::judge_run(Contender& contender, const Status& status, const Operands& operands) {
  if (contender.third_party && restored_inputs(operands)) return contender.quarantine(wrote_to_its_inputs);
  if (!status.ok()) contender.fail_with(status);
}

/// After runs of many: nobody knows which of the others' it was, so none is quarantined. False where it was none.
bool Tuning::refuse_input_writers(const std::vector<std::size_t>& entered, const Operands& operands) {
  if (!restored_inputs(operands)) return false;
  for (const std::size_t i : entered) {
    if (contenders_[i].third_party) contenders_[i].refuse("an input was overwritten while it raced");
  }
  return true;
}

/// Its first run, and whether the numbers are right.
void Tuning::admit(Contender& contender, const Operands& operands, const Track& track) {
  contender.same_as_another = std::any_of(contenders_.begin(), contenders_.end(), [&](const Contender& other) {
    return other.kernel == contender.kernel && other.plan != nullptr && other.row.plan == contender.row.variant;
  });
  if (contender.same_as_another) return contender.refuse("its kernel chooses this plan itself");
  // A forked process cannot use a GPU's driver: there the first run is in this
  // process.
  if (contender.third_party && options_.isolate && problem_.device.type == DeviceType::cpu) {
    probe(contender, operands, track);
    if (!contender.usable() || result_.cancelled) return;
  }
  const double before_us = watch_.elapsed_us();
  Status status = track.prepare(contender);
  if (status.ok()) status = run_to_check(contender, operands, track, &contender.first_us);
  spent_us_ += contender.first_us;
  judge_run(contender, status, operands);
  if (contender.usable()) check(contender, operands.outputs());
  check_us_ = std::max(check_us_, watch_.elapsed_us() - before_us - contender.first_us);
}

void Tuning::probe(Contender& contender, const Operands& operands, const Track& track) {
  const std::size_t left = usable();
  const ProbeSettings settings{contender.row.variant, options_.probe_timeout_s, inputs_hash_,
                               [&, left] { return keep_going(left); }};
  ProbeResult probed;
  WorkspacePool::Lease workspace;
  if (const Status status = track.blank_workspace(contender, workspace); !status.ok()) {
    return contender.fail_with(status);
  }
  try {
    probed = probe_in_child(*contender.kernel, problem_, track.context(), operands, workspace.data(), settings);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory && error.code() != ErrorCode::device_error) throw;
    return contender.refuse(std::string("it could not be tried in a process of its own: ") + error.what());
  }
  if (probed.cancelled) return;
  if (probed.killed) return contender.refuse("it was killed, perhaps for lack of memory");
  if (!probed.status.ok()) return contender.fail_with(probed.status);
  if (!probed.failure.empty()) return contender.quarantine(probed.failure);
  check(contender, probed.outputs);
}

void Tuning::check(Contender& contender, const std::vector<Tensor>& outputs) {
  const Check checked = reference_->compare_with(outputs, {contender.row.kernel});
  if (checked.skipped.empty()) {
    // The error that is shown is that on the first inputs, which all kernels had.
    if (!contender.row.error || !checked.within) {
      contender.row.error = checked.max_rel_error;
      contender.row.tolerance = checked.tolerance;
    }
    contender.wrong_numbers = !checked.within;
    if (!checked.within) return contender.quarantine(wrong_numbers(checked));
  }
  if (!checked.skipped.empty() || reference_->share() < 1) check_with_yardstick(contender, outputs);
}

/// Nobody knows which of two is right where they differ beyond the reference's
/// slices: the first of the table is believed, and the other is not quarantined for
/// it.
void Tuning::check_with_yardstick(Contender& contender, const std::vector<Tensor>& outputs) {
  std::vector<Tensor> results;
  for (const Tensor& output : outputs) results.push_back(registry_.devices().copy_to(output, Device{}));
  if (!yardstick_) {
    yardstick_ = Yardstick{contender.row.kernel, std::move(results)};
    return;
  }
  const std::string both = contender.row.kernel + " and " + yardstick_->kernel;
  const Check agreement = reference_->compare_both(results, yardstick_->outputs, {both});
  if (!contender.row.error) {
    contender.row.error = agreement.max_rel_error;
    contender.row.tolerance = agreement.tolerance;
  }
  if (agreement.within) return;
  contender.refuse("its numbers differ from those of " + yardstick_->kernel +
                   ", and the reference cannot tell who is right");
}

/// Those that race. Where a round of all does not fit in the budget, the incumbent and the fastest other have one all
/// the same: a first call may load a library, so it is no time.
std::vector<std::size_t> Tuning::entrants(RaceOptions& rules) {
  std::vector<std::size_t> all;
  double round_us = 0;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (!contenders_[i].usable()) continue;
    all.push_back(i);
    round_us += contenders_[i].first_us;
  }
  if (round_us <= rules.budget_us) return all;
  std::vector<std::size_t> two = all;
  const auto before = [&](std::size_t a, std::size_t b) {
    const bool leads = &contenders_[a] == incumbent(), follows = &contenders_[b] == incumbent();
    return leads != follows ? leads : contenders_[a].first_us < contenders_[b].first_us;
  };
  std::stable_sort(two.begin(), two.end(), before);
  two.resize(std::min<std::size_t>(two.size(), 2));
  const auto says_enough = [&](std::size_t i) { return contenders_[i].first_us > Race::one_time_us; };
  if (std::any_of(two.begin(), two.end(), says_enough)) return all;
  for (const std::size_t i : all) contenders_[i].row.reason = not_timed;
  cut_short_ = cut_short_ || two.size() < all.size();
  rules.sure_rounds = total_left_us() < 0 ? 0 : 1;
  std::sort(two.begin(), two.end());
  return two;
}

/// False where somebody had to leave and the others must start again.
bool Tuning::race(const Operands& operands, const Track& track) {
  RaceOptions rules;
  rules.min_gain = options_.min_gain;
  const double own_us = options_.problem_budget_s * 1e6 - spent_us_, total_us = total_left_us();
  late_ = total_us < own_us;
  rules.budget_us = std::max(0.0, std::min(own_us, total_us));
  const std::vector<std::size_t> entered = entrants(rules);
  std::vector<double> first_us;
  std::optional<std::size_t> champion;
  for (const std::size_t i : entered) {
    if (&contenders_[i] == incumbent()) champion = first_us.size();
    first_us.push_back(contenders_[i].first_us);
  }
  Race race(std::move(first_us), champion, rules);
  const bool ran = run_heats(race, entered, operands, track);
  spent_us_ += race.spent_us();
  raced_ = raced_ || race.spent_us() > 0;  // a race that is run again may have no time left
  result_.measuring_s = spent_us_ / 1e6;
  if (result_.cancelled) return true;
  return ran && finish(race, entered, operands, track);
}

bool Tuning::run_heats(Race& race, const std::vector<std::size_t>& entered, const Operands& operands,
                       const Track& track) {
  while (const auto heat = race.next()) {
    if (!keep_going(race.left())) return true;
    Contender& contender = contenders_[entered[heat->candidate]];
    Status status;
    if (problem_.device.type == DeviceType::cpu && entered.size() > 1) let_threads_sleep();
    const double estimate = race.standing(heat->candidate).time_us.value_or(0);
    if (estimate < needs_no_warming_us) {
      const std::int64_t calls = track.times_cold() ? 1 : 1 + heat->calls / 8;
      const auto warming = timer_.time([&] { return track.run(contender, calls); }, status);
      race.spend(warming.value_or(0));
    }
    std::optional<double> took;
    if (status.ok() && !timer_.stands_still()) took = time_batch(contender, heat->calls, track, race, status);
    if (!status.ok()) {
      // It may have failed for what another had written.
      if (!refuse_input_writers(entered, operands)) contender.fail_with(status);
      return false;
    }
    if (took) {
      race.add(*took);
    } else {
      race.discard();
    }
    clock_stood_still_ = timer_.stands_still() || (took == 0.0 && heat->calls >= calls_that_take_time);
    if (clock_stood_still_ || timer_.discarded() > most_discarded) race.stop();
  }
  return true;
}

/// By the device, on cold operands, where it can tell: a few calls stand for all. Else by the host.
std::optional<double> Tuning::time_batch(const Contender& contender, std::int64_t calls, const Track& track, Race& race,
                                         Status& status) {
  if (!track.times_cold()) return timer_.time([&] { return track.run(contender, calls); }, status);
  double device_us = 0;
  const auto host_us = timer_.time([&] { return track.run_cold(contender, calls, device_us); }, status);
  const double ran = static_cast<double>(std::min(calls, Track::most_cold_calls));
  const double took = device_us / ran * static_cast<double>(calls);
  race.spend(std::max(0.0, host_us.value_or(0) - took));
  return took;
}

/// A first call alone is no time, unless it took so long that what it did once cannot matter. A short one, and that of
/// the winner, gets a second where the budget left it without a batch.
bool Tuning::has_rough_time(Contender& contender, bool won, const Track& track) {
  constexpr double short_us = 50'000;
  if (contender.first_us <= 0 || clock_stood_still_) return false;
  if (contender.ran_again || is_long(contender, track)) return true;
  return (won || contender.first_us <= short_us) && run_again(contender, track).ok() && contender.ran_again;
}

/// The next seed's numbers in the place of those that are there: all checks from now on are on them.
void Tuning::draw_other_inputs(const Operands& operands) {
  refill_inputs(registry_.devices(), problem_, ++seed_, operands);
  if (inputs_hash_) inputs_hash_ = hash_of_inputs(operands);
  reference_.emplace(registry_, problem_, operands, most_reference_work);
}

/// What the fastest other kernel of ours makes of the inputs, where the reference says too little. Without one, the
/// winner's two results are compared with each other.
void Tuning::renew_yardstick(const Contender& winner, const Operands& operands, const Track& track) {
  yardstick_.reset();
  if (reference_->skipped().empty() && reference_->share() >= 1) return;
  Contender* judge = nullptr;
  for (Contender& contender : contenders_) {
    if (!contender.usable() || contender.third_party || &contender == &winner) continue;
    if (judge == nullptr || contender.first_us < judge->first_us) judge = &contender;
  }
  if (judge == nullptr) return;
  if (run_to_check(*judge, operands, track, nullptr).ok()) check(*judge, operands.outputs());
}

/// The winner's numbers must be right after all those calls, on inputs that it has not seen: one that keeps a result or
/// packed weights gives those of the inputs it raced on. Twice, for one that is wrong every other time.
bool Tuning::still_right(Contender& winner, const Operands& operands, const Track& track) {
  draw_other_inputs(operands);
  renew_yardstick(winner, operands, track);
  for (int call = 0; call < 2 && winner.usable(); ++call) {
    judge_run(winner, run_to_check(winner, operands, track, nullptr), operands);
    if (winner.usable()) check(winner, operands.outputs());
  }
  return winner.usable();
}

bool Tuning::finish(const Race& race, const std::vector<std::size_t>& entered, const Operands& operands,
                    const Track& track) {
  if (refuse_input_writers(entered, operands)) return false;
  const Race::Result result = race.result();
  Contender& winner = contenders_[entered[result.winner]];
  if (raced_ && !still_right(winner, operands, track)) return false;
  for (std::size_t i = 0; i < entered.size(); ++i) {
    Contender& contender = contenders_[entered[i]];
    if (!contender.usable()) continue;  // found wrong when it was the winner's yardstick
    const Race::Standing standing = race.standing(i);
    contender.row.reason = standing.dropped;
    if (standing.rough && !has_rough_time(contender, &contender == &winner, track)) {
      if (contender.row.reason.empty() && result.cut_short) contender.row.reason = not_timed;
      continue;
    }
    contender.row.time_us = standing.rough ? contender.first_us : standing.time_us;
    contender.row.noise_us = standing.noise_us;
    contender.row.runs = standing.runs;
  }
  winner.row.outcome = TuneOutcome::won;
  winner.row.reason.clear();
  result_.chosen = winner.row.kernel;
  result_.plan = winner.row.plan;
  const Contender* const before = incumbent();
  if (before != nullptr && before->row.time_us && winner.row.time_us && *winner.row.time_us > 0)
    result_.gain = *before->row.time_us / *winner.row.time_us;
  result_.cut_short = result.cut_short || cut_short_;
  if (result_.cut_short) result_.cut_by = late_ ? "total_budget_s" : "problem_budget_s";
  result_.because = why(result, entered);
  return true;
}

std::string Tuning::budget_text() const {
  return late_ ? "the total time budget" : "the time budget of " + duration_text(options_.problem_budget_s);
}

std::string Tuning::why(const Race::Result& result, const std::vector<std::size_t>& entered) const {
  const Contender& winner = contenders_[entered[result.winner]];
  const Contender& fastest = contenders_[entered[result.fastest]];
  const std::string cut = clock_stood_still_  ? "; the clock stood still, and nothing could be timed"
                          : result_.cut_short ? "; " + budget_text() + " ended the race before it was sure"
                                              : "";
  const double own_us = winner.row.time_us.value_or(0);
  const auto beats = [&](std::size_t i) { return contenders_[i].row.time_us.value_or(INFINITY) < own_us; };
  // The race goes by rounds: where noise has turned the times beside this, only that can be said.
  const bool disturbed = std::any_of(entered.begin(), entered.end(), beats);
  const std::string of =
      entered.size() == 1 ? "the only one measured"
      : disturbed ? "round by round, none of " + std::to_string(entered.size()) + " measured is faster beyond the noise"
                  : "the fastest of " + std::to_string(entered.size()) + " measured";
  const Contender* before = incumbent();
  const bool ran = before != nullptr && before->row.time_us.has_value();
  if (&winner == before && !ran) return "it stays: nothing was timed" + cut;
  if (!ran) {
    const bool told = before != nullptr && !before->row.reason.empty();
    return of + (told ? "; " + before->row.kernel + " cannot: " + before->row.reason : "") + cut;
  }
  if (&winner != before) {
    const std::string than = before->row.kernel + (winner.kernel == before->kernel ? "'s own choice of a plan" : "") +
                             ", which would be chosen without measuring" + cut;
    if (result_.gain > 1) return "it takes " + percent_text(1 - 1 / result_.gain) + " less time than " + than;
    return "round by round it takes " + percent_text(result.gain) + " less time than " + than +
           "; something disturbed the times themselves";
  }
  if (&fastest == &winner) return of + cut;
  const bool small = result.gain <= options_.min_gain;
  return "it stays: round by round " + fastest.row.kernel +
         (fastest.row.variant.empty() ? "" : " " + fastest.row.variant) + " takes " + percent_text(result.gain) +
         " less time, " + (small ? "too little to change" : "which is not beyond the noise") + cut;
}

}  // namespace xpuruntime
