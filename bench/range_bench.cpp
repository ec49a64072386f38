// What tuning by ranges loses against tuning every size, and at how many measurements: the problems of a transformer
// block over sequence lengths, both in one run. The range's kernel and the tuned one are compared in the race that
// tuned that length, so a machine that changes its speed on the way favours neither.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "timing.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

constexpr double most_loss = 1.03;      // of the ranges' choices over those of each length, in time
constexpr double most_measured = 0.10;  // of the lengths

// A block of a BERT or GPT-2 base model: 768 wide, 12 heads, 3072 wide between.
constexpr const char* block[] = {
    "layer_norm(f32[s,768], f32[768], f32[768])",
    "linear(f32[s,768], f32[2304,768], f32[2304])",
    "attention(f32[1,12,s,64], f32[1,12,s,64], f32[1,12,s,64]; causal=true)",
    "linear(f32[s,768], f32[768,768], f32[768])",
    "add(f32[s,768], f32[s,768])",
    "linear(f32[s,768], f32[3072,768], f32[3072])",
    "gelu(f32[s,3072])",
    "linear(f32[s,3072], f32[768,3072], f32[768])",
};

struct Settings {
  int lengths = 512;
  int every = 1;  // of the lengths, for the tuning of each
  double budget_s = 0;
};

struct Row {
  std::string text = {};
  std::size_t parts = 0;
  std::size_t measured = 0;  // by the ranges
  std::size_t lengths = 0;   // in the range
  std::size_t compared = 0;
  double ranged_us = 0;  // sums over the lengths that were compared
  double tuned_us = 0;
  double worst = 1;
};

const std::string& kernel_at(const RangeResult& found, const Problem& problem) {
  static const std::string none;
  for (const TunedPart& part : found.parts) {
    if (part.range.contains(problem)) return part.kernel;
  }
  return none;
}

std::optional<double> time_of(const TuneResult& result, const std::string& kernel) {
  for (const TunedCandidate& candidate : result.candidates) {
    if (candidate.kernel == kernel) return candidate.time_us;
  }
  return std::nullopt;
}

Row measure(Runtime& runtime, const std::string& text, const Settings& settings) {
  const ProblemRange range = parse_problem_range(text);
  TuneOptions options;
  options.problem_budget_s = settings.budget_s;
  const RangeResult found = runtime.tune(range, options);
  Row row{text, found.parts.size(), found.measured.size(), found.problems};
  for (const TunedPart& part : found.parts) {
    std::fprintf(stderr, "  %s -> %s\n", to_string(part.range).c_str(), part.kernel.c_str());
  }
  for (std::size_t index = 0; index < range.count(); index += static_cast<std::size_t>(settings.every)) {
    const Problem problem = range.at(index);
    const TuneResult alone =
        Tuner(runtime.registry()).tune(problem, runtime.dispatcher().explain(problem).kernel, options);
    const auto tuned = time_of(alone, alone.chosen);
    const auto ranged = time_of(alone, kernel_at(found, problem));
    if (!tuned || !ranged) fail(ErrorCode::internal, "range_bench", to_string(problem) + " has no time; see why");
    row.tuned_us += *tuned;
    row.ranged_us += *ranged;
    row.worst = std::max(row.worst, *ranged / *tuned);
    ++row.compared;
  }
  return row;
}

void print(const std::vector<Row>& rows) {
  Table table({"problem", "parts", "measured", "of lengths", "compared", "loss %", "worst %"});
  double ranged = 0, tuned = 0, logs = 0;
  std::size_t measured = 0, lengths = 0;
  for (const Row& row : rows) {
    table.add({row.text, std::to_string(row.parts), std::to_string(row.measured), std::to_string(row.lengths),
               std::to_string(row.compared), number(100 * (row.ranged_us / row.tuned_us - 1), 2),
               number(100 * (row.worst - 1), 2)});
    ranged += row.ranged_us, tuned += row.tuned_us;
    logs += std::log(row.ranged_us / row.tuned_us);
    measured += row.measured, lengths += row.lengths;
  }
  table.print();
  const auto verdict = [](double value, double bound) { return value <= bound ? "holds" : "MISSED"; };
  const double share = static_cast<double>(measured) / static_cast<double>(lengths);
  const double loss = std::exp(logs / static_cast<double>(rows.size()));
  Table summary({"over " + std::to_string(rows.size()) + " problems", "measured", "bound", ""});
  summary.add({"time of the block by ranges over each length tuned", number(ranged / tuned, 4), number(most_loss, 4),
               verdict(ranged / tuned, most_loss)});
  summary.add(
      {"the same, geometric mean of the problems", number(loss, 4), number(most_loss, 4), verdict(loss, most_loss)});
  summary.add({"problems measured by ranges over all", number(share, 4), number(most_measured, 4),
               verdict(share, most_measured)});
  std::printf("\n");
  summary.print();
}

int run(const Settings& settings) {
  Runtime runtime{{false, false, {}}};
  std::vector<Row> rows;
  for (const char* head : block) {
    const std::string text = std::string(head) + " where s=1.." + std::to_string(settings.lengths);
    std::fprintf(stderr, "%zu/%zu %s\n", rows.size() + 1, std::size(block), text.c_str());
    rows.push_back(measure(runtime, text, settings));
  }
  print(rows);
  return 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main(int argc, char** argv) {
  xpuruntime::bench::Settings settings;
  bool quick = false;
  double budget_ms = 500;
  CLI::App app("Compares tuning by ranges with tuning every size");
  app.add_flag("--quick", quick, "short races of few lengths");
  app.add_option("--every", settings.every, "of the lengths is tuned alone")->check(CLI::PositiveNumber);
  app.add_option("--lengths", settings.lengths, "from 1 on")->check(CLI::PositiveNumber);
  app.add_option("--budget-ms", budget_ms, "for a problem")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (quick && app.count("--every") == 0) settings.every = 37;
  if (quick && app.count("--budget-ms") == 0) budget_ms = 100;
  settings.budget_s = budget_ms / 1e3;
  return xpuruntime::bench::guarded("range_bench", [&] { return xpuruntime::bench::run(settings); });
}
