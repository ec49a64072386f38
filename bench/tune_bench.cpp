// Whether tuning finds what an exhaustive search finds, and in how little time: the CPU's problem list, each problem
// tuned and then every kernel that can run it timed at length.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "cpu_problems.h"
#include "timing.h"
#include "tune/contender.h"
#include "tune/order_statistics.h"
#include "tune/timer.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

constexpr double most_loss = 1.01;       // geometric mean of the tuned choice's time over the best's
constexpr double most_measuring = 0.25;  // of the exhaustive search's time
constexpr double most_seconds = 1;       // for a problem under a millisecond, all included

struct Settings {
  double batch_us = 2000;
  int rounds = 31;
  std::size_t every = 1;  // problem of the list
  double stop_at_us = INFINITY;
};

struct Row {
  std::string text = {};
  std::string tuned = {};
  std::string best = {};
  double best_us = 0;
  double loss = 1;  // tuned over best, both by the long measurement
  double exhaustive_s = 0;
  double measuring_s = 0;
  double spent_s = 0;
  bool cut_short = false;
};

/// One kernel in the exhaustive search.
struct Entrant {
  Contender contender = {};
  std::int64_t calls = 1;
  std::vector<double> times = {};
};

double batch_us(const Track& track, const Contender& contender, std::int64_t calls) {
  const double start = steady_us();
  const Status status = track.run(contender, calls);
  if (!status.ok()) fail(status.code(), "tune_bench", status.message() + "; see which kernel fails");
  return steady_us() - start;
}

void calibrate(const Track& track, Entrant& entrant, const Settings& settings) {
  for (;;) {
    const double us = batch_us(track, entrant.contender, entrant.calls);
    if (us >= settings.batch_us / 2) {
      const double wanted = std::ceil(settings.batch_us * static_cast<double>(entrant.calls) / us);
      entrant.calls = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
      return;
    }
    entrant.calls *= 2;
  }
}

/// Whether a few rounds have shown that a kernel is nowhere near the best; a search need not wait for such.
bool hopeless(const Entrant& entrant, const std::vector<Entrant>& entrants) {
  constexpr std::size_t some_rounds = 3;
  constexpr double far = 5;
  const auto least = [](const Entrant& e) { return *std::min_element(e.times.begin(), e.times.end()); };
  if (entrant.times.size() < some_rounds) return false;
  return std::any_of(entrants.begin(), entrants.end(), [&](const Entrant& other) {
    return other.times.size() >= some_rounds && least(entrant) > far * least(other);
  });
}

/// Every entrant in every round, but for the hopeless; returns the seconds it took.
double time_all(const Track& track, std::vector<Entrant>& entrants, const Settings& settings, int rounds) {
  const double start = steady_us();
  for (int round = 0; round < rounds; ++round) {
    for (Entrant& entrant : entrants) {
      if (hopeless(entrant, entrants)) continue;
      if (round == 0 && entrant.times.empty()) calibrate(track, entrant, settings);
      if (entrants.size() > 1) let_threads_sleep();  // as the tuner does: the next kernel gets its cores
      batch_us(track, entrant.contender, 1 + entrant.calls / 8);
      entrant.times.push_back(batch_us(track, entrant.contender, entrant.calls) / static_cast<double>(entrant.calls));
    }
  }
  return (steady_us() - start) / 1e6;
}

/// The kernels that the tuner timed or had no time for.
std::vector<Entrant> entrants_of(const KernelRegistry& registry, const TuneResult& result, const Track& track) {
  std::vector<Entrant> entrants;
  for (const auto& kernel : registry.kernels(result.problem.op, result.problem.device.type)) {
    for (const TunedCandidate& candidate : result.candidates) {
      // What the tuner left out for lack of time may be the best: here it runs.
      const bool runs = candidate.time_us || candidate.reason == "not tried: the time budget was spent";
      if (candidate.kernel != kernel->name() || !runs) continue;
      Entrant entrant;
      entrant.contender.kernel = kernel;
      entrant.contender.row = candidate;
      if (track.prepare(entrant.contender).ok()) entrants.push_back(std::move(entrant));
    }
  }
  return entrants;
}

std::size_t fastest_of(const std::vector<Entrant>& entrants) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < entrants.size(); ++i) {
    if (median_of(entrants[i].times) < median_of(entrants[best].times)) best = i;
  }
  return best;
}

/// The tuned choice against the best of all. Chosen among several by its time, a kernel looks better than it is: both
/// run again before the difference counts.
double loss_of(const Track& track, std::vector<Entrant> entrants, const Row& row, const Settings& settings) {
  if (row.tuned == row.best) return 1;
  std::erase_if(entrants, [&](const Entrant& entrant) {
    return entrant.contender.row.kernel != row.tuned && entrant.contender.row.kernel != row.best;
  });
  for (Entrant& entrant : entrants) entrant.times.clear();
  time_all(track, entrants, settings, settings.rounds);
  const auto time_of = [&](const std::string& kernel) {
    for (const Entrant& entrant : entrants) {
      if (entrant.contender.row.kernel == kernel) return median_of(entrant.times);
    }
    return 0.0;
  };
  return std::max(1.0, time_of(row.tuned) / time_of(row.best));
}

