#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/precision/autocast.h"

namespace xpuruntime {

/// The precision one call is computed in, and who said so.
struct Precision {
  DataType forward = DataType::float32;
  DataType backward = DataType::float32;
  std::string because = {};
  bool requested = false;  // it was asked for; else it is the inputs' own

  bool operator==(const Precision&) const = default;
};

/// Returns the dtype to use for a problem, or nothing. Asked once per signature, with no lock held.
using PrecisionHook = std::function<std::optional<DataType>(const Problem&)>;

/// Who may say at which precision a call runs, strongest first.
struct PrecisionRequests {
  std::optional<DataType> explicit_dtype = {};       // of the call
  const PrecisionHook* hook = nullptr;               // of the program
  const DirectionPrecisions* policy_rule = nullptr;  // of the policy for this op
  const Autocast* autocast = nullptr;                // of the scope
  std::optional<DataType> policy_default = {};
};

/// What the strongest request makes of the problem's own dtype, for both directions. Integers never change. Unless a
/// rule names the dtype itself, no input in one 16-bit format is made the other: mixed ones then stay at what holds
/// them all.
Precision resolve_precision(const Problem& problem, const PrecisionRequests& requests);

/// The same also for ops that compute nothing, such as embedding: what a result that is not allocated yet should be.
Precision requested_precision(const Problem& problem, const PrecisionRequests& requests);

/// The dtype that a precision governs in this problem: that of its direction.
DataType governing_dtype(const Precision& precision, const Problem& problem);

/// Whether the precision of an op governs this input: indices, masks, scales and statistics keep their own, and ops
/// that only move values have nothing to compute.
bool is_governed(const Problem& problem, std::size_t input);

/// The problem with all governed inputs in `dtype`, each contiguous where it is cast, and the outputs that follow.
/// A given output stays where its dtype is the one that follows, and where no input changes, unless `cast_outputs`.
Problem at_precision(const Problem& problem, DataType dtype, bool cast_outputs = false);

/// The next dtype that holds every value of this one; nothing after float64.
std::optional<DataType> next_lossless(DataType dtype);

}  // namespace xpuruntime
