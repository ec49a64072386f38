#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "core/claimed_files.h"
#include "core/duration.h"
#include "core/environment_variable.h"
#include "core/json_text.h"
#include "core/names.h"
#include "runtime/line_output.h"
#include "runtime/runtime_parts.h"
#include "runtime/trace_at_exit.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

constexpr const char* tune_variable = "XPURUNTIME_TUNE";
constexpr const char* verbose_variable = "XPURUNTIME_VERBOSE";
constexpr const char* trace_variable = "XPURUNTIME_TRACE";

std::string value_of(const char* variable) {
  const char* const value = environment_variable(variable);
  return value == nullptr ? "" : value;
}

/// "on:10s" as "on" and "10s"; without a colon, the second is not there.
struct Parts {
  explicit Parts(const std::string& value) : first(value.substr(0, value.find(':'))) {
    if (first.size() < value.size()) second = value.substr(first.size() + 1);
  }
  std::string first;
  std::optional<std::string> second = {};
};

/// Kernels that failed, now or before, where the reason does not name them already.
std::string failures_text(const Decision& decision) {
  std::string text;
  for (const Candidate& candidate : decision.candidates) {
    const bool failed = candidate.reason.starts_with("quarantined") || candidate.reason.starts_with("passed over");
    if (candidate.outcome != Outcome::refused || !failed) continue;
    if (decision.because.find(candidate.reason) != std::string::npos) continue;
    text += "; not " + candidate.kernel + ": " + candidate.reason;
  }
  return text;
}

std::string decision_line(const Decision& decision) {
  std::string line = "xpuruntime: decided " + to_string(decision.problem) + " -> " + decision.kernel + ", by " +
                     std::string(to_string(decision.level)) + ": " + decision.because + failures_text(decision);
  if (!decision.plan.empty()) line += "; plan " + decision.plan;
  for (const CastStep& cast : decision.casts) {
    line += std::string("; ") + (cast.is_output ? "output " : "input ") + std::to_string(cast.index) + " cast from " +
            std::string(to_string(cast.from)) + " to " + std::string(to_string(cast.to)) + " by " + cast.kernel;
  }
  return line;
}

std::string call_line(const LogEntry& entry) {
  const Decision& decision = *entry.decision;
  const bool queued = decision.problem.device.type != DeviceType::cpu;
  char time[48];
  std::snprintf(time, sizeof time, "%.1f us", entry.elapsed_us);
  return "xpuruntime: called " + to_string(decision.problem) + " on " + decision.kernel +
         (entry.failed ? ", failed after "
          : queued     ? ", queued in "
                       : ", ") +
         time;
}

/// What is read must not be what is written, and nothing is written twice. Nor is anything where SQLite will keep its
/// own files beside a store that is still to be made.
void check_output(const std::string& path, const char* variable) {
  const std::string beside = main_file_of(path), store = value_of("XPURUNTIME_STORE");
  if (!beside.empty() && !store.empty() && same_file(beside, store)) {
    fail(ErrorCode::invalid_argument, variable,
         "it names a file that belongs to the store of XPURUNTIME_STORE (-wal, -shm, -journal); name another");
  }
  for (const char* other : {"XPURUNTIME_POLICY", "XPURUNTIME_LOCK", "XPURUNTIME_STORE", trace_variable}) {
    if (std::string_view(other) == variable) continue;
    const std::string value = value_of(other),
                      file = std::string_view(other) == trace_variable ? with_process_number(value) : value;
    if (!file.empty() && same_file(file, path))
      fail(ErrorCode::invalid_argument, variable, "it names the file of " + std::string(other) + "; name another");
  }
}

/// Null where nothing is to be told.
std::shared_ptr<LineOutput> tell_calls(Dispatcher& dispatcher) {
  const Parts value(value_of(verbose_variable));
  if (value.first != "" && value.first != "0" && value.first != "1" && value.first != "2") {
    fail(ErrorCode::invalid_argument, verbose_variable,
         "'" + value.first + "' is not a level; write 0, 1 (a line per decision), 2 (and per call), or 1:FILE, 2:FILE");
  }
  if (value.first.empty() && value.second) {
    fail(ErrorCode::invalid_argument, verbose_variable, "there is no level before the colon; write 1:FILE or 2:FILE");
  }
  if (value.second && value.second->empty()) {
    fail(ErrorCode::invalid_argument, verbose_variable, "there is no file after the colon; name one or leave it out");
  }
  if (value.first != "1" && value.first != "2") return nullptr;
  if (value.second) check_output(with_process_number(*value.second), verbose_variable);
  auto output = std::make_shared<LineOutput>(value.second.value_or(""), verbose_variable);
  if (value.first == "2") {
    dispatcher.set_call_hook([output](const LogEntry& entry) { output->write(call_line(entry)); });
  }
  return output;
}

void watch(Dispatcher& dispatcher) {
  const auto output = tell_calls(dispatcher);
  const std::string path = value_of(trace_variable);
  if (!path.empty()) check_output(with_process_number(path), trace_variable);
  // Lives as long as the process's runtime, for ever.
  TraceAtExit* const trace = path.empty() ? nullptr : new TraceAtExit(dispatcher, path);
  if (output == nullptr && trace == nullptr) return;
  dispatcher.set_decision_hook([output, trace](const std::shared_ptr<const Decision>& decision) {
    if (output != nullptr) output->write(decision_line(*decision));
    if (trace != nullptr) trace->add(decision);
  });
}

TuneOptions tune_options(const std::optional<std::string>& budget) {
  TuneOptions options;
  if (!budget) return options;
  if (const std::string flaw = flaw_of_duration(*budget); !flaw.empty())
    fail(ErrorCode::invalid_argument, tune_variable, flaw);
  options.total_budget_s = parse_duration(*budget);
  return options;
}

}  // namespace

bool tuning_is_asked_for() {
  const Parts value(value_of(tune_variable));
  const std::string word = lowered(value.first);
  const bool off = word == "" || word == "0" || word == "off" || word == "false";
  const bool on = word == "1" || word == "on" || word == "true";
  if ((!off && !on) || (off && value.second)) {
    fail(ErrorCode::invalid_argument, tune_variable,
         "'" + value_of(tune_variable) + "' is not a setting; write on, off, or on with a time limit: on:30s");
  }
  return on;
}

void apply_environment(Runtime& runtime) {
  Dispatcher& dispatcher = runtime.dispatcher();
  if (tuning_is_asked_for()) {
    if (!value_of("XPURUNTIME_LOCK").empty()) {
      fail(ErrorCode::invalid_argument, tune_variable,
           "XPURUNTIME_LOCK is set too: a lock replays what was recorded, and nothing would be measured; unset one");
    }
    runtime.enable_tuning(tune_options(Parts(value_of(tune_variable)).second));
    dispatcher.set_default_strategy(Strategy::best_performance);
    dispatcher.set_policy({});  // under that strategy from now on
  }
  if (const auto policy = policy_from_environment()) dispatcher.set_policy(*policy);
  dispatcher.set_lock({lock_from_environment()});
  watch(dispatcher);
}

}  // namespace xpuruntime
