#include "xpuruntime/graph/measure_engines.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "graph/session/compare_results.h"
#include "graph/session/engine_choice.h"
#include "graph/session/inputs.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

using WallClock = std::chrono::steady_clock;

double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

std::string as_time(double us) {
  char text[32];
  std::snprintf(text, sizeof text, us < 1000 ? "%.1f us" : "%.2f ms", us < 1000 ? us : us / 1000);
  return text;
}

/// An engine in the race.
struct Runner {
  EngineTime time = {};
  std::optional<Session> session = {};
  std::vector<double> runs_us = {};
  std::vector<Tensor> results = {};  // of the last run

  /// The microseconds of a run; an engine that fails is out.
  std::optional<double> run(std::span<const Tensor> inputs, const DeviceManager& devices) {
    try {
      const auto start = WallClock::now();
      results = session->run(inputs);
      const Device device = session->record().engine == "native" ? Device{session->record().target, 0} : Device{};
      const Status status = devices.driver(device).synchronize(device.index, current_stream(device));
      if (!status.ok()) fail(status.code(), "measure_engines", status.message());
      return seconds_since(start) * 1e6;
    } catch (const Error& error) {
      leave(std::string(error.message()));
      return {};
    }
  }

  void leave(std::string reason) {
    time.reason = std::move(reason);
    results.clear();
    session.reset();
  }

  void finish() {
    if (!session || runs_us.empty()) return;
    std::sort(runs_us.begin(), runs_us.end());
    time.runs = std::ssize(runs_us);
    time.min_us = runs_us.front();
    time.median_us = runs_us[runs_us.size() / 2];
  }
};

std::vector<Tensor> on_host(const std::vector<Tensor>& results, const DeviceManager& devices) {
  std::vector<Tensor> copies;
  for (const Tensor& result : results) copies.push_back(devices.copy_to(result, Device{}));
  return copies;
}

Runner start(const std::string& engine, const Model& model, Dispatcher& dispatcher, const DeviceManager& devices,
             SessionOptions options, std::span<const Tensor> inputs, const std::optional<ResultBounds>& bounds) {
  Runner runner{.time = {.engine = engine}};
  options.execution->engine = engine;
  // Another target would be another race. Native goes to none where its own is here, and may use the CPU beside it.
  if (engine != "native" || !devices.has({options.execution->target, 0})) options.execution->allow_fallback.reset();
  try {
    runner.session.emplace(model, dispatcher, devices, options);
    runner.time.version = runner.session->record().version;
  } catch (const Error& error) {
    runner.time.reason = std::string(error.message());
    return runner;
  }
  std::vector<Tensor> first;
  for (int i = 0; i < 3 && runner.session; ++i) {
    const std::optional<double> us = runner.run(inputs, devices);
    if (!us || i > 0) continue;
    runner.time.first_us = *us;
    first = on_host(runner.results, devices);
  }
  if (!runner.session || !bounds) return runner;
  const double change = difference_of(first, on_host(runner.results, devices), bounds->least_magnitude);
  if (change > bounds->most_difference) runner.leave("its results change from run to run");
  return runner;
}

std::string in_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", share * 100);
  return text;
}

/// The first engine's last results are what those of the others must be.
void compare(std::vector<Runner>& runners, const ResultBounds& bounds, const DeviceManager& devices) {
  const Runner* first = nullptr;
  for (Runner& runner : runners) {
    if (!runner.session) continue;
    runner.results = on_host(runner.results, devices);
    if (first == nullptr) {
      first = &runner;
      continue;
    }
    const double difference = difference_of(first->results, runner.results, bounds.least_magnitude);
    runner.time.difference = std::max(runner.time.difference.value_or(0), difference);
    if (difference <= bounds.most_difference) continue;
    runner.leave("its results differ from those of " + first->time.engine +
                 (std::isfinite(difference)
                      ? " by " + in_percent(difference) + ", more than " + in_percent(bounds.most_difference)
                      : ": other shapes or dtypes, or no numbers where those are"));
  }
}

