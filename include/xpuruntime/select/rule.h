#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime {

/// Reads the whole problem and the profile. May throw: that is a rejection with its text.
using Condition = std::function<bool(const Problem&, const DeviceProfile&)>;

/// "For this op, where the condition holds, use that kernel." Higher priority first, then in the order of registration.
struct Rule {
  OpId op = OpId::matmul;
  Condition condition = {};
  std::string kernel = {};
  int priority = 0;
  std::string name = {};  // shown in decisions; "rule 3" if left out
  std::uint64_t id = 0;   // given on registration
};

/// A rule that the library brings. The table is the only place where per-vendor knowledge lives.
struct BuiltinRule {
  OpId op = OpId::matmul;
  DeviceType device_type = DeviceType::cpu;
  bool (*condition)(const Problem&, const DeviceProfile&) = nullptr;
  std::string_view kernel = {};
  std::string_view because = {};
};

/// All built-in rules in the order they are tried; the last of an op is its catch-all.
std::span<const BuiltinRule> builtin_rules();

}  // namespace xpuruntime
