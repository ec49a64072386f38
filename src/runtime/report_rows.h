#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/runtime/report.h"

namespace xpuruntime {

/// One kernel on the problem of a row: what came of it, and what is known of its speed.
struct ReportCandidate {
  std::string kernel = {};
  std::string plan = {};
  std::string_view verdict = "passed";  // chosen, passed, refused, quarantined
  std::string reason = {};
  std::optional<double> time_us = {};
  std::optional<Measurement> measured = {};
  std::optional<std::uint64_t> workspace_bytes = {};
};

/// One decision as a report shows it.
struct ReportRow {
  std::string problem = {};
  std::string_view source = {};  // lock, store, here: who says that this kernel runs
  std::string kernel = {};       // empty: none
  std::string plan = {};
  std::uint64_t workspace_bytes = 0;
  std::string because = {};
  std::optional<LockEntry> entry = {};     // of the lock
  std::optional<TunedChoice> choice = {};  // what the race ended with in this environment
  std::optional<Decision> decision = {};   // what would be decided here and now
  std::string environment = {};            // id
  std::vector<ReportCandidate> candidates = {};
  std::string kernel_version = {};      // as in LockEntry
  std::vector<std::string> notes = {};  // what a reader should know before believing the row
  bool of_range = false;                // stands for a part of one of ReportRows::ranges

  const ReportCandidate* chosen() const;
};

struct ReportEnvironment {
  Environment environment = {};
  EnvironmentMatch match = {};  // what its entries are worth here
};

/// A range that was decided here and now.
struct ReportRange {
  ProblemRange range = {};
  const LockEntry* entry = nullptr;  // the one of `against` that it was taken from
};

struct ReportRows {
  std::vector<ReportRow> rows = {};
  std::vector<ReportRange> ranges = {};
  std::map<std::string, ReportEnvironment> environments = {};  // by id: all that rows and changes name
};

ReportRows report_rows(Runtime& runtime, const ReportOptions& options);

/// What differs from the lock of the options that the report is made against.
std::vector<LockDifference> report_changes(Runtime& runtime, const ReportRows& rows, const ReportOptions& options);

/// Fills in the candidates of a row from its decision and from what the store knows of its problem, and marks the one
/// that the row's kernel and plan name.
void add_candidates(ReportRow& row, const StoreSnapshot::Entry& known);

}  // namespace xpuruntime
