#pragma once

#include <set>
#include <string>

#include "xpuruntime/select/lock.h"

namespace xpuruntime {

/// What of an environment an entry depends on, beside the device and its instruction set.
struct LockNeeds {
  bool everything = false;
  bool all_traits = false;  // of a range whose plans vary, so that none is there to tell by
  std::set<std::string> versions = {};

  /// The environment without what does not matter.
  Environment part_of(const Environment& whole) const;
};

/// Of a kernel of this library: the library itself, the driver, and the libraries of its row in the catalogue. Of one
/// that somebody brought everything, since nobody says what its code calls.
LockNeeds needs_of(const LockEntry& entry);
/// What either depends on.
LockNeeds operator|(LockNeeds a, const LockNeeds& b);

/// Whether an entry is of a problem exactly as it is. KernelLock::find_for also finds those of other alignments, and
/// with or without `deterministic`.
bool is_exact(const LockEntry& entry, const Problem& problem);

/// An entry's kernel, its version and its plan, for texts.
std::string text_of_choice(const LockEntry& entry);
/// "onnxruntime 1.20 on cpu in fp32, optimize_level 2"
std::string text_of_choice(const LockedEngine& engine);

/// The problem's text without its limits, and what is cut off: "deterministic threads=2"; empty: none.
struct LimitedText {
  std::string problem = {};
  std::string limits = {};
};
LimitedText without_limits(const std::string& problem);

}  // namespace xpuruntime
