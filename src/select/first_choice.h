#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "xpuruntime/registry/kernel.h"
#include "xpuruntime/select/rule.h"

namespace xpuruntime {

/// A kernel that can run a problem.
struct Option {
  const Kernel* kernel = nullptr;
  const Problem* problem = nullptr;  // as the kernel gets it
  std::uint64_t copied_bytes = 0;    // 0: it takes the tensors as they are
  bool copies_unused = false;        // far more than the call uses of what is copied
};

struct FirstChoice {
  std::optional<std::size_t> option = {};  // none where there is no option at all
  std::string because = {};
};

/// ", compute capability 12.0 was not measured" on devices newer than those that the built-in rules come from; defined
/// beside them.
std::string unmeasured_note(const DeviceProfile& profile);

/// The choice where no kernel was named and nothing was measured: the first line that holds of one list, which is the
/// built-in rules and after them the rows of the table. Kernels that need copies take part where the work outweighs
/// them; else they come after all that need none but `reference`, which is the last of all, unless they copy far more
/// than the call uses.
FirstChoice first_choice(std::span<const Option> options, std::span<const BuiltinRule> rules,
                         const DeviceProfile& profile);

}  // namespace xpuruntime
