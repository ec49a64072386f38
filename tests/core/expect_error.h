#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "xpuruntime/core/error.h"

namespace xpuruntime {

/// Runs `use`, which must throw Error with this code and a text that holds `part`.
template <class Use>
void expect_error(ErrorCode code, const std::string& part, Use use) {
  try {
    use();
    ADD_FAILURE() << "no error where one was due: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nlacks: " << part;
  }
}

template <class Use>
void expect_invalid(const std::string& part, Use use) {
  expect_error(ErrorCode::invalid_argument, part, std::move(use));
}

}  // namespace xpuruntime
