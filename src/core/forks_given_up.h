#pragma once

#include <cstdint>

namespace xpuruntime {

/// How many forks of this process went on although another thread still held a Mutex: none should.
std::int32_t forks_given_up();

}  // namespace xpuruntime
