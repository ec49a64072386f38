#include "tune/entry.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace xpuruntime {
namespace {

// ---- keys, times and a total order of the three kinds ----

auto key_of(const Measurement& entry) { return std::tie(entry.kernel, entry.plan); }
auto key_of(const QuarantineEntry& entry) { return std::tie(entry.kernel, entry.plan); }

auto content_of(const Measurement& entry) {
  return std::tie(entry.measured_at, entry.time_us, entry.noise_us, entry.runs, entry.workspace_bytes, entry.error,
                  entry.kernel_version);
}
auto content_of(const QuarantineEntry& entry) { return std::tie(entry.found_at, entry.reason, entry.kernel_version); }
auto content_of(const TunedChoice& entry) {
  return std::tie(entry.measured_at, entry.kernel, entry.plan, entry.incumbent, entry.because, entry.cut_short,
                  entry.kernel_version);
}

std::int64_t time_of(const Measurement& entry) { return entry.measured_at; }
std::int64_t time_of(const TunedChoice& entry) { return entry.measured_at; }
std::int64_t time_of(const QuarantineEntry& entry) { return entry.found_at; }

template <class T>
bool key_less(const T& a, const T& b) {
  return key_of(a) < key_of(b);
}

/// Puts entries where their keys belong, over what has the same key if `wins(entry, old)`. Both lists are sorted and
/// have each key once. Returns how many stand there now.
template <class T, class Wins>
std::size_t place(std::vector<T>& list, const std::vector<T>& entries, Wins wins) {
  const auto old = static_cast<std::ptrdiff_t>(list.size());
  std::size_t placed = 0;
  for (const T& entry : entries) {
    const auto end = list.begin() + old;
    const auto at = std::lower_bound(list.begin(), end, entry, key_less<T>);
    const bool known = at != end && key_of(*at) == key_of(entry);
    if (known && !wins(entry, *at)) continue;
    if (known) {
      *at = entry;
    } else {
      list.push_back(entry);
    }
    ++placed;
  }
  std::inplace_merge(list.begin(), list.begin() + old, list.end(), key_less<T>);
  return placed;
}

/// Sorts a list; of those with the same key the last stays.
template <class T>
void settle(std::vector<T>& list) {
  std::stable_sort(list.begin(), list.end(), key_less<T>);
  const auto kept =
      std::unique(list.rbegin(), list.rend(), [](const T& a, const T& b) { return key_of(a) == key_of(b); });
  list.erase(list.begin(), kept.base());
}

constexpr auto always = [](const auto&, const auto&) { return true; };
constexpr auto newer = [](const auto& a, const auto& b) { return content_of(a) > content_of(b); };

template <class T>
bool means(const StoreFilter& filter, const T& entry) {
  return (!filter.kernel || *filter.kernel == entry.kernel) &&
         (!filter.older_than || time_of(entry) < *filter.older_than);
}

// ---- what may enter ----

constexpr std::size_t longest_name = std::size_t{1} << 16;

void check_name(const char* what, const std::string& name, bool may_be_empty, std::string_view function) {
  const bool one_line =
      std::none_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
  if (one_line && (may_be_empty || !name.empty()) && name.size() <= longest_name && as_utf8(name) == name) return;
  fail(ErrorCode::invalid_argument, function,
       std::string(what) + " '" + shown(name) + "' is not a valid name; it must be one line of text, at most 64 KiB");
}

void check_figure(const char* what, double value, std::string_view function) {
  if (std::isfinite(value) && value >= 0) return;
  fail(ErrorCode::invalid_argument, function,
       std::string(what) + " of " + std::to_string(value) + " in a measurement; it must be finite and not negative");
}

void check(const Measurement& entry, std::string_view function) {
  check_name("kernel", entry.kernel, false, function);
  check_name("kernel_version", entry.kernel_version, true, function);
  check_name("plan", entry.plan, true, function);
  check_figure("time_us", entry.time_us, function);
  check_figure("noise_us", entry.noise_us, function);
  check_figure("error", entry.error, function);
  check_figure("runs", static_cast<double>(entry.runs), function);
}

}  // namespace

std::int64_t ProblemEntry::measured_at() const {
  std::int64_t latest = choice ? choice->measured_at : INT64_MIN;
  for (const Measurement& entry : measurements) latest = std::max(latest, time_of(entry));
  for (const QuarantineEntry& entry : quarantine) latest = std::max(latest, time_of(entry));
  return latest;
}

void ProblemEntry::put(const ProblemEntry& later) {
  if (later.choice) choice = later.choice;
  place(measurements, later.measurements, always);
  place(quarantine, later.quarantine, always);
}

std::size_t ProblemEntry::merge(const ProblemEntry& other) {
  std::size_t changed = 0;
  if (other.choice && (!choice || newer(*other.choice, *choice))) {
    choice = other.choice;
    ++changed;
  }
  return changed + place(measurements, other.measurements, newer) + place(quarantine, other.quarantine, newer);
}

std::size_t ProblemEntry::remove(const StoreFilter& filter) {
  const std::size_t before = size();
  const auto meant = [&](const auto& entry) { return means(filter, entry); };
  if (choice && meant(*choice)) choice.reset();
  std::erase_if(measurements, meant);
  std::erase_if(quarantine, meant);
  return before - size();
}

void ProblemEntry::keep(const StoreFilter& filter) {
  const auto not_meant = [&](const auto& entry) { return !means(filter, entry); };
  if (choice && not_meant(*choice)) choice.reset();
  std::erase_if(measurements, not_meant);
  std::erase_if(quarantine, not_meant);
}

ProblemEntries by_problem(const TuneRecord& record, std::string_view function) {
  ProblemEntries entries;
  const auto of = [&](const std::string& problem) -> ProblemEntry& {
    check_name("problem", problem, false, function);
    return entries[problem];
  };
  for (const Measurement& entry : record.measurements) {
    check(entry, function);
    of(entry.problem).measurements.push_back(entry);
  }
  for (TunedChoice entry : record.choices) {
    check_name("kernel", entry.kernel, false, function);
    check_name("kernel_version", entry.kernel_version, true, function);
    check_name("plan", entry.plan, true, function);
    check_name("incumbent", entry.incumbent, true, function);
    entry.because = as_utf8(entry.because);
    of(entry.problem).choice = std::move(entry);
  }
  for (QuarantineEntry entry : record.quarantine) {
    check_name("kernel", entry.kernel, false, function);
    check_name("kernel_version", entry.kernel_version, true, function);
    entry.reason = as_utf8(entry.reason);
    of(entry.problem).quarantine.push_back(std::move(entry));
  }
  for (auto& [problem, entry] : entries) {
    settle(entry.measurements);
    settle(entry.quarantine);
  }
  return entries;
}

void append(TuneRecord& record, const ProblemEntry& entry) {
  if (entry.choice) record.choices.push_back(*entry.choice);
  record.measurements.insert(record.measurements.end(), entry.measurements.begin(), entry.measurements.end());
  record.quarantine.insert(record.quarantine.end(), entry.quarantine.begin(), entry.quarantine.end());
}

bool is_of_op(std::string_view problem, std::string_view op) {
  if (!problem.starts_with(op)) return false;
  problem.remove_prefix(op.size());
  return problem.starts_with("(") || problem.starts_with(":");
}

std::size_t entry_count(const StoreContents& contents) {
  std::size_t count = 0;
  for (const auto& [environment, record] : contents) {
    count += record.measurements.size() + record.choices.size() + record.quarantine.size();
  }
  return count;
}

}  // namespace xpuruntime