/// In turns, so that a slow spell hits all alike.
void race(std::vector<Runner>& runners, std::span<const Tensor> inputs, const DeviceManager& devices, double budget_s) {
  constexpr std::size_t least = 5, most = 1000;
  const auto begin = WallClock::now();
  for (std::size_t round = 0; round < most && (round < least || seconds_since(begin) < budget_s); ++round) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      Runner& runner = runners[(round + i) % runners.size()];
      if (!runner.session) continue;
      if (const auto us = runner.run(inputs, devices)) runner.runs_us.push_back(*us);
    }
  }
}

TuneRecord record_of(const EngineTimes& times, const std::string& problem) {
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  TuneRecord record;
  for (const EngineTime& time : times.engines) {
    if (!time.reason.empty()) continue;
    record.measurements.push_back({.problem = problem,
                                   .kernel = time.engine,
                                   .time_us = time.median_us,
                                   .runs = time.runs,
                                   .measured_at = now,
                                   .kernel_version = time.version});
    if (time.engine != times.chosen) continue;
    record.choices.push_back({.problem = problem,
                              .kernel = time.engine,
                              .incumbent = times.engines.front().engine,
                              .because = times.because,
                              .measured_at = now,
                              .kernel_version = time.version});
  }
  return record;
}

}  // namespace

EngineTimes measure_engines(const Model& model, Dispatcher& dispatcher, const DeviceManager& devices,
                            const SessionOptions& options, std::span<const Tensor> inputs, double budget_s) {
  SessionOptions each = options;
  each.store = nullptr;
  if (!each.execution) each.execution = ExecutionPolicy{.target = DeviceType::cpu};
  const std::string asked = each.execution->engine;
  std::vector<std::string> names = {"native"};
  if (options.engines != nullptr) {
    for (const auto& engine : options.engines->engines()) names.push_back(engine->name());
  }
  if (asked != "auto") names = {asked};
  const std::optional<ResultBounds> bounds = result_bounds(model, each.execution->precision, inputs, devices);
  std::vector<Runner> runners;
  for (const std::string& name : names)
    runners.push_back(start(name, model, dispatcher, devices, each, inputs, bounds));
  if (bounds) compare(runners, *bounds, devices);
  race(runners, inputs, devices, budget_s);
  if (bounds) compare(runners, *bounds, devices);  // also the last of them

  EngineTimes times;
  const EngineTime* best = nullptr;
  for (Runner& runner : runners) runner.finish();
  for (const Runner& runner : runners) {
    const EngineTime& time = times.engines.emplace_back(runner.time);
    if (time.reason.empty() && (best == nullptr || time.median_us < best->median_us)) best = &runner.time;
  }
  if (best == nullptr) return times;
  times.chosen = best->engine;
  times.because = "measured: " + as_time(best->median_us);
  for (const EngineTime& time : times.engines) {
    if (time.engine != best->engine && time.reason.empty()) {
      times.because += "; " + time.engine + " " + as_time(time.median_us);
    }
  }
  const std::vector<TensorSpec> specs = specs_of(inputs);
  times.because += "; for";
  for (const TensorSpec& spec : specs) times.because += " " + to_string(spec);
  if (options.store == nullptr || asked != "auto") return times;
  try {
    const ScopedPolicy layered(dispatcher, options.policy);
    const auto threads = static_cast<int>(dispatcher.policy().limits().threads.value_or(0));
    const Environment here = environment_for(devices, each.execution->target);
    for (const std::vector<TensorSpec>* shapes : {&specs, static_cast<const std::vector<TensorSpec>*>(nullptr)}) {
      options.store->put(here, record_of(times, name_in_store(model, *each.execution, threads, shapes)));
    }
  } catch (const Error& error) {
    times.not_stored = std::string(error.message());
  }
  return times;
}

}  // namespace xpuruntime
