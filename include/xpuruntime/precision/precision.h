#pragma once

#include <functional>
#include <optional>
#include <string>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// The precision one call is computed in, and who said so.
struct Precision {
  DataType forward = DataType::float32;
  DataType backward = DataType::float32;
  std::string because = {};

  bool operator==(const Precision&) const = default;
};

/// Wishes a dtype for a problem, or nothing. Asked once per signature, with no lock held.
using PrecisionHook = std::function<std::optional<DataType>(const Problem&)>;

/// Who may say at which precision a call runs, strongest first.
struct PrecisionWishes {
  std::optional<DataType> explicit_dtype = {};
  const PrecisionHook* hook = nullptr;
  std::optional<DataType> policy_default = {};
};

/// Takes the first wish and reconciles it with the inputs. The inputs' own dtypes are never narrowed or widened here:
/// a wish that would need casts stays a wish, and `because` says so. Integers are never cast.
Precision resolve_precision(const Problem& problem, const PrecisionWishes& wishes);

}  // namespace xpuruntime
