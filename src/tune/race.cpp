#include "tune/race.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// How often a bound may be wrong. One judges after every round, so a drop needs
// a bound that is seldom wrong; the final word is spoken once, and five rounds
// must be enough for it.
constexpr double alpha_to_drop = 0.01;
constexpr double alpha_to_win = 0.07;
constexpr double alpha_of_noise = 0.05;

constexpr double most_calls = 1e6;  // of a batch: a clock that hardly moves asks for ever more

// A first call may have woken threads and touched fresh memory: only what took far longer is given up on it.
constexpr double hopeless_first = 20;

/// With few rounds: every time of one must be above every time of the other by this factor. With five, equals look so
/// once in 252 races.
double factor_of_ranges(std::size_t rounds, double min_gain) {
  constexpr double factors[] = {INFINITY, 10, 3, 1.5, 1.2};
  return rounds < std::size(factors) ? factors[rounds] : 1 / (1 - min_gain);
}

/// One or two short batches may both have been interrupted; hardly an interruption lasts longer than this.
double least_batch_us(std::size_t rounds) {
  constexpr double least[] = {50'000, 50'000, 25'000};
  return rounds < std::size(least) ? least[rounds] : 0;
}

// What others do on the machine can double a time. In few rounds it may hit the same one of two each time.
constexpr double factor_to_leave = 3;

// Of calls this long the first is as good as a batch.
constexpr double long_call_us = 50'000;

/// What the gain of a winner must be when the budget ended the race this early.
double factor_to_win(std::size_t rounds) {
  constexpr double factors[] = {3, 2, 2, 1.5};
  return factors[std::min<std::size_t>(rounds, 4) - 1];
}

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", 100 * share);
  return text;
}

}  // namespace

Race::Race(std::vector<double> first_us, std::optional<std::size_t> incumbent, const RaceOptions& options)
    : options_(options), incumbent_(incumbent) {
  if (first_us.empty() || (incumbent && *incumbent >= first_us.size())) {
    fail(ErrorCode::invalid_argument, "Race",
         "it needs candidates, and an incumbent that is one of them; pass "
         "those");
  }
  for (const double us : first_us) {
    const double first = std::isfinite(us) ? std::max(us, 0.0) : 0.0;
    runners_.push_back({first, first});
  }
  drop_hopeless_at_first();
}

bool Race::gives_up_on(double first_us, double best_us) {
  return first_us > least_batch_us(0) && first_us > hopeless_first * best_us;
}

void Race::drop_hopeless_at_first() {
  double best = INFINITY;
  for (const Runner& runner : runners_) {
    if (runner.first_us > 0) best = std::min(best, runner.first_us);
  }
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    if (gives_up_on(runners_[i].first_us, best)) drop(i, "its first call took far longer than the fastest's");
  }
}

void Race::drop(std::size_t candidate, std::string why) {
  runners_[candidate].in = false;
  runners_[candidate].dropped = std::move(why);
}

std::size_t Race::left() const {
  return static_cast<std::size_t>(
      std::count_if(runners_.begin(), runners_.end(), [](const Runner& runner) { return runner.in; }));
}

/// The next of this round that is still in; nothing at its end. Rounds start elsewhere and go there and back, so that
/// nobody always follows the same one.
std::optional<std::size_t> Race::next_runner() {
  for (; turn_ < runners_.size(); ++turn_) {
    const auto round = static_cast<std::size_t>(round_);
    const std::size_t place = (turn_ + round / 2) % runners_.size();
    const std::size_t candidate = round % 2 == 0 ? place : runners_.size() - 1 - place;
    if (runners_[candidate].in) return candidate;
  }
  return std::nullopt;
}

std::optional<Race::Heat> Race::next() {
  if (over_) return std::nullopt;
  if (pending_) return pending_;
  std::optional<std::size_t> candidate = next_runner();
  if (!candidate) {
    ++round_;
    turn_ = 0;
    judge();
    if (over_) return std::nullopt;
    candidate = next_runner();
  }
  const Runner& runner = runners_[*candidate];
  const bool too_long = round_ >= options_.sure_rounds &&
                        spent_us_ + runner.least_us * static_cast<double>(runner.calls) > options_.budget_us;
  if (stopped_ || too_long) {
    finish(left() > 1);
    return std::nullopt;
  }
  pending_ = Heat{*candidate, runner.calls};
  return pending_;
}

