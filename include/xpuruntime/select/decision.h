#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/precision/precision.h"

namespace xpuruntime {

/// Who decided, from the one that overrides all others to the weakest.
enum class Level : std::uint8_t { lock, force, prefer, rule, strategy };
std::string_view to_string(Level level);

/// chosen: it runs. refused: it cannot or may not, see the reason. passed: it could have run.
enum class Outcome : std::uint8_t { chosen, refused, passed };
std::string_view to_string(Outcome outcome);

/// One kernel that was looked at.
struct Candidate {
  std::string kernel = {};
  Outcome outcome = Outcome::passed;
  std::string reason = {};
  std::optional<double> time_us = {};
  std::optional<std::uint64_t> workspace_bytes = {};
  /// To and from contiguous memory, because it refuses the layout or the alignment; part of its workspace.
  std::uint64_t copied_bytes = 0;

  bool operator==(const Candidate&) const = default;
};

/// A tensor that the dispatcher converts before or after the kernel runs.
struct CastStep {
  bool is_output = false;
  std::size_t index = 0;  // among the call's inputs or outputs
  DataType from = DataType::float32;
  DataType to = DataType::float32;
  std::string kernel = {};  // of the op `cast`

  bool operator==(const CastStep&) const = default;
};

/// A tensor that the kernel gets as a contiguous copy, or writes to one that is copied back.
struct CopyStep {
  bool is_output = false;
  std::size_t index = 0;  // among the problem's inputs or outputs
  TensorSpec from = {};
  TensorSpec to = {};
  std::string kernel = {};  // of the op `copy`

  bool operator==(const CopyStep&) const = default;
};

/// What was chosen for a problem, why, and what was turned down and why. One record feeds explain, the log, the error
/// texts and everything that is stored.
struct Decision {
  Problem problem = {};             // after the casts, before the copies
  std::string kernel = {};          // empty: nothing can run this, and `because` says why
  std::string kernel_version = {};  // Kernel::version; empty for kernels of this library
  Level level = Level::strategy;
  std::string because = {};
  Precision precision = {};
  std::vector<CastStep> casts = {};   // inputs first
  std::vector<CopyStep> copies = {};  // inputs first; part of the plan
  std::string plan = {};              // the plan's token; empty where the kernel had nothing to choose
  std::uint64_t workspace_bytes = 0;
  std::vector<Candidate> candidates = {};

  bool operator==(const Decision&) const = default;

  /// One JSON document as docs/interfaces.md describes it. `indent` < 0: on one line.
  std::string to_json(int indent = 2) const;
  /// For people: the choice, why, and one line per candidate.
  std::string to_text() const;
};

}  // namespace xpuruntime
