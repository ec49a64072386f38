// The kernel that the dispatcher chooses on the CPU, problem by problem: against our others, PyTorch, ONNX Runtime and
// what the machine can give.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/usable_cores.h"
#include "cpu_bench_data.h"
#include "cpu_bench_race.h"
#include "cpu_bench_report.h"
#include "cpu_peers.h"
#include "timing.h"
#include "tune/operands.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

struct Options {
  int threads = 0;
  std::vector<std::string> filters = {};
  bool quick = false;
  bool own_only = false;
  bool best = false;
  bool list = false;
  std::string json = {};
};

// A reference this slow is no candidate; as the only kernel it is timed up to the second bound.
constexpr double hopeless_reference_us = 50e3;
constexpr double longest_reference_us = 1e6;

/// What the reference is about to take: some nanoseconds for each multiply-add and each element.
double reference_us(const Problem& problem) {
  double elements = 0;
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) elements += static_cast<double>(element_count(spec));
  }
  return (flops_of(problem) * 2 + elements * 15) * 1e-3;
}

/// One kernel of ours, through the dispatcher: the one it chooses, or one that the policy forces.
class OwnContender final : public Contender {
 public:
  OwnContender(Dispatcher& dispatcher, const Problem& problem, const Operands& operands, KernelPolicy policy)
      : dispatcher_(dispatcher), problem_(problem), operands_(operands), policy_(std::move(policy)) {}

  double run(std::uint64_t calls) override {
    const ScopedPolicy scope(dispatcher_, policy_);
    const Call call{problem_.op, operands_.input_pointers(), operands_.output_pointers(), &problem_.attributes};
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) dispatcher_.dispatch(call);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Tensor output() override { return operands_.outputs()[0]; }

 private:
  Dispatcher& dispatcher_;
  const Problem& problem_;
  const Operands& operands_;
  KernelPolicy policy_;
};

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    std::string torch_why = "--own-only", ort_why = "--own-only";
    if (!options.own_only) {
      torch_ = open_torch_ops(options.threads, torch_why);
      ort_ = open_ort(options.threads, ort_why);
    }
    conditions_.threads = options.threads;
    conditions_.torch = torch_ ? torch_->version() : "not measured: " + torch_why;
    conditions_.ort = ort_ ? ort_->version() : "not measured: " + ort_why;
    conditions_.peak = measure_peak(options.threads);
  }

  const Conditions& conditions() const { return conditions_; }
  Row measure(const CpuProblem& source);

 private:
  struct Field;  // all who take part in one problem

  void add_own(Field& field, Row& row, const std::string& kernel);
  void add_others_of_ours(Field& field, Row& row);
  std::unique_ptr<Contender> add_peer(Field& field, Peer* peer, const char* name, std::string& why);
  void compare(Field& field, Row& row);
  void confirm(Field& field, const Row& row);
  void settle() const;
  RaceSettings settings() const;
  double seconds_used() const;

  Options options_;
  Runtime runtime_{{false, false, {}}};
  std::unique_ptr<Peer> torch_;
  std::unique_ptr<Peer> ort_;
  Conditions conditions_;
};

struct Bench::Field {
  const Problem& problem;
  Operands operands;
  std::vector<std::unique_ptr<Contender>> contenders = {};
  std::vector<Entrant> entrants = {};
  Tensor expected = {};    // of the first who computed it
  std::string whose = {};  // that one's name
};

/// Processor time of this process and the peers in others.
double Bench::seconds_used() const {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  const double own = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  return own + (ort_ ? ort_->seconds_used() : 0);
}

// OpenMP's threads, and others', spin for milliseconds after their work: waits until nobody does.
void Bench::settle() const {
  for (int tries = 0; tries < 40; ++tries) {
    const double before = seconds_used();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (seconds_used() - before < 2e-4) return;
  }
}

RaceSettings Bench::settings() const {
  RaceSettings settings;
  if (options_.quick) settings = {1000, 3, 3e5};
  if (options_.best) settings = {300, options_.quick ? 20 : 60, settings.budget_us, true};
  settings.settle = [this] { settle(); };
  return settings;
}

/// Keeps the first result as what is expected, and says whose differs from it.
void check(Row& row, const Operands& operands, Tensor& expected, std::string& whose, const std::string& name,
           const Tensor& output) {
  if (whose.empty()) {
    whose = name;
    expected = copy_of(output);
    return;
  }
  const std::string text = difference(row.problem, output, expected, operands.inputs()[0]);
  if (text.empty()) return;
  row.wrong = true;
  row.note += (row.note.empty() ? "" : "; ") + name + " against " + whose + ": " + text;
}

void Bench::add_own(Field& field, Row& row, const std::string& kernel) {
  KernelPolicy policy;
  const bool chosen = kernel == row.chosen;
  if (!chosen) policy.force(to_string(row.problem.op), kernel);
  auto contender = std::make_unique<OwnContender>(runtime_.dispatcher(), field.problem, field.operands, policy);
  try {
    blank_outputs(runtime_.devices(), field.operands);
    contender->run(1);
  } catch (const std::exception& error) {
    row.note += (row.note.empty() ? "" : "; ") + kernel + " failed: " + error.what();
    return;
  }
  check(row, field.operands, field.expected, field.whose, kernel, contender->output());
  field.entrants.push_back({kernel, contender.get(), true, chosen});
  field.contenders.push_back(std::move(contender));
}

void Bench::add_others_of_ours(Field& field, Row& row) {
  const DeviceProfile& profile = runtime_.devices().profile({});
  for (const auto& kernel : runtime_.registry().kernels(row.problem.op, DeviceType::cpu)) {
    const bool hopeless = kernel->name() == "reference" && reference_us(row.problem) > hopeless_reference_us;
    if (kernel->name() == row.chosen || hopeless) continue;
    if (kernel->supports(row.problem, profile).supported) add_own(field, row, std::string(kernel->name()));
  }
}

