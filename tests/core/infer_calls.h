#pragma once

#include <string>

#include "core/expect_error.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// The outputs of a call written as a problem text without its device: "f32[2,4]".
inline std::string outputs_of(const std::string& call) {
  std::string text;
  for (const TensorSpec& spec : parse_problem(call).outputs) text += (text.empty() ? "" : ", ") + to_string(spec);
  return text;
}

/// The call is refused with a text that holds `part`, shows its first input and says what to do.
inline void expect_refused(const std::string& call, const std::string& part) {
  expect_invalid(part, [&] { parse_problem(call); });
  expect_invalid("; ", [&] { parse_problem(call); });
}

}  // namespace xpuruntime
