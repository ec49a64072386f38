#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/order_statistics.h"

namespace xpuruntime {

struct RaceOptions {
  double min_gain = 0.02;  // less is no reason to leave the incumbent
  double batch_us = 500;   // a batch of calls lasts this long or a little more
  double budget_us = 5e5;  // at most, for all batches together
  int most_rounds = 60;    // then it is too close to matter
  int least_rounds = 5;    // the winner's time rests on these, budget permitting
  int sure_rounds = 0;     // are held whatever the budget
};

/// Finds the fastest of some candidates from as few timed batches of calls as
/// it can. There is no clock in here: the caller measures what next() asks for
/// and tells the time with add(). Candidates go round by round, so that a slow
/// spell hits all alike, and are compared within rounds; what is hopeless drops
/// out.
class Race {
 public:
  /// A batch to be timed.
  struct Heat {
    std::size_t candidate = 0;
    std::int64_t calls = 1;
  };

  /// How one candidate did.
  struct Standing {
    std::optional<double> time_us = {};   // per call, the median of its batches; without any, its rough time
    bool rough = false;                   // no batch of it was timed
    std::optional<double> noise_us = {};  // it lies this far off at most, 19
                                          // times of 20; unset with one batch
    std::int64_t runs = 0;                // calls that were timed
    std::string dropped = {};             // why it left the race; empty: it did not
  };

  struct Result {
    std::size_t winner = 0;
    bool cut_short = false;  // the budget ended it before it was sure
    double gain = 0;         // of the fastest over the incumbent: 0.1 is a tenth of the
                             // time; 0 where there is none
    std::size_t fastest = 0;
  };

  /// `first_us` holds a rough time for each candidate, such as its first call;
  /// at least one candidate. The incumbent is one of them or none.
  Race(std::vector<double> first_us, std::optional<std::size_t> incumbent, const RaceOptions& options);

  /// What a first call may take beyond its work, to load a library or to compile.
  static constexpr double one_time_us = 1e6;

  /// Whether a candidate does not start because its rough time is so far above the best one's.
  static bool gives_up_on(double first_us, double best_us);

  /// What to time next; nothing when the race is over.
  std::optional<Heat> next();
  /// The microseconds that the whole batch took. Must be finite and not
  /// negative.
  void add(double batch_us);
  /// The batch could not be timed: it is asked for again.
  void discard() { pending_.reset(); }
  /// Time that went by between batches counts against the budget too.
  void spend(double us) { spent_us_ += us; }
  /// No more batches, as if the budget were spent.
  void stop() { stopped_ = true; }

  bool over() const { return over_; }
  std::size_t left() const;  // candidates still in the race
  double spent_us() const { return spent_us_; }
  Result result() const;
  Standing standing(std::size_t candidate) const;

 private:
  struct Runner {
    double first_us = 0;
    double least_us = 0;  // a call took, however seen: what the next one is expected to take
    std::int64_t calls = 1;
    std::vector<double> times = {};  // per call, one a round
    std::int64_t runs = 0;
    bool in = true;
    std::string dropped = {};
  };

  std::vector<double> ratios(std::size_t a, std::size_t b) const;
  /// Where the median of the logarithm of the ratio of their times lies.
  std::optional<MedianBounds> interval(std::size_t a, std::size_t b, double alpha) const;
  double middle_ratio(std::size_t a, std::size_t b) const;
  double time_of(std::size_t candidate) const;
  bool beats_incumbent(std::size_t candidate) const;
  bool incumbent_in() const { return incumbent_ && runners_[*incumbent_].in; }
  std::size_t leader() const;
  std::optional<std::size_t> next_runner();
  void drop(std::size_t candidate, std::string why);
  void drop_hopeless_at_first();
  void judge();
  bool drop_by_ranges(std::size_t candidate, std::size_t leader);
  void drop_by_interval(std::size_t candidate, std::size_t leader);
  void finish(bool cut_short);

  RaceOptions options_;
  std::optional<std::size_t> incumbent_;
  std::vector<Runner> runners_;
  std::optional<Heat> pending_;
  int round_ = 0;
  std::size_t turn_ = 0;  // of the round
  double spent_us_ = 0;
  bool stopped_ = false;
  bool over_ = false;
  bool cut_short_ = false;
};

}  // namespace xpuruntime
