#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpu_problems.h"
#include "machine_peak.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::bench {

/// A kernel of ours that was timed.
struct OwnTime {
  std::string kernel = {};
  double us = 0;
};

/// What came out for one problem.
struct Row {
  CpuProblem source = {};
  Problem problem = {};
  std::string chosen = {};        // empty: no kernel
  double ours_us = 0;             // 0: not timed, `note` says why
  std::vector<OwnTime> own = {};  // all that were timed, the chosen one among them
  std::optional<double> torch_us = {};
  std::optional<double> ort_us = {};
  std::string torch_why = {};  // why there is no time
  std::string ort_why = {};
  std::string note = {};
  bool wrong = false;  // somebody's result differs: `note` says whose

  std::optional<double> better_peer_us() const;
  /// Better peer / ours: over 1 we are faster. Nothing without a peer or without our time.
  std::optional<double> ratio() const;
  /// The kernel of ours that was more than 5 % faster than the chosen one.
  const OwnTime* better_own() const;
  bool timed() const { return ours_us > 0; }
};

struct Conditions {
  int threads = 1;
  MachinePeak peak = {};
  std::string torch = {};  // version, or "not measured: why"
  std::string ort = {};
};

/// The table, one row a problem, and below it what it comes to.
void print_report(const std::vector<Row>& rows, const Conditions& conditions);
/// The same for programs. False where the file cannot be written.
bool write_json(const std::string& path, const std::vector<Row>& rows, const Conditions& conditions);

}  // namespace xpuruntime::bench
