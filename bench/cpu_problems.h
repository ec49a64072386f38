#pragma once

#include <span>
#include <string_view>

namespace xpuruntime::bench {

/// One line of the benchmark's shape list: where the shape comes from, and the problem as text.
struct CpuProblem {
  std::string_view group = {};  // bert, llama, decode, cnn, odd, misc, layout
  std::string_view text = {};
};

/// Every op of the table, with shapes of models in use. One call takes microseconds to some 30 ms on two cores.
std::span<const CpuProblem> cpu_problems();

}  // namespace xpuruntime::bench
