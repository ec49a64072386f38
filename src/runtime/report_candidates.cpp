#include <algorithm>

#include "runtime/report_rows.h"

namespace xpuruntime {
namespace {

std::vector<const Measurement*> measurements_of(const StoreSnapshot::Entry& known, const std::string& kernel) {
  std::vector<const Measurement*> found;
  for (const Measurement& m : known.measurements) {
    if (m.kernel == kernel) found.push_back(&m);
  }
  return found;
}

ReportCandidate measured_candidate(const Measurement& m, const Candidate& decided) {
  return {m.kernel, m.plan, to_string(decided.outcome), decided.reason, m.time_us, m, m.workspace_bytes};
}

/// One candidate for each plan that was measured, else one with what the decision knows of it.
void add_kernel(ReportRow& row, const Candidate& decided, const StoreSnapshot::Entry& known) {
  const auto measured = measurements_of(known, decided.kernel);
  for (const Measurement* m : measured) row.candidates.push_back(measured_candidate(*m, decided));
  if (!measured.empty()) return;
  const bool runs = row.decision && decided.kernel == row.decision->kernel;
  row.candidates.push_back({decided.kernel,
                            runs ? row.decision->plan : "",
                            to_string(decided.outcome),
                            decided.reason,
                            decided.time_us,
                            {},
                            decided.workspace_bytes});
}

bool has_kernel(const ReportRow& row, const std::string& kernel) {
  return std::any_of(row.candidates.begin(), row.candidates.end(),
                     [&](const ReportCandidate& c) { return c.kernel == kernel; });
}

void add_quarantined(ReportRow& row, const QuarantineEntry& entry) {
  if (!has_kernel(row, entry.kernel)) row.candidates.push_back({entry.kernel});
  for (ReportCandidate& candidate : row.candidates) {
    if (candidate.kernel != entry.kernel) continue;
    candidate.verdict = "quarantined";
    candidate.reason = entry.reason;
  }
}

/// The candidate that the row names: with its plan, else the kernel's only one.
ReportCandidate* named_candidate(ReportRow& row) {
  ReportCandidate* only = nullptr;
  std::size_t plans = 0;
  for (ReportCandidate& candidate : row.candidates) {
    if (candidate.kernel != row.kernel) continue;
    if (candidate.plan == row.plan) return &candidate;
    only = &candidate;
    ++plans;
  }
  // A plan that is not known can only be the row's own.
  return plans == 1 && (only->plan.empty() || row.plan.empty()) ? only : nullptr;
}

void mark_chosen(ReportRow& row) {
  for (ReportCandidate& candidate : row.candidates) {
    if (candidate.verdict == "chosen") candidate.verdict = "passed";
  }
  if (row.kernel.empty()) return;
  ReportCandidate* chosen = named_candidate(row);
  if (chosen == nullptr) chosen = &row.candidates.emplace_back(ReportCandidate{row.kernel, row.plan});
  if (chosen->verdict == "refused" || chosen->verdict == "quarantined") {
    row.notes.push_back(row.kernel + " cannot run it here: " + chosen->reason);
  }
  chosen->verdict = "chosen";
  chosen->plan = row.plan;
  chosen->reason = row.because;
  chosen->workspace_bytes = row.workspace_bytes;
}

}  // namespace

void add_candidates(ReportRow& row, const StoreSnapshot::Entry& known) {
  if (row.decision) {
    for (const Candidate& candidate : row.decision->candidates) add_kernel(row, candidate, known);
  }
  for (const Measurement& m : known.measurements) {
    const bool there = std::any_of(row.candidates.begin(), row.candidates.end(),
                                   [&](const ReportCandidate& c) { return c.kernel == m.kernel && c.plan == m.plan; });
    if (!there) row.candidates.push_back(measured_candidate(m, {}));
  }
  for (const QuarantineEntry& entry : known.quarantine) add_quarantined(row, entry);
  mark_chosen(row);
}

}  // namespace xpuruntime
