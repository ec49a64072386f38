#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "xpuruntime/core/error.h"

namespace xpuruntime {

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

/// The text of the Error that `use` throws; fails the test if it throws none or one of another code.
template <class Use>
std::string error_text(ErrorCode code, Use use) {
  try {
    use();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Runs `use`, which must throw Error with this code and a text that holds `part`.
template <class Use>
void expect_error(ErrorCode code, const std::string& part, Use use) {
  const std::string text = error_text(code, std::move(use));
  EXPECT_HAS(text, part) << "\nlacks: " << part;
}

template <class Use>
void expect_invalid(const std::string& part, Use use) {
  expect_error(ErrorCode::invalid_argument, part, std::move(use));
}

}  // namespace xpuruntime