void Race::add(double batch_us) {
  if (!pending_) fail(ErrorCode::invalid_argument, "Race::add", "no batch was asked for; call next first");
  if (!std::isfinite(batch_us) || batch_us < 0) {
    fail(ErrorCode::invalid_argument, "Race::add", "a time must be finite and not negative; discard such a reading");
  }
  Runner& runner = runners_[pending_->candidate];
  const auto calls = static_cast<double>(pending_->calls);
  pending_.reset();
  spent_us_ += batch_us;
  const double call_us = batch_us / calls;
  runner.least_us = std::min(runner.least_us, call_us);
  // Too short for the clock, also where a slow first batch hid it: more calls, and the same candidate again.
  if (batch_us < options_.batch_us * 0.5 && calls < most_calls) {
    const double wanted = call_us > 0 ? 1.1 * options_.batch_us / call_us : INFINITY;
    const double more = std::ceil(std::clamp(wanted, 1.5 * calls, 100 * calls));
    runner.calls = static_cast<std::int64_t>(std::min(more, most_calls));
    if (runner.times.empty()) runner.first_us = call_us;
    return;
  }
  runner.times.push_back(call_us);
  runner.runs += static_cast<std::int64_t>(calls);
  ++turn_;
}

/// Logarithms of a's times over b's, round by round: a spell that slows both
/// down falls out.
std::vector<double> Race::ratios(std::size_t a, std::size_t b) const {
  std::vector<double> logs;
  const auto& times_a = runners_[a].times;
  const auto& times_b = runners_[b].times;
  for (std::size_t i = 0; i < std::min(times_a.size(), times_b.size()); ++i) {
    logs.push_back(std::log(std::max(times_a[i], 1e-9) / std::max(times_b[i], 1e-9)));
  }
  return logs;
}

std::optional<MedianBounds> Race::interval(std::size_t a, std::size_t b, double alpha) const {
  return median_bounds(ratios(a, b), alpha);
}

double Race::time_of(std::size_t candidate) const {
  const Runner& runner = runners_[candidate];
  return runner.times.empty() ? runner.first_us : median_of(runner.times);
}

double Race::middle_ratio(std::size_t a, std::size_t b) const {
  const std::vector<double> logs = ratios(a, b);
  if (!logs.empty()) return median_of(logs);
  return std::log(std::max(time_of(a), 1e-9) / std::max(time_of(b), 1e-9));
}

std::size_t Race::leader() const {
  std::optional<std::size_t> base;
  if (incumbent_in()) base = incumbent_;
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    if (!runners_[i].in) continue;
    if (!base) base = i;
    const double ratio = middle_ratio(i, *base);
    if (best && ratio >= least) continue;
    best = i;
    least = ratio;
  }
  return *best;
}

/// By the times as they are, while there are too few rounds for a bound.
bool Race::drop_by_ranges(std::size_t candidate, std::size_t leader) {
  const auto& slow = runners_[candidate].times;
  const auto& fast = runners_[leader].times;
  const std::size_t rounds = std::min(slow.size(), fast.size());
  double factor = factor_of_ranges(rounds, options_.min_gain);
  if (candidate == incumbent_ && rounds < 5) factor = std::max(factor, factor_to_leave);
  const double least = *std::min_element(slow.begin(), slow.end());
  if (least * static_cast<double>(runners_[candidate].calls) < least_batch_us(slow.size())) return false;
  const double most = *std::max_element(fast.begin(), fast.end());
  if (!(least > factor * most)) return false;
  drop(candidate, slow.size() == 1 ? "far slower in the first round"
                                   : "slower in all of " + std::to_string(slow.size()) + " rounds");
  return true;
}

