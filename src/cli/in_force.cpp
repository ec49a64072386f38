#include "cli/in_force.h"

#include <algorithm>
#include <string_view>

#include "core/environment_variable.h"
#include "core/printable.h"
#include "select/policy_check.h"

namespace xpuruntime::cli {
namespace {

/// One word for a shell, in quotes where it would be read otherwise.
std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return (static_cast<unsigned char>(c) & 0x80) != 0 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || std::string_view("_-./:@%+,=").find(c) != std::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string setting(const char* variable, const std::string& file) {
  return std::string(variable) + "=" + shell_word(printable(file));
}

}  // namespace

std::string policy_of_lock(const KernelPolicy& policy, const std::string& given) {
  KernelPolicy choices = kernel_choices(policy);
  choices.deterministic = policy.deterministic;  // false limits nothing
  const bool same_problems = policy.limits() == Limits{} && choices == policy;
  if (same_problems) return "";
  if (!given.empty()) return given;
  const char* const file = environment_variable("XPURUNTIME_POLICY");
  return file == nullptr ? "" : file;
}

std::string policy_in_force(const std::string& policy) {
  return "policy: " + printable(policy) + "; in force with " + setting("XPURUNTIME_POLICY", policy);
}

std::string lock_in_force(const std::string& lock, const std::string& policy) {
  return "lock: " + printable(lock) + "; in force with " +
         (policy.empty() ? "" : setting("XPURUNTIME_POLICY", policy) + " ") + setting("XPURUNTIME_LOCK", lock);
}

}  // namespace xpuruntime::cli