Row measure(Runtime& runtime, const std::string& text, const Settings& settings) {
  const Problem problem = parse_problem(text);
  const TuneResult result = Tuner(runtime.registry()).tune(problem, runtime.dispatcher().explain(problem).kernel);
  Row row{text, result.chosen};
  row.measuring_s = result.measuring_s;
  row.spent_s = result.spent_s;
  row.cut_short = result.cut_short;
  const Operands operands = random_operands(runtime.devices(), problem, 1);
  const Track track(runtime.registry(), problem, operands);
  std::vector<Entrant> entrants = entrants_of(runtime.registry(), result, track);
  if (entrants.empty()) return row;
  row.exhaustive_s = time_all(track, entrants, settings, settings.rounds);
  const Entrant& best = entrants[fastest_of(entrants)];
  row.best = best.contender.row.kernel;
  row.best_us = median_of(best.times);
  row.loss = loss_of(track, std::move(entrants), row, settings);
  return row;
}

void print_rows(const std::vector<Row>& rows) {
  Table table({"problem", "tuned", "best", "best us", "loss %", "measured s", "exhaustive s", "in all s", ""});
  for (const Row& row : rows) {
    table.add({row.text, row.tuned, row.best, number(row.best_us, 2), number(100 * (row.loss - 1), 2),
               number(row.measuring_s, 3), number(row.exhaustive_s, 3), number(row.spent_s, 3),
               row.cut_short ? "cut short" : ""});
  }
  table.print();
}

void print_summary(const std::vector<Row>& rows) {
  double logs = 0, measuring = 0, exhaustive = 0, worst_s = 0, worst_loss = 1;
  for (const Row& row : rows) {
    logs += std::log(row.loss);
    measuring += row.measuring_s;
    exhaustive += row.exhaustive_s;
    worst_loss = std::max(worst_loss, row.loss);
    if (row.best_us < 1000) worst_s = std::max(worst_s, row.spent_s);
  }
  const double loss = std::exp(logs / static_cast<double>(rows.size()));
  const auto verdict = [](double value, double bound) { return value <= bound ? "holds" : "MISSED"; };
  Table table({"over " + std::to_string(rows.size()) + " problems", "measured", "bound", ""});
  table.add({"tuned choice over the exhaustive best, geometric mean", number(loss, 4), number(most_loss, 4),
             verdict(loss, most_loss)});
  table.add({"... of the worst problem", number(worst_loss, 4), "", ""});
  table.add({"measuring time over the exhaustive search's", number(measuring / exhaustive, 3),
             number(most_measuring, 3), verdict(measuring / exhaustive, most_measuring)});
  table.add({"seconds in all for a problem under 1 ms, the longest", number(worst_s, 3), number(most_seconds, 3),
             verdict(worst_s, most_seconds)});
  std::printf("\n");
  table.print();
}

/// Nanoseconds of a repeated decision in a scope, over one block.
double decision_ns(Dispatcher& dispatcher, const Call& call, const ScopePtr& scope) {
  constexpr int calls = 200'000;
  const ScopeGuard guard(dispatcher, scope);
  dispatcher.decide(call);
  const double start = steady_us();
  for (int i = 0; i < calls; ++i) dispatcher.decide(call);
  return (steady_us() - start) * 1000 / calls;
}

/// A warm decision that tuning made against one that it did not: blocks take turns, and the middle ones count.
void print_warm_decisions(Runtime& runtime) {
  const Problem problem = parse_problem("matmul(f32[64,64], f32[64,64])");
  const Operands operands = random_operands(runtime.devices(), problem, 1);
  const Call call{problem.op, operands.input_pointers(), operands.output_pointers(), &problem.attributes};
  Dispatcher& dispatcher = runtime.dispatcher();
  runtime.enable_tuning();
  KernelPolicy measured;
  measured.auto_strategy = Strategy::best_performance;
  const ScopePtr untuned = dispatcher.make_scope({}), tuned = dispatcher.make_scope(measured);
  std::vector<double> without, with;
  for (int i = 0; i < 41; ++i) {
    without.push_back(decision_ns(dispatcher, call, untuned));
    with.push_back(decision_ns(dispatcher, call, tuned));
  }
  const ScopeGuard guard(dispatcher, tuned);
  std::printf("\nwarm decision: %.1f ns untuned, %.1f ns tuned (%s)\n", median_of(without), median_of(with),
              dispatcher.decide(call).because.c_str());
  runtime.disable_tuning();
}

int run(const Settings& settings) {
  Runtime runtime{{false, false, {}}};
  std::vector<Row> rows;
  const auto problems = cpu_problems();
  for (std::size_t i = 0; i < problems.size(); i += settings.every) {
    if (steady_us() > settings.stop_at_us) break;
    rows.push_back(measure(runtime, std::string(problems[i].text), settings));
    std::fprintf(stderr, "%zu/%zu %s\n", i + 1, problems.size(), std::string(problems[i].text).c_str());
  }
  print_rows(rows);
  print_summary(rows);
  print_warm_decisions(runtime);
  return 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main(int argc, char** argv) {
  xpuruntime::bench::Settings settings;
  bool quick = false;
  double seconds = INFINITY;
  CLI::App app("Compares what the tuner chooses with an exhaustive search");
  app.add_flag("--quick", quick, "short batches of few problems");
  app.add_option("--every", settings.every, "problem of the list")->check(CLI::PositiveNumber);
  app.add_option("--seconds", seconds, "after which no further problem is begun")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (quick) settings.batch_us = 1000, settings.rounds = 15;
  if (quick && app.count("--every") == 0) settings.every = 17;
  settings.stop_at_us = xpuruntime::steady_us() + 1e6 * seconds;
  return xpuruntime::bench::guarded("tune_bench", [&] { return xpuruntime::bench::run(settings); });
}
