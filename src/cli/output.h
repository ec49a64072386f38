#pragma once

#include <string_view>

namespace xpuruntime::cli {

/// Writes all of the answer. A reader that has gone is fine; any other failure is told on stderr and gives false.
bool write_to_stdout(std::string_view text);

/// A message on stderr, which starts with "xrt: ". Further lines are indented, so that no text in it poses as another
/// message.
void write_message(std::string_view text);

}  // namespace xpuruntime::cli