std::unique_ptr<Contender> Bench::add_peer(Field& field, Peer* peer, const char* name, std::string& why) {
  if (peer == nullptr) return nullptr;
  auto contender = peer->make(field.problem, field.operands.inputs(), why);
  if (contender) field.entrants.push_back({name, contender.get()});
  return contender;
}

// Chosen among several by its time, a kernel looks better than it is: both run again before it counts.
void Bench::confirm(Field& field, const Row& row) {
  const OwnTime* better = row.better_own();
  if (better == nullptr) return;
  std::vector<Entrant> two;
  for (const Entrant& entrant : field.entrants) {
    if (entrant.ours && (entrant.stays || entrant.name == better->kernel)) two.push_back(entrant);
  }
  race(two, settings());
  for (Entrant& entrant : field.entrants) {
    for (const Entrant& again : two) {
      if (again.name == entrant.name && entrant.ours) entrant.times = again.times;
    }
  }
}

void take_times(const std::vector<Entrant>& entrants, bool least, Row& row) {
  row.own.clear();
  for (const Entrant& entrant : entrants) {
    if (entrant.ours) row.own.push_back({entrant.name, entrant.time(least)});
    if (entrant.stays) row.ours_us = entrant.time(least);
    if (!entrant.ours && entrant.name == "torch") row.torch_us = entrant.time(least);
    if (!entrant.ours && entrant.name == "ort") row.ort_us = entrant.time(least);
  }
}

void Bench::compare(Field& field, Row& row) {
  auto torch = add_peer(field, torch_.get(), "torch", row.torch_why);
  auto ort = add_peer(field, ort_.get(), "ort", row.ort_why);
  if (torch) check(row, field.operands, field.expected, field.whose, "torch", torch->output());
  if (!row.chosen.empty()) {
    const bool too_long = row.chosen == "reference" && reference_us(row.problem) > longest_reference_us;
    if (too_long) row.note = "only the reference, not timed";
    if (!too_long) add_own(field, row, row.chosen);
    add_others_of_ours(field, row);
  }
  if (ort) check(row, field.operands, field.expected, field.whose, "ort", ort->output());
  race(field.entrants, settings());
  take_times(field.entrants, options_.best, row);
  confirm(field, row);
  take_times(field.entrants, options_.best, row);
}

Row Bench::measure(const CpuProblem& source) {
  Row row;
  row.source = source;
  try {
    row.problem = parse_problem(source.text);
    Field field = {row.problem, random_operands(runtime_.devices(), row.problem, 1)};
    const Decision decision = runtime_.dispatcher().explain(row.problem);
    row.chosen = decision.kernel;
    compare(field, row);
  } catch (const std::exception& error) {
    row.note = error.what();
  }
  return row;
}

bool wanted(const CpuProblem& problem, const std::vector<std::string>& filters) {
  return filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
           return problem.group == filter || problem.text.find(filter) != std::string_view::npos;
         });
}

std::vector<CpuProblem> wanted_problems(const std::vector<std::string>& filters) {
  std::vector<CpuProblem> list;
  for (const CpuProblem& problem : cpu_problems()) {
    if (wanted(problem, filters)) list.push_back(problem);
  }
  return list;
}

int run(const Options& options) {
  const std::vector<CpuProblem> problems = wanted_problems(options.filters);
  if (options.list) {
    for (const CpuProblem& problem : problems) std::printf("%s\n", std::string(problem.text).c_str());
    return 0;
  }
  Bench bench(options);
  std::vector<Row> rows;
  for (const CpuProblem& problem : problems) {
    rows.push_back(bench.measure(problem));
    const std::string ratio = rows.back().ratio() ? std::to_string(*rows.back().ratio()) : "-";
    std::fprintf(stderr, "%zu/%zu %s %s\n", rows.size(), problems.size(), std::string(problem.text).c_str(),
                 ratio.c_str());
  }
  if (rows.empty()) {
    std::fprintf(stderr, "cpu_bench: no problem has that in its text; --list shows them\n");
    return 1;
  }
  if (!options.json.empty() && !write_json(options.json, rows, bench.conditions())) {
    std::fprintf(stderr, "cpu_bench: %s could not be written\n", options.json.c_str());
    return 1;
  }
  print_report(rows, bench.conditions());
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong; }) ? 1 : 0;
}

}  // namespace
}  // namespace xpuruntime::bench

int main(int argc, char** argv) {
  xpuruntime::bench::Options options;
  options.threads = xpuruntime::usable_cores();
  CLI::App app("Times the CPU's kernels against each other, PyTorch and ONNX Runtime");
  app.add_option("--threads", options.threads, "threads for ours and theirs (default: all cores)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--filter", options.filters, "only problems with this in their text, or of this origin; repeatable");
  app.add_flag("--quick", options.quick, "three short rounds: a first look");
  app.add_flag("--best", options.best, "many short blocks and the best of them: for a machine that others use too");
  app.add_flag("--own-only", options.own_only, "no peers");
  app.add_flag("--list", options.list, "show the problems and stop");
  app.add_option("--json", options.json, "write the rows to this file too");
  CLI11_PARSE(app, argc, argv);
  // Read by the library before its first kernel runs.
  setenv("XPURUNTIME_NUM_THREADS", std::to_string(options.threads).c_str(), 1);
  return xpuruntime::bench::guarded("cpu_bench", [&] { return xpuruntime::bench::run(options); });
}