void Race::drop_by_interval(std::size_t candidate, std::size_t leader) {
  const auto to_leader = interval(candidate, leader, alpha_to_drop);
  if (!to_leader) return;
  const std::string after = " after " + std::to_string(round_) + " rounds";
  const double enough = -std::log(1 - options_.min_gain);
  if (candidate == incumbent_) {
    if (to_leader->low > enough) drop(candidate, "surely slower" + after);
    return;
  }
  // Half of what matters is given away for being done.
  if (to_leader->low > -enough / 2) {
    drop(candidate, (to_leader->low > 0 ? "surely slower" : "no faster than the leader") + after);
    return;
  }
  if (!incumbent_in()) return;
  const auto to_incumbent = interval(candidate, *incumbent_, alpha_to_drop);
  if (to_incumbent && to_incumbent->low > -enough) drop(candidate, "gains too little" + after);
}

void Race::judge() {
  const std::size_t first = leader();
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    if (!runners_[i].in || i == first) continue;
    if (!drop_by_ranges(i, first)) drop_by_interval(i, first);
  }
  // A leader who cannot gain enough on the incumbent goes too.
  if (incumbent_in() && first != *incumbent_) {
    const auto gain = interval(first, *incumbent_, alpha_to_drop);
    if (gain && gain->low > std::log(1 - options_.min_gain)) {
      drop(first, "gains less than " + percent_text(options_.min_gain) + " on the incumbent");
    }
  }
  if (left() == 1 && round_ >= options_.least_rounds) return finish(false);
  if (round_ >= options_.most_rounds) finish(false);
}

void Race::finish(bool cut_short) {
  over_ = true;
  cut_short_ = cut_short;
}

/// The gain must be large enough and beyond the noise.
bool Race::beats_incumbent(std::size_t candidate) const {
  const std::vector<double> logs = ratios(candidate, *incumbent_);
  const double middle = middle_ratio(candidate, *incumbent_);
  if (!(middle < std::log(1 - options_.min_gain))) return false;
  if (const auto bounds = median_bounds(logs, alpha_to_win)) return bounds->high < 0;
  if (logs.empty()) return factor_to_win(2) * time_of(candidate) < time_of(*incumbent_) - one_time_us;
  // The shorter of this call and the first one: an interruption hits one of them.
  const double least_us = runners_[candidate].least_us;
  if (logs.size() == 1 && least_us > long_call_us) return factor_to_win(2) * least_us < runners_[*incumbent_].least_us;
  const double worst = *std::max_element(logs.begin(), logs.end());
  return worst < -std::log(factor_to_win(logs.size()));
}

Race::Result Race::result() const {
  Result result;
  result.cut_short = cut_short_;
  result.winner = result.fastest = leader();
  if (!incumbent_) return result;
  result.gain = 1 - std::exp(middle_ratio(result.fastest, *incumbent_));
  if (!incumbent_in() || result.fastest == *incumbent_) return result;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    if (!runners_[i].in || i == *incumbent_ || !beats_incumbent(i)) continue;
    if (!best || middle_ratio(i, *incumbent_) < middle_ratio(*best, *incumbent_)) best = i;
  }
  result.winner = best.value_or(*incumbent_);
  return result;
}

Race::Standing Race::standing(std::size_t candidate) const {
  const Runner& runner = runners_.at(candidate);
  Standing standing;
  standing.runs = runner.runs;
  standing.dropped = runner.dropped;
  if (runner.times.empty()) {
    if (runner.first_us > 0) standing.time_us = runner.first_us;
    standing.rough = true;
    standing.runs = runner.first_us > 0 ? 1 : 0;
    return standing;
  }
  standing.time_us = median_of(runner.times);
  if (const auto bounds = median_bounds(runner.times, alpha_of_noise)) {
    standing.noise_us = std::max(bounds->high - *standing.time_us, *standing.time_us - bounds->low);
  } else if (runner.times.size() > 1) {  // too few for a bound: all of them lie this near
    const auto [least, most] = std::minmax_element(runner.times.begin(), runner.times.end());
    standing.noise_us = std::max(*most - *standing.time_us, *standing.time_us - *least);
  }
  return standing;
}

}  // namespace xpuruntime
