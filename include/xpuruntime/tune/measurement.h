#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xpuruntime {

/// How one kernel did on one problem.
struct Measurement {
  std::string problem = {};  // its text, limits and device included: the whole identity
  std::string kernel = {};
  std::string plan = {};  // the plan's token
  double time_us = 0;     // median
  double noise_us = 0;    // maximum error of the median at 95 % confidence
  std::int64_t runs = 0;
  std::uint64_t workspace_bytes = 0;
  double error = 0;                 // largest error against the reference, of its largest magnitude
  std::int64_t measured_at = 0;     // seconds since 1970
  std::string kernel_version = {};  // Kernel::version

  bool operator==(const Measurement&) const = default;
};

/// What the race on a problem ended with.
struct TunedChoice {
  std::string problem = {};
  std::string kernel = {};
  std::string plan = {};
  std::string incumbent = {};  // what would have been chosen without measuring
  std::string because = {};    // one sentence
  bool cut_short = false;      // the time budget ended the race before it was sure
  std::int64_t measured_at = 0;
  std::string kernel_version = {};

  bool operator==(const TunedChoice&) const = default;
};

/// A kernel that must not run a problem here: it crashed, hung, threw or gave wrong numbers.
struct QuarantineEntry {
  std::string problem = {};
  std::string kernel = {};
  std::string reason = {};
  std::int64_t found_at = 0;
  std::string kernel_version = {};
  std::string plan = {};  // the token of the one plan that is meant; empty: the kernel

  bool operator==(const QuarantineEntry&) const = default;
};

/// What one tuning run of one problem found: stored as a whole or not at all.
struct TuneRecord {
  std::vector<Measurement> measurements = {};
  std::vector<TunedChoice> choices = {};
  std::vector<QuarantineEntry> quarantine = {};

  bool operator==(const TuneRecord&) const = default;
};

}  // namespace xpuruntime
